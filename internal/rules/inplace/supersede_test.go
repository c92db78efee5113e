package inplace

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// graceful is the way to a revision with a grace period of ten seconds.
func graceful(revision string, seconds float64) Target {
	target := to(revision)
	target.GraceSeconds, target.Now = 10, at(seconds)
	return target
}

// finish carries an update on the Pod to its end.
func finish(t *testing.T, p *corev1.Pod) {
	t.Helper()
	for i := range 20 {
		s := step(t, p, float64(100+i))
		node{daemon: true}.run(p)
		if v := Progress(p, everything()); v.Done && !s.Changed {
			Finish(p, at(float64(100+i)))
			return
		}
	}
	t.Fatalf("the update does not end: %s", Progress(p, everything()).Why)
}

func TestARollbackInTheGracePeriodRestartsNothing(t *testing.T) {
	v1, v2 := base(), changed(newImage("app", "app:v2"), annotation("conf", "2"), annotation("note", "2"))
	p := podOf(v1)
	Begin(p, change(t, v1, v2), graceful("web-2", 0))
	Begin(p, change(t, v2, v1), graceful("web-1", 2))
	if Pending(p) {
		t.Error("there is a plan although nothing has to change")
	}
	if v := Progress(p, everything()); !v.Done || !NeedsFinish(p) {
		t.Errorf("the Pod can't go back into service: %s", v.Why)
	}
	Finish(p, at(2))
	if diff := cmp.Diff(v1.Spec.Containers, p.Spec.Containers); diff != "" {
		t.Error(diff)
	}
	for _, key := range []string{"conf", "note"} {
		if value, ok := p.Annotations[key]; ok {
			t.Errorf("annotation %s is %q", key, value)
		}
	}
	if got := pod.MaxRestarts(p); got != 0 {
		t.Errorf("%d restarts, want 0", got)
	}
}

func TestANewerRevisionInTheGracePeriodBringsBothChanges(t *testing.T) {
	v1 := edited(base(), annotation("conf", "1"), annotation("note", "1"))
	v2 := edited(v1, newImage("app", "app:v2"), annotation("conf", "2"), annotation("note", "2"))
	cases := map[string]struct {
		v3       *corev1.PodTemplateSpec
		wantWait bool
	}{
		"another image of the same container": {edited(v2, newImage("app", "app:v3")), true},
		"an image of another container":       {edited(v2, newImage("log", "log:v3")), true},
		"a mere annotation":                   {edited(v2, annotation("more", "3")), true},
		"the annotations, once more":          {edited(v2, annotation("conf", "3"), annotation("note", "3")), true},
		"the annotations, back":               {edited(v2, annotation("conf", "1"), annotation("note", "1")), true},
		"the image, back, and the annotation": {edited(v2, newImage("app", "app:v1"), annotation("conf", "1")), false},
		"an annotation less": {edited(v2, func(t *corev1.PodTemplateSpec) {
			delete(t.Annotations, "conf")
			delete(t.Annotations, "note")
		}), true},
		"nothing": {v2, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := podOf(v1)
			Begin(p, change(t, v1, v2), graceful("web-2", 0))
			Begin(p, change(t, v2, tc.v3), graceful("web-3", 2))
			if got := step(t, p, 3).Wait > 0; got != tc.wantWait {
				t.Errorf("the Pod has a grace period: %v, want %v", got, tc.wantWait)
			}
			finish(t, p)
			if diff := cmp.Diff(images(podOf(tc.v3)), images(p)); diff != "" {
				t.Error(diff)
			}
			for _, key := range []string{"conf", "note", "more"} {
				if got, want := p.Annotations[key], tc.v3.Annotations[key]; got != want {
					t.Errorf("annotation %s is %q, want %q", key, got, want)
				}
			}
			if gate(p) != corev1.ConditionTrue {
				t.Error("the Pod is out of service")
			}
		})
	}
}

func TestANewerRevisionBetweenBatchesBringsBothChanges(t *testing.T) {
	v1 := sidecarFirst()
	v2 := edited(v1, newImage("main", "main:v2"), newImage("sidecar", "sidecar:v2"))
	cases := map[string]*corev1.PodTemplateSpec{
		"the sidecar once more": edited(v2, newImage("sidecar", "sidecar:v3")),
		"main once more":        edited(v2, newImage("main", "main:v3")),
		"a mere annotation":     edited(v2, annotation("note", "3")),
		"back":                  v1,
	}
	for name, v3 := range cases {
		t.Run(name, func(t *testing.T) {
			p := podOf(v1)
			Begin(p, change(t, v1, v2), to("web-2"))
			step(t, p, 1)
			Begin(p, change(t, v2, v3), to("web-3"))
			finish(t, p)
			if diff := cmp.Diff(images(podOf(v3)), images(p)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(v3.Annotations["note"], p.Annotations["note"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAChangeOfMetadataWaitsForRestartsUnderWay(t *testing.T) {
	v1 := base()
	v2 := edited(v1, newImage("app", "app:v2"), func(t *corev1.PodTemplateSpec) { t.Labels["zone"] = "a" })
	v3 := edited(v2, annotation("note", "3"))
	p := podOf(v1)
	Begin(p, change(t, v1, v2), to("web-2"))
	step(t, p, 1)
	Begin(p, change(t, v2, v3), to("web-3"))
	if Pending(p) || p.Annotations["note"] != "3" {
		t.Error("the annotation was not written at once")
	}
	if diff := cmp.Diff(Verdict{Why: "container log does not run with its new environment yet"}, Progress(p, everything())); diff != "" {
		t.Error(diff)
	}
	node{daemon: true}.start(p, "log")
	if diff := cmp.Diff(Verdict{Why: "container app runs app:v1, not yet app:v2"}, Progress(p, everything())); diff != "" {
		t.Error(diff)
	}
	node{daemon: true}.start(p, "app")
	if v := Progress(p, everything()); !v.Done {
		t.Errorf("the update waits: %s", v.Why)
	}
}

func TestAFinishedUpdateLeavesNothingToTheNext(t *testing.T) {
	v1 := sidecarFirst()
	v2 := edited(v1, newImage("main", "main:v2"), annotation("app-config", "2"))
	p := podOf(v1)
	Begin(p, change(t, v1, v2), to("web-2"))
	finish(t, p)
	Begin(p, change(t, v2, edited(v2, annotation("note", "3"))), to("web-3"))
	want := `{"revision":"web-3","updateTimestamp":"2026-03-01T12:00:00Z","lastContainerStatuses":null}`
	if diff := cmp.Diff(want, p.Annotations[keys.InPlaceUpdateState]); diff != "" {
		t.Error(diff)
	}
}

func TestAResizeUnderWayIsWaitedForByTheNextUpdate(t *testing.T) {
	v1 := base()
	v2 := edited(v1, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Resources = resources("200m", "64Mi") })
	v3 := edited(v2, newImage("log", "log:v3"))
	p := podOf(v1)
	Begin(p, change(t, v1, v2), to("web-2"))
	step(t, p, 1)
	Begin(p, change(t, v2, v3), to("web-3"))
	step(t, p, 2)
	node{daemon: true}.start(p, "log")
	if diff := cmp.Diff(Verdict{Why: "container app is being resized"}, Progress(p, everything())); diff != "" {
		t.Error(diff)
	}
	node{daemon: true}.run(p)
	if v := Progress(p, everything()); !v.Done {
		t.Errorf("the update waits: %s", v.Why)
	}
}

func TestFinalizersOfBothChanges(t *testing.T) {
	finalizers := func(f ...string) func(*corev1.PodTemplateSpec) {
		return func(t *corev1.PodTemplateSpec) { t.Finalizers = f }
	}
	v1 := edited(base(), finalizers("a", "b"))
	v2 := edited(v1, newImage("app", "app:v2"), finalizers("b", "c"))
	v3 := edited(v2, finalizers("a", "d"))
	p := podOf(v1)
	Begin(p, change(t, v1, v2), graceful("web-2", 0))
	Begin(p, change(t, v2, v3), graceful("web-3", 1))
	finish(t, p)
	if diff := cmp.Diff([]string{"a", "d"}, p.Finalizers); diff != "" {
		t.Error(diff)
	}
}

func TestAnUpdateBackAndForthWaitsForTheKubelet(t *testing.T) {
	v1, v2 := base(), changed(newImage("app", "app:v2"))
	p := podOf(v1)
	p.Generation, p.Status.ObservedGeneration = 3, 2 // the kubelet starts v2 right now, and is back at v1 a moment later
	Begin(p, change(t, v1, v2), to("web-2"))
	step(t, p, 1)
	Begin(p, change(t, v2, v1), to("web-3"))
	step(t, p, 2)
	Begin(p, change(t, v1, edited(v1, annotation("note", "4"))), to("web-4"))
	if diff := cmp.Diff(Verdict{Why: "the kubelet has not seen the change yet"}, Progress(p, everything())); diff != "" {
		t.Error(diff)
	}
	p.Status.ObservedGeneration = 3
	if v := Progress(p, everything()); !v.Done {
		t.Errorf("the update waits: %s", v.Why)
	}
}
