package traffic

import (
	"context"
	"encoding/json"
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// world is a cluster with what leads traffic to the Services web and api, and a Rollout that names it all.
type world struct {
	t       testing.TB
	cluster *simulate.Cluster
	client  *simulate.Client
	scheme  *runtime.Scheme
	rand    *rand.Rand
	rollout *v1beta1.Rollout
	stable  string
	hash    string
	// wrong does wrong to writes on purpose.
	wrong func(*plan.Action)
}

// objects are what the user wrote. Unknown fields are in each route.
const objects = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: ns, labels: {app: web}, annotations: {lb: mine}}
spec: {type: LoadBalancer, clusterIP: 10.0.0.1, selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080, protocol: TCP, nodePort: 30080}]}
---
apiVersion: v1
kind: Service
metadata: {name: api, namespace: ns}
spec: {type: ClusterIP, selector: {app: api}, ports: [{port: 80, targetPort: 8080, protocol: TCP}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: ns, annotations: {kept: x}}
spec: {ingressClassName: nginx, rules: [{host: a, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: api, port: {number: 80}}}}]}}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: ns, annotations: {kept: x}}
spec:
  unknown: {kept: 1.5}
  rules:
  - matches: [{path: {type: PathPrefix, value: /a}}]
    backendRefs: [{name: web, port: 80, weight: 7}, {name: other, port: 80, weight: 3}]
  - filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]
  - backendRefs: [{name: unrelated, port: 80}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: ns}
spec: {unknown: [], hosts: [web], http: [{match: [{uri: {prefix: /x}}], route: [{destination: {host: other}}]}, {route: [{destination: {host: web}}]}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: ns}
spec: {host: web, subsets: [{name: v1, labels: {v: a}}]}
---
apiVersion: example.com/v1
kind: Router
metadata: {name: web, namespace: ns, labels: {team: a}, annotations: {kept: x}}
spec: {kept: 1, upstreams: [{service: web, share: 100}]}
`

// routerScript says how a Router leads traffic.
const routerScript = `
local upstreams = obj.data.spec.upstreams
if obj.canaryWeight >= 0 then
	upstreams[1].share = obj.stableWeight
	upstreams[2] = {service = obj.canaryService, share = obj.canaryWeight}
else
	upstreams[2] = {service = obj.canaryService, matches = obj.matches}
end
obj.data.annotations["router/released"] = "yes"
return obj.data
`

// rollout leads traffic by all of them.
func rollout() *v1beta1.Rollout {
	percent := func(text string) v1beta1.Step { return v1beta1.Step{Traffic: &text} }
	matches := v1beta1.Step{Matches: []v1beta1.HTTPRouteMatch{{Headers: []v1beta1.HTTPHeaderMatch{{Name: "user", Value: "beta"}}}}}
	return &v1beta1.Rollout{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns"},
		Spec: v1beta1.RolloutSpec{Strategy: v1beta1.RolloutStrategy{Canary: &v1beta1.CanaryStrategy{StepsStrategy: v1beta1.StepsStrategy{
			Steps: []v1beta1.Step{matches, percent("20%"), {}, percent("50%"), percent("100%")},
			TrafficRoutings: []v1beta1.TrafficRoutingRef{
				{
					Service: "web", Gateway: &v1beta1.GatewayTrafficRouting{HTTPRouteName: ptr.To("web")},
					CustomNetworkRefs: []v1beta1.ObjectRef{
						{APIVersion: "networking.istio.io/v1", Kind: "VirtualService", Name: "web"},
						{APIVersion: "networking.istio.io/v1", Kind: "DestinationRule", Name: "web"},
						{APIVersion: "example.com/v1", Kind: "Router", Name: "web"},
					},
				},
				{Service: "api", Ingress: &v1beta1.IngressTrafficRouting{Name: "web", ClassType: "nginx"}},
			},
		}}}},
	}
}

func newWorld(t testing.TB, seed int64, text string) *world {
	scheme := promises.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme)
	w := &world{t: t, scheme: scheme, rand: rand.New(rand.NewSource(seed)), stable: "old", hash: "new", wrong: func(*plan.Action) {}}
	w.cluster = simulate.NewCluster(scheme, time.Unix(1_800_000_000, 0))
	for _, object := range parse(t, text) {
		w.create(object)
	}
	w.create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: ConfigMapName, Namespace: "kruise-rollout"},
		Data:       map[string]string{"lua.traffic.routing.Router.example.com": routerScript},
	})
	w.rollout = w.create(rollout()).(*v1beta1.Rollout)
	w.connect()
	return w
}

// parse reads objects: those that the product knows as types as such.
func parse(t testing.TB, text string) (out []client.Object) {
	for _, part := range splitYAML(text) {
		raw, err := yaml.YAMLToJSON([]byte(part))
		if err != nil {
			t.Fatal(err)
		}
		untyped := &unstructured.Unstructured{}
		if err := untyped.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		var object client.Object = untyped
		switch untyped.GetKind() {
		case "Service":
			object = &corev1.Service{}
		case "Ingress":
			object = &networkingv1.Ingress{}
		}
		if object != client.Object(untyped) {
			if err := json.Unmarshal(raw, object); err != nil {
				t.Fatal(err)
			}
			object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		}
		out = append(out, object)
	}
	return out
}

func splitYAML(text string) (out []string) {
	for part := ""; ; {
		i := indexLine(text)
		if i < 0 {
			return append(out, part+text)
		}
		line := text[:i+1]
		text = text[i+1:]
		if line == "---\n" {
			out = append(out, part)
			part = ""
			continue
		}
		part += line
	}
}

func indexLine(text string) int {
	for i := range text {
		if text[i] == '\n' {
			return i
		}
	}
	return -1
}

func (w *world) create(object client.Object) client.Object {
	stored, err := w.cluster.Create("user", object)
	if err != nil {
		w.t.Fatal(err)
	}
	return stored
}

// connect starts the controller.
func (w *world) connect() { w.client = w.cluster.Connect("controller", w.rand) }

func (w *world) routings() Routings {
	out := Of(w.rollout)
	out.Stable, out.Select.Label, out.Select.Hash = w.stable, "pod-template-hash", w.hash
	return out
}

func (w *world) observe() *Observed {
	w.t.Helper()
	o := Options{Namespace: "kruise-rollout"}
	seen, err := o.Observe(context.Background(), observe.Reader{Reader: w.client}, w.routings())
	if err != nil {
		w.t.Fatal(err)
	}
	return seen
}

func (w *world) seen() release.Traffic { return w.observe().Seen() }

// do carries an action out, as far as faults let it. Between is what others do while the controller decides.
func (w *world) do(a release.Action, between func()) {
	seen := w.observe()
	b := plan.For("test")
	b.Do(seen.Plan(a)...)
	p := b.Plan()
	for _, stage := range p.Stages {
		for _, chain := range stage {
			for i := range chain {
				w.wrong(&chain[i])
			}
		}
	}
	between()
	e := &apply.Executor{Config: apply.Config{
		Writer: w.client, Scheme: w.scheme, Now: w.cluster.Now, Events: &record.FakeRecorder{}, Parallel: 1,
		Seen: func(context.Context, schema.GroupVersionKind) (string, error) { return "999999", nil },
	}}
	e.Run(context.Background(), w.rollout, p)
	if w.client.IsDead() {
		w.connect()
	}
}

// act carries actions out until nothing is left to do.
func (w *world) act(actions ...release.Action) {
	for _, a := range actions {
		for range 3 {
			w.do(a, func() {})
		}
	}
}

// stored returns all objects of the user as they are, without what only the server writes.
func (w *world) stored() map[string]any {
	out := map[string]any{}
	for _, kind := range kinds() {
		for _, object := range w.cluster.Of(kind) {
			raw, err := json.Marshal(object)
			if err != nil {
				w.t.Fatal(err)
			}
			var fields map[string]any
			if err := json.Unmarshal(raw, &fields); err != nil {
				w.t.Fatal(err)
			}
			metadata := fields["metadata"].(map[string]any)
			for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp"} {
				delete(metadata, field)
			}
			if annotations, _ := metadata["annotations"].(map[string]any); len(annotations) == 0 {
				delete(metadata, "annotations")
			}
			delete(fields, "status")
			out[kind.Kind+" "+object.GetName()] = fields
		}
	}
	return out
}

func kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Service"), networkingv1.SchemeGroupVersion.WithKind("Ingress"),
		{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}, {Group: "gateway.networking.k8s.io", Version: "v1beta1", Kind: "HTTPRoute"},
		{Group: "networking.istio.io", Version: "v1", Kind: "VirtualService"}, {Group: "networking.istio.io", Version: "v1", Kind: "DestinationRule"},
		{Group: "example.com", Version: "v1", Kind: "Router"},
	}
}

func (w *world) untyped(kind, name string) *unstructured.Unstructured {
	for _, gvk := range kinds() {
		for _, object := range w.cluster.Of(gvk) {
			if u, is := object.(*unstructured.Unstructured); is && gvk.Kind == kind && object.GetName() == name {
				return u
			}
		}
	}
	w.t.Fatalf("there is no %s %s", kind, name)
	return nil
}

func (w *world) service(name string) *corev1.Service {
	s, _ := w.cluster.Get(simulate.Key{Kind: kinds()[0], Namespace: "ns", Name: name}).(*corev1.Service)
	return s
}

func (w *world) ingress(name string) *networkingv1.Ingress {
	i, _ := w.cluster.Get(simulate.Key{Kind: kinds()[1], Namespace: "ns", Name: name}).(*networkingv1.Ingress)
	return i
}

// alter changes an object on behalf of somebody else.
func alter[T client.Object](w *world, object T, change func(T)) {
	simulate.Update(w.cluster, "user", object, change)
}

func (w *world) expect(what string, want any, got any) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func step(n int32) release.Action { return release.Action{Do: release.SetRoutes, Step: n} }

func verb(v release.Verb) release.Action { return release.Action{Do: v} }

func annotation(u *unstructured.Unstructured) string {
	return u.GetAnnotations()[keys.OriginalSpecConfiguration]
}
