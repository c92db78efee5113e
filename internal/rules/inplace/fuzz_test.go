package inplace

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Whatever the record says: it is read or reported, and after a few steps it is quiet.
func FuzzState(f *testing.F) {
	f.Add(
		`{"revision":"web-2","updateTimestamp":"2026-03-01T12:00:00Z","lastContainerStatuses":{"main":{"imageID":"x"}},"updateImages":true}`,
	)
	f.Add(`{"nextContainerImages":{"main":"main:v2","stranger":"x"},"preCheckBeforeNext":{"containersRequiredReady":["main","gone"]}}`)
	f.Add(`{"nextContainerRefMetadata":{"sidecar":{"annotations":{"app-config":"2"},"labels":{"a":"b"}}},"updateEnvFromMetadata":true}`)
	f.Add(
		`{"nextContainerResources":{"main":{"limits":{"cpu":"1"}},"sidecar":{}},"updateResources":true,"containerBatchesRecord":[{"containers":["main"]}]}`,
	)
	f.Add(`{"updateTimestamp":null,"containerBatchesRecord":[{}],"preCheckBeforeNext":{}}`)
	f.Add(`nonsense`)
	f.Fuzz(func(t *testing.T, text string) {
		p := podOf(sidecarFirst())
		p.Annotations[keys.InPlaceUpdateState] = text
		if state, err := State(p); err == nil {
			written := &corev1.Pod{}
			writeState(written, state)
			if again := stateOf(t, written); !equality.Semantic.DeepEqual(state, again) {
				t.Fatal(cmp.Diff(state, again))
			}
		}
		superseded := p.DeepCopy()
		Begin(superseded, Change{Images: map[string]string{"main": "main:v3"}}, to("web-3"))
		for _, p := range []*corev1.Pod{p, superseded} {
			settles(t, p)
		}
		if got := pod.Container(superseded, "main").Image; got != "main:v3" {
			t.Fatalf("main has %s after an update that superseded the record", got)
		}
	})
}

// Whatever the plan says: it is carried out, dropped or reported once.
func FuzzGrace(f *testing.F) {
	f.Add(`{"revision":"web-1","containerImages":{"main":"main:v2"},"graceSeconds":10}`, "web-1")
	f.Add(`{"revision":"web-1","containerRefMetadata":{"sidecar":{"annotations":{"app-config":"2"}}},"updateEnvFromMetadata":true}`, "x-1")
	f.Add(`{"revision":"web-1","metaDataPatch":"eyJtZXRhZGF0YSI6eyJsYWJlbHMiOnsidGllciI6bnVsbH19fQ=="}`, "1")
	f.Add(`{"revision":"web-1","containerResources":{"main":{"requests":{"cpu":"1"}}},"graceSeconds":-1}`, "web-1")
	f.Add(`{"revision":"web-2"}`, "web-1")
	f.Add(`{"metaDataPatch":"!"}`, "")
	f.Fuzz(func(t *testing.T, text, revision string) {
		p := podOf(sidecarFirst())
		p.Labels["controller-revision-hash"] = revision
		p.Annotations[keys.InPlaceUpdateGrace] = text
		settles(t, p)
		if Pending(p) {
			t.Fatal("the plan is still there")
		}
	})
}

// settles advances the Pod until nothing changes any more, with all containers running and time passing.
func settles(t *testing.T, p *corev1.Pod) {
	t.Helper()
	spec := p.Spec.DeepCopy()
	now := at(0)
	for range 20 {
		s := Advance(p, everything(), now)
		node{daemon: true}.run(p)
		now = now.Add(s.Wait)
		if s.Changed || s.Wait > 0 {
			continue
		}
		rest := p.Spec.DeepCopy()
		for i := range rest.Containers {
			rest.Containers[i].Image, rest.Containers[i].Resources = spec.Containers[i].Image, spec.Containers[i].Resources
		}
		if diff := cmp.Diff(spec, rest); diff != "" {
			t.Fatalf("more than images and resources changed: %s", diff)
		}
		return
	}
	t.Fatalf("the update does not end: %s", Progress(p, everything()).Why)
}

// A change either is refused, or brings a Pod of the one template to the other.
func FuzzDiffTemplates(f *testing.F) {
	add := func(templates ...*corev1.PodTemplateSpec) {
		for _, from := range templates {
			for _, to := range templates {
				a, _ := json.Marshal(from)
				b, _ := json.Marshal(to)
				f.Add(string(a), string(b))
			}
		}
	}
	add(base(), edited(base(), newImage("app", "app:v2"), annotation("conf", "2")), sidecarFirst(),
		edited(base(), func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Resources = resources("200m", "64Mi") }))
	f.Fuzz(func(t *testing.T, from, to string) {
		var a, b corev1.PodTemplateSpec
		if json.Unmarshal([]byte(from), &a) != nil || json.Unmarshal([]byte(to), &b) != nil || !isNamed(&a) {
			return
		}
		if c, refusal := DiffTemplates(&a, &a, everything()); refusal != nil || c.TouchesContainers() || c.touchesMore() {
			t.Fatalf("from a template to itself: %v, %v", c, refusal)
		}
		c, refusal := DiffTemplates(&a, &b, everything())
		if refusal != nil {
			return
		}
		p := podOf(&a)
		delete(p.Annotations, keys.InPlaceUpdateState)
		Begin(p, c, Target{Revision: "web-2", Labels: map[string]string{"controller-revision-hash": "web-2"}, Now: at(0)})
		for i := 1; Advance(p, everything(), at(float64(i))).Changed; i++ {
			node{daemon: true}.run(p)
			if i > len(a.Spec.Containers)+1 {
				t.Fatal("the update does not end")
			}
		}
		p.Spec.ReadinessGates = b.Spec.ReadinessGates
		for i := range p.Spec.Containers {
			// Requests that the API server would have set on the Pod are not in the templates.
			p.Spec.Containers[i].Resources, b.Spec.Containers[i].Resources = corev1.ResourceRequirements{}, corev1.ResourceRequirements{}
		}
		if !equality.Semantic.DeepEqual(b.Spec, p.Spec) {
			t.Fatal(cmp.Diff(b.Spec, p.Spec))
		}
	})
}

// isNamed reports whether every container has a name and an image of its own, as the API server demands.
func isNamed(template *corev1.PodTemplateSpec) bool {
	names := map[string]bool{}
	for i := range template.Spec.Containers {
		c := &template.Spec.Containers[i]
		if c.Name == "" || c.Image == "" || names[c.Name] {
			return false
		}
		names[c.Name] = true
	}
	return true
}
