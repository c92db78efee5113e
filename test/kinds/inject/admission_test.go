package inject

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

func TestTheUserIsWarnedOfAReplacedContainer(t *testing.T) {
	e := newEnv(t)
	set := e.sidecarSet("a", `{containers: [{name: app, image: "side:1"}]}`)
	heard := &warnings{}
	config := *shared.Config
	config.WarningHandler = heard
	c, err := client.New(&config, client.Options{Scheme: e.Scheme()})
	e.Must(err)
	e.Eventually("there is a warning", func() error {
		p := scene.Parse(e.Env, &corev1.Pod{}, `{metadata: {name: web, labels: `+e.selected()+`}, spec: {containers: [{name: app, image: i}, {name: other, image: i}]}}`)
		if err := c.Create(e.Ctx, p, client.DryRunAll); err != nil {
			return err
		}
		if want := "container app is replaced by SidecarSet " + set.Name; !slices.Contains(heard.texts, want) {
			return fmt.Errorf("there are %q", heard.texts)
		}
		return containers("app other")(p)
	})
}

type warnings struct{ texts []string }

func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

func TestAnnotationsThatTheAdministratorAllows(t *testing.T) {
	e := newSerialEnv(t)
	patched := `{containers: [{name: side, image: i}], patchPodMetadata: [
		{annotations: {retain.example.com/a: set, retain.example.com/b: set}, patchPolicy: Retain},
		{annotations: {overwrite.example.com/a: set}, patchPolicy: Overwrite},
		{annotations: {merge.example.com/a: '{"log-agent":1}'}, patchPolicy: MergePatchJson}]}`
	refused := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace + "-refused"}}
	e.Must(yaml.UnmarshalStrict([]byte(patched), &refused.Spec))
	refused.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"test": e.Namespace}}
	if err := e.Create(e.Ctx, refused); !apierrors.IsInvalid(err) {
		t.Fatalf("without a white list it was answered with %v", err)
	}
	list := scene.Parse(e.Env, &corev1.ConfigMap{}, `{metadata: {name: kruise-configuration}, data: {SidecarSet_PatchPodMetadata_WhiteList: '{"rules":[{"selector":{"matchLabels":{"trusted":"yes"}},"allowedAnnotationKeyExprs":["example.com/"]}]}'}}`)
	list.Namespace = "kruise-system"
	e.Must(e.Create(e.Ctx, list))
	t.Cleanup(func() { e.forget(list) })
	e.sidecarSet("allowed", patched, func(set *v1beta1.SidecarSet) { set.Labels = map[string]string{"trusted": "yes"} })
	pod := `{metadata: {name: web, labels: ` + e.selected() + `, annotations: {retain.example.com/a: pod, overwrite.example.com/a: pod, merge.example.com/a: '{"main":2}'}}, spec: {containers: [{name: app, image: i}]}}`
	e.becomes(pod, containers("side app"))
	p := e.newPod(pod)
	for key, want := range map[string]string{
		"retain.example.com/a": "pod", "retain.example.com/b": "set", "overwrite.example.com/a": "set", "merge.example.com/a": `{"log-agent":1,"main":2}`,
	} {
		if got := p.Annotations[key]; got != want {
			t.Errorf("annotation %s is %s, want %s", key, got, want)
		}
	}
}

// TestWithoutAManager: where Kruise looks after new Pods, none is created without it; everywhere else, and for all else, it is as if it were not
// there.
func TestWithoutAManager(t *testing.T) {
	e := newSerialEnv(t)
	pod := `{metadata: {name: web, labels: ` + e.selected() + `}, spec: {containers: [{name: app, image: i}]}}`
	e.sidecarSet("agent", `{containers: [{name: agent, image: i}]}`)
	before := e.newPod(strings.Replace(pod, "name: web", "name: before", 1))
	shared.Manager.Stop()
	startManager := sync.OnceFunc(func() { // other tests need it, whatever becomes of this one
		e.Must(shared.Relaunch(e.Afterwards()))
	})
	defer startManager()
	for _, excluded := range []string{"kube-system", "kruise-system", e.NewNamespace(map[string]string{"control-plane": "openkruise"})} {
		e.in(excluded).newPod(pod, client.DryRunAll)
	}
	if _, err := e.tryPod(pod); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "mpod.kb.io") {
		t.Errorf("a Pod was answered with %v", err)
	}
	labelled := before.DeepCopy()
	labelled.Labels["more"] = "yes"
	e.Must(e.Patch(e.Ctx, labelled, client.MergeFrom(before)))
	e.Must(e.Delete(e.Ctx, labelled))
	startManager()
	e.Eventually("Pods are created again", func() error {
		_, err := e.tryPod(pod)
		return err
	})
}
