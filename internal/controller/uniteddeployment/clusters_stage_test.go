package uniteddeployment

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// instance is a Pod as it is in truth, whatever the hub has heard of it.
type instance struct {
	revision string
	isReady  bool
}

// rolling is a fleet whose workloads take Pods out of service one by one, as their specs allow, and report that sooner or later.
type rolling struct {
	*fleet
	budget int32
	pods   map[string][]instance
	// wasLost means that m1, which is in the first wave, could not be used for a while: then nobody waits for it.
	wasLost bool
	// tamper changes the status after each pass; nil for not at all.
	tamper func(*v1beta1.UnitedDeploymentSubsetStatus)
}

// newRolling has three Pods in each of three clusters at rest, with one budget for all, and b, which is in m1, before the others.
func newRolling(t *testing.T, budget int32) *rolling {
	f := newFleet(t, v1beta1.FreezeUnreachable)
	f.change(func(set *v1beta1.UnitedDeployment) {
		set.Spec.UpdateStrategy.MaxUnavailable = quantity(budget)
		set.Spec.UpdateStrategy.Waves = []v1beta1.UpdateWave{{Name: "first", Subsets: []string{"b"}}}
		own, none := intstr.FromInt32(2), intstr.FromInt32(0)
		set.Spec.Template.DeploymentTemplate.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: &own, MaxSurge: &none}
	})
	r := &rolling{fleet: f, budget: budget, pods: map[string][]instance{}}
	r.rest()
	return r
}

// rest has everything come to its end.
func (r *rolling) rest() {
	for range 200 {
		for _, w := range r.all() {
			for r.advance(w, 0) {
			}
			r.report(w)
		}
		if !r.pass() {
			return
		}
		r.Now = r.Now.Add(time.Second)
	}
	r.breaks("it never rests")
}

// all returns the workloads of all clusters.
func (r *rolling) all() (out []*Workload) {
	for i := range r.Workloads {
		out = append(out, &r.Workloads[i])
	}
	for _, name := range []string{"m1", "m2"} {
		for i := range r.members[name].workloads {
			out = append(out, &r.members[name].workloads[i])
		}
	}
	return out
}

// advance has a workload go one step on, and reports whether there was one: a Pod becomes ready, or one is replaced.
func (r *rolling) advance(w *Workload, choice int) bool {
	o := w.Object.(*appsv1.Deployment)
	newest := o.Spec.Template.Labels[keys.SubsetRevision]
	pods := r.pods[o.Name]
	for len(pods) < int(*o.Spec.Replicas) {
		pods = append(pods, instance{newest, true})
	}
	r.pods[o.Name] = pods
	limit := int(o.Spec.Strategy.RollingUpdate.MaxUnavailable.IntVal)
	var steps []func()
	out := 0
	for i := range pods {
		if p := &pods[i]; !p.isReady {
			out++
			steps = append(steps, func() { p.isReady = true })
		}
	}
	for i := range pods {
		if p := &pods[i]; p.revision != newest && (!p.isReady || out < limit) {
			steps = append(steps, func() { *p = instance{newest, false} })
		}
	}
	if len(steps) == 0 {
		return false
	}
	steps[choice%len(steps)]()
	return true
}

// report has the hub hear of a workload, and of its Pods.
func (r *rolling) report(w *Workload) {
	o := w.Object.DeepCopyObject().(*appsv1.Deployment)
	status := appsv1.DeploymentStatus{ObservedGeneration: o.Generation}
	w.Pods = nil
	for i, p := range r.pods[o.Name] {
		status.Replicas++
		made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d-%s", o.Name, i, p.revision), Namespace: "ns", Labels: map[string]string{keys.SubsetRevision: p.revision},
		}}
		made.Status.Phase = corev1.PodRunning
		if p.revision == o.Spec.Template.Labels[keys.SubsetRevision] {
			status.UpdatedReplicas++
		}
		if p.isReady {
			status.ReadyReplicas, status.AvailableReplicas = status.ReadyReplicas+1, status.AvailableReplicas+1
			made.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(r.Now)}}
		}
		w.Pods = append(w.Pods, made)
	}
	o.Status = status
	w.Object = o
}

// judgeStage says what is wrong with how far the rollout has come.
func (r *rolling) judgeStage() {
	newest, out, isFirstDone := r.Set.Status.UpdatedRevision, 0, true
	begun := map[string]bool{}
	for _, w := range r.all() {
		o := w.Object.(*appsv1.Deployment)
		subset := o.Labels[keys.SubsetName]
		begun[subset] = o.Spec.Template.Labels[keys.SubsetRevision] == newest
		for _, p := range r.pods[o.Name] {
			if !p.isReady {
				out++
			}
			isFirstDone = isFirstDone && (subset != "b" || p.isReady && p.revision == newest)
		}
	}
	if out > int(r.budget) {
		r.breaks("%d Pods are out of service, and the budget is %d", out, r.budget)
	}
	if (begun["a"] || begun["c"]) && !isFirstDone && !r.wasLost {
		r.breaks("the second wave begins before the first is done")
	}
}

// TestARolloutOverClusters: members are late, can't be reached, though they go on all the same, and are connected to anew. No more Pods than the
// budget has are ever out of service in all clusters together, and no wave begins before the one before is done, unless its cluster is lost.
func TestARolloutOverClusters(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		if broken := rollOut(t, r, planOf, nil); broken != "" {
			r.Fatal(broken)
		}
	})
}

func rollOut(t *testing.T, r *rapid.T, planned func(*State) plan.Plan, tamper func(*v1beta1.UnitedDeploymentSubsetStatus)) string {
	f := newRolling(t, rapid.Int32Range(1, 4).Draw(r, "budget"))
	f.planned, f.tamper = planned, tamper
	f.change(image("two"))
	f.pass() // which makes the revision
	for range rapid.IntRange(20, 120).Draw(r, "steps") {
		f.actRolling(r)
		f.judgeStage()
		if f.broken != "" {
			return f.broken
		}
	}
	for _, at := range f.members {
		at.up, at.late, at.joining = true, false, false
	}
	f.rest()
	f.judgeStage()
	if c := f.updated(); f.broken == "" && c != corev1.ConditionTrue {
		f.breaks("in the end it is not updated")
	}
	return f.broken
}

func (r *rolling) updated() corev1.ConditionStatus {
	i := slices.IndexFunc(r.Set.Status.Conditions, func(c v1beta1.UnitedDeploymentCondition) bool { return c.Type == v1beta1.UnitedDeploymentUpdated })
	return r.Set.Status.Conditions[i].Status
}

// actRolling has something happen.
func (f *rolling) actRolling(r *rapid.T) {
	all := f.all()
	w := all[rapid.IntRange(0, len(all)-1).Draw(r, "workload")]
	name := rapid.SampledFrom([]string{"m1", "m2"}).Draw(r, "member")
	at := f.members[name]
	switch rapid.SampledFrom([]string{"pass", "pass", "pass", "advance", "advance", "advance", "report", "report", "late", "down", "up", "joining"}).Draw(r, "event") {
	case "pass":
		written := map[string]int64{}
		for _, w := range all {
			written[w.Object.GetName()] = w.Object.GetGeneration()
		}
		f.pass()
		for i := range f.Set.Status.SubsetStatuses {
			if f.tamper != nil {
				f.tamper(&f.Set.Status.SubsetStatuses[i])
			}
		}
		for _, at := range f.members { // a cache does not show at once what was written
			for _, w := range at.workloads {
				at.late = at.late || w.Object.GetGeneration() != written[w.Object.GetName()]
			}
		}
	case "advance":
		f.advance(w, rapid.IntRange(0, 5).Draw(r, "step"))
	case "report":
		f.report(w)
	case "late":
		at.late = !at.late
	case "down", "joining":
		at.up, at.joining = false, true
		if rapid.Bool().Draw(r, "lost") {
			at.joining = false
			f.wasLost = f.wasLost || name == "m1"
		}
	case "up":
		at.up, at.joining = true, false
	}
}

// TestMistakesAboutStagesShow has the planner make mistakes on purpose: the checks of TestARolloutOverClusters must see each of them.
func TestMistakesAboutStagesShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistake func(*State)
		tamper  func(*v1beta1.UnitedDeploymentSubsetStatus)
		want    string
	}{
		"nobody waits for the budget": {mistake: func(v *State) {
			for _, one := range v.subsets {
				one.limit = nil
			}
		}, want: "out of service"},
		"nobody waits for a wave": {mistake: func(v *State) {
			for _, one := range v.subsets {
				one.keeps = kept{}
			}
		}, want: "the second wave begins"},
		"the status does not tell what a cluster may have out of service": {tamper: func(s *v1beta1.UnitedDeploymentSubsetStatus) {
			if s.Observed != nil {
				s.Observed.MaxUnavailable = 0
			}
		}, want: "out of service"},
	} {
		t.Run(name, func(t *testing.T) {
			planned := func(v *State) plan.Plan {
				if tc.mistake != nil {
					tc.mistake(v)
				}
				return Plan(*v)
			}
			for seed := range 400 {
				broken := ""
				rapid.Custom(func(r *rapid.T) int {
					broken = rollOut(t, r, planned, tc.tamper)
					return 0
				}).Example(seed)
				if strings.Contains(broken, tc.want) {
					return
				}
			}
			t.Error("nobody sees it")
		})
	}
}
