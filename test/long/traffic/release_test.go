package traffic

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/traffic"
	"github.com/seed-69ecc383/kruise/test/kit/backends"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/measure"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// released is what is released: eight Pods, which serve on after their deletion for as long as the data plane takes to follow.
const released = `
apiVersion: %s
kind: %s
metadata: {name: web}
spec:
  replicas: 8
  selector: {matchLabels: {app: web}}
  %s
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: app:v1
        env: [{name: PORT, value: "%d"}]
        readinessProbe: {periodSeconds: 1, httpGet: {path: /, port: %[4]d}}
        lifecycle: {preStop: {sleep: {seconds: %d}}}
`

// rolloutBy is its Rollout, with what leads traffic to it.
const rolloutBy = `
apiVersion: rollouts.kruise.io/v1beta1
kind: Rollout
metadata: {name: web}
spec:
  workloadRef: {apiVersion: %s, kind: %s, name: web}
  strategy:
    canary:
      enableExtraWorkloadForCanary: %t
      steps: [{replicas: %s, traffic: 20%%}, {replicas: 50%%, traffic: 50%%}, {replicas: 100%%}]
      trafficRoutings: [{service: web, %s}]
`

// story is a kind of release.
type story struct {
	kind schema.GroupVersionKind
	// strategy is what the workload says of its updates, first how many Pods the first step updates.
	strategy, first string
	// second has the new version run in a second Deployment.
	second bool
	// route makes what leads requests to the workload, and by names it.
	route func(*application) route
	by    string
	// part is the share of the requests that is for the workload at all.
	part float64
	// real says that it is also told on real nodes.
	real bool
}

func stories() map[string]story {
	set := schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "CloneSet"}
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	const one, surge = "updateStrategy: {rollingUpdate: {maxUnavailable: 1}}", "strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}"
	const byRoute, byIngress = "gateway: {httpRouteName: web}", "ingress: {name: web}"
	return map[string]story{
		"CloneSet by HTTPRoute": {kind: set, strategy: one, first: "20%", route: routes()["HTTPRoute"], by: byRoute, part: 1},
		"CloneSet by Ingress":   {kind: set, strategy: one, first: "20%", route: routes()["Ingress"], by: byIngress, part: 1},
		"Deployment by HTTPRoute": {
			kind: deployment, strategy: surge, first: "20%", route: func(a *application) route { return a.newThreeRules() }, by: byRoute, part: 0.7, real: true,
		},
		"second Deployment by Ingress": {kind: deployment, strategy: surge, first: "20%", second: true, route: routes()["Ingress"], by: byIngress, part: 1, real: true},
	}
}

// TestAReleaseLosesNothing releases a version in steps, begins to release another one, has a third take its place, and goes back from that:
// at each step the share of the new version is within three percent of what the step says, and no request fails from the first to the last.
func TestAReleaseLosesNothing(t *testing.T) {
	for name, s := range stories() {
		if scene.OnRealNodes() && !s.real {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := s.begin(t)
			r := s.route(a)
			a.reach(r.target())
			a.follow(s)
			before, beforeRoute := a.service(), a.routeSpec(s)
			requests := measure.Start(a.Ctx, r.target())
			defer requests.Stop()

			a.setImage("v2")
			for step, weight := range []float64{0.2, 0.5} {
				a.waits(int32(step) + 1)
				a.expectOf(requests, "v2", s.part*weight)
				a.approve()
			}
			a.ends()
			a.expectOf(requests, "v2", s.part)
			if err := requests.Since(time.Time{}).Lost(); err != nil {
				t.Errorf("in the release: %v", err)
			}

			a.setImage("v3")
			a.waits(1)
			a.expectOf(requests, "v3", s.part*0.2)
			a.approve()
			a.waits(2)
			a.settleOf(requests, "v3", s.part*0.5)
			a.setImage("v4")
			a.waits(1)
			tally := a.expectOf(requests, "v4", s.part*0.2)
			if n := tally.ByRevision["v3"]; n > 0 {
				t.Errorf("%d requests have reached the version between", n)
			}
			a.setImage("v2")
			a.ends()
			a.expectOf(requests, "v2", s.part)
			all := requests.Stop()
			t.Logf("%d requests to %d Pods, the slowest took %v", all.Requests, len(all.ByPod), all.Slowest)
			if err := all.Lost(); err != nil {
				t.Errorf("in all: %v", err)
			}
			if diff := cmp.Diff(before.Spec, a.service().Spec); diff != "" {
				t.Errorf("the Service is not what its user wrote (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(beforeRoute, a.routeSpec(s)); diff != "" {
				t.Errorf("the route is not what its user wrote (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheWayBackFromAsManyPodsAsMaySurge goes back from a step that has exactly as many new Pods as the Deployment may have more than wanted.
func TestTheWayBackFromAsManyPodsAsMaySurge(t *testing.T) {
	t.Parallel()
	s := stories()["Deployment by HTTPRoute"]
	s.strategy, s.first = "strategy: {rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}", "2"
	a := s.begin(t)
	r := s.route(a)
	a.reach(r.target())
	a.follow(s)
	requests := measure.Start(a.Ctx, r.target())
	defer requests.Stop()
	a.setImage("v2")
	a.waits(1)
	a.settleOf(requests, "v2", s.part*0.2)
	a.setImage("v1")
	a.ends()
	a.settleOf(requests, "v1", s.part)
	if err := requests.Stop().Lost(); err != nil {
		t.Error(err)
	}
}

// begin brings up an application that is to be released, and another one beside it.
func (s story) begin(t *testing.T) *application {
	t.Helper()
	a := enter(t)
	a.kind = s.kind
	version := s.kind.GroupVersion().String()
	manifest := fmt.Sprintf(released, version, s.kind.Kind, s.strategy, backends.Port, preStop)
	a.Make(manifest)
	names := map[string]int{stable: 8}
	if s.part < 1 {
		names["other"] = 2
		a.Make(strings.NewReplacer("{name: web}", "{name: other}", "app: web", "app: other", "app:v1", "app:other", "replicas: 8", "replicas: 2").Replace(manifest))
	}
	pods := 0
	for name, n := range names {
		pods += n
		a.Must(a.Client.Create(a.Ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: name},
			Spec: corev1.ServiceSpec{
				Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(backends.Port)}},
			},
		}))
	}
	a.ready(pods)
	return a
}

// follow makes the Rollout, and waits until it has taken note of the workload.
func (a *application) follow(s story) {
	a.Helper()
	a.Make(fmt.Sprintf(rolloutBy, s.kind.GroupVersion(), s.kind.Kind, s.second, s.first, s.by))
	a.ends()
}

// threeRules is a route of which one rule leads to the application, and to another one besides.
const threeRules = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: %[1]s, namespace: %[1]s}]
  hostnames: [%[2]s]
  rules:
  - backendRefs: [{name: web, port: 80, weight: 7}, {name: other, port: 80, weight: 3}]
  - matches: [{path: {type: PathPrefix, value: /elsewhere}}]
    filters: [{type: RequestRedirect, requestRedirect: {scheme: https, statusCode: 302}}]
  - matches: [{path: {type: PathPrefix, value: /other}}]
    backendRefs: [{name: other, port: 80, weight: 1}]
`

func (a *application) newThreeRules() *gatewayRoute {
	a.Helper()
	return &gatewayRoute{application: a, kind: traffic.HTTPRoute, original: a.Make(fmt.Sprintf(threeRules, cluster.GatewayName, a.host()))}
}

// routeSpec returns what leads requests to the application, as it is now.
func (a *application) routeSpec(s story) any {
	a.Helper()
	if strings.HasPrefix(s.by, "ingress") {
		i := &networkingv1.Ingress{}
		a.Read("web", i)
		return i.Spec
	}
	route := &unstructured.Unstructured{}
	route.SetAPIVersion("gateway.networking.k8s.io/v1")
	route.SetKind("HTTPRoute")
	a.Read("web", route)
	return route.Object["spec"]
}

func (a *application) service() *corev1.Service {
	a.Helper()
	s := &corev1.Service{}
	a.Read(stable, s)
	return s
}

// workload returns what is known of any object of the workload.
func (a *application) workload() *metav1.PartialObjectMetadata {
	w := &metav1.PartialObjectMetadata{}
	w.SetGroupVersionKind(a.kind)
	w.Name, w.Namespace = "web", a.Namespace
	return w
}

func (a *application) setImage(version string) {
	a.Helper()
	patch := fmt.Sprintf(`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "app:%s"}]`, version)
	a.Must(a.Client.Patch(a.Ctx, a.workload(), client.RawPatch("application/json-patch+json", []byte(patch))))
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
	r, w := a.rollout(), a.workload()
	a.Read("web", w)
	_, marked := w.Annotations[keys.InProgressing]
	if r.Status.Phase != want || w.Labels[keys.WorkloadType] == "" || marked != (want == v1beta1.RolloutPhaseProgressing) {
		return fmt.Errorf("phase %s: %s, the workload is marked: %v", r.Status.Phase, r.Status.Message, marked)
	}
	return nil
}

// waits waits until a step waits for its approval.
func (a *application) waits(step int32) {
	a.Helper()
	a.Eventually(fmt.Sprintf("step %d waits", step), func() error {
		if r := a.rollout(); r.Status.CurrentStepIndex != step || r.Status.CurrentStepState != v1beta1.StepStatePaused {
			return errors.New(r.Status.Message)
		}
		return nil
	})
}

// ends waits until no release is under way.
func (a *application) ends() {
	a.Helper()
	a.Eventually("no release is under way", func() error { return a.phase(v1beta1.RolloutPhaseHealthy) })
}

// approve approves the step that waits.
func (a *application) approve() {
	a.Helper()
	patch := fmt.Sprintf(`[{"op": "test", "path": "/status/canaryStatus/currentStepState", "value": "%s"},
		{"op": "replace", "path": "/status/canaryStatus/currentStepState", "value": "%s"}]`, v1beta1.StepStatePaused, v1beta1.StepStateReady)
	a.Must(a.Client.Status().Patch(a.Ctx, a.rollout(), client.RawPatch("application/json-patch+json", []byte(patch))))
}
