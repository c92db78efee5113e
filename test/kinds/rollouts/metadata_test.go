package rollouts

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// TestMetadataOfBatches: the Pods of a step have its labels and annotations, also those that replace others, until the release is over.
// Updated in place, they have again in the end what they had before.
func TestMetadataOfBatches(t *testing.T) {
	e := newEnv(t)
	const inPlace = "  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}\n"
	e.start(fmt.Sprintf(cloneSet, 4, "")+inPlace, rolloutOf(ofCloneSet, `{replicas: 1, podMetadata: {labels: {track: canary}, annotations: {example.com/watch: closely}}}, `+
		`{replicas: 50%, podMetadata: {labels: {track: early}}}, {replicas: 100%}`))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	e.tracks(map[string]int{"": 3, "canary closely": 1})
	e.approve()
	e.paused(2, "v2", 2)
	e.tracks(map[string]int{"": 2, "canary closely": 1, "early": 1})
	for _, p := range e.Pods() {
		if p.Labels["track"] == "canary" {
			e.Must(e.Delete(e.Ctx, &p))
		}
	}
	e.tracks(map[string]int{"": 2, "canary closely": 1, "early": 1})
	e.change(func(r *v1beta1.Rollout) { r.Spec.Strategy.Canary.Steps[1].PodMetadata.Labels["track"] = "wide" })
	e.tracks(map[string]int{"": 2, "canary closely": 1, "wide": 1})
	e.paused(2, "v2", 2)
	e.setImage("v1")
	e.over("v1", 4, corev1.ConditionFalse)
	e.tracks(map[string]int{"": 4})
	for _, p := range e.Pods() {
		if text, has := p.Annotations[keys.BatchMetadata]; has {
			t.Errorf("%s still has the annotation %s", p.Name, text)
		}
	}
}

// tracks waits until so many Pods have each track and watch.
func (e *env) tracks(want map[string]int) {
	e.Helper()
	e.Eventually("Pods have the metadata of their batches", func() error {
		got := map[string]int{}
		for _, p := range e.Pods() {
			if p.DeletionTimestamp != nil {
				continue
			}
			track := p.Labels["track"]
			if watch := p.Annotations["example.com/watch"]; watch != "" {
				track += " " + watch
			}
			got[track]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// TestMetadataThatNoPodMayHave is refused, or said where only the workload tells.
func TestMetadataThatNoPodMayHave(t *testing.T) {
	e := newEnv(t)
	for name, steps := range map[string]string{
		"labels of controllers":  "{replicas: 100%, podMetadata: {labels: {pod-template-hash: x}}}",
		"labels of ours":         "{replicas: 100%, podMetadata: {labels: {rollouts.kruise.io/rollout-id: x}}}",
		"annotations of ours":    "{replicas: 100%, podMetadata: {annotations: {rollouts.kruise.io/x: x}}}",
		"with a second workload": "{replicas: 100%, podMetadata: {labels: {track: x}}}]\n      enableExtraWorkloadForCanary: true\n      trafficRoutings: [",
	} {
		r := &v1beta1.Rollout{}
		e.Must(yaml.Unmarshal([]byte(rolloutOf(ofDeployment, steps)), r))
		r.Namespace = e.Namespace
		if err := e.Create(e.Ctx, r); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	e.start(fmt.Sprintf(cloneSet, 2, ""), rolloutOf(ofCloneSet, "{replicas: 1, podMetadata: {labels: {app: other}}}, {replicas: 100%}"))
	e.setImage("v2")
	e.Eventually("an event names the label", func() error {
		var events corev1.EventList
		e.Must(e.List(e.Ctx, &events))
		for _, event := range events.Items {
			if event.Namespace == e.Namespace && event.Reason == "UnsupportedWorkload" {
				return nil
			}
		}
		return errors.New("there is none")
	})
	for _, p := range e.Pods() {
		if p.Labels["app"] == "other" {
			t.Errorf("%s has another label app, and is nobody's", p.Name)
		}
	}
}
