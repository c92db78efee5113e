package inplace

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

func TestBeginTakesAPodOutOfServiceWhereContainersRestart(t *testing.T) {
	restarting := func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
			{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired},
			{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
		}
	}
	cpu := func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Resources = resources("200m", "64Mi") }
	memory := func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Resources = resources("100m", "128Mi") }
	image := func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:v2" }
	none := func(*corev1.PodTemplateSpec) {}
	cases := map[string]struct {
		from, to    func(*corev1.PodTemplateSpec)
		wantGate    corev1.ConditionStatus
		wantPending bool
	}{
		"an image":         {none, image, corev1.ConditionFalse, true},
		"an image and cpu": {none, func(t *corev1.PodTemplateSpec) { image(t); cpu(t) }, corev1.ConditionFalse, true},
		"an annotation of environment": {
			none,
			func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"conf": "1"} },
			corev1.ConditionFalse,
			true,
		},
		"cpu":                          {none, cpu, corev1.ConditionTrue, true},
		"memory":                       {none, memory, corev1.ConditionTrue, true},
		"cpu where memory restarts":    {restarting, cpu, corev1.ConditionTrue, true},
		"memory where memory restarts": {restarting, memory, corev1.ConditionFalse, true},
		"another annotation": {
			none,
			func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"x": "1"} },
			corev1.ConditionTrue,
			false,
		},
		"nothing but the revision": {none, none, corev1.ConditionTrue, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			from := changed(tc.from)
			is := from.DeepCopy()
			tc.to(is)
			p := podOf(from)
			Begin(p, change(t, from, is), to("web-2"))
			if got := gate(p); got != tc.wantGate {
				t.Errorf("InPlaceUpdateReady is %s, want %s", got, tc.wantGate)
			}
			if got := Pending(p); got != tc.wantPending {
				t.Errorf("a plan on the Pod: %v, want %v", got, tc.wantPending)
			}
			if got := p.Labels["controller-revision-hash"]; got != "web-2" {
				t.Errorf("the revision is %s, want web-2", got)
			}
			if got := stateOf(t, p).Revision; got != "web-2" {
				t.Errorf("the revision in the record is %s, want web-2", got)
			}
			if diff := cmp.Diff(from.Spec.Containers, p.Spec.Containers); diff != "" {
				t.Errorf("containers have changed already: %s", diff)
			}
		})
	}
}

func TestBeginTellsWhyThePodIsNotReady(t *testing.T) {
	p := podOf(base())
	Begin(p, Change{Images: map[string]string{"app": "app:v2"}}, to("web-2"))
	want := []corev1.PodCondition{
		{
			Type:               pub.InPlaceUpdateReady,
			Status:             corev1.ConditionFalse,
			Reason:             "StartInPlaceUpdate",
			LastTransitionTime: metav1.NewTime(at(0)),
		},
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(-60))},
		{
			Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ReadinessGatesNotReady",
			Message:            `the status of pod readiness gate "InPlaceUpdateReady" is not "True", but False`,
			LastTransitionTime: metav1.NewTime(at(0)),
		},
	}
	if diff := cmp.Diff(want, p.Status.Conditions); diff != "" {
		t.Error(diff)
	}
}

func TestBeginLeavesTheStatusOfAPodWithoutTheGateAlone(t *testing.T) {
	p := podOf(base())
	p.Spec.ReadinessGates, p.Status.Conditions = nil, nil
	before := p.Status.DeepCopy()
	Begin(p, Change{Images: map[string]string{"app": "app:v2"}}, to("web-2"))
	if diff := cmp.Diff(before, &p.Status); diff != "" {
		t.Error(diff)
	}
	if !Pending(p) {
		t.Error("the Pod carries no plan")
	}
}

func TestBeginCarriesTheWholePlan(t *testing.T) {
	is := changed(func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Image = "app:v2"
		t.Spec.Containers[1].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("20m")
		t.Labels["zone"], t.Labels["tier"] = "a", "front"
		t.Finalizers = []string{"example.io/f"}
	})
	p := podOf(base())
	p.Annotations[keys.InPlaceUpdateStateOld], p.Annotations[keys.InPlaceUpdateGraceOld] = "{}", "{}"
	target := to("web-2")
	target.GraceSeconds, target.Now = 5, at(0.25)
	Begin(p, change(t, base(), is), target)
	want := map[string]string{
		keys.InPlaceUpdateState: `{"revision":"web-2","updateTimestamp":"2026-03-01T12:00:01Z","lastContainerStatuses":null,` +
			`"updateEnvFromMetadata":true,"updateResources":true,"updateImages":true}`,
		keys.InPlaceUpdateGrace: `{"revision":"web-2","containerImages":{"app":"app:v2"},` +
			`"containerRefMetadata":{"log":{"labels":{"zone":"a"}}},"containerResources":{"log":{"requests":{"cpu":"20m"}}},` +
			// {"metadata":{"labels":{"tier":"front"},"finalizers":["example.io/f"]}}
			`"metaDataPatch":"eyJtZXRhZGF0YSI6eyJsYWJlbHMiOnsidGllciI6ImZyb250In0sImZpbmFsaXplcnMiOlsiZXhhbXBsZS5pby9mIl19fQ==",` +
			`"updateEnvFromMetadata":true,"graceSeconds":5}`,
	}
	delete(p.Annotations, keys.RuntimeContainersMeta)
	if diff := cmp.Diff(want, p.Annotations); diff != "" {
		t.Error(diff)
	}
}

func TestBeginWritesOtherMetadataAtOnce(t *testing.T) {
	was := changed(func(t *corev1.PodTemplateSpec) {
		t.Labels["old"], t.Labels["users"], t.Finalizers = "1", "1", []string{"example.io/old"}
		t.Annotations = map[string]string{"gone": "1", "kept": "1"}
	})
	is := changed(func(t *corev1.PodTemplateSpec) {
		t.Labels["new"], t.Labels["users"], t.Finalizers = "2", "2", []string{"example.io/new"}
		t.Annotations = map[string]string{"set": "1"}
	})
	p := podOf(was)
	p.Labels["users"] = "set by a user"
	p.Annotations["kept"], p.Annotations["set"] = "changed by a user", "by a user, too"
	delete(p.Annotations, keys.RuntimeContainersMeta)
	Begin(p, change(t, was, is), to("web-2"))
	wantLabels := map[string]string{"app": "web", "controller-revision-hash": "web-2", "new": "2", "users": "set by a user"}
	if diff := cmp.Diff(wantLabels, p.Labels); diff != "" {
		t.Error(diff)
	}
	wantAnnotations := map[string]string{
		"kept": "changed by a user", "set": "by a user, too",
		keys.InPlaceUpdateState: `{"revision":"web-2","updateTimestamp":"2026-03-01T12:00:00Z","lastContainerStatuses":null}`,
	}
	if diff := cmp.Diff(wantAnnotations, p.Annotations); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"example.io/new"}, p.Finalizers); diff != "" {
		t.Error(diff)
	}
	if got := Progress(p, everything()); !got.Done {
		t.Errorf("a change of metadata waits: %s", got.Why)
	}
}

func TestBeginKeepsWhatAUserSetForAnEnvironment(t *testing.T) {
	was := changed(func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"conf": "1"} })
	is := changed(func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"conf": "2"} })
	p := podOf(was)
	p.Annotations["conf"] = "a user's"
	Begin(p, change(t, was, is), to("web-2"))
	if p.Annotations["conf"] != "a user's" || Pending(p) || gate(p) != corev1.ConditionTrue {
		t.Errorf("the user's annotation became %q, pending %v, gate %s", p.Annotations["conf"], Pending(p), gate(p))
	}
}

func TestFinish(t *testing.T) {
	p := podOf(base())
	p.Status.Conditions = nil
	if !NeedsFinish(p) {
		t.Fatal("a new Pod needs no first readiness")
	}
	Finish(p, at(0))
	want := []corev1.PodCondition{{Type: pub.InPlaceUpdateReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(0))}}
	if diff := cmp.Diff(want, p.Status.Conditions); diff != "" {
		t.Error(diff)
	}
	Finish(p, at(9))
	if diff := cmp.Diff(want, p.Status.Conditions); diff != "" || NeedsFinish(p) {
		t.Errorf("finishing twice: %s", diff)
	}
	ungated := &corev1.Pod{}
	Finish(ungated, at(0))
	if pod.Condition(ungated, pub.InPlaceUpdateReady) != nil || NeedsFinish(ungated) {
		t.Error("a Pod without the gate got its condition")
	}
}
