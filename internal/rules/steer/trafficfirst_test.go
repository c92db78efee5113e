package steer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
)

// inRelease returns a Deployment in a release from v1 to v2, with another image written since.
func inRelease(image string) Objects {
	o := deploymentIn("v2", 10, 3)
	d := Mark(deployments{}.Freeze(o), "demo").(*appsv1.Deployment)
	d.Spec.Template.Spec.Containers[0].Image = image
	o.Workload = d
	return o
}

func TestTrafficFirst(t *testing.T) {
	unpaused, other := inRelease("v1"), inRelease("v1")
	unpaused.Workload.(*appsv1.Deployment).Spec.Paused = false
	other.ReplicaSets = other.ReplicaSets[:1]
	canary := deploymentIn("v1", 10, 0)
	canary.Workload = Mark(canaries{}.Freeze(canary), "demo")
	for name, tc := range map[string]struct {
		o    Objects
		want bool
	}{
		"the old template is back":              {inRelease("v1"), true},
		"the new template":                      {inRelease("v2"), false},
		"a third one":                           {inRelease("v3"), false},
		"the end of the release":                {unpaused, false},
		"the stable ReplicaSet is not there":    {other, false},
		"no release":                            {deploymentIn("v1", 10, 3), false},
		"a release with a second Deployment":    {canary, false},
		"a workload that is not a Deployment":   {Objects{Workload: &appsv1.StatefulSet{}}, false},
		"it was so already, and stays as it is": {Objects{Workload: TrafficFirst(inRelease("v1")), ReplicaSets: inRelease("v1").ReplicaSets}, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.o.Workload.DeepCopyObject()
			stored := TrafficFirst(tc.o)
			d, is := stored.(*appsv1.Deployment)
			if got := is && IsTrafficFirst(d); got != tc.want {
				t.Errorf("traffic first: %t, want %t", got, tc.want)
			}
			if diff := cmp.Diff(before, tc.o.Workload); diff != "" {
				t.Errorf("what was read is changed (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(Written(tc.o.Workload), Written(stored), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("more than the annotation is added (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheNativeControllerKnowsNoNewReplicaSet of a template that waits for traffic, and a release sees what its user wrote.
func TestTheNativeControllerKnowsNoNewReplicaSet(t *testing.T) {
	k, o := deployments{}, inRelease("v1")
	want := k.See(o)
	if !want.RolledBack {
		t.Fatalf("the old template is not back: %+v", want)
	}
	o.Workload = TrafficFirst(o)
	if fresh := replicasets.New(o.Workload.(*appsv1.Deployment), o.ReplicaSets); fresh != nil {
		t.Errorf("%s is taken for the new one", fresh.Name)
	}
	if diff := cmp.Diff(want, k.See(o)); diff != "" {
		t.Errorf("the release sees something else (-want +got):\n%s", diff)
	}
	if p := o.Pods[0]; !k.Updated(o)(p) {
		t.Errorf("%s is not of the template", p.Name)
	}
	if IsRelease(inRelease("v1").Workload, o.Workload) {
		t.Error("the annotation begins a release")
	}
}

func TestTrafficFirstEndsWithThePause(t *testing.T) {
	for name, annotations := range map[string]map[string]string{"alone": nil, "beside another": {"note": "kept"}} {
		t.Run(name, func(t *testing.T) {
			o := inRelease("v1")
			for _, rs := range o.ReplicaSets {
				rs.Spec.Template.Annotations = annotations
			}
			o.Workload.(*appsv1.Deployment).Spec.Template.Annotations = annotations
			want := o.Workload.(*appsv1.Deployment).Spec.Template.DeepCopy()
			if o.Workload = TrafficFirst(o); o.Workload.(*appsv1.Deployment).Spec.Template.Annotations[keys.TrafficFirst] != "true" {
				t.Fatal("it does not wait for traffic")
			}
			after := Unmark(deployments{}, o).Workload.(*appsv1.Deployment)
			if diff := cmp.Diff(want, &after.Spec.Template); diff != "" || after.Spec.Paused {
				t.Errorf("paused %t, the template is not what was written (-want +got):\n%s", after.Spec.Paused, diff)
			}
		})
	}
}
