package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/test/kit/build"
)

// now is the time of all passes here.
func now() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// servingPod is in service, with the gate of in-place updates.
func servingPod() *corev1.Pod {
	p := build.Pod("web-2x4mt").Node("a").Ready(now().Add(-time.Hour)).Revision("web-old").State(pub.LifecycleStateNormal).
		Condition(pub.InPlaceUpdateReady, corev1.ConditionTrue, now().Add(-time.Hour)).Obj()
	was := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx:old", Resources: was}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "app", Image: "nginx:old", ImageID: "nginx@old", Ready: true, Resources: &was},
	}
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: pub.InPlaceUpdateReady}}
	return p
}

func moreCPU() inplace.Change {
	return inplace.Change{Resources: map[string]corev1.ResourceRequirements{
		"app": {Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}},
	}}
}

func begin(p *corev1.Pod, c inplace.Change) plan.Chain {
	b := plan.For("")
	w := Workload{InPlace: inplace.Options{VerticalScaling: true}, Now: now()}
	w.UpdaterTo(build.Revision("web-new", 2, "{}"), w.InPlace).update(p, c, "", b)
	return b.Plan().Stages[0][0]
}

func TestAPassPlansBurstOfUpdatesInPlace(t *testing.T) {
	held := servingPod()
	held.Labels[keys.LifecycleState], held.Labels["hold"] = string(pub.LifecycleStatePreparingUpdate), "yes"
	hook := &pub.Lifecycle{InPlaceUpdate: &pub.LifecycleHook{LabelsHandler: map[string]string{"hold": "yes"}}}
	waiting := held.DeepCopy()
	waiting.Labels[keys.LifecycleState] = string(pub.LifecycleStateNormal)
	for name, tc := range map[string]struct {
		pod       *corev1.Pod
		lifecycle *pub.Lifecycle
		planned   int
		holds     int
	}{
		"no hook":                          {servingPod(), nil, UpdateBurst, 0},
		"a hook is to hold them":           {waiting, hook, UpdateBurst, 0},
		"a hook that holds costs no write": {held, hook, 0, UpdateBurst + 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := plan.For("")
			w := Workload{Now: now(), Lifecycle: tc.lifecycle}
			u := w.UpdaterTo(build.Revision("web-new", 2, "{}"), w.InPlace)
			for range UpdateBurst + 1 {
				u.update(tc.pod, inplace.Change{Images: map[string]string{"app": "nginx:new"}}, "", b)
			}
			p := b.Plan()
			planned := 0
			for _, stage := range p.Stages {
				planned += len(stage)
			}
			if planned != tc.planned || len(p.Holds) != tc.holds || p.More != (tc.planned > 0) {
				t.Errorf("%d Pods are changed, %d held, and more %t; want %d and %d, and more where any are changed", planned, len(p.Holds),
					p.More, tc.planned, tc.holds)
			}
		})
	}
}

func TestWritesOfAnUpdateInPlace(t *testing.T) {
	value := "2"
	cases := map[string]struct {
		change inplace.Change
		want   []plan.Verb
	}{
		"labels change in one write": {
			change: inplace.Change{Labels: map[string]inplace.Value{"conf": {New: &value}}},
			want:   []plan.Verb{plan.Update},
		},
		"an image changes once the Pod is out of service": {
			change: inplace.Change{Images: map[string]string{"app": "nginx:new"}},
			want:   []plan.Verb{plan.UpdateStatus, plan.Update},
		},
		"a resize is on record before it is asked for": {
			change: moreCPU(),
			want:   []plan.Verb{plan.Update, plan.Resize, plan.Update},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []plan.Verb
			for _, action := range begin(servingPod(), tc.change) {
				got = append(got, action.Verb)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// A manager may be killed between two writes: what annotations tell of a spec must not be there before the spec is.
func TestMetadataIsWrittenWithTheSpecItSpeaksOf(t *testing.T) {
	before := servingPod()
	after := before.DeepCopy()
	after.Annotations = map[string]string{keys.InPlaceUpdateState: "{}"}
	after.Spec.Containers[0].Image = "nginx:new"
	after.Status.Conditions = append(after.Status.Conditions, corev1.PodCondition{Type: pub.KruisePodReady, Status: corev1.ConditionTrue})
	chain := PodWrites(plan.Settle, before, after)
	if len(chain) != 2 || chain[0].Verb != plan.UpdateStatus || chain[1].Verb != plan.Update {
		t.Fatalf("got %v, want a status write and one of all else", chain)
	}
	first, second := chain[0].After.(*corev1.Pod), chain[1].After.(*corev1.Pod)
	if first.Annotations[keys.InPlaceUpdateState] != "" || first.Spec.Containers[0].Image != "nginx:old" {
		t.Errorf(
			"the status write has annotations %v and image %s, want none and nginx:old",
			first.Annotations,
			first.Spec.Containers[0].Image,
		)
	}
	if second.Annotations[keys.InPlaceUpdateState] == "" || second.Spec.Containers[0].Image != "nginx:new" {
		t.Errorf("the other one has annotations %v and image %s", second.Annotations, second.Spec.Containers[0].Image)
	}
}

func TestAResizeIsWaitedForWhereverItsWritesBreakOff(t *testing.T) {
	for done := range 3 {
		p := servingPod()
		chain := begin(p, moreCPU())
		for range 20 {
			if len(chain) == 0 {
				break
			}
			for _, action := range chain[:min(done+1, len(chain))] {
				p = action.After.(*corev1.Pod)
			}
			b := plan.For("")
			w := Workload{InPlace: inplace.Options{VerticalScaling: true}, Now: now()}
			w.Settle(&Member{Pod: p}, true, b)
			chain = nil
			if stages := b.Plan().Stages; len(stages) > 0 {
				chain = stages[0][0]
			}
		}
		if got := p.Spec.Containers[0].Resources.Requests.Cpu().String(); got != "200m" {
			t.Errorf("broken off after %d writes: the Pod asks for %s of cpu", done+1, got)
		}
		if state := p.Annotations[keys.InPlaceUpdateState]; !strings.Contains(state, `"updateResources":true`) {
			t.Errorf("broken off after %d writes: the record is %s", done+1, state)
		}
		if pod := p.Labels[keys.LifecycleState]; pod != string(pub.LifecycleStateUpdating) {
			t.Errorf("broken off after %d writes: the Pod is %s although its node has not resized it", done+1, pod)
		}
	}
}
