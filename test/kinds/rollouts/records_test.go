package rollouts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// TestARecordOfEachRelease: with the gate, each release leaves a record of what it consisted of and which Pods each step updated; a rollback
// leaves one, too. Records go with their Rollout.
func TestARecordOfEachRelease(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 4, ""), rolloutOf(ofCloneSet, steps("1", "100%")))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	e.approve()
	e.over("v2", 4, corev1.ConditionTrue)
	id := e.rollout().Status.CanaryStatus.ObservedRolloutID
	e.records(map[string]map[int32]int{id: {1: 1, 2: 3}})
	e.setImage("v3")
	e.paused(1, "v3", 1)
	bad := e.rollout().Status.CanaryStatus.ObservedRolloutID
	e.setImage("v2")
	e.over("v2", 4, corev1.ConditionFalse)
	e.records(map[string]map[int32]int{id: {1: 1, 2: 3}, bad: nil}) // the Pod that it updated is gone
	e.Must(e.Delete(e.Ctx, e.rollout()))
	e.records(map[string]map[int32]int{})
}

// records waits until the records of these releases are there, with so many Pods of each step.
func (e *env) records(want map[string]map[int32]int) {
	e.Helper()
	e.Eventually("the records are there", func() error {
		var all v1alpha1.RolloutHistoryList
		e.Must(e.List(e.Ctx, &all, client.InNamespace(e.Namespace)))
		got := map[string]map[int32]int{}
		for _, h := range all.Items {
			var steps map[int32]int
			for _, s := range h.Status.CanarySteps {
				if steps == nil {
					steps = map[int32]int{}
				}
				steps[s.CanaryStepIndex] = len(s.Pods)
			}
			got[h.Spec.Rollout.RolloutID] = steps
			image := strings.Contains(string(h.Spec.Workload.Data.Raw), "web:v2")
			if h.Status.Phase != "completed" || h.Labels[keys.RolloutName] != "demo" || !strings.HasPrefix(h.Name, "demo-") || !image {
				return fmt.Errorf("the record is not what it should be: %+v", h)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

// TestOldRecordsGo: ten of a Rollout are kept, which are the newest ones.
func TestOldRecordsGo(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 2, ""), rolloutOf(ofCloneSet, steps("1", "100%")))
	r := e.rollout()
	for i := range 11 {
		e.Must(e.Create(e.Ctx, &v1alpha1.RolloutHistory{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: e.Namespace, Name: fmt.Sprintf("old-%02d", i),
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(r, v1beta1.GroupVersion.WithKind("Rollout"))},
			},
			Spec: v1alpha1.RolloutHistorySpec{Workload: v1alpha1.WorkloadInfo{WorkloadReference: r.Spec.WorkloadRef}},
		}))
	}
	e.setImage("v2")
	e.paused(1, "v2", 1)
	e.approve()
	e.over("v2", 2, corev1.ConditionTrue)
	e.Eventually("ten records are left, with that of the release", func() error {
		var all v1alpha1.RolloutHistoryList
		e.Must(e.List(e.Ctx, &all, client.InNamespace(e.Namespace)))
		var names, old []string
		for i := range all.Items {
			names = append(names, all.Items[i].Name)
			if strings.HasPrefix(all.Items[i].Name, "old-") {
				old = append(old, all.Items[i].Name)
			}
		}
		if len(names) != 10 || len(old) != 9 {
			return fmt.Errorf("the records are %v", names)
		}
		return nil
	})
}

// TestAWorkloadIsKeptFrozen: with the gate, the deletion of a Rollout leaves the workload where it is, and nothing else; trap T12.
func TestAWorkloadIsKeptFrozen(t *testing.T) {
	takePlace(t)
	e := enter(t, alone)
	e.start(fmt.Sprintf(statefulSet, 3), rolloutOf(ofStatefulSet, steps("1", "100%")))
	e.setImageOfStatefulSet("v2")
	e.paused(1, "v2", 1)
	e.Must(e.Delete(e.Ctx, e.rollout()))
	e.Eventually("the Rollout is gone", func() error {
		err := e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "demo"}, &v1beta1.Rollout{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	set := &appsv1.StatefulSet{}
	e.Read("web", set)
	if partition := *set.Spec.UpdateStrategy.RollingUpdate.Partition; partition != 2 || len(set.Annotations) > 0 || len(set.Labels) > 0 {
		t.Errorf("partition %d, annotations %v, labels %v; want 2 and nothing", partition, set.Annotations, set.Labels)
	}
	e.Never("a Pod more is updated", func() bool { return e.images()["v2"] != 1 })
	edit(e, "web", set, func(s *appsv1.StatefulSet) { *s.Spec.UpdateStrategy.RollingUpdate.Partition = 0 })
	e.Eventually("a person has let it go", func() error { return e.ready("v2", 3) })
}
