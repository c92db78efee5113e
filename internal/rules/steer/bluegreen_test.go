package steer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

// blueGreenDeployment returns a Deployment with a strategy of its own, of which so many Pods are of each version.
func blueGreenDeployment(image string, v1, v2 int32) Objects {
	o := deploymentIn(image, v1, v2)
	d := o.Workload.(*appsv1.Deployment)
	d.Spec.Replicas = ptr.To[int32](4)
	d.Spec.MinReadySeconds, d.Spec.ProgressDeadlineSeconds = 5, ptr.To[int32](60)
	d.Spec.Strategy = appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: value("30%"), MaxUnavailable: value(1)},
	}
	o.Autoscalers = []*autoscalingv2.HorizontalPodAutoscaler{{}}
	o.Autoscalers[0].Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name}
	return o
}

// apply returns the objects as writes leave them.
func apply(o Objects, w Writes) Objects {
	o.Workload = w.Workload
	for _, c := range append(w.First, w.Then...) {
		for i := range o.Autoscalers {
			if Object(o.Autoscalers[i]) == c.Before {
				o.Autoscalers = []*autoscalingv2.HorizontalPodAutoscaler{c.After.(*autoscalingv2.HorizontalPodAutoscaler)}
			}
		}
		for i := range o.ReplicaSets {
			if Object(o.ReplicaSets[i]) == c.Before {
				o.ReplicaSets = append([]*appsv1.ReplicaSet{}, o.ReplicaSets...)
				o.ReplicaSets[i] = c.After.(*appsv1.ReplicaSet)
			}
		}
	}
	return o
}

func batchOf(t *testing.T, k Kind, o Objects, step any) Objects {
	t.Helper()
	w, err := k.Batch(o, Batch{Step: value(step)})
	if err != nil {
		t.Fatal(err)
	}
	return apply(o, w)
}

// TestABlueGreenReleaseOfADeployment: frozen, then with the surge of each step, then as before to the last field.
func TestABlueGreenReleaseOfADeployment(t *testing.T) {
	k := blueGreenDeployments()
	o := blueGreenDeployment("v2", 4, 0)
	before := o
	o.Workload = Mark(k.Freeze(o), "demo")
	frozen := o.Workload.(*appsv1.Deployment)
	if !frozen.Spec.Paused || frozen.Labels[keys.StableRevision] == "" || frozen.Labels[keys.AdvancedDeployment] != "" {
		t.Fatalf("it is not frozen: paused %t, labels %v", frozen.Spec.Paused, frozen.Labels)
	}
	for _, step := range []string{"50%", "100%"} {
		o = batchOf(t, k, o, step)
		want := besideStrategy{value(0), value(step), 2147483646, ptr.To[int32](2147483647), false}
		if diff := cmp.Diff(want, readDeployment(o.Workload), cmp.AllowUnexported(besideStrategy{})); diff != "" {
			t.Errorf("at step %s (-want +got):\n%s", step, diff)
		}
	}
	var n original
	if n, _, _ = noteOf(o.Workload, readDeployment(o.Workload)); n.String() !=
		`{"maxUnavailable":1,"maxSurge":"30%","minReadySeconds":5,"progressDeadlineSeconds":60,"surge":"100%"}` {
		t.Errorf("the note is %s", n)
	}
	if got := o.Autoscalers[0].Spec.ScaleTargetRef.Name; got != "web-DisableByRollout" {
		t.Errorf("the autoscaler scales %s", got)
	}
	if stable := (deployments{}).stable(o); stable.Spec.MinReadySeconds != budget.BesideSeconds {
		t.Errorf("the stable ReplicaSet has minReadySeconds %d", stable.Spec.MinReadySeconds)
	}
	if again, err := k.Batch(o, Batch{Step: value("100%")}); err != nil || again.Workload != o.Workload || len(again.First) > 0 {
		t.Errorf("the batch is written again: %+v, %v", again, err)
	}
	if f := k.See(o); !f.Frozen || !f.Marked {
		t.Errorf("it is not frozen: %+v", f)
	}
	o = apply(o, Unmark(k, o))
	if diff := cmp.Diff(before.Workload, o.Workload, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the release leaves something behind (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(before.Autoscalers, o.Autoscalers); diff != "" {
		t.Errorf("the autoscaler (-before +after):\n%s", diff)
	}
	for _, rs := range o.ReplicaSets {
		if rs.Spec.MinReadySeconds == budget.BesideSeconds {
			t.Errorf("ReplicaSet %s is never available", rs.Name)
		}
	}
}

// TestABlueGreenReleaseOfACloneSet: what was not set is not set in the end.
func TestABlueGreenReleaseOfACloneSet(t *testing.T) {
	k := blueGreenCloneSets()
	o := Objects{Workload: cloneSetOf(4, nil), Now: now}
	before := o.Workload
	o.Workload = Mark(k.Freeze(o), "demo")
	if !readCloneSet(o.Workload).stands {
		t.Fatal("it is not frozen")
	}
	o = batchOf(t, k, o, "100%")
	want := besideStrategy{value(0), value("100%"), 2147483646, ptr.To[int32](2147483647), false}
	if diff := cmp.Diff(want, readCloneSet(o.Workload), cmp.AllowUnexported(besideStrategy{})); diff != "" {
		t.Errorf("at the step (-want +got):\n%s", diff)
	}
	if o = apply(o, Unmark(k, o)); cmp.Diff(before, o.Workload, cmpopts.EquateEmpty()) != "" {
		t.Errorf("the release leaves something behind (-before +after):\n%s", cmp.Diff(before, o.Workload, cmpopts.EquateEmpty()))
	}
}

// TestAStepBackTakesNoPod: the surge is never lowered.
func TestAStepBackTakesNoPod(t *testing.T) {
	k := blueGreenDeployments()
	for name, tc := range map[string]struct{ first, then, want any }{
		"back":                     {"100%", "25%", "100%"},
		"on":                       {"25%", "100%", "100%"},
		"back, from a number":      {3, "50%", 3},
		"to as many by percentage": {2, "50%", "50%"},
	} {
		t.Run(name, func(t *testing.T) {
			o := blueGreenDeployment("v2", 4, 0)
			o.Workload = Mark(k.Freeze(o), "demo")
			o = batchOf(t, k, batchOf(t, k, o, tc.first), tc.then)
			if got := readDeployment(o.Workload).maxSurge; *got != *value(tc.want) {
				t.Errorf("maxSurge %s, want %v", got, tc.want)
			}
		})
	}
}

// TestWhatSomebodyWritesDuringABlueGreenRelease: the release keeps its strategy, and what is written comes back in the end.
func TestWhatSomebodyWritesDuringABlueGreenRelease(t *testing.T) {
	k := blueGreenDeployments()
	o := blueGreenDeployment("v2", 4, 4)
	manifest := *o.Workload.(*appsv1.Deployment).DeepCopy()
	o.Workload = Mark(k.Freeze(o), "demo")
	o.Workload.(*appsv1.Deployment).Labels[keys.WorkloadType] = "deployment"
	frozen := o
	o = batchOf(t, k, o, "50%")
	raised := batchOf(t, k, o, "100%").Workload.(*appsv1.Deployment)
	for name, tc := range map[string]struct {
		old   Object
		write func(*appsv1.Deployment)
		// strategy says that it is kept, unavailable what maxUnavailable is in the end.
		kept, paused bool
		unavailable  any
	}{
		"the manifest replaces it": {o.Workload, func(d *appsv1.Deployment) {
			d.Labels, d.Annotations, d.Spec = nil, nil, manifest.Spec
		}, true, false, 1},
		"the manifest is merged into it": {o.Workload, func(d *appsv1.Deployment) { d.Spec = manifest.Spec }, true, false, 1},
		"a strategy is merged into it that is new": {o.Workload, func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: value(1), MaxUnavailable: value(3)}
		}, true, false, 3},
		"Recreate": {o.Workload, func(d *appsv1.Deployment) {
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		}, true, false, 1},
		"the annotation is taken off":          {o.Workload, func(d *appsv1.Deployment) { d.Annotations = nil }, true, false, 1},
		"the annotation is damaged":            {o.Workload, func(d *appsv1.Deployment) { d.Annotations[keys.OriginalDeploymentStrategy] = "x" }, true, false, 1},
		"the next step":                        {o.Workload, func(d *appsv1.Deployment) { *d = *raised.DeepCopy() }, true, false, 1},
		"it is unpaused before the first step": {frozen.Workload, func(d *appsv1.Deployment) { d.Spec.Paused = false }, false, true, 1},
		"the first step": {frozen.Workload, func(d *appsv1.Deployment) {
			*d = *o.Workload.(*appsv1.Deployment).DeepCopy()
		}, true, false, 1},
		"the end of the release": {o.Workload, func(d *appsv1.Deployment) {
			*d = *k.Promote(o).Workload.(*appsv1.Deployment).DeepCopy()
		}, false, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			written := o
			written.Workload = tc.old.DeepCopyObject().(Object)
			tc.write(written.Workload.(*appsv1.Deployment))
			asked := readDeployment(written.Workload).maxSurge
			stored := k.Guard(tc.old, written)
			is := readDeployment(stored)
			if kept := is.minReadySeconds == budget.BesideSeconds && is.maxUnavailable.IntValue() == 0; kept != tc.kept || is.stands != tc.paused {
				t.Errorf("stored as %+v", is)
			}
			if tc.kept && name != "the next step" && is.maxSurge.String() != "50%" {
				t.Errorf("maxSurge %s, asked for %s", is.maxSurge, asked)
			}
			if stored.(*appsv1.Deployment).Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
				t.Error("it is Recreate")
			}
			ended := readDeployment(k.Promote(Objects{Workload: stored}).Workload)
			if *ended.maxUnavailable != *value(tc.unavailable) || ended.minReadySeconds != 5 {
				t.Errorf("in the end it is %+v", ended)
			}
		})
	}
}

// TestAStrategyThatDoesNotFit: what was written while no webhook was there is taken back if it is what was there before, and else told of.
func TestAStrategyThatDoesNotFit(t *testing.T) {
	k := blueGreenDeployments()
	for name, tc := range map[string]struct {
		write func(*appsv1.Deployment)
		want  string
	}{
		"the manifest was written back": {func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 5 }, ""},
		"another maxSurge": {func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate.MaxSurge = value(3) },
			`maxSurge is 3: the release has set it to 50%, and it was 30% before`},
		"another time": {func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 7 }, "minReadySeconds is 7"},
		"no note":      {func(d *appsv1.Deployment) { d.Annotations = nil }, "is gone"},
		"a note that can't be read": {func(d *appsv1.Deployment) {
			d.Annotations[keys.OriginalDeploymentStrategy] = "x"
		}, "is not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			o := blueGreenDeployment("v2", 4, 0)
			o.Workload = Mark(k.Freeze(o), "demo")
			o = batchOf(t, k, o, "50%")
			o.Workload = copyOf(o.Workload)
			tc.write(o.Workload.(*appsv1.Deployment))
			w, err := k.Batch(o, Batch{Step: value("50%")})
			switch {
			case tc.want == "" && (err != nil || readDeployment(w.Workload).minReadySeconds != budget.BesideSeconds):
				t.Errorf("it is not taken back: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
			if is := readDeployment(k.Promote(o).Workload); is.minReadySeconds == budget.BesideSeconds || is.stands {
				t.Errorf("it does not end: %+v", is)
			}
		})
	}
}

// TestAThirdVersionStandsBesideTwo: its template is frozen, and nothing else changes.
func TestAThirdVersionStandsBesideTwo(t *testing.T) {
	for name, k := range map[string]Kind{"Deployment": blueGreenDeployments(), "CloneSet": blueGreenCloneSets()} {
		t.Run(name, func(t *testing.T) {
			o := blueGreenDeployment("v2", 4, 4)
			if name == "CloneSet" {
				o = Objects{Workload: cloneSetOf(4, nil), Now: now}
			}
			read := k.(blueGreen).read
			o.Workload = Mark(k.Freeze(o), "demo")
			o = batchOf(t, k, o, "100%")
			want := read(o.Workload)
			want.stands = true
			o.Workload = Mark(k.Freeze(o), "demo")
			if diff := cmp.Diff(want, read(o.Workload), cmp.AllowUnexported(besideStrategy{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if o = batchOf(t, k, o, "100%"); read(o.Workload).stands {
				t.Error("with its template back, it does not go on")
			}
		})
	}
}

func TestRefusesInBlueGreen(t *testing.T) {
	set := cloneSetOf(4, nil)
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{PodUpdatePolicy: v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType}
	if why := blueGreenCloneSets().Refuses(Objects{Workload: set}); !strings.Contains(why, "InPlaceOnly") {
		t.Errorf("it is refused because %q", why)
	}
	if n, err := blueGreenDeployments().Planned(blueGreenDeployment("v2", 4, 0), ptr.To(intstr.FromString("90%"))); n != 4 || err != nil {
		t.Errorf("90%% of 4 is %d, %v: old Pods stay whatever the step says", n, err)
	}
}
