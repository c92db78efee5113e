package rollouts

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// rankSets are a kind that no manager knows: like a StatefulSet, with a controller of its own.
const rankSets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ranksets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: RankSet, listKind: RankSetList, plural: ranksets, singular: rankset}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              replicas: {type: integer}
              selector: {type: object, x-kubernetes-preserve-unknown-fields: true}
              template: {type: object, x-kubernetes-preserve-unknown-fields: true}
              updateStrategy:
                type: object
                properties:
                  type: {type: string}
                  rollingUpdate: {type: object, properties: {partition: {type: integer}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

const rankSet = `
apiVersion: example.com/v1
kind: RankSet
metadata: {name: web}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "web:v1"}]}
`

const ofRankSet = "apiVersion: example.com/v1, kind: RankSet"

// TestAWorkloadThatIsOnlyLikeAStatefulSet: a Rollout of a kind that nobody knows says what is missing, one after the other, until it
// releases, rolls back and ends like any other.
func TestAWorkloadThatIsOnlyLikeAStatefulSet(t *testing.T) {
	e := newEnv(t)
	e.Make(rolloutOf(ofRankSet, steps("2", "100%")))
	e.says("has no kind RankSet")

	e.makeForAll(rankSets)
	e.says("may not get, list, watch, patch ranksets.example.com")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name: "ranksets-of-rollouts", Labels: map[string]string{"rollouts.kruise.io/aggregate-to-manager": "true"},
	}}
	role.Rules = []rbacv1.PolicyRule{{
		APIGroups: []string{"example.com"}, Resources: []string{"ranksets"}, Verbs: []string{"get", "list", "watch", "patch"},
	}}
	e.Must(e.Create(e.Ctx, role))
	t.Cleanup(func() { _ = e.Delete(e.Afterwards(), role) })
	e.says("workload not found")

	e.Make(rankSet)
	e.says("metadata.labels[rollouts.kruise.io/workload-type]")
	e.editRankSet(func(o map[string]any) {
		e.Must(unstructured.SetNestedField(o, "statefulset", "metadata", "labels", keys.WorkloadType))
		e.Must(unstructured.SetNestedField(o, "OnDelete", "spec", "updateStrategy", "type"))
	})
	e.says("spec.updateStrategy.type is OnDelete")
	e.editRankSet(func(o map[string]any) { unstructured.RemoveNestedField(o, "spec", "updateStrategy", "type") })
	e.says("status.observedGeneration is not there")
	go e.ranks(e.Ctx)

	e.Eventually("the Rollout is healthy", func() error {
		if r := e.rollout(); r.Status.Phase != v1beta1.RolloutPhaseHealthy || r.Status.CanaryStatus == nil {
			return fmt.Errorf("phase %s: %s", r.Status.Phase, r.Status.Message)
		}
		return e.ready("v1", 5)
	})
	e.setRank("v2")
	if _, marked := e.rankSet().GetAnnotations()[keys.InProgressing]; !marked {
		t.Fatal("the change is not intercepted")
	}
	e.paused(1, "v2", 2)
	for _, p := range e.Pods() {
		if want := p.Name == "web-3" || p.Name == "web-4"; want != strings.HasSuffix(p.Spec.Containers[0].Image, "v2") {
			t.Errorf("Pod %s runs %s", p.Name, p.Spec.Containers[0].Image)
		}
	}
	e.Eventually("updated Pods have the labels of their batch", func() error { return e.batches(map[string]int{"1": 2}) })
	annotations := func() map[string]string { return e.rankSet().GetAnnotations() }
	e.setRank("v1")
	e.ended("v1", corev1.ConditionFalse, annotations)
	e.setRank("v3")
	e.paused(1, "v3", 2)
	e.approve()
	e.ended("v3", corev1.ConditionTrue, annotations)
	if n, _, _ := unstructured.NestedInt64(e.rankSet().Object, "spec", "updateStrategy", "rollingUpdate", "partition"); n != 0 {
		t.Errorf("partition %d is left", n)
	}

	e.setRank("v4")
	e.paused(1, "v4", 2)
	e.Must(e.Delete(e.Ctx, role))
	e.Must(e.Delete(e.Ctx, e.rollout()))
	e.Eventually("the Rollout is gone without rights on its workload", func() error {
		var all v1beta1.RolloutList
		if err := e.List(e.Ctx, &all, client.InNamespace(e.Namespace)); err != nil || len(all.Items) > 0 {
			return errors.Join(err, fmt.Errorf("%d Rollouts", len(all.Items)))
		}
		return nil
	})
}

// says waits until the Rollout says in its conditions what it lacks.
func (e *env) says(text string) {
	e.Helper()
	e.Eventually("the Rollout says: "+text, func() error {
		r := e.rollout()
		if c := condition(r, v1beta1.ConditionReady); c == nil || c.Status != corev1.ConditionFalse || !strings.Contains(r.Status.Message, text) {
			return fmt.Errorf("message %q, condition %+v", r.Status.Message, c)
		}
		return nil
	})
}

// makeForAll makes an object of no namespace, for as long as the test runs.
func (e *env) makeForAll(manifest string) {
	e.Helper()
	o := e.Manifest(manifest)
	o.SetNamespace("")
	e.Must(e.Create(e.Ctx, o))
	e.T.Cleanup(func() { _ = e.Delete(e.Afterwards(), o) })
}

func (e *env) rankSet() *unstructured.Unstructured {
	e.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "RankSet"}}
	e.Read("web", o)
	return o
}

func (e *env) editRankSet(change func(map[string]any)) {
	e.Helper()
	edit(e, "web", e.rankSet(), func(o *unstructured.Unstructured) { change(o.Object) })
}

func (e *env) setRank(version string) {
	e.Helper()
	e.editRankSet(func(o map[string]any) {
		containers := []any{map[string]any{"name": "main", "image": "web:" + version}}
		e.Must(unstructured.SetNestedSlice(o, containers, "spec", "template", "spec", "containers"))
	})
}

// ranks is the controller of RankSets, in the smallest form that is like that of StatefulSets.
func (e *env) ranks(ctx context.Context) {
	for ctx.Err() == nil {
		if err := e.rank(ctx); err != nil && ctx.Err() == nil {
			e.Logf("the controller of RankSets: %v", err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (e *env) rank(ctx context.Context) error {
	set := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "RankSet"}}
	if err := e.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: "web"}, set); err != nil {
		return err
	}
	raw, _, _ := unstructured.NestedMap(set.Object, "spec", "template")
	var template corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &template); err != nil {
		return err
	}
	replicas, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
	partition, _, _ := unstructured.NestedInt64(set.Object, "spec", "updateStrategy", "rollingUpdate", "partition")
	h := fnv.New32a()
	_, _ = h.Write([]byte(template.Spec.Containers[0].Image))
	update := fmt.Sprintf("web-%x", h.Sum32())
	current, _, _ := unstructured.NestedString(set.Object, "status", "currentRevision")
	if current == "" {
		current = update
	}
	var pods corev1.PodList
	if err := e.List(ctx, &pods, client.InNamespace(e.Namespace)); err != nil {
		return err
	}
	there, updated, ready := map[string]bool{}, int64(0), int64(0)
	for i := range pods.Items {
		p := &pods.Items[i]
		there[p.Name] = true
		var ordinal int64
		_, _ = fmt.Sscanf(p.Name, "web-%d", &ordinal)
		old := p.Labels["controller-revision-hash"] != update
		switch {
		case p.DeletionTimestamp != nil:
		case old && ordinal >= partition:
			if err := client.IgnoreNotFound(e.Delete(ctx, p)); err != nil {
				return err
			}
		case !old:
			updated++
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil {
				ready++
			}
		}
	}
	for ordinal := range replicas {
		name := fmt.Sprintf("web-%d", ordinal)
		isWanted := !there[name] && (ordinal >= partition || current == update)
		if isWanted {
			p := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
			p.Namespace, p.Name = e.Namespace, name
			p.Labels["controller-revision-hash"] = update
			p.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "example.com/v1", Kind: "RankSet", Name: "web", UID: set.GetUID(), Controller: ptr.To(true),
			}}
			if err := e.Create(ctx, p); err != nil {
				return err
			}
		}
	}
	if updated == replicas {
		current = update
	}
	next := set.DeepCopy()
	next.Object["status"] = map[string]any{
		"observedGeneration": set.GetGeneration(), "replicas": int64(len(pods.Items)), "readyReplicas": ready, "updatedReplicas": updated,
		"availableReplicas": ready, "currentRevision": current, "updateRevision": update,
	}
	return e.Status().Patch(ctx, next, client.MergeFrom(set))
}
