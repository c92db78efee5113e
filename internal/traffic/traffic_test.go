package traffic

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	rules "github.com/seed-69ecc383/kruise/internal/rules/traffic"
)

// TestAReleaseLeadsTrafficByEverythingThatItNames is trap T22: several Services, each with what leads to it.
func TestAReleaseLeadsTrafficByEverythingThatItNames(t *testing.T) {
	w := newWorld(t, 1, objects)
	before := w.stored()
	w.expect("at first", release.Traffic{}, w.seen())

	w.act(verb(release.Pin))
	w.expect("pinned", release.Traffic{Pinned: true, PinLeft: true}, w.seen())
	w.expect("the selector", map[string]string{"app": "api", "pod-template-hash": "old"}, w.service("api").Spec.Selector)

	w.act(verb(release.CreateService))
	w.expect("with Services", release.Traffic{Pinned: true, PinLeft: true, NewService: true, ServiceLeft: true}, w.seen())
	canary := w.service("web-canary")
	w.expect("the Service of the new version", corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{"app": "web", "pod-template-hash": "new"},
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: w.service("web").Spec.Ports[0].TargetPort, Protocol: "TCP"}},
	}, canary.Spec)
	w.expect("its annotations, of which none is copied", map[string]string(nil), canary.Annotations)
	if !metav1.IsControlledBy(canary, w.rollout) {
		t.Error("the Rollout does not own its Service")
	}

	for _, s := range []struct {
		step int32
		want string
	}{{2, "20%"}, {1, release.Route(w.routings().Steps[0])}, {4, "50%"}, {0, "100%"}} {
		w.act(step(s.step))
		w.expect("routed", s.want, w.seen().Routes)
	}
	w.act(step(2))
	w.expect("the Ingress", "20", w.ingress("web-canary").Annotations["nginx.ingress.kubernetes.io/canary-weight"])
	router := w.untyped("Router", "web").Object["spec"].(map[string]any)["upstreams"]
	w.expect("what a script edits", []any{
		map[string]any{"service": "web", "share": int64(80)}, map[string]any{"service": "web-canary", "share": int64(20)},
	}, router)

	w.act(verb(release.RestoreRoutes), verb(release.Unpin), verb(release.RemoveService))
	w.expect("in the end", release.Traffic{}, w.seen())
	w.expect("the user's objects", before, w.stored())
}

// TestASettledClusterIsNotWrittenTo repeats each action that has reached its goal.
func TestASettledClusterIsNotWrittenTo(t *testing.T) {
	w := newWorld(t, 1, objects)
	for _, a := range []release.Action{
		verb(release.Unpin), verb(release.RestoreRoutes), verb(release.RemoveService), verb(release.Pin), verb(release.CreateService), step(2), step(1),
	} {
		w.act(a)
		at := w.cluster.Revision()
		w.act(a)
		if w.cluster.Revision() != at {
			t.Errorf("%s writes again", a.Do)
		}
	}
}

// TestDefaultsOfAnAPIServerAreNoEdits has an API server fill in fields of what was written; a field of the last step is no default.
func TestDefaultsOfAnAPIServerAreNoEdits(t *testing.T) {
	w := newWorld(t, 1, objects)
	w.act(verb(release.Pin), verb(release.CreateService), step(2))
	w.each("HTTPRoute", "rules", func(rule map[string]any) bool { return leadsTo(rule, "backendRefs", "web") }, func(rule map[string]any) {
		for _, ref := range rule["backendRefs"].([]any) {
			ref.(map[string]any)["group"] = ""
		}
	})
	w.rules("VirtualService", "http", func(routes []any) []any {
		for _, route := range routes {
			route.(map[string]any)["retries"] = map[string]any{"attempts": int64(2)}
		}
		return routes
	})
	w.expect("routed", "20%", w.seen().Routes)
	at := w.cluster.Revision()
	w.act(step(2))
	if w.cluster.Revision() != at {
		t.Error("it writes again")
	}
	w.act(step(4))
	w.expect("routed", "50%", w.seen().Routes)
	w.each("HTTPRoute", "rules", func(rule map[string]any) bool { return leadsTo(rule, "backendRefs", "web") }, func(rule map[string]any) {
		rule["backendRefs"] = rule["backendRefs"].([]any)[:1]
	})
	w.expect("routed after an edit", otherwise, w.seen().Routes)
}

// TestWhatIsMissingIsSaid has each object gone, and kinds that the cluster does not serve.
func TestWhatIsMissingIsSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*world)
		want   string
	}{
		"a Service":  {func(w *world) { w.cluster.Delete("user", w.service("api")) }, "Service api"},
		"an Ingress": {func(w *world) { w.cluster.Delete("user", w.ingress("web")) }, "Ingress web"},
		"a route":    {func(w *world) { w.cluster.Delete("user", w.untyped("HTTPRoute", "web")) }, "HTTPRoute web"},
		"a script": {func(w *world) {
			alter(w, w.cluster.Of(corev1.SchemeGroupVersion.WithKind("ConfigMap"))[0].(*corev1.ConfigMap), func(m *corev1.ConfigMap) { m.Data = nil })
		}, "the script for Router of example.com (key lua.traffic.routing.Router.example.com of ConfigMap kruise-rollout/kruise-rollout-configuration)"},
		"the script of a class": {func(w *world) {
			alter(w, w.rollout, func(r *v1beta1.Rollout) { r.Spec.Strategy.Canary.TrafficRoutings[1].Ingress.ClassType = "apisix" })
			w.rollout = w.cluster.Of(v1beta1.GroupVersion.WithKind("Rollout"))[0].(*v1beta1.Rollout)
		}, "the script for Ingresses of class apisix (key lua.traffic.routing.ingress.apisix of ConfigMap kruise-rollout/kruise-rollout-configuration)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, objects)
			w.act(verb(release.Pin), verb(release.CreateService), step(2))
			tc.change(w)
			w.expect("missing", tc.want, w.seen().Missing)
			// Whatever is missing, the release can end.
			w.act(verb(release.RestoreRoutes), verb(release.Unpin), verb(release.RemoveService))
			left := w.seen()
			left.Missing, left.Problem = "", ""
			w.expect("in the end", release.Traffic{}, left)
		})
	}
}

// TestAScriptOfAClassComesFirst has an operator replace what is built in.
func TestAScriptOfAClassComesFirst(t *testing.T) {
	w := newWorld(t, 1, objects)
	alter(w, w.cluster.Of(corev1.SchemeGroupVersion.WithKind("ConfigMap"))[0].(*corev1.ConfigMap), func(m *corev1.ConfigMap) {
		m.Data["lua.traffic.routing.ingress.nginx"] = `obj.annotations["mine"] = obj.weight .. " " .. obj.canaryService; return obj.annotations`
	})
	w.act(verb(release.Pin), verb(release.CreateService), step(2))
	w.expect("the annotations", map[string]string{"kept": "x", "mine": "20 api-canary"}, w.ingress("web-canary").Annotations)
}

// TestObjectsOfOthersAreLeftAlone has the names of what a release creates taken.
func TestObjectsOfOthersAreLeftAlone(t *testing.T) {
	w := newWorld(t, 1, objects)
	w.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web-canary", Namespace: "ns"}})
	w.create(&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "web-canary", Namespace: "ns"}})
	w.act(verb(release.Pin), verb(release.CreateService), step(2))
	seen := w.seen()
	if seen.NewService || !strings.Contains(seen.Problem, "Service web-canary is there and was not made for this release") {
		t.Errorf("seen %+v", seen)
	}
	w.act(verb(release.RestoreRoutes), verb(release.Unpin), verb(release.RemoveService))
	if w.service("web-canary") == nil || w.ingress("web-canary") == nil {
		t.Error("an object of somebody else is gone")
	}
}

// TestOneRouteInTwoReleases has the second one wait, and go on when the first one has ended or is gone.
func TestOneRouteInTwoReleases(t *testing.T) {
	w := newWorld(t, 1, objects)
	w.act(verb(release.Pin), verb(release.CreateService), step(2))
	first, before := w.rollout, annotation(w.untyped("HTTPRoute", "web"))
	second := rollout()
	second.Name = "second"
	second.Spec.Strategy.Canary.TrafficRoutings = []v1beta1.TrafficRoutingRef{{Service: "other", Gateway: rollout().Spec.Strategy.Canary.TrafficRoutings[0].Gateway}}
	w.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "ns"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "other"}}})
	w.rollout = w.create(second).(*v1beta1.Rollout)
	w.act(verb(release.Pin), verb(release.CreateService), step(2), verb(release.RestoreRoutes))
	w.expect("the original", before, annotation(w.untyped("HTTPRoute", "web")))
	if seen := w.seen(); seen.Routes != "" || !strings.Contains(seen.Problem, "HTTPRoute web is changed by the release of Rollout web") {
		t.Errorf("seen %+v", seen)
	}
	second, w.rollout = w.rollout, first
	w.act(verb(release.RestoreRoutes), verb(release.Unpin), verb(release.RemoveService))
	w.rollout = second
	w.act(step(2))
	w.expect("routed", "20%", w.seen().Routes)
}

// TestAReleaseThatSomebodyHasLeft has a Rollout gone whose finalizer was taken off by hand: trap T21.
func TestAReleaseThatSomebodyHasLeft(t *testing.T) {
	w := newWorld(t, 1, objects)
	before := w.stored()
	w.act(verb(release.Pin), step(2))
	w.cluster.Delete("user", w.rollout)
	again := rollout()
	again.Name = "again"
	w.rollout = w.create(again).(*v1beta1.Rollout)
	w.stable = "newer"
	seen := w.seen()
	if seen.Pinned || !seen.PinLeft || seen.Routes == "" {
		t.Errorf("seen %+v", seen)
	}
	for _, object := range w.cluster.Of(kinds()[1]) { // as the garbage collector does
		if len(object.GetOwnerReferences()) > 0 {
			w.cluster.Delete("garbage collector", object)
		}
	}
	w.act(verb(release.RestoreRoutes), verb(release.Unpin))
	w.expect("the user's objects", before, w.stored())
}

// TestANewRevisionGetsItsService corrects one of an earlier template.
func TestANewRevisionGetsItsService(t *testing.T) {
	w := newWorld(t, 1, objects)
	w.act(verb(release.Pin), verb(release.CreateService))
	w.hash = "newer"
	if seen := w.seen(); seen.NewService || !seen.ServiceLeft {
		t.Errorf("seen %+v", seen)
	}
	w.act(verb(release.CreateService))
	w.expect("the selector", "newer", w.service("web-canary").Spec.Selector["pod-template-hash"])
	w.hash = ""
	w.act(verb(release.RemoveService))
	w.expect("seen", release.Traffic{Pinned: true, PinLeft: true}, w.seen())
}

// TestWhatCannotBeSaidIsSaid names the object and the reason.
func TestWhatCannotBeSaidIsSaid(t *testing.T) {
	w := newWorld(t, 1, objects)
	alter(w, w.untyped("HTTPRoute", "web"), func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{} })
	w.act(verb(release.Pin), verb(release.CreateService), step(2))
	w.expect("the problem", "HTTPRoute web: no rule leads to Service web", w.seen().Problem)
	alter(w, w.untyped("HTTPRoute", "web"), func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{keys.OriginalSpecConfiguration: "{"})
	})
	if problem := w.seen().Problem; !strings.Contains(problem, "put its spec right and delete the annotation") {
		t.Errorf("the problem is %s", problem)
	}
}

// TestSubsetsShareAService is scenario 18: no Service is touched.
func TestSubsetsShareAService(t *testing.T) {
	w := newWorld(t, 1, objects)
	r := w.rollout.DeepCopy()
	s := &r.Spec.Strategy.Canary.StepsStrategy
	s.DisableGenerateCanaryService = true
	s.TrafficRoutings = s.TrafficRoutings[:1]
	s.TrafficRoutings[0].Gateway = nil
	s.TrafficRoutings[0].CustomNetworkRefs = s.TrafficRoutings[0].CustomNetworkRefs[:2]
	w.rollout = r
	before := w.stored()
	routings := w.routings()
	if !routings.OneService() {
		t.Error("a Service of the new version is needed")
	}
	w.act(verb(release.Pin), verb(release.CreateService), step(2))
	w.expect("seen", release.Traffic{Routes: "20%"}, w.seen())
	w.expect("the routes", []any{
		map[string]any{"match": []any{map[string]any{"uri": map[string]any{"prefix": "/x"}}}, "route": []any{map[string]any{"destination": map[string]any{"host": "other"}}}},
		map[string]any{"route": []any{
			map[string]any{"destination": map[string]any{"host": "web"}, "weight": int64(80)},
			map[string]any{"destination": map[string]any{"host": "web", "subset": "canary"}, "weight": int64(20)},
		}},
	}, w.untyped("VirtualService", "web").Object["spec"].(map[string]any)["http"])
	w.act(verb(release.RestoreRoutes))
	w.expect("the user's objects", before, w.stored())
	s.TrafficRoutings[0].Gateway = rollout().Spec.Strategy.Canary.TrafficRoutings[0].Gateway
	if routings = w.routings(); routings.OneService() {
		t.Error("a route of Gateway API needs a Service for each version")
	}
}

func TestNames(t *testing.T) {
	refs := rollout().Spec.Strategy.Canary.TrafficRoutings
	for name, tc := range map[string]struct {
		kind schema.GroupKind
		name string
		want bool
	}{
		"a Service":                        {schema.GroupKind{Kind: "Service"}, "api", true},
		"the Service for new Pods":         {schema.GroupKind{Kind: "Service"}, rules.CanaryName("api"), true},
		"another Service":                  {schema.GroupKind{Kind: "Service"}, "other", false},
		"an Ingress":                       {schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}, "web", true},
		"a route":                          {schema.GroupKind{Group: rules.GatewayGroup, Kind: "HTTPRoute"}, "web", true},
		"a kind of the user":               {schema.GroupKind{Group: "example.com", Kind: "Router"}, "web", true},
		"one of that name of another kind": {schema.GroupKind{Group: "example.com", Kind: "Other"}, "web", false},
	} {
		if got := Names(refs, tc.kind, tc.name); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if Grace(refs) != 3 {
		t.Errorf("the grace period is %d", Grace(refs))
	}
	zero := int32(0)
	refs[0].GracePeriodSeconds, refs[1].GracePeriodSeconds = &zero, &zero
	if Grace(refs) != 0 {
		t.Error("a grace period of 0 turns back into 3: trap T23")
	}
}
