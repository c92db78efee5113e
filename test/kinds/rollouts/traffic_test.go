package rollouts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// istioCRD is as much of Istio's as an API server needs to store its routes.
const istioCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.networking.istio.io}
spec:
  group: networking.istio.io
  scope: Namespaced
  names: {kind: %s, plural: %s}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// served has a cluster serve kinds of routes, once a test has asked for them: at first it serves none.
var served = map[*scene.Site]func() error{
	shared:    sync.OnceValue(func() error { return serveRoutes(shared) }),
	restarted: sync.OnceValue(func() error { return serveRoutes(restarted) }),
}

// routes has the cluster of the test serve kinds of routes.
func (e *env) routes() {
	e.Helper()
	e.Must(served[e.Site]())
}

func serveRoutes(site *scene.Site) error {
	ctx := context.Background() // that of the first test ends with it
	for plural, kind := range map[string]string{"virtualservices": "VirtualService", "destinationrules": "DestinationRule"} {
		file := filepath.Join(site.Dir, plural+".yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, istioCRD, plural, kind, plural), 0o600); err != nil {
			return err
		}
		if err := site.ApplyFile(ctx, file); err != nil {
			return err
		}
	}
	return site.InstallGatewayAPI(ctx)
}

const service = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`

// threeRules is a route of which only one rule leads to the Service.
const threeRules = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  rules:
  - matches: [{path: {type: PathPrefix, value: /a}}]
    backendRefs: [{name: web, port: 80, weight: 7}, {name: other, port: 80, weight: 3}]
  - filters: [{type: RequestRedirect, requestRedirect: {scheme: https, statusCode: 302}}]
  - backendRefs: [{name: unrelated, port: 80, weight: 1}]
`

// routed returns the manifest of a Rollout of a CloneSet that leads traffic.
func routed(steps, routings string) string {
	return rolloutOf(ofCloneSet, steps) + "      trafficRoutings: [" + routings + "]\n"
}

func (e *env) untyped(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	e.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	e.Read(name, u)
	return u
}

var (
	httpRoute       = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}
	virtualService  = schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "VirtualService"}
	destinationRule = schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "DestinationRule"}
)

// backends returns the backends of a rule with their weights.
func backends(route *unstructured.Unstructured, rule int) (out []string) {
	rules, _, _ := unstructured.NestedSlice(route.Object, "spec", "rules")
	refs, _, _ := unstructured.NestedSlice(rules[rule].(map[string]any), "backendRefs")
	for _, ref := range refs {
		out = append(out, fmt.Sprint(ref.(map[string]any)["name"], " ", ref.(map[string]any)["weight"]))
	}
	return out
}

func (e *env) selector(name string) map[string]string {
	e.Helper()
	s := &corev1.Service{}
	e.Read(name, s)
	return s.Spec.Selector
}

// untouched waits until a release has left nothing of what leads traffic.
func (e *env) untouched() {
	e.Helper()
	e.Eventually("nothing of the release is left", func() error {
		if diff := cmp.Diff(map[string]string{"app": "web"}, e.selector("web")); diff != "" {
			return errors.New(diff)
		}
		var services corev1.ServiceList
		var ingresses networkingv1.IngressList
		e.Must(e.List(e.Ctx, &services, client.InNamespace(e.Namespace)))
		e.Must(e.List(e.Ctx, &ingresses, client.InNamespace(e.Namespace)))
		for i := range services.Items {
			if strings.HasSuffix(services.Items[i].Name, "-canary") {
				return errors.New("the Service of the new version is left")
			}
		}
		for i := range ingresses.Items {
			if strings.HasSuffix(ingresses.Items[i].Name, "-canary") {
				return errors.New("the Ingress of the new version is left")
			}
		}
		return nil
	})
}

// TestScenario7NoLeakBeforeTraffic: the Service selects only old Pods before the first new one is there. Traffic is that of an Ingress, with a
// rule whose backend is a resource, trap T24.
func TestScenario7NoLeakBeforeTraffic(t *testing.T) {
	e := newEnv(t)
	e.Make(service)
	e.Make(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules:
  - host: resource.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {resource: {apiGroup: example.com, kind: Bucket, name: web}}}]}
  - host: none.example.com
  - host: web.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
`)
	e.start(fmt.Sprintf(cloneSet, 4, ""), routed("{replicas: 1, matches: [{headers: [{name: user, value: beta}]}]}, {replicas: 2, traffic: 50%}, {replicas: 100%}",
		"{service: web, gracePeriodSeconds: 1, ingress: {name: web}}"))
	e.setImage("v2")
	e.Eventually("a new Pod is there", func() error {
		if e.images()["v2"] == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	if pinned := e.selector("web")["pod-template-hash"]; pinned == "" {
		t.Error("a new Pod is there, and the Service may select it")
	}
	e.paused(1, "v2", 1)
	canary := &networkingv1.Ingress{}
	e.Read("web-canary", canary)
	want := map[string]string{
		"nginx.ingress.kubernetes.io/canary": "true", "nginx.ingress.kubernetes.io/canary-by-header": "user", "nginx.ingress.kubernetes.io/canary-by-header-value": "beta",
	}
	if diff := cmp.Diff(want, canary.Annotations); diff != "" || len(canary.Spec.Rules) != 1 {
		t.Errorf("the Ingress of the new version has %d rules and annotations (-want +got):\n%s", len(canary.Spec.Rules), diff)
	}
	if stable, latest := e.selector("web")["pod-template-hash"], e.selector("web-canary")["pod-template-hash"]; stable == "" || latest == "" || stable == latest {
		t.Errorf("the Services select %q and %q", stable, latest)
	}
	e.approve()
	e.paused(2, "v2", 2)
	e.Read("web-canary", canary)
	if got := canary.Annotations["nginx.ingress.kubernetes.io/canary-weight"]; got != "50" || len(canary.Annotations) != 2 {
		t.Errorf("annotations %v", canary.Annotations)
	}
	e.approve()
	e.over("v2", 4, corev1.ConditionTrue)
	e.untouched()
}

// TestScenario17GatewayAPI: only the rule that leads to the Service changes, and the route is in the end what its user wrote, trap T10.
func TestScenario17GatewayAPI(t *testing.T) {
	e := newEnv(t)
	e.routes()
	e.Make(service)
	e.Make(threeRules)
	before := e.untyped(httpRoute, "web")
	e.start(fmt.Sprintf(cloneSet, 4, ""), routed("{replicas: 1, traffic: 20%}, {replicas: 2, matches: [{path: {value: /b}}, {headers: [{name: user, value: beta}]}]}, {replicas: 100%}",
		"{service: web, gracePeriodSeconds: 0, gateway: {httpRouteName: web}}"))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	split := e.untyped(httpRoute, "web")
	if diff := cmp.Diff([]string{"web 560", "web-canary 140", "other 300"}, backends(split, 0)); diff != "" {
		t.Errorf("the backends (-want +got):\n%s", diff)
	}
	was, _, _ := unstructured.NestedSlice(before.Object, "spec", "rules")
	is, _, _ := unstructured.NestedSlice(split.Object, "spec", "rules")
	if diff := cmp.Diff(was[1:], is[1:]); diff != "" {
		t.Errorf("the other rules (-want +got):\n%s", diff)
	}
	// The rest of a route is its user's also during a release.
	edit(e, "web", split, func(route *unstructured.Unstructured) {
		e.Must(unstructured.SetNestedStringSlice(route.Object, []string{"web.example.com"}, "spec", "hostnames"))
	})
	e.approve()
	e.paused(2, "v2", 2)
	if rules, _, _ := unstructured.NestedSlice(e.untyped(httpRoute, "web").Object, "spec", "rules"); len(rules) != 4 {
		t.Errorf("%d rules, want one more for the matches", len(rules))
	}
	e.approve()
	e.over("v2", 4, corev1.ConditionTrue)
	e.untouched()
	e.Must(unstructured.SetNestedStringSlice(before.Object, []string{"web.example.com"}, "spec", "hostnames"))
	after := e.untyped(httpRoute, "web")
	if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" || after.GetAnnotations()[keys.OriginalSpecConfiguration] != "" {
		t.Errorf("the route is not what its user wrote (-want +got):\n%s", diff)
	}
}

// TestScenario18Istio: a subset of one Service gets the traffic, no Service is touched, and both objects are restored.
func TestScenario18Istio(t *testing.T) {
	e := newEnv(t)
	e.routes()
	e.Make(service)
	e.Make(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web}
spec: {hosts: [web], http: [{route: [{destination: {host: web}}]}]}
`)
	e.Make(`
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web}
spec: {host: web}
`)
	before := []any{e.untyped(virtualService, "web").Object["spec"], e.untyped(destinationRule, "web").Object["spec"]}
	rollout := routed("{replicas: 1, traffic: 20%}, {replicas: 100%}", "{service: web, gracePeriodSeconds: 0, customNetworkRefs: ["+
		"{apiVersion: networking.istio.io/v1, kind: VirtualService, name: web}, {apiVersion: networking.istio.io/v1, kind: DestinationRule, name: web}]}")
	e.start(fmt.Sprintf(cloneSet, 3, ""), strings.Replace(rollout, "    canary:\n", "    canary:\n      disableGenerateCanaryService: true\n", 1))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	want := map[string]any{"hosts": []any{"web"}, "http": []any{map[string]any{"route": []any{
		map[string]any{"destination": map[string]any{"host": "web"}, "weight": int64(80)},
		map[string]any{"destination": map[string]any{"host": "web", "subset": "canary"}, "weight": int64(20)},
	}}}}
	if diff := cmp.Diff(want, e.untyped(virtualService, "web").Object["spec"]); diff != "" {
		t.Errorf("the VirtualService (-want +got):\n%s", diff)
	}
	if subsets, _, _ := unstructured.NestedSlice(e.untyped(destinationRule, "web").Object, "spec", "subsets"); len(subsets) != 1 {
		t.Errorf("subsets %v", subsets)
	}
	if diff := cmp.Diff(map[string]string{"app": "web"}, e.selector("web")); diff != "" {
		t.Errorf("the Service is touched: %s", diff)
	}
	e.approve()
	e.over("v2", 3, corev1.ConditionTrue)
	e.untouched()
	for i, after := range []*unstructured.Unstructured{e.untyped(virtualService, "web"), e.untyped(destinationRule, "web")} {
		if diff := cmp.Diff(before[i], after.Object["spec"]); diff != "" || len(after.GetAnnotations()) > 0 {
			t.Errorf("%s (-want +got):\n%s", after.GetKind(), diff)
		}
	}
}

// TestRoutesThatAreNotThereAreSaid: a kind that the cluster does not serve holds a release back, and says so.
func TestRoutesThatAreNotThereAreSaid(t *testing.T) {
	e := newEnv(t)
	e.Make(service)
	e.start(fmt.Sprintf(cloneSet, 2, ""), routed("{replicas: 1, traffic: 20%}, {replicas: 100%}",
		"{service: web, gracePeriodSeconds: 0, customNetworkRefs: [{apiVersion: example.com/v1, kind: Unserved, name: web}]}"))
	e.setImage("v2")
	e.Eventually("the Rollout says that the kind is not served", func() error {
		if r := e.rollout(); !strings.Contains(r.Status.Message, "CustomResourceDefinition of Unserved in example.com/v1 is not there") {
			return errors.New(r.Status.Message)
		}
		return nil
	})
	if n := e.images()["v2"]; n > 0 {
		t.Errorf("%d Pods are updated all the same", n)
	}
	e.setImage("v1")
	e.over("v1", 2, corev1.ConditionFalse)
}

// TestScenario24EndToEnd: two Rollouts share a TrafficRouting. Its route is set when the first release begins, kept while either runs, and
// restored when the last one ends.
func TestScenario24EndToEnd(t *testing.T) {
	e := newEnv(t)
	e.routes()
	e.Make(service)
	e.Make(threeRules)
	before := e.untyped(httpRoute, "web").Object["spec"]
	e.Make(`
apiVersion: rollouts.kruise.io/v1alpha1
kind: TrafficRouting
metadata: {name: gray}
spec:
  objectRef: [{service: web, gateway: {httpRouteName: web}}]
  strategy: {matches: [{headers: [{name: user, value: beta}]}], requestHeaderModifier: {set: [{name: x-gray, value: "yes"}]}}
`)
	shares := func(manifest string) string { return manifest + "      trafficRoutingRef: gray\n" }
	e.start(fmt.Sprintf(cloneSet, 3, ""), shares(rolloutOf(ofCloneSet, steps("1", "100%"))))
	second := strings.NewReplacer("name: web}", "name: second}", "name: demo", "name: second", "app: web", "app: second", "{name: web}", "{name: second}")
	e.Make(second.Replace(fmt.Sprintf(cloneSet, 3, "")))
	e.Make(second.Replace(shares(rolloutOf(ofCloneSet, steps("1", "100%")))))
	phase := func(want v1alpha1.TrafficRoutingPhase, rules int) func() error {
		return func() error {
			routing := &v1alpha1.TrafficRouting{}
			e.Read("gray", routing)
			got, _, _ := unstructured.NestedSlice(e.untyped(httpRoute, "web").Object, "spec", "rules")
			if routing.Status.Phase != want || len(got) != rules {
				return fmt.Errorf("phase %s (%s), %d rules", routing.Status.Phase, routing.Status.Message, len(got))
			}
			return nil
		}
	}
	isHealthy := func(name string) {
		e.Eventually("Rollout "+name+" is healthy", func() error {
			r := &v1beta1.Rollout{}
			e.Read(name, r)
			if r.Status.Phase != v1beta1.RolloutPhaseHealthy || r.Status.CanaryStatus == nil {
				return fmt.Errorf("phase %s", r.Status.Phase)
			}
			return nil
		})
	}
	isHealthy("second")
	e.Eventually("changes of the second one are intercepted", func() error {
		set := &cloneSetType{}
		e.Read("second", set)
		if set.Labels[keys.WorkloadType] == "" {
			return errors.New("no label")
		}
		return nil
	})
	e.Eventually("nobody uses it", phase(v1alpha1.TrafficRoutingPhaseHealthy, 3))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	e.Eventually("the first release leads traffic", phase(v1alpha1.TrafficRoutingPhaseProgressing, 4))
	edit(e, "second", &cloneSetType{}, func(s *cloneSetType) { s.Spec.Template.Spec.Containers[0].Image = "web:v3" })
	e.Eventually("the second release uses it, too", func() error {
		routing := &v1alpha1.TrafficRouting{}
		e.Read("gray", routing)
		if !slices.Contains(routing.Finalizers, keys.TrafficRoutingProgressing+"second") {
			return fmt.Errorf("finalizers %v", routing.Finalizers)
		}
		return nil
	})
	e.approve()
	isHealthy("demo")
	e.Must(phase(v1alpha1.TrafficRoutingPhaseProgressing, 4)())
	edit(e, "second", &cloneSetType{}, func(s *cloneSetType) { s.Spec.Template.Spec.Containers[0].Image = "web:v1" })
	isHealthy("second")
	e.Eventually("the route is restored", phase(v1alpha1.TrafficRoutingPhaseHealthy, 3))
	if diff := cmp.Diff(before, e.untyped(httpRoute, "web").Object["spec"]); diff != "" {
		t.Errorf("the route (-want +got):\n%s", diff)
	}
}
