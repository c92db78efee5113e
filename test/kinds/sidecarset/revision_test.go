package sidecarset

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// TestHistory keeps as many revisions as the limit says, and those that Pods have beyond it.
func TestHistory(t *testing.T) {
	e := newEnv(t)
	e.newSet("containers: [{name: log, image: \"log:1\"}]\nrevisionHistoryLimit: 2\ncustomVersion: v1\nupdateStrategy: {partition: 100%}")
	e.newPods(1)
	e.counts(1, 1, 1, 1)
	first := e.set().Status.LatestRevision
	for i := range 5 {
		e.image(fmt.Sprintf("log:%d", i+2))
	}
	names := func() []string {
		var list appsv1.ControllerRevisionList
		e.Must(e.List(e.Ctx, &list, client.InNamespace("kruise-system"), client.MatchingLabels{"kruise.io/sidecarset-name": e.Namespace}))
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names
	}
	e.Eventually("two revisions are left", func() error {
		if got := names(); len(got) != 2 || !slices.Contains(got, first) || !slices.Contains(got, e.set().Status.LatestRevision) {
			return fmt.Errorf("there are %v; %s is in use", got, first)
		}
		return nil
	})
	e.edit(func(set *v1beta1.SidecarSet) { set.Spec.CustomVersion = "v2" })
	e.Eventually("the revision has the new name", func() error {
		var rev appsv1.ControllerRevision
		e.Must(e.Get(e.Ctx, client.ObjectKey{Namespace: "kruise-system", Name: e.set().Status.LatestRevision}, &rev))
		if got := rev.Labels["apps.kruise.io/sidecarset-custom-version"]; got != "v2" {
			return fmt.Errorf("its name is %q", got)
		}
		return nil
	})
	e.Must(e.Delete(e.Ctx, e.set()))
	e.Eventually("the revisions go with their SidecarSet", func() error {
		if got := names(); len(got) > 0 {
			return fmt.Errorf("there are %v", got)
		}
		return nil
	})
	if p := e.pod("web-0"); imageOf(p, "log") != "log:1" {
		t.Error("the Pod has lost its sidecar")
	}
	again := e.newSet("containers: [{name: log, image: \"log:1\"}]")
	e.counts(1, 1, 1, 1)
	if restarts := restartsOf(e.pod("web-0"), "log"); restarts != 0 || again.Name == "" {
		t.Errorf("the sidecar restarted %d times", restarts)
	}
}

// TestAnOlderRevisionForNewPods rolls a new image out to a tenth of the Pods, while new Pods still get the older one.
func TestAnOlderRevisionForNewPods(t *testing.T) {
	e := newEnv(t)
	e.newSet("containers: [{name: log, image: \"log:1\"}]\ncustomVersion: v1\nupdateStrategy: {partition: 90%}")
	e.newPods(10)
	e.counts(10, 10, 10, 10)
	v1 := "v1"
	e.edit(func(set *v1beta1.SidecarSet) {
		set.Spec.CustomVersion = "v2"
		set.Spec.Containers[0].Image = "log:2"
		set.Spec.InjectionStrategy.Revision = &v1beta1.SidecarSetInjectRevision{CustomVersion: &v1}
	})
	e.counts(10, 1, 10, 1)
	e.Must(e.Create(e.Ctx, webPod(e.Namespace, "late")))
	e.counts(11, 1, 11, 1)
	if got := imageOf(e.pod("late"), "log"); got != "log:1" {
		t.Errorf("the new Pod has %s, want log:1", got)
	}
}

// TestAnnotationsFollowTheImage writes annotations into Pods as they are created, and again with a new image.
func TestAnnotationsFollowTheImage(t *testing.T) {
	e := newEnv(t)
	allowed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kruise-configuration", Namespace: "kruise-system"}, Data: map[string]string{
		"SidecarSet_PatchPodMetadata_WhiteList": `{"rules":[{"selector":{"matchLabels":{"annotates":"yes"}},"allowedAnnotationKeyExprs":["^example.com/"]}]}`,
	}}
	e.Must(e.Create(e.Ctx, allowed))
	e.CleanUp(allowed)
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace, Labels: map[string]string{"annotates": "yes"}}}
	e.Must(yaml.UnmarshalStrict([]byte(`{selector: {matchLabels: {app: web}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+e.Namespace+`}}, containers: [{name: log, image: "log:1"}],
patchPodMetadata: [{annotations: {example.com/kept: "1"}, patchPolicy: Retain}, {annotations: {example.com/written: "1"}, patchPolicy: Overwrite}, {annotations: {example.com/merged: '{"log":1}'}, patchPolicy: MergePatchJson}]}`), &set.Spec))
	e.create(set)
	e.newPods(1)
	is := func(kept, written, merged string) {
		t.Helper()
		a := e.pod("web-0").Annotations
		if a["example.com/kept"] != kept || a["example.com/written"] != written || a["example.com/merged"] != merged {
			t.Errorf("annotations %v, want %s, %s and %s", a, kept, written, merged)
		}
	}
	is("1", "1", `{"log":1}`)
	e.edit(func(set *v1beta1.SidecarSet) {
		for i, value := range []string{"2", "2", `{"log":2}`} {
			for key := range set.Spec.PatchPodMetadata[i].Annotations {
				set.Spec.PatchPodMetadata[i].Annotations[key] = value
			}
		}
	})
	e.Always(scene.QuietPeriod, "annotations alone change no Pod", func() error {
		if got := e.pod("web-0").Annotations["example.com/written"]; got != "1" {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
	e.image("log:2")
	e.counts(1, 1, 1, 1)
	is("1", "2", `{"log":2}`)
}
