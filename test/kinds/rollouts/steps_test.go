package rollouts

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// TestScenario1BatchesOfACloneSet: three steps with approvals, and nothing left at the end.
func TestScenario1BatchesOfACloneSet(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 10, ""), rolloutOf(ofCloneSet, steps("1", "50%", "100%")))
	before := e.cloneSet().Spec
	e.setImage("v2")
	e.paused(1, "v2", 1)
	if next := e.rollout().Status.CanaryStatus.NextStepIndex; next != 2 {
		t.Errorf("the next step is %d, want 2", next)
	}
	e.approve()
	e.paused(2, "v2", 5)
	e.approve()
	e.over("v2", 10, corev1.ConditionTrue)
	after := e.cloneSet().Spec
	before.Template.Spec.Containers[0].Image = "web:v2"
	if diff := cmp.Diff(before, after, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the spec is not what was applied (-want +got):\n%s", diff)
	}
	if got := e.rollout().Status.Approvals; len(got) != 2 {
		t.Errorf("approvals %v, want two", got)
	}
}

// TestScenario3PercentAndScale: a percentage follows the number of replicas, without an approval.
func TestScenario3PercentAndScale(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 10, ""), rolloutOf(ofCloneSet, steps("30%", "100%")))
	e.setImage("v2")
	e.paused(1, "v2", 3)
	if got := e.partition(); got != "70%" {
		t.Errorf("partition %s, want 70%%", got)
	}
	e.scale(20)
	e.paused(1, "v2", 6)
}

// TestScenario4LargeCloneSet: no percentage keeps one of 101 Pods.
func TestScenario4LargeCloneSet(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 101, ""), rolloutOf(ofCloneSet, steps("99%", "100%")))
	e.setImage("v2")
	e.paused(1, "v2", 100)
}

// TestScenario5StatefulSetOrder: the highest ordinals are updated first.
func TestScenario5StatefulSetOrder(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(statefulSet, 5), rolloutOf(ofStatefulSet, steps("2", "5")))
	edit(e, "web", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "web:v2" })
	e.paused(1, "v2", 2)
	for _, p := range e.Pods() {
		want := "web:v1"
		if p.Name == "web-4" || p.Name == "web-3" {
			want = "web:v2"
		}
		if got := p.Spec.Containers[0].Image; got != want {
			t.Errorf("Pod %s runs %s, want %s", p.Name, got, want)
		}
	}
	var set appsv1.StatefulSet
	e.Read("web", &set)
	if got := *set.Spec.UpdateStrategy.RollingUpdate.Partition; got != 3 {
		t.Errorf("partition %d, want 3", got)
	}
	e.approve()
	e.paused(2, "v2", 5) // the number of all is not the literal 100%, after which nothing waits
	e.approve()
	e.Eventually("the release is over", func() error {
		if r := e.rollout(); r.Status.Phase != v1beta1.RolloutPhaseHealthy {
			return fmt.Errorf("phase %s", r.Status.Phase)
		}
		return nil
	})
	e.Read("web", &set)
	if got := *set.Spec.UpdateStrategy.RollingUpdate.Partition; got != 0 || len(set.Annotations) > 0 {
		t.Errorf("partition %d, annotations %v are left", got, set.Annotations)
	}
}

// TestScenario13PauseStops: a paused release updates no further Pod of the batch that is under way. Each Pod waits for its gate, so that
// the batch is under way for as long as it takes.
func TestScenario13PauseStops(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 10, ""), unguarded(rolloutOf(ofCloneSet, steps("10"))))
	e.gated("v2", "1")
	e.Eventually("a Pod is updated", e.updated("v2", 1))
	e.open(1)
	e.Eventually("two Pods are updated", e.updated("v2", 2))
	e.change(func(r *v1beta1.Rollout) { r.Spec.Strategy.Paused = true })
	e.Eventually("the batch is paused", func() error {
		var b v1beta1.BatchRelease
		e.Read("demo", &b)
		if !b.Spec.ReleasePlan.Paused || e.partition() == "0" || e.partition() == "0%" {
			return fmt.Errorf("partition %s", e.partition())
		}
		return nil
	})
	e.open(1)
	e.Eventually("both Pods are ready", func() error { return e.ready("v2", 2) })
	e.Never("a further Pod is updated", func() bool { return e.images()["v2"] > 2 })
	e.change(func(r *v1beta1.Rollout) { r.Spec.Strategy.Paused = false })
	for updated := 3; updated <= 10; updated++ {
		e.Eventually("one more Pod is updated", e.updated("v2", updated))
		e.open(1)
	}
	e.paused(1, "v2", 10)
}

// TestScenario20Labels: Pods carry the release and the batch that updated them, also those that replace others.
func TestScenario20Labels(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 10, ""), rolloutOf(ofCloneSet, steps("1", "50%", "100%")))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	e.approve()
	e.paused(2, "v2", 5)
	e.Eventually("one Pod is of batch 1 and four are of batch 2", func() error { return e.batches(map[string]int{"1": 1, "2": 4}) })
	for _, p := range e.Pods() {
		if p.Labels[keys.RolloutBatchID] == "1" {
			e.Must(e.Delete(e.Ctx, &p))
			e.Eventually("it is gone", func() error {
				for _, other := range e.Pods() {
					if other.UID == p.UID {
						return fmt.Errorf("%s is there", p.Name)
					}
				}
				return nil
			})
		}
	}
	e.Eventually("its replacement is of batch 1", func() error { return e.batches(map[string]int{"1": 1, "2": 4}) })
}

// batches complains unless so many live Pods are of each batch, and all of one release.
func (e *env) batches(want map[string]int) error {
	got, ids := map[string]int{}, map[string]bool{}
	for _, p := range e.Pods() {
		if batch := p.Labels[keys.RolloutBatchID]; batch != "" && p.DeletionTimestamp == nil {
			got[batch]++
			ids[p.Labels[keys.RolloutID]] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(ids) != 1 {
		return fmt.Errorf("releases %v, batches (-want +got):\n%s", ids, diff)
	}
	return nil
}

// TestScenario22NotIntercepted: what is no release, or has no Rollout, is left alone.
func TestScenario22NotIntercepted(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 2, ""), rolloutOf(ofCloneSet, steps("1", "100%")))
	untouched := func(why string) {
		t.Helper()
		set := e.cloneSet()
		if _, marked := set.Annotations[keys.InProgressing]; marked || e.partition() != "none" && e.partition() != "0" {
			t.Errorf("%s: the CloneSet is marked or frozen: %v, partition %s", why, set.Annotations, e.partition())
		}
		if phase := e.rollout().Status.Phase; phase == v1beta1.RolloutPhaseProgressing {
			t.Errorf("%s: phase %s", why, phase)
		}
	}
	edit(e, "web", e.cloneSet(), func(s *cloneSetType) { s.Labels["team"] = "a" })
	untouched("only labels are changed")
	e.scale(0)
	e.setImage("v2")
	untouched("it has no Pods")
	e.scale(2)
	e.Eventually("it has Pods again", func() error { return e.ready("v2", 2) })
	e.change(func(r *v1beta1.Rollout) { r.Spec.Disabled = true })
	e.Eventually("it is disabled", func() error {
		if phase := e.rollout().Status.Phase; phase != v1beta1.RolloutPhaseDisabled {
			return fmt.Errorf("phase %s", phase)
		}
		return nil
	})
	e.setImage("v3")
	untouched("the Rollout is disabled")
	e.Eventually("the change goes out", func() error { return e.ready("v3", 2) })
}
