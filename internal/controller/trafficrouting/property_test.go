package trafficrouting

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	rules "github.com/seed-69ecc383/kruise/internal/rules/traffic"
	"github.com/seed-69ecc383/kruise/internal/traffic"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	ruleKept     = "a route that is changed keeps what its user wrote"
	ruleServices = "Services are left alone"
	ruleHeld     = "routes lead traffic only while a Rollout has a release"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// TestMistakesShow makes mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	deaf := suite(Plan)
	deaf.Mistake = promises.Mistake{IsDeaf: func(e simulate.Event) bool {
		_, is := e.Old.(*v1beta1.Rollout)
		return is && e.New == nil
	}}
	for name, tc := range map[string]struct {
		suite promises.Suite
		want  string
	}{
		"it does not keep what the user wrote": {suite(promises.Misplan(Plan, func(a *plan.Action) {
			if u, is := a.After.(*unstructured.Unstructured); is {
				annotations := u.GetAnnotations()
				delete(annotations, keys.OriginalSpecConfiguration)
				u.SetAnnotations(annotations)
			}
		})), ruleKept},
		"it leads traffic without a release": {suite(func(s Snapshot) plan.Plan {
			s.Rollouts = append(s.Rollouts, "nobody")
			s.Routing = s.Routing.DeepCopy()
			s.Routing.Finalizers = append(s.Routing.Finalizers, rules.ProgressingFinalizer("nobody"))
			return Plan(s)
		}), ruleHeld},
		"it goes before its routes are restored": {suite(promises.Misplan(Plan, func(a *plan.Action) {
			if r, is := a.After.(*v1alpha1.TrafficRouting); is && r.DeletionTimestamp != nil {
				r.Finalizers = nil
			} else if u, is := a.After.(*unstructured.Unstructured); is && u.GetAnnotations()[keys.OriginalSpecConfiguration] == "" {
				a.After = a.Before
			}
		})), "at rest"},
		"it waits for a Rollout that is gone": {suite(func(s Snapshot) plan.Plan {
			s.Rollouts = append(s.Rollouts, "a", "b")
			return Plan(s)
		}), "at rest"},
		"it does not hear that a Rollout is gone": {deaf, "at rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.suite.Break(t, tc.want)
		})
	}
}

var (
	routeKind   = schema.GroupVersionKind{Group: rules.GatewayGroup, Version: "v1", Kind: "HTTPRoute"}
	routingKind = v1alpha1.GroupVersion.WithKind("TrafficRouting")
	rolloutKind = v1beta1.GroupVersion.WithKind("Rollout")
	ingressKind = networkingv1.SchemeGroupVersion.WithKind("Ingress")
	serviceKind = corev1.SchemeGroupVersion.WithKind("Service")
)

func emptyRoute() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(routeKind)
	return u
}

// suite is the controller, with a planner that may be mistaken, in clusters with one TrafficRouting and Rollouts that come and go.
func suite(planned func(Snapshot) plan.Plan) promises.Suite {
	return promises.Suite{
		Scheme: promises.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme),
		Watched: []client.Object{
			&v1alpha1.TrafficRouting{}, &v1beta1.Rollout{}, &corev1.Service{}, &networkingv1.Ingress{}, emptyRoute(), &corev1.ConfigMap{},
		},
		Populate: func(w *promises.World) promises.Scenario {
			s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}}
			s.populate()
			planner := promises.Planner[Snapshot, Snapshot]{
				Plan: planned, Take: func(s Snapshot) Snapshot { return s }, Snapshot: func(s Snapshot) Snapshot { return s },
			}
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					var tell observe.Listener
					var queue *simulate.Queue
					k := Kind(Options{Traffic: traffic.Options{Namespace: "kruise-rollout"}, Listen: func(l observe.Listener) { tell = l }})
					k.Plan = planner.In(w)
					p := promises.Start(k, c.Runtime(), c)
					k.Asked(func(name types.NamespacedName) { queue.Add(reconcile.Request{NamespacedName: name}) })
					p.Ears = append(p.Ears, func(e simulate.Event, q *simulate.Queue) {
						if queue = q; e.Key.Kind == routeKind {
							tell(routeKind.GroupKind(), types.NamespacedName{Namespace: e.Key.Namespace, Name: e.Key.Name})
						}
					})
					return p
				},
				Act: s.act, Relent: func() {}, Others: []func() bool{s.collect}, Check: check, Converged: s.converged,
			}
		},
	}
}

// scenario is users with a route, and Rollouts whose releases begin and end.
type scenario struct {
	promises.User
	edits int
}

func (s *scenario) populate() {
	s.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}},
	}})
	s.addIngress()
	s.addRoute()
	s.addRouting()
	s.addRollout("a")
}

func (s *scenario) create(object client.Object) {
	_, _ = s.Cluster.Create(promises.UserActor, object) // the name may be taken
}

func (s *scenario) addIngress() {
	pathType := networkingv1.PathTypePrefix
	s.create(&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: networkingv1.IngressSpec{
		Rules: []networkingv1.IngressRule{{Host: "a", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &pathType, Backend: networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}},
			}}},
		}}}},
	}})
}

// users is the route as its users wrote it, after so many edits.
func users(edits int) map[string]any {
	return map[string]any{"edits": int64(edits), "rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": "web", "weight": int64(3)}}}}}
}

func (s *scenario) addRoute() {
	route := emptyRoute()
	route.SetName("web")
	route.SetNamespace("default")
	route.Object["spec"] = users(s.edits)
	s.create(route)
}

func (s *scenario) addRouting() {
	t := &v1alpha1.TrafficRouting{ObjectMeta: metav1.ObjectMeta{Name: "routing", Namespace: "default"}}
	t.Spec.ObjectRef = []v1beta1.TrafficRoutingRef{{
		Service: "web", Ingress: &v1beta1.IngressTrafficRouting{Name: "web", ClassType: "mse"},
		Gateway: &v1beta1.GatewayTrafficRouting{HTTPRouteName: ptr.To("web")},
	}}
	t.Spec.Strategy = s.strategy()
	s.create(t)
}

func (s *scenario) strategy() (out v1alpha1.TrafficRoutingStrategy) {
	out.Matches = []v1alpha1.HTTPRouteMatch{{Headers: []v1beta1.HTTPHeaderMatch{{Name: "user", Value: fmt.Sprint(s.Rand.Intn(3))}}}}
	return out
}

func (s *scenario) addRollout(name string) {
	r := &v1beta1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	r.Spec.Strategy.Canary = &v1beta1.CanaryStrategy{StepsStrategy: v1beta1.StepsStrategy{TrafficRoutingRef: "routing"}}
	s.create(r)
}

func (s *scenario) get(kind schema.GroupVersionKind, name string) client.Object {
	return s.Cluster.Get(simulate.Key{Kind: kind, Namespace: "default", Name: name})
}

func (s *scenario) routing() *v1alpha1.TrafficRouting {
	t, _ := s.get(routingKind, "routing").(*v1alpha1.TrafficRouting)
	return t
}

// act is what users and the controller of Rollouts do.
func (s *scenario) act() {
	t, name := s.routing(), []string{"a", "b"}[s.Rand.Intn(2)]
	rollout := s.get(rolloutKind, name)
	switch n := s.Rand.Intn(100); {
	case n < 5 && t != nil:
		s.Cluster.Delete(promises.UserActor, t)
	case t == nil:
		s.addRouting()
	case n < 30 && rollout == nil:
		s.addRollout(name)
	case n < 30 && rollout != nil && rules.SharedName(rollout.(*v1beta1.Rollout)) == t.Name && rules.Joined(t, name) != nil:
		s.setFinalizers(t, rules.Joined(t, name).Finalizers)
	case n < 55 && rules.Left(t, name) != nil:
		s.setFinalizers(t, rules.Left(t, name).Finalizers)
	case n < 60 && rollout != nil:
		s.Cluster.Delete(promises.UserActor, rollout) // its release has not ended
	case n < 64 && rollout != nil:
		simulate.Update(s.Cluster, promises.UserActor, rollout.(*v1beta1.Rollout), func(r *v1beta1.Rollout) {
			r.Spec.Strategy.Canary = &v1beta1.CanaryStrategy{StepsStrategy: v1beta1.StepsStrategy{TrafficRoutingRef: "another"}}
		})
	case n < 70 && t.DeletionTimestamp == nil:
		simulate.Update(s.Cluster, promises.UserActor, t, func(t *v1alpha1.TrafficRouting) { t.Spec.Strategy = s.strategy() })
	case n < 85:
		s.edit()
	}
}

func (s *scenario) setFinalizers(t *v1alpha1.TrafficRouting, finalizers []string) {
	simulate.Update(s.Cluster, "rollout controller", t, func(t *v1alpha1.TrafficRouting) { t.Finalizers = finalizers })
}

// edit is what others do to routes.
func (s *scenario) edit() {
	if route, is := s.get(routeKind, "web").(*unstructured.Unstructured); is {
		s.edits++
		simulate.Update(s.Cluster, promises.UserActor, route, func(u *unstructured.Unstructured) {
			u.Object["spec"].(map[string]any)["edits"] = int64(s.edits)
		})
	}
	if canary := s.get(ingressKind, "web-canary"); canary != nil && s.Chance(30) {
		s.Cluster.Delete(promises.UserActor, canary)
	}
}

// collect is the garbage collector: it deletes what an owner that is gone has left.
func (s *scenario) collect() bool {
	for _, object := range s.Cluster.Of(ingressKind) {
		owner := metav1.GetControllerOfNoCopy(object)
		if t := s.routing(); owner != nil && (t == nil || t.UID != owner.UID) {
			s.Cluster.Delete("garbage collector", object)
			return true
		}
	}
	return false
}

// check returns the promises that the controller has broken in a history.
func check(history []simulate.Change) []invariant.Violation {
	var out []invariant.Violation
	var routings []simulate.Change
	for _, c := range history {
		broken := func(rule string) {
			out = append(out, invariant.Violation{Rule: rule, Revision: c.Revision, Text: c.Key.Name})
		}
		if c.Key.Kind == routingKind {
			routings = append(routings, c)
		}
		if c.Pass == nil {
			continue
		}
		if c.Key.Kind == serviceKind {
			broken(ruleServices)
		}
		route, is := c.After.(*unstructured.Unstructured)
		if !is || c.Key.Kind != routeKind {
			continue
		}
		_, kept := route.GetAnnotations()[keys.OriginalSpecConfiguration]
		added := len(route.Object["spec"].(map[string]any)["rules"].([]any)) > 1
		if added && !kept {
			broken(ruleKept)
		}
		if added && !c.Late && !heldAt(routings, c.Pass) {
			broken(ruleHeld)
		}
	}
	return out
}

// heldAt reports whether a Rollout had a release by what the controller could see.
func heldAt(routings []simulate.Change, p *simulate.Pass) (held bool) {
	for _, c := range routings {
		if c.Revision > p.Seen[routingKind] {
			break
		}
		t, is := c.After.(*v1alpha1.TrafficRouting)
		held = is && (rules.IsShared(t, "a") || rules.IsShared(t, "b"))
	}
	return held
}

// converged returns what is wrong, now that the cluster is at rest.
func (s *scenario) converged() (problems []string) {
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("at rest, "+format, args...))
	}
	t := s.routing()
	held := false
	for _, name := range []string{"a", "b"} {
		rollout, there := s.get(rolloutKind, name).(*v1beta1.Rollout)
		there = there && rules.SharedName(rollout) == "routing"
		if t != nil && rules.IsShared(t, name) && !there {
			wrong("the finalizer of Rollout %s, which is gone or names another, is left", name)
		}
		held = held || t != nil && rules.IsShared(t, name) && there
	}
	leads := held && t.DeletionTimestamp == nil
	route := s.get(routeKind, "web").(*unstructured.Unstructured)
	canary := s.get(ingressKind, "web-canary")
	switch {
	case t != nil && t.DeletionTimestamp != nil && !held:
		wrong("the TrafficRouting does not go")
	case leads && (canary == nil || len(route.Object["spec"].(map[string]any)["rules"].([]any)) != 2):
		wrong("traffic is not led: %v", route.Object["spec"])
	case leads && t.Status.Phase != v1alpha1.TrafficRoutingPhaseProgressing:
		wrong("the phase is %s", t.Status.Phase)
	case !leads && canary != nil:
		wrong("an Ingress is left")
	case !leads && cmp.Diff(users(s.edits), route.Object["spec"]) != "":
		wrong("the route is not as its users wrote it: %s", cmp.Diff(users(s.edits), route.Object["spec"]))
	case !leads && route.GetAnnotations()[keys.OriginalSpecConfiguration] != "":
		wrong("an annotation is left")
	case t != nil && t.DeletionTimestamp == nil && !leads && t.Status.Phase != v1alpha1.TrafficRoutingPhaseHealthy:
		wrong("the phase is %s", t.Status.Phase)
	}
	return problems
}
