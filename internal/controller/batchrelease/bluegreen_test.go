package batchrelease

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// blueGreen returns a release of a CloneSet of four Pods, in two steps, with so many old and new Pods of which some are ready, and its
// autoscaler, which is turned away.
func blueGreen(old, updated, ready int, change func(*v1beta1.BatchRelease)) Snapshot {
	set := &appsv1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "s", Generation: 2}}
	set.Spec.Replicas = ptr.To[int32](4)
	set.Status = appsv1beta1.CloneSetStatus{ObservedGeneration: 2, CurrentRevision: "web-v1", UpdateRevision: "web-v2"}
	s := Snapshot{Now: time.Unix(1e9, 0), Objects: steer.Objects{Workload: set, Now: time.Unix(1e9, 0)}}
	for i := range old + updated {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: "web-v1"}}}
		p.Status.Phase = corev1.PodRunning
		if i >= old {
			p.Labels[appsv1.ControllerRevisionHashLabelKey] = "web-v2"
		}
		if i < old+ready {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		s.Objects.Pods = append(s.Objects.Pods, p)
	}
	a := &autoscalingv2.HorizontalPodAutoscaler{}
	a.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web-DisableByRollout"}
	s.Objects.Autoscalers = []*autoscalingv2.HorizontalPodAutoscaler{a}
	s.Release = &v1beta1.BatchRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo", UID: "r", Finalizers: []string{Finalizer}}}
	s.Release.Spec.WorkloadRef = v1beta1.WorkloadReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web"}
	s.Release.Spec.ReleasePlan = v1beta1.ReleasePlan{
		RollingStyle: v1beta1.RollingStyleBlueGreen, FinalizingPolicy: v1beta1.FinalizingPolicyWaitResume,
		Batches: []v1beta1.ReleaseBatch{{CanaryReplicas: intstr.FromString("50%")}, {CanaryReplicas: intstr.FromString("100%")}},
	}
	change(s.Release)
	return s
}

// TestWhenAutoscalersComeBack: after a success once all Pods are updated and available, and no old one is there; otherwise at once, also if the
// workload is gone.
func TestWhenAutoscalersComeBack(t *testing.T) {
	same := func(*v1beta1.BatchRelease) {}
	immediate := func(r *v1beta1.BatchRelease) { r.Spec.ReleasePlan.FinalizingPolicy = v1beta1.FinalizingPolicyImmediate }
	gone := blueGreen(0, 0, 0, same)
	gone.Objects.Workload = nil
	for name, tc := range map[string]struct {
		s    Snapshot
		want bool
	}{
		"old Pods are there":               {blueGreen(2, 4, 4, same), false},
		"a new Pod is not ready":           {blueGreen(0, 4, 3, same), false},
		"all Pods are new":                 {blueGreen(0, 4, 4, same), true},
		"it was cut short":                 {blueGreen(2, 4, 2, immediate), true},
		"the workload is gone":             {gone, true},
		"the release has yet to be let go": {blueGreen(0, 4, 4, func(r *v1beta1.BatchRelease) { r.Spec.ReleasePlan.BatchPartition = ptr.To[int32](1) }), false},
	} {
		t.Run(name, func(t *testing.T) {
			v := Classify(tc.s)
			if got := strings.Contains(fmt.Sprint(written(Plan(v))), "scale the workload again"); got != tc.want {
				t.Errorf("they come back: %t, want %t", got, tc.want)
			}
			if is := Status(v, plan.Plan{}, apply.Outcome{}).Phase == v1beta1.BatchReleasePhaseCompleted; is && tc.s.Objects.Workload != nil {
				t.Error("it is completed, and they have yet to come back")
			}
		})
	}
}

func written(p plan.Plan) (out []string) {
	for _, stage := range p.Stages {
		for _, chain := range stage {
			for _, a := range chain {
				out = append(out, a.What)
			}
		}
	}
	return out
}

// TestFailureThresholdOfABlueGreenBatch, trap T18: so many new Pods may be not ready.
func TestFailureThresholdOfABlueGreenBatch(t *testing.T) {
	for name, tc := range map[string]struct {
		ready     int
		threshold *intstr.IntOrString
		want      v1beta1.BatchState
	}{
		"all are ready":                    {4, nil, v1beta1.BatchStateReady},
		"one is not":                       {3, nil, v1beta1.BatchStateVerifying},
		"one is not, and may be not":       {3, ptr.To(intstr.FromInt32(1)), v1beta1.BatchStateReady},
		"two are not, and one may be not":  {2, ptr.To(intstr.FromString("25%")), v1beta1.BatchStateVerifying},
		"none is, however many may be not": {0, ptr.To(intstr.FromString("100%")), v1beta1.BatchStateVerifying},
	} {
		t.Run(name, func(t *testing.T) {
			s := blueGreen(4, 4, tc.ready, func(r *v1beta1.BatchRelease) {
				r.Spec.ReleasePlan.BatchPartition, r.Spec.ReleasePlan.FailureThreshold = ptr.To[int32](1), tc.threshold
			})
			s.Objects.Workload = Classify(s).writes.Workload // as it is once it was written
			if got := Status(Classify(s), plan.Plan{}, apply.Outcome{}).CanaryStatus.CurrentBatchState; got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
