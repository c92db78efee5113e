package cloneset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// surgeRows are what kubectl shows of the canary with surge, at its four moments.
var surgeRows = []string{"5 1 0 5 6", "5 2 2 5 5", "5 3 2 5 6", "5 5 5 5 5"}

func TestSurgeWithPartition(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			e := newEnv(t)
			o := e.Manifest(e.manifest("cloneset-surge-partition.yaml"))
			if version == "v1beta1" {
				set := e.plain("demo", 5)
				set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
					MaxSurge: percent("20%"), MaxUnavailable: number(0), Partition: number(3),
				}
				e.Must(e.Client.Create(e.Ctx, set))
			} else {
				e.Must(e.Client.Create(e.Ctx, o))
			}
			e.settled("demo", 5, 5)
			h := e.record("demo")
			e.edit("demo", image("nginx:mainline"))
			e.settled("demo", 5, 2)
			if got := e.cloneSet("demo").Status; got.CurrentRevision == got.UpdateRevision || got.ExpectedUpdatedReplicas != 2 {
				t.Errorf("at partition 3: current %s, update %s, expected updated %d", got.CurrentRevision, got.UpdateRevision, got.ExpectedUpdatedReplicas)
			}
			e.edit("demo", partition(0))
			e.settled("demo", 5, 5)
			e.Must(h.inOrder(surgeRows...))
			h.read(func(h *history) {
				if h.fewestAvailable < 5 || h.mostPods > 6 {
					t.Errorf("there were as few as %d available and as many as %d Pods, want 5 and 6; rows %q", h.fewestAvailable, h.mostPods, h.rows)
				}
				for _, row := range h.rows {
					if columns := strings.Fields(row); columns[3] < "5" || columns[4] > "6" {
						t.Errorf("a row is %s: READY is below 5 or TOTAL above 6", row)
					}
				}
			})
		})
	}
}

func percent(text string) *intstr.IntOrString { v := intstr.FromString(text); return &v }
func number(n int32) *intstr.IntOrString      { v := intstr.FromInt32(n); return &v }

func TestPartitionKeepsOldPods(t *testing.T) {
	e := newEnv(t)
	e.Make(e.manifest("cloneset-basic.yaml"))
	e.settled("sample", 5, 5)
	e.edit("sample", func(set *v1beta1.CloneSet) { partition(3)(set); image("nginx:mainline")(set) })
	set := e.settled("sample", 5, 2)
	if set.Status.UpdateRevision != "sample-56dfb978d4" || set.Status.ExpectedUpdatedReplicas != 2 {
		t.Errorf("update revision %s on %d expected Pods", set.Status.UpdateRevision, set.Status.ExpectedUpdatedReplicas)
	}
	old := slices.DeleteFunc(e.pods("sample"), func(p corev1.Pod) bool { return p.Labels["controller-revision-hash"] != "sample-d4d4fb5bd" })
	if len(old) != 3 {
		t.Errorf("%d Pods are at the old revision, want 3", len(old))
	}

	t.Log("growing with a partition adds Pods of the new revision")
	e.edit("sample", replicas(6))
	e.settled("sample", 6, 3)
}

func TestPercentPartition(t *testing.T) {
	e := newEnv(t)
	set := e.inPlace("mostly", 10)
	set.Spec.UpdateStrategy.RollingUpdate.Partition = percent("99%")
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("mostly", 10, 10)
	e.edit("mostly", image("nginx:mainline"))
	e.settled("mostly", 10, 1)
	e.edit("mostly", func(set *v1beta1.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Partition = percent("100%")
		image("nginx:1.27")(set)
	})
	got := e.settled("mostly", 10, 0)
	if got.Status.ExpectedUpdatedReplicas != 0 {
		t.Errorf("expected updated replicas are %d at 100%%, want 0", got.Status.ExpectedUpdatedReplicas)
	}
}

func TestSurgeIsNoMoreThanNeeded(t *testing.T) {
	e := newEnv(t)
	set := e.plain("frugal", 8)
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		Partition: number(6), MaxSurge: percent("50%"), MaxUnavailable: number(0),
	}
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("frugal", 8, 8)
	h := e.record("frugal")
	e.edit("frugal", image("nginx:mainline"))
	e.settled("frugal", 8, 2)
	h.read(func(h *history) {
		if h.mostPods > 10 || h.fewestAvailable < 8 {
			t.Errorf("there were %d Pods at most and %d available at least, want 10 and 8", h.mostPods, h.fewestAvailable)
		}
	})
}

func TestRecreateStreamsWithinMaxUnavailable(t *testing.T) {
	e := newEnv(t)
	e.Must(e.Client.Create(e.Ctx, e.plain("stream", 10)))
	e.settled("stream", 10, 10)
	h := e.record("stream")
	before := uids(e.pods("stream"))
	e.edit("stream", image("nginx:mainline"))
	e.settled("stream", 10, 10)
	h.read(func(h *history) {
		if h.fewestAvailable < 8 || h.mostPods > 10 {
			t.Errorf("as few as %d were available and there were as many as %d, want 8 and 10", h.fewestAvailable, h.mostPods)
		}
	})
	for _, uid := range uids(e.pods("stream")) {
		if slices.Contains(before, uid) {
			t.Errorf("Pod %s was not recreated", uid)
		}
	}
}

func TestSlowPodTakesOnlyItsOwnPlace(t *testing.T) {
	e := newEnv(t)
	set := e.plain("slow", 10)
	set.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: warm}}
	e.Must(e.Client.Create(e.Ctx, set))
	old := e.warmAll("slow", func(corev1.Pod) bool { return true })
	e.settled("slow", 10, 10)
	old()
	h := e.record("slow")
	e.edit("slow", image("nginx:mainline"))
	var slow string
	stop := e.warmAll("slow", func(p corev1.Pod) bool {
		if slow == "" && p.Spec.Containers[0].Image == "nginx:mainline" {
			slow = p.Name
		}
		return p.Name != slow
	})
	e.Eventually("all others are updated while one is not ready", func() error {
		s := e.cloneSet("slow").Status
		if s.UpdatedReplicas != 10 || s.UpdatedAvailableReplicas != 9 {
			return fmt.Errorf("%d are updated, %d of them available", s.UpdatedReplicas, s.UpdatedAvailableReplicas)
		}
		return nil
	})
	stop()
	if !slices.Contains(names(e.pods("slow")), slow) {
		t.Errorf("the slow Pod %s was replaced", slow)
	}
	e.warmAll("slow", func(corev1.Pod) bool { return true })
	e.settled("slow", 10, 10)
	h.read(func(h *history) {
		if h.fewestAvailable < 8 || h.mostPods > 10 {
			t.Errorf("as few as %d were available and there were as many as %d, want 8 and 10", h.fewestAvailable, h.mostPods)
		}
	})
}

// warm is a readiness gate that a test opens in the place of a user's controller.
const warm corev1.PodConditionType = "example.io/warm"

// warmAll opens the gate of those Pods that may be, until stop.
func (e *env) warmAll(name string, may func(corev1.Pod) bool) (stop func()) {
	ctx, cancel := context.WithCancel(e.Ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
			var pods corev1.PodList
			if err := e.Client.List(ctx, &pods, client.InNamespace(e.Namespace), client.MatchingLabels{"app": name}); err != nil {
				continue // the next round reads again
			}
			for _, p := range pods.Items {
				isOpen := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == warm })
				if isOpen || !may(p) {
					continue
				}
				before := p.DeepCopy()
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: warm, Status: corev1.ConditionTrue})
				// A Pod that changed meanwhile comes again in the next round.
				_ = e.Client.Status().Patch(ctx, &p, client.StrategicMergeFrom(before))
			}
		}
	}()
	stop = func() { cancel(); <-done }
	e.Cleanup(stop)
	return stop
}

func TestPausedStillScales(t *testing.T) {
	e := newEnv(t)
	e.Must(e.Client.Create(e.Ctx, e.plain("paused", 5)))
	e.settled("paused", 5, 5)
	e.edit("paused", func(set *v1beta1.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Paused = true
		image("nginx:mainline")(set)
	})
	e.settled("paused", 5, 0)
	e.Always(time.Second, "no Pod is updated while paused", func() error {
		if n := e.cloneSet("paused").Status.UpdatedReplicas; n > 0 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	e.edit("paused", replicas(7))
	e.settled("paused", 7, 2)
	e.edit("paused", func(set *v1beta1.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = false })
	e.settled("paused", 7, 7)
}

func TestOnDelete(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			e := newEnv(t)
			if version == "v1alpha1" {
				e.Make(strings.Replace(e.manifest("cloneset-basic.yaml"), "replicas: 5", "replicas: 3\n  updateStrategy: {type: OnDelete}", 1))
			} else {
				set := e.plain("sample", 3)
				set.Spec.UpdateStrategy = v1beta1.CloneSetUpdateStrategy{Type: v1beta1.OnDeleteCloneSetStrategyType}
				e.Must(e.Client.Create(e.Ctx, set))
			}
			e.settled("sample", 3, 3)
			before := uids(e.pods("sample"))
			e.edit("sample", image("nginx:mainline"))
			e.settled("sample", 3, 0)
			e.Always(time.Second, "no Pod is touched", func() error {
				if after := uids(e.pods("sample")); !slices.Equal(before, after) {
					return fmt.Errorf("Pods are %v, were %v", after, before)
				}
				return nil
			})
			victim := e.pods("sample")[0]
			e.Must(e.Client.Delete(e.Ctx, &victim))
			e.settled("sample", 3, 1)
			for _, p := range e.pods("sample") {
				if p.Labels["controller-revision-hash"] == victim.Labels["controller-revision-hash"] {
					e.patchPod(p.Name, func(p *corev1.Pod) { p.Labels[keys.SpecifiedDelete] = "true" })
					break
				}
			}
			e.settled("sample", 3, 2)
		})
	}
}

func TestRevertRemovesThePendingSurge(t *testing.T) {
	e := newEnv(t)
	set := e.plain("undone", 1)
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{MaxSurge: number(1), MaxUnavailable: number(0)}
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("undone", 1, 1)
	before := uids(e.pods("undone"))
	e.edit("undone", image("nginx:fail-pull"))
	e.Eventually("the surge Pod is there", func() error {
		if n := len(e.pods("undone")); n != 2 {
			return fmt.Errorf("%d Pods are", n)
		}
		return nil
	})
	e.edit("undone", image("nginx:alpine"))
	e.settled("undone", 1, 1)
	if after := uids(e.pods("undone")); !slices.Equal(before, after) {
		t.Errorf("the Pod is %v, was %v", after, before)
	}
}

func TestProgressDeadline(t *testing.T) {
	e := newEnv(t)
	set := e.plain("hurried", 2)
	deadline := int32(5)
	set.Spec.ProgressDeadlineSeconds = &deadline
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("hurried", 2, 2)
	e.awaitCondition("hurried", v1beta1.CloneSetConditionProgressing, "True CloneSetAvailable")
	e.edit("hurried", image("nginx:never-ready"))
	e.awaitCondition("hurried", v1beta1.CloneSetConditionProgressing, "True CloneSetUpdated")
	e.awaitCondition("hurried", v1beta1.CloneSetConditionProgressing, "False ProgressDeadlineExceeded")
	e.edit("hurried", image("nginx:mainline"))
	e.awaitCondition("hurried", v1beta1.CloneSetConditionProgressing, "True CloneSetAvailable")
	e.edit("hurried", func(set *v1beta1.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Paused = true
		image("nginx:never-ready")(set)
	})
	e.awaitCondition("hurried", v1beta1.CloneSetConditionProgressing, "True CloneSetPaused")
	e.Always(7*time.Second, "a pause does not time out", func() error {
		if got := e.condition("hurried", v1beta1.CloneSetConditionProgressing); got != "True CloneSetPaused" {
			return fmt.Errorf("Progressing is %s", got)
		}
		return nil
	})
}
