package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/controller/batchrelease"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	ruleThere    = "routes lead only to Services that are there"
	ruleSelects  = "no Service that leads requests selects Pods that are gone, for longer than it takes to notice"
	ruleFirst    = "no new Pod gets requests that no step leads to it"
	ruleOriginal = "a route that is changed keeps what its user wrote"
)

// notice is how long the controller may take to notice that Pods are gone, with all faults.
const notice = 3 * time.Minute

// TestPromisesWithTraffic does what TestPromises does, with a Service, a route and an Ingress that others edit, too.
func TestPromisesWithTraffic(t *testing.T) { routedSuite(mistakes{}).Hold(t) }

// TestWhatBrokeOnceHoldsWithTraffic lets a cluster live again in which the template of a release came back in the moment between the decision
// to roll it back and the BatchRelease's letting go, and all Pods got it at once.
func TestWhatBrokeOnceHoldsWithTraffic(t *testing.T) { routedSuite(mistakes{}).Again(t, 154) }

// TestRunsWithTrafficRepeat checks that a failure could be repeated.
func TestRunsWithTrafficRepeat(t *testing.T) { routedSuite(mistakes{}).Repeat(t) }

// TestMistakesWithTrafficShow makes mistakes on purpose: the checks of TestPromisesWithTraffic must see each of them.
func TestMistakesWithTrafficShow(t *testing.T) {
	for name, tc := range map[string]struct {
		made mistakes
		want string
	}{
		"it forgets to restore routes":     {mistakes{plan: instead(release.RestoreRoutes)}, "at rest"},
		"it forgets to unpin the Service":  {mistakes{plan: instead(release.Unpin)}, "at rest"},
		"it forgets to remove the Service": {mistakes{plan: instead(release.RemoveService)}, "at rest"},
		"it does not keep the original":    {mistakes{plan: promises.Misplan(Plan, forgetful)}, ruleOriginal},
		"it removes the Service first":     {mistakes{plan: instead(release.RestoreRoutes, release.Action{Do: release.RemoveService})}, ruleThere},
		"it updates Pods before it pins": {mistakes{plan: func(v State) plan.Plan {
			if v.Batch == nil { // later it does what it should: a release that never ends would only take long
				return instead(release.Pin, release.Action{Do: release.Upgrade, Step: 1})(v)
			}
			return Plan(v)
		}}, ruleFirst},
		"it does not notice that old Pods are gone": {mistakes{plan: func(v State) plan.Plan {
			v.facts.NoneOld = false
			v.decide(release.Seen{Now: v.Now, Batch: v.batch(), Workload: &v.facts.Workload, Traffic: v.Routes.Seen()})
			return Plan(v)
		}}, ruleSelects},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			routedSuite(tc.made).Break(t, tc.want)
		})
	}
}

// instead plans other actions in the place of each with a verb.
func instead(of release.Verb, others ...release.Action) func(State) plan.Plan {
	return func(v State) plan.Plan {
		var out []release.Action
		for _, a := range v.decision.Do {
			if a.Do == of {
				out = append(out, others...)
			} else {
				out = append(out, a)
			}
		}
		v.decision.Do = out
		return Plan(v)
	}
}

func forgetful(a *plan.Action) {
	if u, is := a.After.(*unstructured.Unstructured); is {
		annotations := u.GetAnnotations()
		delete(annotations, keys.OriginalSpecConfiguration)
		u.SetAnnotations(annotations)
	}
}

var (
	routeKind   = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}
	serviceKind = corev1.SchemeGroupVersion.WithKind("Service")
	ingressKind = networkingv1.SchemeGroupVersion.WithKind("Ingress")
)

func emptyRoute() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(routeKind)
	return u
}

// routedSuite is suite with traffic.
func routedSuite(made mistakes) promises.Suite {
	out := suite(made)
	out.Scheme = promises.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme)
	out.Watched = append(out.Watched, &corev1.Service{}, &networkingv1.Ingress{}, emptyRoute(), &corev1.ConfigMap{}, &v1alpha1.TrafficRouting{})
	out.Populate = func(w *promises.World) promises.Scenario {
		s := &routedScenario{scenario: scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}}}
		s.change = s.lead
		s.create(newSet())
		s.create(s.newRollout())
		s.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}},
		}})
		route := emptyRoute()
		route.SetName("web")
		route.SetNamespace("default")
		route.Object["spec"] = userRoute(0)
		s.create(route)
		s.create(newIngress())
		return promises.Scenario{
			Start: func(c promises.Connection) simulate.Process { return startRouted(made, c) },
			Act:   s.act, Relent: s.relent, Others: []func() bool{s.work, s.approveLate}, Check: checkTraffic, Converged: s.converged,
		}
	}
	return out
}

// startRouted starts both controllers, the one of Rollouts with what leads traffic.
func startRouted(made mistakes, c promises.Connection) simulate.Process {
	var tell observe.Listener
	var queue *simulate.Queue
	k := Kind(Options{Traffic: Routing{Listen: func(l observe.Listener) { tell = l }}})
	if made.plan != nil {
		k.Plan = made.plan
	}
	p := promises.Start(k, c.Runtime(), c)
	k.Asked(func(name types.NamespacedName) { queue.Add(reconcile.Request{NamespacedName: name}) })
	p.Ears = append(p.Ears, func(e simulate.Event, q *simulate.Queue) {
		if queue = q; e.Key.Kind == routeKind {
			tell(routeKind.GroupKind(), types.NamespacedName{Namespace: e.Key.Namespace, Name: e.Key.Name})
		}
	})
	return both{p, promises.Start(batchrelease.Kind(batchrelease.Options{}), c.Runtime(), c)}
}

// userRoute is the route as its users wrote it, after so many edits.
func userRoute(edits int) map[string]any {
	return map[string]any{"edits": int64(edits), "rules": []any{map[string]any{"backendRefs": []any{
		map[string]any{"name": "web", "weight": int64(3)}, map[string]any{"name": "other", "weight": int64(1)},
	}}}}
}

func newIngress() *networkingv1.Ingress {
	return &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: networkingv1.IngressSpec{
		Rules: []networkingv1.IngressRule{{Host: "a", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: ptr.To(networkingv1.PathTypePrefix), Backend: networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}},
			}}},
		}}}},
	}}
}

// routedScenario is a scenario with traffic.
type routedScenario struct {
	scenario
	edits int
}

// plan gives a Rollout other steps.
func (s *scenario) plan(r *v1beta1.Rollout) {
	r.Spec.Strategy.Canary.Steps = s.steps()
	if s.change != nil {
		s.change(r)
	}
}

// lead has a Rollout lead traffic, by a weight or by a match, in each of its steps but sometimes one.
func (s *routedScenario) lead(r *v1beta1.Rollout) {
	canary := r.Spec.Strategy.Canary
	canary.TrafficRoutings = []v1beta1.TrafficRoutingRef{{
		Service: "web", GracePeriodSeconds: ptr.To(int32(s.Rand.Intn(3))), Ingress: &v1beta1.IngressTrafficRouting{Name: "web", ClassType: "nginx"},
		Gateway: &v1beta1.GatewayTrafficRouting{HTTPRouteName: ptr.To("web")},
	}}
	for i := range canary.Steps {
		step := &canary.Steps[i]
		switch s.Rand.Intn(4) {
		case 0:
		case 1:
			step.Matches = []v1beta1.HTTPRouteMatch{{Headers: []v1beta1.HTTPHeaderMatch{{Name: "user", Value: "beta"}}}}
		default:
			step.Traffic = ptr.To(fmt.Sprintf("%d%%", 10*(1+s.Rand.Intn(10))))
		}
	}
}

func (s *routedScenario) act() {
	if r := s.rollout(); r != nil && r.Status.CurrentStepState == v1beta1.StepStatePaused && s.Chance(10) { // which has led traffic
		s.image("app:" + strings.TrimPrefix(commonOf(&r.Status).StableRevision, "web-"))
		return
	}
	route, is := s.Cluster.Get(simulate.Key{Kind: routeKind, Namespace: "default", Name: "web"}).(*unstructured.Unstructured)
	if !is || !s.Chance(10) {
		s.scenario.act()
		return
	}
	s.edits++
	simulate.Update(s.Cluster, promises.UserActor, route, func(u *unstructured.Unstructured) {
		u.Object["spec"].(map[string]any)["edits"] = int64(s.edits)
	})
}

func (s *routedScenario) converged() []string {
	problems := s.scenario.converged()
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("at rest, "+format, args...))
	}
	for _, kind := range []schema.GroupVersionKind{serviceKind, ingressKind} {
		if n := len(s.Cluster.Of(kind)); n != 1 {
			wrong("there are %d of kind %s", n, kind.Kind)
		}
	}
	key := simulate.Key{Kind: serviceKind, Namespace: "default", Name: "web"}
	if diff := cmp.Diff(map[string]string{"app": "web"}, s.Cluster.Get(key).(*corev1.Service).Spec.Selector); diff != "" {
		wrong("the Service is not as its user wrote it: %s", diff)
	}
	key.Kind = routeKind
	route := s.Cluster.Get(key).(*unstructured.Unstructured)
	if diff := cmp.Diff(userRoute(s.edits), route.Object["spec"]); diff != "" || len(route.GetAnnotations()) > 0 {
		wrong("the route is not as its users wrote it: %v %s", route.GetAnnotations(), diff)
	}
	return problems
}

// watched is what a history has come to.
type watched struct {
	pods    map[string]*corev1.Pod
	service *corev1.Service
	canary  *corev1.Service
	route   *unstructured.Unstructured
	set     *appsv1beta1.CloneSet
	rollout *v1beta1.Rollout
	// stranded is since when the Service selects none of the Pods that there are.
	stranded time.Time
}

// checkTraffic returns the promises that the controllers have broken in a history.
func checkTraffic(history []simulate.Change) []invariant.Violation {
	out := check(history)
	w := watched{pods: map[string]*corev1.Pod{}}
	for _, c := range history {
		before := w
		w.see(c)
		broken := func(rule, format string, args ...any) {
			out = append(out, invariant.Violation{Rule: rule, Revision: c.Revision, Text: fmt.Sprintf(format, args...)})
		}
		switch {
		case !w.strands():
			w.stranded = time.Time{}
		case w.stranded.IsZero():
			w.stranded = c.Time
		case c.Time.Sub(w.stranded) > notice:
			broken(ruleSelects, "the Service selects %v, of which there are none since %s", w.service.Spec.Selector, w.stranded.Format(time.TimeOnly))
			w.stranded = time.Time{}
		}
		if c.Pass == nil || c.Late {
			continue
		}
		if leads(w.route) && w.canary == nil && (before.canary != nil || !leads(before.route)) {
			broken(ruleThere, "the route leads to web-canary")
		}
		if leads(w.route) && c.Key.Kind == routeKind && w.route.GetAnnotations()[keys.OriginalSpecConfiguration] == "" {
			broken(ruleOriginal, "%v", w.route.Object["spec"])
		}
		w.checkSet(c, broken)
	}
	return out
}

// checkSet checks a change of the workload.
func (w *watched) checkSet(c simulate.Change, broken func(rule, format string, args ...any)) {
	was, is := c.Before.(*appsv1beta1.CloneSet)
	now, still := c.After.(*appsv1beta1.CloneSet)
	if !is || !still || w.rollout == nil || keptOf(now) >= keptOf(was) {
		return
	}
	at := commonOf(&w.rollout.Status)
	if at == nil || w.rollout.Status.Phase != v1beta1.RolloutPhaseProgressing || reasonOf(&w.rollout.Status) != v1beta1.ReasonInRolling {
		return
	}
	if at.CurrentStepIndex == 1 && w.firstLeads(at) && w.service.Spec.Selector[keys.PodTemplateHash] == "" && keptOf(now) > 0 {
		broken(ruleFirst, "the Service selects new Pods at step 1: %v", w.service.Spec.Selector)
	}
}

// firstLeads reports whether the release that is under way, whose steps nobody has changed, begins by leading traffic, and has no new Pod
// yet.
func (w *watched) firstLeads(at *v1beta1.CommonStatus) bool {
	steps := w.rollout.Spec.Strategy.Canary.Steps
	for _, p := range w.pods {
		if p.Labels[appsv1.ControllerRevisionHashLabelKey] == w.set.Status.UpdateRevision {
			return false
		}
	}
	return release.Hash(steps) == at.RolloutHash && release.Route(steps[0]) != ""
}

// see takes note of a change.
func (w *watched) see(c simulate.Change) {
	switch c.Key.Kind {
	case serviceKind:
		service, _ := c.After.(*corev1.Service)
		if c.Key.Name == "web" {
			w.service = service
		} else {
			w.canary = service
		}
	case routeKind:
		w.route, _ = c.After.(*unstructured.Unstructured)
	case setKind:
		w.set, _ = c.After.(*appsv1beta1.CloneSet)
	case rolloutKind:
		w.rollout, _ = c.After.(*v1beta1.Rollout)
	case corev1.SchemeGroupVersion.WithKind("Pod"):
		delete(w.pods, c.Key.Name)
		if c.After != nil {
			w.pods[c.Key.Name] = c.After.(*corev1.Pod)
		}
	}
}

// strands reports whether the workload has its Pods, and the Service selects none of them.
func (w *watched) strands() bool {
	if w.service == nil || w.set == nil {
		return false
	}
	active := int32(0)
	for _, p := range w.pods {
		if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed {
			continue
		}
		if pinned := w.service.Spec.Selector[keys.PodTemplateHash]; pinned == "" || pinned == p.Labels[keys.PodTemplateHash] {
			return false
		}
		active++
	}
	return active > 0 && active >= *w.set.Spec.Replicas
}

// leads reports whether a route leads to the Service of the new version.
func leads(route *unstructured.Unstructured) bool {
	if route == nil {
		return false
	}
	rules, _, _ := unstructured.NestedSlice(route.Object, "spec", "rules")
	for _, rule := range rules {
		refs, _, _ := unstructured.NestedSlice(rule.(map[string]any), "backendRefs")
		for _, ref := range refs {
			if ref.(map[string]any)["name"] == "web-canary" {
				return true
			}
		}
	}
	return false
}
