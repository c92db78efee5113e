package rollouts

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// TestANativeStatefulSetInPlace: its Pods are kept by a release in steps, by a way back, and by the end, beside the controller of Kubernetes.
// Without the label they are recreated again, and nothing is left.
func TestANativeStatefulSetInPlace(t *testing.T) {
	e := newEnv(t)
	manifest := strings.Replace(fmt.Sprintf(statefulSet, 5), "metadata: {labels: {app: web}}",
		fmt.Sprintf("metadata: {labels: {app: web, %s: \"true\"}}", keys.InPlaceUpdate), 1)
	e.start(manifest, rolloutOf(ofStatefulSet, steps("2", "100%")))
	was := e.uids()
	setImage := func(image string) {
		edit(e, "web", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = image })
	}
	setImage("web:v2")
	e.paused(1, "v2", 2)
	e.approve()
	e.settled("v2")
	e.kept(was, 5)

	setImage("web:v3")
	e.paused(1, "v3", 2)
	setImage("web:v2")
	e.settled("v2")
	e.kept(was, 5)

	edit(e, "web", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) {
		s.Spec.Template.Spec.Containers[0].Image = "web:v4"
		delete(s.Spec.Template.Labels, keys.InPlaceUpdate)
	})
	e.paused(1, "v4", 2)
	e.kept(was, 3)
	e.approve()
	e.settled("v4")
	e.kept(was, 0)
}

// uids returns the UIDs of the Pods by name.
func (e *env) uids() map[string]types.UID {
	e.Helper()
	out := map[string]types.UID{}
	for _, p := range e.Pods() {
		out[p.Name] = p.UID
	}
	return out
}

// kept checks how many Pods are the same as before.
func (e *env) kept(was map[string]types.UID, want int) {
	e.Helper()
	got := 0
	for name, uid := range e.uids() {
		if was[name] == uid {
			got++
		}
	}
	if got != want {
		e.Errorf("%d Pods are the same, want %d", got, want)
	}
}

// settled waits until a release of the StatefulSet is over, its own controller has no more to do, and nothing of the release is left.
func (e *env) settled(version string) {
	e.Helper()
	e.Eventually("the release is over, and the StatefulSet complete", func() error {
		if r := e.rollout(); r.Status.Phase != v1beta1.RolloutPhaseHealthy {
			return fmt.Errorf("phase %s", r.Status.Phase)
		}
		var set appsv1.StatefulSet
		e.Read("web", &set)
		if s := set.Status; s.ObservedGeneration != set.Generation || s.CurrentRevision != s.UpdateRevision || s.AvailableReplicas != 5 {
			return fmt.Errorf("status %+v", s)
		}
		if p := *set.Spec.UpdateStrategy.RollingUpdate.Partition; p != 0 || len(set.Annotations) > 0 {
			return fmt.Errorf("partition %d and annotations %v are left", p, set.Annotations)
		}
		return e.ready(version, 5)
	})
	if images := e.images(); images[version] != 5 {
		e.Errorf("the Pods run %v", images)
	}
}
