package cloneset

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// large returns what a pass sees of a CloneSet with so many Pods that are available, half of which are updated in place, and half are to be.
func large(b *testing.B, pods int) Snapshot {
	b.Helper()
	labels := map[string]string{"app": "web"}
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "web", Generation: 1}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Replicas = new(int32(pods))
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:v1"}}
	set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateCloneSetStrategyType
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType, MaxUnavailable: new(intstr.FromString("25%")),
	}
	s := Snapshot{Set: set, Now: time.Unix(1_800_000_000, 0)}
	v := Classify(s)
	s.Revisions = append(s.Revisions, v.workload.History.Update)
	ids := v.newIDs()
	ready := func(kind corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(s.Now.Add(-time.Hour))}
	}
	for n := range pods {
		chain, err := v.newPod(v.workload.History.Update, ids.next())
		if err != nil {
			b.Fatal(err)
		}
		p := chain[len(chain)-1].After.(*corev1.Pod)
		p.UID, p.ResourceVersion, p.Spec.NodeName = types.UID(p.Name), "1", fmt.Sprint("node-", n%5000)
		p.CreationTimestamp = metav1.NewTime(s.Now.Add(-time.Hour))
		p.Status.Phase = corev1.PodRunning
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Image: "app:v1", ImageID: "id of app:v1", Ready: true}}
		for _, gate := range p.Spec.ReadinessGates {
			p.Status.Conditions = append(p.Status.Conditions, ready(gate.ConditionType))
		}
		p.Status.Conditions = append(p.Status.Conditions, ready(corev1.ContainersReady), ready(corev1.PodReady))
		s.Pods = append(s.Pods, p)
	}
	for pass(&s) > 0 { // new Pods are opened
	}
	updated := set.DeepCopy()
	updated.Generation, updated.Spec.Template.Spec.Containers[0].Image = 2, "app:v2"
	s.Set = updated
	s.Revisions = append(s.Revisions, Classify(s).workload.History.Update)
	rolling := updated.Spec.UpdateStrategy.RollingUpdate
	rolling.MaxUnavailable, rolling.Partition = new(intstr.FromString("100%")), new(intstr.FromString("50%"))
	for pass(&s) > 0 {
	}
	rolling.MaxUnavailable, rolling.Partition = new(intstr.FromString("25%")), nil
	return s
}

// pass carries out what a pass decides, as do the kubelets and all else, and returns how many Pods it has changed.
func pass(s *Snapshot) int {
	after := map[types.UID]*corev1.Pod{}
	for _, action := range Plan(Classify(*s)).Actions() {
		if p, isPod := action.After.(*corev1.Pod); isPod {
			after[p.UID] = p
		}
	}
	for at, p := range s.Pods {
		if written := after[p.UID]; written != nil {
			s.Pods[at] = written
			pod.SetCondition(written, corev1.PodCondition{
				Type: corev1.PodReady, Status: pod.Condition(written, pub.InPlaceUpdateReady).Status,
			}, s.Now)
			written.Status.ContainerStatuses[0].Image = written.Spec.Containers[0].Image
			written.Status.ContainerStatuses[0].ImageID = "id of " + written.Spec.Containers[0].Image
		}
	}
	return len(after)
}

// BenchmarkPass decides about Pods, half of which are updated.
func BenchmarkPass(b *testing.B) {
	for name, tc := range map[string]struct {
		due func(*v1beta1.CloneSetSpec)
		// planned is how many of so many Pods a pass plans writes to.
		planned func(pods int) int
	}{
		"in place": {
			due:     func(*v1beta1.CloneSetSpec) {},
			planned: func(pods int) int { return min(pods/4, rollout.UpdateBurst) },
		},
		"recreate": {
			due: func(spec *v1beta1.CloneSetSpec) {
				spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.RecreateCloneSetPodUpdatePolicyType
			},
			planned: func(pods int) int { return pods / 4 },
		},
		"create": {
			due:     func(spec *v1beta1.CloneSetSpec) { *spec.Replicas *= 2 },
			planned: func(pods int) int { return min(pods, rollout.CreateBurst) },
		},
	} {
		for _, pods := range []int{1_000, 20_000} {
			b.Run(fmt.Sprint(name, "/", pods), func(b *testing.B) {
				s := large(b, pods)
				tc.due(&s.Set.Spec)
				p := Plan(Classify(s))
				if got := len(p.Stages[len(p.Stages)-1]); got != tc.planned(pods) {
					b.Fatalf("%d Pods are written to, want %d", got, tc.planned(pods))
				}
				for b.Loop() {
					v := Classify(s)
					p := Plan(v)
					Status(v, p, apply.Outcome{})
				}
			})
		}
	}
}
