package releases

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/controller/rollout"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const ruleLeads = "requests are led to Pods that are ready"

var (
	routeKind   = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}
	serviceKind = corev1.SchemeGroupVersion.WithKind("Service")
)

func emptyRoute() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(routeKind)
	return u
}

func userRoute() map[string]any {
	return map[string]any{"rules": []any{map[string]any{"backendRefs": []any{
		map[string]any{"name": "web", "weight": int64(3)}, map[string]any{"name": "other", "weight": int64(1)},
	}}}}
}

// populate creates what leads traffic.
func (p people) populate() {
	if !p.leads {
		return
	}
	p.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}},
	}})
	route := emptyRoute()
	route.SetName("web")
	route.SetNamespace("default")
	route.Object["spec"] = userRoute()
	p.create(route)
}

func (p people) route() *unstructured.Unstructured {
	return p.Cluster.Get(simulate.Key{Kind: routeKind, Namespace: "default", Name: "web"}).(*unstructured.Unstructured)
}

// lead has a Rollout lead traffic in each of its steps but the last.
func (p people) lead(r *v1beta1.Rollout) {
	if !p.leads {
		return
	}
	s := steer.StepsOf(&r.Spec.Strategy)
	s.TrafficRoutings = []v1beta1.TrafficRoutingRef{{
		Service: "web", GracePeriodSeconds: ptr.To(int32(1)), Gateway: &v1beta1.GatewayTrafficRouting{HTTPRouteName: ptr.To("web")},
	}}
	for i := range s.Steps[:2] {
		s.Steps[i].Traffic = ptr.To(fmt.Sprintf("%d%%", 10+10*p.Rand.Intn(5)))
	}
}

// untouched returns what is left of a release in what leads traffic.
func (p people) untouched() (problems []string) {
	if !p.leads {
		return nil
	}
	for _, object := range p.Cluster.Of(serviceKind) {
		s := object.(*corev1.Service)
		if s.Name != "web" || len(s.Spec.Selector) != 1 {
			problems = append(problems, fmt.Sprintf("at rest, Service %s selects %v", s.Name, s.Spec.Selector))
		}
	}
	route := p.route()
	if !equality.Semantic.DeepEqual(route.Object["spec"], userRoute()) {
		problems = append(problems, fmt.Sprintf("at rest, the route is %v", route.Object["spec"]))
	}
	return problems
}

// startRouted starts all controllers, the one of Rollouts with what leads traffic.
func startRouted(c promises.Connection, wrong func(*plan.Action)) simulate.Process {
	var tell observe.Listener
	var queue *simulate.Queue
	k := rollout.Kind(rollout.Options{Traffic: rollout.Routing{Listen: func(l observe.Listener) { tell = l }}})
	out := startWith(k, c, wrong)
	k.Asked(func(name types.NamespacedName) { queue.Add(reconcile.Request{NamespacedName: name}) })
	out[0].Ears = append(out[0].Ears, func(e simulate.Event, q *simulate.Queue) {
		if queue = q; e.Key.Kind == routeKind {
			tell(routeKind.GroupKind(), types.NamespacedName{Namespace: e.Key.Namespace, Name: e.Key.Name})
		}
	})
	return out
}

// roads are what leads traffic, up to a change.
type roads struct {
	services map[string]*corev1.Service
	// leads says that the route has a share for the new version.
	leads bool
}

func (r *roads) see(c simulate.Change) {
	if r.services == nil {
		r.services = map[string]*corev1.Service{}
	}
	switch c.Key.Kind {
	case serviceKind:
		delete(r.services, c.Key.Name)
		if s, is := c.After.(*corev1.Service); is {
			r.services[s.Name] = s
		}
	case routeKind:
		if u, is := c.After.(*unstructured.Unstructured); is {
			r.leads = shareOf(u, "web-canary") > 0
		}
	}
}

// shareOf returns the weight of a Service in a route.
func shareOf(route *unstructured.Unstructured, service string) (sum int64) {
	rules, _, _ := unstructured.NestedSlice(route.Object, "spec", "rules")
	for _, rule := range rules {
		refs, _, _ := unstructured.NestedSlice(rule.(map[string]any), "backendRefs")
		for _, ref := range refs {
			if name, _, _ := unstructured.NestedString(ref.(map[string]any), "name"); name != service {
				continue
			}
			weight, found, _ := unstructured.NestedInt64(ref.(map[string]any), "weight")
			if !found {
				weight = 1
			}
			sum += weight
		}
	}
	return sum
}

// broken says which Service gets requests and selects no Pod that is ready; empty if none does.
func (r *roads) broken(pods map[types.UID]*corev1.Pod) string {
	wanted := []string{"web"}
	if r.leads {
		wanted = append(wanted, "web-canary")
	}
	for _, name := range wanted {
		s := r.services[name]
		switch {
		case name == "web" && (s == nil || len(s.Spec.Selector) == 1): // it selects what its user wants, ready or not
		case s == nil:
			return "Service " + name + " is not there"
		case !selectsReady(s, pods):
			return fmt.Sprintf("Service %s selects %v", name, s.Spec.Selector)
		}
	}
	return ""
}

func selectsReady(s *corev1.Service, pods map[types.UID]*corev1.Pod) bool {
	for _, p := range pods {
		if p.DeletionTimestamp == nil && pod.IsReady(p) && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.Labels)) {
			return true
		}
	}
	return false
}
