package rollouts

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

const advancedStatefulSet = `
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: 5
  serviceName: web
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: web}}
  updateStrategy: {rollingUpdate: {maxUnavailable: 2, podUpdatePolicy: InPlaceIfPossible}}
  template:
    metadata: {labels: {app: web}}
    spec:
      readinessGates: [{conditionType: InPlaceUpdateReady}]
      containers: [{name: main, image: "web:v1"}]
`

// advancedDaemonSet has no rollingUpdate, which must not matter, trap T15.
const advancedDaemonSet = `
apiVersion: apps.kruise.io/v1beta1
kind: DaemonSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "web:v1"}]}
`

// startOther makes a workload with five Pods and its Rollout, and returns when changes are intercepted.
func (e *env) startOther(manifest, of string, labels func() map[string]string) {
	e.Helper()
	e.Make(manifest)
	e.Make(rolloutOf(of, steps("2", "100%")))
	e.Eventually("the Rollout is healthy, and the workload has its label and its Pods", func() error {
		if r := e.rollout(); r.Status.Phase != v1beta1.RolloutPhaseHealthy || r.Status.CanaryStatus == nil || labels()[keys.WorkloadType] == "" {
			return fmt.Errorf("phase %s, labels %v", r.Status.Phase, labels())
		}
		return e.ready("v1", 5)
	})
}

// ended waits until a release has ended, in success or not, with five Pods of a version and no mark on the workload.
func (e *env) ended(version string, succeeded corev1.ConditionStatus, annotations func() map[string]string) {
	e.Helper()
	e.Eventually("the release is over with Pods of "+version, func() error {
		r := e.rollout()
		c := condition(r, v1beta1.ConditionSucceeded)
		if r.Status.Phase != v1beta1.RolloutPhaseHealthy || c == nil || c.Status != succeeded {
			return fmt.Errorf("phase %s, Succeeded %+v", r.Status.Phase, c)
		}
		if _, marked := annotations()[keys.InProgressing]; marked {
			return errors.New("the workload is marked")
		}
		return e.ready(version, 5)
	})
}

// TestAnAdvancedStatefulSet is released in steps in place, from the highest ordinal down, and rolled back.
func TestAnAdvancedStatefulSet(t *testing.T) {
	e := newEnv(t)
	set := func() *appsv1beta1.StatefulSet {
		s := &appsv1beta1.StatefulSet{}
		e.Read("web", s)
		return s
	}
	image := func(version string) {
		edit(e, "web", set(), func(s *appsv1beta1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "web:" + version })
	}
	annotations := func() map[string]string { return set().Annotations }
	e.startOther(advancedStatefulSet, "apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet", func() map[string]string { return set().Labels })
	uids := map[string]string{}
	for _, p := range e.Pods() {
		uids[p.Name] = string(p.UID)
	}
	image("v2")
	e.paused(1, "v2", 2)
	for _, p := range e.Pods() {
		want := "web:v1"
		if p.Name == "web-4" || p.Name == "web-3" {
			want = "web:v2"
		}
		if got := p.Spec.Containers[0].Image; got != want || uids[p.Name] != string(p.UID) {
			t.Errorf("Pod %s runs %s, want %s, and is the same one: %v", p.Name, got, want, uids[p.Name] == string(p.UID))
		}
	}
	image("v1")
	e.ended("v1", corev1.ConditionFalse, annotations)
	image("v3")
	e.paused(1, "v3", 2)
	e.approve()
	e.ended("v3", corev1.ConditionTrue, annotations)
	if rolling := set().Spec.UpdateStrategy.RollingUpdate; rolling.Partition != nil && *rolling.Partition != 0 {
		t.Errorf("partition %d is left", *rolling.Partition)
	}
}

// TestAnAdvancedDaemonSet is released in steps, and its rollback is known for one, trap T15, though its status tells no earlier revision.
func TestAnAdvancedDaemonSet(t *testing.T) {
	e := newEnv(t)
	set := func() *appsv1beta1.DaemonSet {
		s := &appsv1beta1.DaemonSet{}
		e.Read("web", s)
		return s
	}
	image := func(version string) {
		edit(e, "web", set(), func(s *appsv1beta1.DaemonSet) { s.Spec.Template.Spec.Containers[0].Image = "web:" + version })
	}
	annotations := func() map[string]string { return set().Annotations }
	e.startOther(advancedDaemonSet, "apiVersion: apps.kruise.io/v1beta1, kind: DaemonSet", func() map[string]string { return set().Labels })
	image("v2")
	e.paused(1, "v2", 2)
	image("v1")
	e.ended("v1", corev1.ConditionFalse, annotations)
	image("v3")
	e.paused(1, "v3", 2)
	e.approve()
	e.ended("v3", corev1.ConditionTrue, annotations)
}

// TestTheExamples are taken as they are.
func TestTheExamples(t *testing.T) { newEnv(t).AcceptsExamples("rollout*.yaml") }
