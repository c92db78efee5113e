package rollouts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

const webIngress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, annotations: {team: a}}
spec: {ingressClassName: nginx, rules: [{host: web.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
`

const nginx = "nginx.ingress.kubernetes.io/"

// TestScenario6Weights: a fifth of the Pods is new and gets a fifth of the requests, by an Ingress; then everything is as before.
func TestScenario6Weights(t *testing.T) {
	e := newEnv(t)
	e.Make(service)
	e.Make(webIngress)
	before := &networkingv1.Ingress{}
	e.Read("web", before)
	e.start(fmt.Sprintf(cloneSet, 10, ""), routed("{replicas: 20%, traffic: 20%}, {replicas: 100%}", "{service: web, gracePeriodSeconds: 1, ingress: {name: web}}"))
	e.setImage("v2")
	e.paused(1, "v2", 2)
	for name, version := range map[string]string{"web": "v1", "web-canary": "v2"} {
		if got, want := e.selected(name), e.ofVersion(version); cmp.Diff(want, got) != "" {
			t.Errorf("Service %s selects other Pods than those of %s (-want +got):\n%s", name, version, cmp.Diff(want, got))
		}
	}
	canary := &networkingv1.Ingress{}
	e.Read("web-canary", canary)
	want := map[string]string{"team": "a", nginx + "canary": "true", nginx + "canary-weight": "20"}
	if diff := cmp.Diff(want, canary.Annotations); diff != "" || *canary.Spec.IngressClassName != "nginx" {
		t.Errorf("the Ingress of the new version (-want +got):\n%s", diff)
	}
	e.approve()
	e.over("v2", 10, corev1.ConditionTrue)
	e.untouched()
	after := &networkingv1.Ingress{}
	e.Read("web", after)
	if after.ResourceVersion != before.ResourceVersion {
		t.Error("the user's Ingress was written to")
	}
}

// selected returns the Pods that a Service selects.
func (e *env) selected(name string) map[string]bool {
	e.Helper()
	var pods corev1.PodList
	e.Must(e.List(e.Ctx, &pods, client.InNamespace(e.Namespace), client.MatchingLabels(e.selector(name))))
	out := map[string]bool{}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			out[pods.Items[i].Name] = true
		}
	}
	return out
}

// ofVersion returns the Pods of a version.
func (e *env) ofVersion(version string) map[string]bool {
	out := map[string]bool{}
	for _, p := range e.Pods() {
		if p.DeletionTimestamp == nil && strings.HasSuffix(p.Spec.Containers[0].Image, ":"+version) {
			out[p.Name] = true
		}
	}
	return out
}

// TestMatchesOfARouteThatSaysLittle is trap T10: paths before headers, a backend without kind, rules without backends, a modifier of
// headers, and weights that come back.
func TestMatchesOfARouteThatSaysLittle(t *testing.T) {
	e := newEnv(t)
	e.routes()
	e.Make(service)
	e.Make(threeRules)
	before := e.untyped(httpRoute, "web").Object["spec"]
	e.start(fmt.Sprintf(cloneSet, 4, ""), routed("{replicas: 1, "+
		"matches: [{path: {type: Exact, value: /b}, headers: [{name: user, value: x}]}, {headers: [{name: user, value: beta}, {name: age, type: RegularExpression, value: '9.'}]}], "+
		`requestHeaderModifier: {set: [{name: x-new, value: "yes"}]}}, {replicas: 100%}`, "{service: web, gracePeriodSeconds: 0, gateway: {httpRouteName: web}}"))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	rules, _, _ := unstructured.NestedSlice(e.untyped(httpRoute, "web").Object, "spec", "rules")
	if was, _, _ := unstructured.NestedSlice(map[string]any{"spec": before}, "spec", "rules"); cmp.Diff(was, rules[:3]) != "" {
		t.Errorf("the user's rules (-want +got):\n%s", cmp.Diff(was, rules[:3]))
	}
	header := func(name, how, value string) any { return map[string]any{"name": name, "type": how, "value": value} }
	path := func(how, value string) any { return map[string]any{"type": how, "value": value} }
	want := map[string]any{
		"matches": []any{
			map[string]any{"path": path("Exact", "/b"), "headers": []any{header("user", "Exact", "x")}},
			map[string]any{"path": path("PathPrefix", "/a"), "headers": []any{header("user", "Exact", "beta"), header("age", "RegularExpression", "9.")}},
		},
		"backendRefs": []any{map[string]any{
			"group": "", "kind": "Service", "name": "web-canary", "port": int64(80), "weight": int64(1),
			"filters": []any{map[string]any{"type": "RequestHeaderModifier", "requestHeaderModifier": map[string]any{
				"set": []any{map[string]any{"name": "x-new", "value": "yes"}},
			}}},
		}},
	}
	if diff := cmp.Diff(want, rules[3]); diff != "" {
		t.Errorf("the rule for the new version (-want +got):\n%s", diff)
	}
	e.setImage("v1")
	e.over("v1", 4, corev1.ConditionFalse)
	e.untouched()
	if diff := cmp.Diff(before, e.untyped(httpRoute, "web").Object["spec"]); diff != "" {
		t.Errorf("the route is not what its user wrote (-want +got):\n%s", diff)
	}
}

// TestSeveralServices is trap T22: two Services, to one of which two routes lead.
func TestSeveralServices(t *testing.T) {
	e := newEnv(t)
	e.routes()
	e.Make(service)
	e.Make(strings.Replace(service, "name: web", "name: api", 1))
	e.Make(webIngress)
	e.Make(threeRules)
	e.Make(strings.NewReplacer("name: web}", "name: api}", "name: web,", "name: api,").Replace(threeRules))
	before := []any{e.untyped(httpRoute, "web").Object["spec"], e.untyped(httpRoute, "api").Object["spec"]}
	e.start(fmt.Sprintf(cloneSet, 4, ""), routed("{replicas: 1, traffic: 30%}, {replicas: 100%}",
		"{service: web, gracePeriodSeconds: 0, ingress: {name: web}, gateway: {httpRouteName: web}}, {service: api, gracePeriodSeconds: 1, gateway: {httpRouteName: api}}"))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	for _, name := range []string{"web", "api"} {
		want := []string{name + " 490", name + "-canary 210", "other 300"}
		if diff := cmp.Diff(want, backends(e.untyped(httpRoute, name), 0)); diff != "" {
			t.Errorf("route %s (-want +got):\n%s", name, diff)
		}
		if got := len(e.selected(name)); got != 3 {
			t.Errorf("Service %s selects %d Pods, want the 3 old ones", name, got)
		}
	}
	canary := &networkingv1.Ingress{}
	e.Read("web-canary", canary)
	if canary.Annotations[nginx+"canary-weight"] != "30" {
		t.Errorf("the Ingress of the new version has %v", canary.Annotations)
	}
	e.Must(e.Delete(e.Ctx, e.rollout()))
	e.Eventually("the Rollout is gone", func() error {
		err := e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "demo"}, &v1beta1.Rollout{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	e.untouched()
	for i, name := range []string{"web", "api"} {
		if diff := cmp.Diff(before[i], e.untyped(httpRoute, name).Object["spec"]); diff != "" {
			t.Errorf("route %s is not what its user wrote (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(map[string]string{"app": "web"}, e.selector("api")); diff != "" {
		t.Errorf("Service api is not what its user wrote (-want +got):\n%s", diff)
	}
}

// TestOldPodsThatAreGoneGetNoRequests: where a person scales down to where the step leaves no old Pod, or jumps back after all Pods were
// updated, no Service goes on selecting old ones.
func TestOldPodsThatAreGoneGetNoRequests(t *testing.T) {
	e := newEnv(t)
	e.Make(service)
	e.Make(webIngress)
	e.start(fmt.Sprintf(cloneSet, 4, ""), routed("{replicas: 50%, traffic: 50%}, {replicas: 4}, {replicas: 100%}",
		"{service: web, gracePeriodSeconds: 0, ingress: {name: web}}"))
	e.setImage("v2")
	e.paused(1, "v2", 2)
	e.approve()
	e.paused(2, "v2", 4)
	selects := func() error {
		live := 0
		for _, n := range e.images() {
			live += n
		}
		if got := len(e.selected("web")); got != live {
			return fmt.Errorf("the Service selects %d of %d Pods", got, live)
		}
		return nil
	}
	e.Must(selects())
	e.setStatus(func(c *v1beta1.CanaryStatus) { c.NextStepIndex = 1 })
	e.paused(1, "v2", 4)
	e.Must(selects())
	e.setImage("v1")
	e.over("v1", 4, corev1.ConditionFalse)
	e.untouched()
	e.setImage("v3")
	e.paused(1, "v3", 2)
	e.scale(1)
	e.Eventually("one new Pod is left, and the Service selects it", func() error { return errors.Join(e.ready("v3", 1), e.ready("v1", 0), selects()) })
}

// TestAGraceOutlivesARestart is trap T23: a grace period is neither cut short nor forgotten when the manager is killed in it, and no grace
// period stays none.
func TestAGraceOutlivesARestart(t *testing.T) {
	const grace = 6 * time.Second
	e := newRestartEnv(t)
	e.routes()
	e.Make(service)
	e.Make(threeRules)
	e.start(fmt.Sprintf(cloneSet, 2, ""), routed("{replicas: 1, traffic: 20%}, {replicas: 100%}",
		fmt.Sprintf("{service: web, gracePeriodSeconds: %d, gateway: {httpRouteName: web}}", int(grace.Seconds()))))
	e.setImage("v2")
	canary := &corev1.Service{}
	e.Eventually("the Service of the new version is there", func() error {
		return e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "web-canary"}, canary)
	})
	e.restart()
	e.paused(1, "v2", 1)
	// Both times are of the API server, in whole seconds.
	route := e.untyped(httpRoute, "web")
	var routedAt time.Time
	for _, fields := range route.GetManagedFields() {
		if strings.Contains(fields.FieldsV1.GetRawString(), keys.OriginalSpecConfiguration) {
			routedAt = fields.Time.Time
		}
	}
	if waited := routedAt.Sub(canary.CreationTimestamp.Time); waited < grace-time.Second {
		t.Errorf("the route was changed %s after the Service was created, want %s", waited, grace)
	}
	none := int32(0)
	e.change(func(r *v1beta1.Rollout) { r.Spec.Strategy.Canary.Steps[0].Pause.Duration = &none })
	e.over("v2", 2, corev1.ConditionTrue)
	e.untouched()
	e.change(func(r *v1beta1.Rollout) { r.Spec.Strategy.Canary.TrafficRoutings[0].GracePeriodSeconds = &none })
	_, err := e.Kubectl(e.Ctx, "-n", e.Namespace, "label", "rollouts.v1alpha1.rollouts.kruise.io", "demo", "team=a")
	e.Must(err)
	if got := e.rollout().Spec.Strategy.Canary.TrafficRoutings[0].GracePeriodSeconds; got == nil || *got != 0 {
		t.Errorf("a grace period of none has become %v", got)
	}
}

// TestTheExampleOfTraffic applies what the documentation shows.
func TestTheExampleOfTraffic(t *testing.T) {
	e := newEnv(t)
	e.routes()
	root, err := cluster.Root()
	e.Must(err)
	text, err := os.ReadFile(filepath.Join(root, "examples", "rollout-traffic.yaml"))
	e.Must(err)
	for _, manifest := range strings.Split(string(text), "\n---\n") {
		e.Make(manifest)
	}
	e.Eventually("the Rollout is healthy, and nothing keeps it from leading traffic", func() error {
		r := &v1beta1.Rollout{}
		e.Read("web", r)
		if r.Status.Phase != v1beta1.RolloutPhaseHealthy {
			return fmt.Errorf("phase %s: %s", r.Status.Phase, r.Status.Message)
		}
		return nil
	})
}

// grpc is a route of gRPC requests.
const grpc = `
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: web}
spec:
  rules:
  - matches: [{method: {service: web.Versions}}]
    backendRefs: [{name: web, port: 80, weight: 1}]
`

// TestARouteOfGRPC leads a share of the requests to the new version, and is in the end what its user wrote.
func TestARouteOfGRPC(t *testing.T) {
	e := newEnv(t)
	e.routes()
	e.Make(service)
	e.Make(grpc)
	kind := schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "GRPCRoute"}
	before := e.untyped(kind, "web")
	e.start(fmt.Sprintf(cloneSet, 4, ""), routed("{replicas: 1, traffic: 20%}, {replicas: 100%}", "{service: web, gracePeriodSeconds: 0, customNetworkRefs: ["+
		"{apiVersion: gateway.networking.k8s.io/v1, kind: GRPCRoute, name: web}]}"))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	if diff := cmp.Diff([]string{"web 80", "web-canary 20"}, backends(e.untyped(kind, "web"), 0)); diff != "" {
		t.Errorf("the backends (-want +got):\n%s", diff)
	}
	e.approve()
	e.over("v2", 4, corev1.ConditionTrue)
	e.untouched()
	after := e.untyped(kind, "web")
	if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" || after.GetAnnotations()[keys.OriginalSpecConfiguration] != "" {
		t.Errorf("the route is not what its user wrote (-want +got):\n%s", diff)
	}
}
