package forecast

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// anyWorkload draws a workload of a kind, before its update.
func anyWorkload(t *rapid.T, kind string) client.Object {
	replicas := rapid.Int32Range(1, 7).Draw(t, "replicas")
	partition, unavailable := rapid.Int32Range(0, 3).Draw(t, "partition"), intstr.FromInt32(rapid.Int32Range(1, 4).Draw(t, "maxUnavailable"))
	kept, ready := intstr.FromInt32(partition), rapid.SampledFrom([]int32{0, 0, 30}).Draw(t, "minReadySeconds")
	inPlace := rapid.Bool().Draw(t, "in place")
	switch kind {
	case "StatefulSet":
		r := v1beta1.RollingUpdateStatefulSetStrategy{Partition: &partition, MaxUnavailable: &unavailable, MinReadySeconds: &ready}
		if inPlace {
			r.PodUpdatePolicy = v1beta1.InPlaceIfPossiblePodUpdateStrategyType
		}
		set := statefulSet(replicas, r)
		if rapid.Bool().Draw(t, "parallel") {
			set.Spec.PodManagementPolicy = "Parallel"
		}
		return set
	case "DaemonSet":
		set := &v1beta1.DaemonSet{ObjectMeta: metadata()}
		set.Spec.Selector, set.Spec.Template, set.Spec.MinReadySeconds = selector(), template(), ready
		set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateDaemonSet{
			RollingUpdateDaemonSetBase: v1beta1.RollingUpdateDaemonSetBase{Partition: &kept, MaxUnavailable: &unavailable},
		}
		if inPlace {
			set.Spec.UpdateStrategy.RollingUpdate.Type = v1beta1.InPlaceRollingUpdateType
		}
		return set
	}
	r := v1beta1.RollingUpdateCloneSetStrategy{Partition: &kept, MaxUnavailable: &unavailable}
	if inPlace {
		r.PodUpdatePolicy = v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType
	}
	if rapid.Bool().Draw(t, "scatter") {
		r.ScatterStrategy = pub.UpdateScatterStrategy{{Key: "group", Value: "a"}}
	}
	if rapid.Bool().Draw(t, "priority") {
		r.PriorityStrategy = &pub.UpdatePriorityStrategy{WeightPriority: []pub.UpdatePriorityWeightTerm{{
			Weight: 50, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"group": "b"}},
		}}}
	}
	set := cloneSet(replicas, r)
	set.Spec.MinReadySeconds = ready
	return set
}

// anyHealth gives the Pods of a world nodes, ages and labels, and breaks some of them.
func anyHealth(t *rapid.T, w *World) {
	for _, p := range w.pods() {
		if value := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "group"); value != "" {
			p.Labels["group"] = value
		}
		if p.Spec.NodeName == NewNode {
			p.Spec.NodeName = rapid.SampledFrom([]string{"n0", "n1", "n2"}).Draw(t, "node")
		}
		p.CreationTimestamp = metav1.NewTime(start().Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Minute))
		if rapid.IntRange(0, 4).Draw(t, "broken") == 0 {
			p.Status.ContainerStatuses[0].Ready = false
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
			pod.SetCondition(p, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}, w.Now)
		}
	}
}

// setImage gives a workload another template.
func setImage(owner client.Object) {
	var spec *corev1.PodSpec
	switch o := owner.(type) {
	case *v1beta1.CloneSet:
		spec = &o.Spec.Template.Spec
	case *v1beta1.StatefulSet:
		spec = &o.Spec.Template.Spec
	case *v1beta1.DaemonSet:
		spec = &o.Spec.Template.Spec
	}
	spec.Containers[0].Image = "web:v2"
	owner.SetGeneration(owner.GetGeneration() + 1)
}

// all returns copies of all objects of a world.
func (w *World) all() []client.Object {
	var out []client.Object
	for _, kind := range w.objects {
		for _, o := range kind {
			out = append(out, o.DeepCopyObject().(client.Object))
		}
	}
	return out
}

// carriedOut is what the controller does to Pods, in its order, when it is run for itself: each pass reads everything anew, each write is
// carried out alone, and all Pods run before the next pass that are not broken.
func carriedOut(ctx context.Context, now time.Time, objects []client.Object, owner client.Object) ([]string, error) {
	pass, err := controllerOf(owner)
	if err != nil {
		return nil, err
	}
	broken := map[string]bool{}
	for _, p := range NewWorld(now, objects...).pods() {
		broken[p.Name] = pod.Broken(p) != ""
	}
	var out []string
	for range 1000 {
		w := NewWorld(now, objects...)
		seen := w.find(owner).DeepCopyObject().(client.Object)
		decided, settle, err := pass(ctx, loop.ReadsOf(w, now), seen)
		if err != nil {
			return nil, err
		}
		w.writes = len(out) * 1000 // each world gives other UIDs
		var done apply.Outcome
		for _, a := range decided.Actions() {
			if p, is := a.Object().(*corev1.Pod); is && a.What != "" && (a.Concern == plan.Rollout || a.Concern == plan.Scale) {
				if a.Verb != plan.Create && a.Verb != plan.Delete {
					a.Verb = plan.Update
				}
				out = append(out, string(a.Verb)+" "+p.Name)
			}
		}
		for _, a := range decided.Actions() {
			if err := w.do(a); err != nil {
				return nil, err
			}
			done.Results = append(done.Results, apply.Result{Action: a, Object: a.After})
		}
		settle(done)
		copyStatus(w.find(owner), seen)
		for _, p := range w.pods() {
			if isNew := differs(p); p.DeletionTimestamp == nil && (!broken[p.Name] || isNew) {
				broken[p.Name] = false
				w.run(p)
			}
		}
		objects = w.all()
		switch {
		case !decided.Empty():
		case decided.Recheck > 0:
			now = now.Add(decided.Recheck)
		default:
			return out, nil
		}
	}
	return nil, fmt.Errorf("%s does not come to an end", owner.GetName())
}

// workloads is how many of each kind are drawn, unless -rapid.checks says another number.
const workloads = "1000"

// TestOrder checks that the steps of a forecast are what the controller then does, in that order, when nothing else happens.
func TestOrder(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	if before := checks.Value.String(); before == checks.DefValue {
		if err := checks.Value.Set(workloads); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = checks.Value.Set(before) }()
	}
	for _, kind := range []string{"CloneSet", "StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			updates := 0
			rapid.Check(t, func(t *rapid.T) { updates += checkOrder(t, kind) })
			if updates == 0 {
				t.Error("no Pod was updated at all")
			}
		})
	}
}

// checkOrder checks one workload, and returns how many Pods are changed.
func checkOrder(t *rapid.T, kind string) int {
	owner := anyWorkload(t, kind)
	objects := []client.Object{owner}
	for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}})
	}
	ctx := context.Background()
	w := NewWorld(start(), objects...)
	if _, err := Run(ctx, w, owner); err != nil {
		t.Fatal(err)
	}
	w.Now = start().Add(time.Hour)
	anyHealth(t, w)
	if err := w.Get(ctx, client.ObjectKeyFromObject(owner), owner); err != nil {
		t.Fatal(err)
	}
	setImage(owner)
	w.put(owner.DeepCopyObject().(client.Object))
	want, err := carriedOut(ctx, w.Now, w.all(), owner)
	if err != nil {
		t.Fatal(err)
	}
	foretold, err := Run(ctx, NewWorld(w.Now, w.all()...), owner)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range foretold.Steps {
		got = append(got, string(s.Verb)+" "+s.Pod)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("foretold (+) is not what is done (-):\n%s", d)
	}
	return len(got)
}
