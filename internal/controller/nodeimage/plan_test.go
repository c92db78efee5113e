package nodeimage

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func nodeOf(ready corev1.ConditionStatus, since time.Duration, labels map[string]string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u", Labels: labels},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(now.Add(-since))}}},
	}
}

func TestCreation(t *testing.T) {
	leaving := nodeOf(corev1.ConditionTrue, time.Hour, nil)
	leaving.DeletionTimestamp = &metav1.Time{Time: now}
	for name, tc := range map[string]struct {
		in      NodeSnapshot
		creates bool
		recheck time.Duration
	}{
		"ready for long enough":        {NodeSnapshot{Node: nodeOf(corev1.ConditionTrue, 30*time.Second, map[string]string{"a": "b"})}, true, 0},
		"not yet":                      {NodeSnapshot{Node: nodeOf(corev1.ConditionTrue, 29*time.Second, nil)}, false, time.Second},
		"not ready":                    {NodeSnapshot{Node: nodeOf(corev1.ConditionFalse, time.Hour, nil)}, false, 0},
		"no machine":                   {NodeSnapshot{Node: nodeOf(corev1.ConditionTrue, time.Hour, map[string]string{"type": "virtual-kubelet"})}, false, 0},
		"it has one":                   {NodeSnapshot{Node: nodeOf(corev1.ConditionTrue, time.Hour, nil), Has: true}, false, 0},
		"on its way out":               {NodeSnapshot{Node: leaving}, false, 0},
		"a node that says nothing yet": {NodeSnapshot{Node: &corev1.Node{}}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Now, tc.in.Delay = now, 30*time.Second
			p := PlanCreation(tc.in)
			if p.Empty() == tc.creates || p.Recheck != tc.recheck {
				t.Fatalf("plan:\n%s", p)
			}
			if tc.creates {
				image := p.Actions()[0].After.(*v1beta1.NodeImage)
				if diff := cmp.Diff(tc.in.Node.Labels, image.Labels); diff != "" || image.Name != "n1" || !metav1.IsControlledBy(image, tc.in.Node) {
					t.Errorf("the NodeImage is %+v", image)
				}
			}
		})
	}
}

func TestUpkeep(t *testing.T) {
	asked := func(age time.Duration) *v1beta1.NodeImage {
		return &v1beta1.NodeImage{
			ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"a": "b"}},
			Spec: v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{"nginx": {Tags: []v1beta1.ImageTagSpec{{
				Tag: "1", CreatedAt: &metav1.Time{Time: now.Add(-age)}, PullPolicy: &v1beta1.ImageTagPullPolicy{TTLSecondsAfterFinished: new(int32)},
				OwnerReferences: []corev1.ObjectReference{{Kind: "ImagePullJob", UID: "job"}},
			}}}}},
		}
	}
	here := nodeOf(corev1.ConditionTrue, time.Hour, map[string]string{"a": "b"})
	running := map[types.UID]pull.OwnerState{"job": pull.Running}
	fake := asked(0)
	fake.Labels[keys.FakeNodeImage] = "true"
	for name, tc := range map[string]struct {
		in      Snapshot
		does    string
		recheck time.Duration
		event   string
	}{
		"nothing to do":                  {Snapshot{Image: asked(0), Node: here, Owners: running}, "", pull.ResponseTimeout, ""},
		"the node is gone":               {Snapshot{Image: asked(0), Owners: running}, "delete the NodeImage", 0, ""},
		"a NodeImage for tests":          {Snapshot{Image: fake, Owners: running}, "", pull.ResponseTimeout, ""},
		"the labels differ":              {Snapshot{Image: asked(0), Node: nodeOf(corev1.ConditionTrue, time.Hour, map[string]string{"a": "c"}), Owners: running}, "clean up", pull.ResponseTimeout, ""},
		"the job is gone":                {Snapshot{Image: asked(0), Node: here}, "clean up", pull.ResponseTimeout, ""},
		"the node has been silent":       {Snapshot{Image: asked(pull.ResponseTimeout), Node: here, Owners: running}, "fail pulls", 0, "nginx:1: node has not responded for a long time"},
		"it is about to have been":       {Snapshot{Image: asked(pull.ResponseTimeout - time.Millisecond), Node: here, Owners: running}, "", 3 * time.Second, ""},
		"on its way out nothing is done": {Snapshot{Image: &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now}}}}, "", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Now = now
			p := Plan(tc.in)
			var does []string
			for _, a := range p.Actions() {
				does = append(does, a.What)
			}
			if got := strings.Join(does, ", "); got != tc.does || p.Recheck != tc.recheck {
				t.Errorf("plan:\n%s", p)
			}
			var events []string
			for _, h := range p.Holds {
				if h.Event == "PullImageFailed" {
					events = append(events, h.Why)
				}
			}
			if got := strings.Join(events, ", "); got != tc.event {
				t.Errorf("events say %q, want %q", got, tc.event)
			}
			for _, a := range p.Actions() {
				if a.What == "fail pulls" && (a.Verb != plan.UpdateStatus || a.AnyVersion) {
					t.Error("a late word of the node would be lost")
				}
			}
		})
	}
}
