package traffic

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/backends"
	"github.com/seed-69ecc383/kruise/test/kit/measure"
)

// released is what is released: eight Pods, which serve on after their deletion for as long as the data plane takes to follow.
const released = `
apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {name: web}
spec:
  replicas: 8
  selector: {matchLabels: {app: web}}
  updateStrategy: {rollingUpdate: {maxUnavailable: 1}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: app:v1
        env: [{name: PORT, value: "%d"}]
        readinessProbe: {periodSeconds: 1, httpGet: {path: /, port: %[1]d}}
        lifecycle: {preStop: {sleep: {seconds: %d}}}
`

// rolloutBy is its Rollout, with what leads traffic to it.
const rolloutBy = `
apiVersion: rollouts.kruise.io/v1beta1
kind: Rollout
metadata: {name: web}
spec:
  workloadRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}
  strategy:
    canary:
      steps: [{replicas: 20%%, traffic: 20%%}, {replicas: 50%%, traffic: 50%%}, {replicas: 100%%}]
      trafficRoutings: [{service: web, %s}]
`

// TestAReleaseLosesNothing releases a version by a Rollout in steps, and then goes back from another one: at each step the share of the new
// version is within three percent of what the step says, and no request fails from the first to the last.
func TestAReleaseLosesNothing(t *testing.T) {
	if onRealNodes() {
		t.Skip("the managers run beside simulated nodes")
	}
	for kind, by := range map[string]string{"HTTPRoute": "gateway: {httpRouteName: web}", "Ingress": "ingress: {name: web}"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a := release(t)
			r := routes()[kind](a)
			a.reach(r.target())
			a.Make(fmt.Sprintf(rolloutBy, by))
			a.Eventually("the Rollout is healthy", func() error { return a.phase(v1beta1.RolloutPhaseHealthy) })
			before := a.service()
			client := measure.Start(a.Ctx, r.target())
			defer client.Stop()

			a.setImage("v2")
			for step, weight := range []int32{20, 50} {
				a.Eventually("the step waits", func() error { return a.waitsAt(int32(step) + 1) })
				a.expect(client, weight)
				a.approve()
			}
			a.Eventually("the release is over", func() error { return a.phase(v1beta1.RolloutPhaseHealthy) })
			a.expect(client, 100)
			if err := client.Since(time.Time{}).Lost(); err != nil {
				t.Errorf("in the release: %v", err)
			}

			a.setImage("v1") // which is a new version by now
			for step, weight := range []int32{80, 50} {
				a.Eventually("the step waits", func() error { return a.waitsAt(int32(step) + 1) })
				a.expect(client, weight)
				if step == 0 {
					a.approve()
				}
			}
			a.setImage("v2")
			a.Eventually("the way back is over", func() error { return a.phase(v1beta1.RolloutPhaseHealthy) })
			a.expect(client, 100)
			all := client.Stop()
			t.Logf("%d requests to %d Pods, the slowest took %v", all.Requests, len(all.ByPod), all.Slowest)
			if err := all.Lost(); err != nil {
				t.Errorf("in all: %v", err)
			}
			if diff := cmp.Diff(before.Spec, a.service().Spec); diff != "" {
				t.Errorf("the Service is not what its user wrote (-want +got):\n%s", diff)
			}
		})
	}
}

// release brings up an application that is to be released.
func release(t *testing.T) *application {
	t.Helper()
	a := enter(t)
	a.Make(fmt.Sprintf(released, backends.Port, preStop))
	a.Must(a.Client.Create(a.Ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: stable},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(backends.Port)}},
		},
	}))
	a.ready(8)
	return a
}

func (a *application) service() *corev1.Service {
	a.Helper()
	s := &corev1.Service{}
	a.Read(stable, s)
	return s
}

func (a *application) setImage(version string) {
	a.Helper()
	a.Must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		set := &appsv1beta1.CloneSet{}
		a.Read("web", set)
		set.Spec.Template.Spec.Containers[0].Image = "app:" + version
		return a.Client.Update(a.Ctx, set)
	}))
	a.Eventually("the Rollout has noticed", func() error { return a.phase(v1beta1.RolloutPhaseProgressing) })
}

func (a *application) rollout() *v1beta1.Rollout {
	a.Helper()
	r := &v1beta1.Rollout{}
	a.Read("web", r)
	return r
}

// phase complains unless the Rollout is in a phase, and its workload marked or not accordingly.
func (a *application) phase(want v1beta1.RolloutPhase) error {
	r, set := a.rollout(), &appsv1beta1.CloneSet{}
	a.Read("web", set)
	_, marked := set.Annotations[keys.InProgressing]
	if r.Status.Phase != want || set.Labels[keys.WorkloadType] == "" || marked != (want == v1beta1.RolloutPhaseProgressing) {
		return fmt.Errorf("phase %s: %s, the workload is marked: %v", r.Status.Phase, r.Status.Message, marked)
	}
	return nil
}

func (a *application) waitsAt(step int32) error {
	if r := a.rollout(); r.Status.CurrentStepIndex != step || r.Status.CurrentStepState != v1beta1.StepStatePaused {
		return errors.New(r.Status.Message)
	}
	return nil
}

// approve approves the step that waits.
func (a *application) approve() {
	a.Helper()
	patch := fmt.Sprintf(`[{"op": "test", "path": "/status/canaryStatus/currentStepState", "value": "%s"},
		{"op": "replace", "path": "/status/canaryStatus/currentStepState", "value": "%s"}]`, v1beta1.StepStatePaused, v1beta1.StepStateReady)
	a.Must(a.Client.Status().Patch(a.Ctx, a.rollout(), client.RawPatch("application/json-patch+json", []byte(patch))))
}
