package steer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// rankSet returns a workload of a kind that is only like a StatefulSet, with five Pods, of which none is updated.
func rankSet(change ...func(map[string]any)) *unstructured.Unstructured {
	o := map[string]any{
		"apiVersion": "example.com/v1", "kind": "RankSet",
		"metadata": map[string]any{
			"name": "web", "namespace": "ns", "uid": "u", "generation": int64(2), "labels": map[string]any{keys.WorkloadType: "statefulset"},
		},
		"spec": map[string]any{
			"replicas": int64(5), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "main", "image": "web:v2"}}, "ofTomorrow": "kept",
			}},
			"updateStrategy": map[string]any{"rollingUpdate": map[string]any{"partition": int64(0)}},
		},
		"status": map[string]any{
			"observedGeneration": int64(2), "replicas": int64(5), "updatedReplicas": int64(2),
			"currentRevision": "web-v1", "updateRevision": "web-v2",
		},
	}
	for _, c := range change {
		c(o)
	}
	return &unstructured.Unstructured{Object: o}
}

// having sets a field; nil removes it.
func having(value any, path ...string) func(map[string]any) {
	return func(o map[string]any) {
		if value == nil {
			unstructured.RemoveNestedField(o, path...)
			return
		}
		setField(o, value, path...)
	}
}

func TestWhichFieldDoesNotFit(t *testing.T) {
	partition := partitionPath()
	for name, tc := range map[string]struct {
		change      func(map[string]any)
		fits, lacks string
	}{
		"nothing":                       {func(map[string]any) {}, "", ""},
		"no number of Pods":             {having(nil, "spec", "replicas"), "spec.replicas", ""},
		"a fraction of Pods":            {having(1.5, "spec", "replicas"), "spec.replicas", ""},
		"no selector":                   {having(nil, "spec", "selector"), "spec.selector", ""},
		"no template":                   {having(nil, "spec", "template"), "spec.template", ""},
		"a template of something else":  {having("pod", "spec", "template"), "spec.template", ""},
		"a template without containers": {having(nil, "spec", "template", "spec", "containers"), "spec.template.spec.containers", ""},
		"containers that are none":      {having("x", "spec", "template", "spec", "containers"), "spec.template", ""},
		"no update strategy":            {having(nil, "spec", "updateStrategy"), "", "spec.updateStrategy.rollingUpdate.partition"},
		"an update strategy of text":    {having("Rolling", "spec", "updateStrategy"), "spec.updateStrategy is no object", "partition"},
		"OnDelete":                      {having("OnDelete", "spec", "updateStrategy", "type"), "spec.updateStrategy.type is OnDelete", ""},
		"RollingUpdate":                 {having("RollingUpdate", "spec", "updateStrategy", "type"), "", ""},
		"a partition by percentage":     {having("50%", partition...), "partition is no whole number", "partition"},
		"a status of text":              {having("2", "status", "updatedReplicas"), "status.updatedReplicas", ""},
		"a revision that is a number":   {having(int64(2), "status", "updateRevision"), "status.updateRevision is no text", "updateRevision"},
		"no status yet":                 {having(nil, "status"), "", "status.observedGeneration"},
		"no revision yet":               {having(nil, "status", "updateRevision"), "", "status.updateRevision"},
		"no count of updated Pods":      {having(nil, "status", "updatedReplicas"), "", ""},
		"no label of its user":          {having(nil, "metadata", "labels"), "metadata.labels[" + keys.WorkloadType + "]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := Objects{Workload: rankSet(tc.change), Now: now}
			for what, got := range map[string][2]string{"fits": {Fits(o), tc.fits}, "lacks": {Lacks(o), tc.lacks}} {
				if (got[0] == "") != (got[1] == "") || !strings.Contains(got[0], got[1]) {
					t.Errorf("%s: %q, want %q", what, got[0], got[1])
				}
			}
			k := likeStatefulSet() // whatever it looks like, nothing panics
			k.See(o)
			k.Freeze(o)
			k.Promote(o)
			if tc.fits != "" && k.Refuses(o) == "" {
				t.Error("a change of it would be frozen")
			}
		})
	}
	bare := &corev1.Pod{}
	bare.Name, bare.Status.Phase = "web-0", corev1.PodRunning
	if why := Fits(Objects{Workload: rankSet(), Pods: []*corev1.Pod{bare}}); !strings.Contains(why, "web-0") {
		t.Errorf("a Pod without the label of its revision: %q", why)
	}
}

func TestAKindThatIsOnlyLikeAStatefulSet(t *testing.T) {
	k := likeStatefulSet()
	at := func(w Object) any { return field(fieldsOf(w), partitionPath()...) }
	o := Objects{Workload: rankSet(), Now: now, Pods: pods(3, 2)}
	frozen := k.Freeze(o)
	if at(frozen) != int64(maxOrdinal) || at(o.Workload) != int64(0) {
		t.Errorf("it is frozen at %v, and what was read is at %v", at(frozen), at(o.Workload))
	}
	o.Workload = frozen
	w, err := k.Batch(o, Batch{Step: value(3)})
	if err != nil || at(w.Workload) != int64(2) {
		t.Errorf("three of five: partition %v, %v", at(w.Workload), err)
	}
	if got := k.Promote(o).Workload; at(got) != int64(0) {
		t.Errorf("in the end the partition is %v", at(got))
	}
	replaced := rankSet(having(nil, "spec", "updateStrategy"))
	if got := k.Guard(frozen, Objects{Workload: replaced}); at(got) != int64(maxOrdinal) {
		t.Errorf("replaced without a partition, it is %v", at(got))
	}
	f := k.See(Objects{Workload: rankSet(having(int64(1), "status", "updatedReadyReplicas")), Pods: pods(3, 2), Now: now})
	if f.Updated != 2 || f.Ready != 1 || f.Stable != "web-v1" || f.Update != "web-v2" || !f.Settled {
		t.Errorf("facts %+v", f)
	}
	if f := k.See(o); f.Ready != 2 {
		t.Errorf("%d updated Pods are ready, want the two that are", f.Ready)
	}
	if IsRelease(rankSet(), rankSet(having(int64(7), "spec", "replicas"))) || !IsRelease(rankSet(), rankSet(having("else", "spec", "template", "spec", "ofTomorrow"))) {
		t.Error("a change of a field that this build does not know is a release, and a change of the number of Pods is none")
	}
	stored := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"$patch":"replace","spec":{"old":true}}}}`)}}
	stored.Name = "web-v1"
	back, err := PutBack(Objects{Workload: rankSet(), Revisions: []*appsv1.ControllerRevision{stored}}, "web-v1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"spec": map[string]any{"old": true}}, field(fieldsOf(back.Workload), "spec", "template")); diff != "" {
		t.Errorf("the old template (-want +got):\n%s", diff)
	}
	if _, err := PutBack(Objects{Workload: rankSet()}, "web-v1"); err == nil {
		t.Error("a revision that is gone is put back")
	}
	for _, tc := range []struct {
		kind schema.GroupKind
		want bool
	}{
		{schema.GroupKind{Group: "example.com", Kind: "RankSet"}, true}, {schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, false},
		{schema.GroupKind{Kind: "Pod"}, false}, {schema.GroupKind{Group: "apps.kruise.io", Kind: "SidecarSet"}, false},
	} {
		if _, ok := AnyOf(tc.kind, v1beta1.RollingStylePartition); ok != tc.want {
			t.Errorf("%s can be released: %t", tc.kind, ok)
		}
	}
}
