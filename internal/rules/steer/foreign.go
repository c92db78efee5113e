package steer

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// foreign steers workloads of kinds that are not known, and are only like a StatefulSet (R3). They are read as they come from the API
// server, as JSON.
//
// Such a workload has the partition at all times, be it 0: one that its kind does not have is dropped by the API server when it is written,
// and then nothing would stop the workload. Fits says so before a release depends on it.
type foreign struct{ partitioned }

// AnyOf is Of, and also steers workloads of kinds that are only like a StatefulSet.
func AnyOf(of schema.GroupKind, style v1beta1.RollingStyle) (Kind, bool) {
	if k, ok := Of(of, style); ok || !IsForeign(of) {
		return k, ok
	}
	return likeStatefulSet(), style == v1beta1.RollingStylePartition
}

// IsForeign tells whether a kind is neither one that releases know nor one of Kubernetes, which all have controllers of their own ways.
func IsForeign(of schema.GroupKind) bool {
	return of.Kind != "" && strings.Contains(of.Group, ".") && !strings.HasSuffix(of.Group, ".k8s.io") &&
		!strings.HasSuffix(of.Group, ".kruise.io")
}

func likeStatefulSet() Kind {
	return foreign{partitioned{
		kind: "statefulset", label: appsv1.ControllerRevisionHashLabelKey, freeze: intstr.FromInt32(maxOrdinal), value: keepNumber,
		read: func(workload Object) reading {
			o := fieldsOf(workload)
			r := reading{generation: workload.GetGeneration(), onDelete: !isRolling(o)}
			r.replicas, _ = number32(o, "spec", "replicas")
			if n, there := number32(o, partitionPath()...); there {
				partition := intstr.FromInt32(n)
				r.partition = &partition
			}
			r.observed, _, _ = unstructured.NestedInt64(o, "status", "observedGeneration")
			r.current, r.update = text(o, "status", "currentRevision"), text(o, "status", "updateRevision")
			return r
		},
		write: func(workload Object, partition *intstr.IntOrString) {
			n := int64(0)
			if partition != nil {
				n = int64(partition.IntVal)
			}
			setField(fieldsOf(workload), n, partitionPath()...)
		},
	}}
}

// Prepare returns a workload as a release needs it: with the label by which the webhook knows it, or with a partition where its user gives
// that label. The workload is copied if that changes it.
func Prepare(k Kind, workload Object) Object {
	like, is := k.(foreign)
	if !is {
		return Label(k, workload)
	}
	if like.read(workload).partition != nil {
		return workload
	}
	next := copyOf(workload)
	like.write(next, nil)
	return next
}

// Guard keeps a partition that somebody has left out, who has replaced the whole object.
func (k foreign) Guard(old Object, o Objects) Object {
	was := k.read(old).partition
	if k.read(o.Workload).partition != nil || was == nil {
		return k.partitioned.Guard(old, o)
	}
	next := copyOf(o.Workload)
	k.write(next, was)
	return next
}

// Refuses does not take for one in steps what nothing would stop.
func (k foreign) Refuses(o Objects) string {
	if why := Fits(o); why != "" {
		return why
	}
	if k.read(o.Workload).partition == nil {
		return strings.Join(partitionPath(), ".") + " is not there"
	}
	return k.partitioned.Refuses(o)
}

// See believes the counts of the status. How many updated Pods are ready is counted where it does not say it.
func (k foreign) See(o Objects) Facts {
	f := k.partitioned.See(o)
	fields := fieldsOf(o.Workload)
	if n, there := number32(fields, "status", "updatedReplicas"); there {
		f.Updated = n
	}
	if n, there := number32(fields, "status", "updatedReadyReplicas"); there {
		f.Ready = n
	}
	return f
}

func partitionPath() []string {
	return []string{"spec", "updateStrategy", "rollingUpdate", "partition"}
}

func isRolling(o map[string]any) bool {
	kind := field(o, "spec", "updateStrategy", "type")
	return kind == nil || kind == "" || kind == string(appsv1.RollingUpdateStatefulSetStrategyType)
}

// sameForeign tells whether two workloads of a kind that is not known have the same template, whatever of it this build knows.
func sameForeign(old, now *unstructured.Unstructured) bool {
	template := func(o *unstructured.Unstructured) any {
		copied := runtime.DeepCopyJSONValue(field(o.Object, "spec", "template"))
		if labels, is := field(map[string]any{"t": copied}, "t", "metadata", "labels").(map[string]any); is {
			delete(labels, keys.PodTemplateHash)
		}
		return copied
	}
	return equality.Semantic.DeepEqual(template(old), template(now))
}

// putBackForeign gives a workload the template of a revision, as controllers of StatefulSets store it.
func putBackForeign(o Objects, next *unstructured.Unstructured, stable string) error {
	i := slices.IndexFunc(o.Revisions, func(r *appsv1.ControllerRevision) bool { return r.Name == stable })
	if i < 0 {
		return fmt.Errorf("the revision %s is not there any more", stable)
	}
	var data map[string]any
	if err := json.Unmarshal(o.Revisions[i].Data.Raw, &data); err != nil {
		return fmt.Errorf("reading revision %s: %w", stable, err)
	}
	template, is := field(data, "spec", "template").(map[string]any)
	if !is {
		return fmt.Errorf("the revision %s holds no spec.template", stable)
	}
	template = maps.Clone(template)
	delete(template, "$patch")
	setField(next.Object, template, "spec", "template")
	return nil
}

// fieldsOf returns the fields of a workload of a kind that is not known.
func fieldsOf(workload Object) map[string]any {
	if o, is := workload.(*unstructured.Unstructured); is {
		return o.Object
	}
	return nil
}

// field returns a field; nil if it or what it is in is not there.
func field(o map[string]any, path ...string) any {
	value, _, err := unstructured.NestedFieldNoCopy(o, path...)
	if err != nil {
		return nil
	}
	return value
}

func text(o map[string]any, path ...string) string {
	value, _ := field(o, path...).(string)
	return value
}

// number32 returns a number of Pods; false if it is not there, or is none.
func number32(o map[string]any, path ...string) (int32, bool) {
	n, is := field(o, path...).(int64)
	if !is || n < math.MinInt32 || n > math.MaxInt32 {
		return 0, false
	}
	return int32(n), true
}

// setField sets a field, and makes what it is in.
func setField(o map[string]any, value any, path ...string) {
	for _, name := range path[:len(path)-1] {
		in, is := o[name].(map[string]any)
		if !is {
			in = map[string]any{}
			o[name] = in
		}
		o = in
	}
	o[path[len(path)-1]] = value
}
