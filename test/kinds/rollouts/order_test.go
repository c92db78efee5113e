package rollouts

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// timeline keeps every version of objects since it began. What was stored first is told by resource versions, which etcd counts over all
// kinds.
type timeline struct {
	sync.Mutex
	env      *env
	versions []stored
	stops    []func() error
}

// stored is a version of an object, or its end.
type stored struct {
	at      uint64
	deleted bool
	client.Object
}

// record begins a timeline of all objects of some kinds in the test's namespace.
func (e *env) record(lists ...client.ObjectList) *timeline {
	e.Helper()
	l := &timeline{env: e}
	for _, list := range lists {
		stop, err := e.Follow(e.Ctx, list, e.Namespace, l.see)
		e.Must(err)
		l.stops = append(l.stops, stop)
	}
	return l
}

func (l *timeline) see(event watch.Event) {
	o, is := event.Object.(client.Object)
	if !is {
		return
	}
	at, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(err) // since Kubernetes 1.35 it is a number
	}
	l.Lock()
	defer l.Unlock()
	l.versions = append(l.versions, stored{at, event.Type == watch.Deleted, o})
}

// end stops recording, once all that was stored is there.
func (l *timeline) end() {
	l.env.Helper()
	for _, stop := range l.stops {
		l.env.Must(stop())
	}
}

// ordered returns what was stored, in that order.
func (l *timeline) ordered() []stored {
	l.Lock()
	defer l.Unlock()
	return slices.SortedStableFunc(slices.Values(l.versions), func(a, b stored) int { return cmp.Compare(a.at, b.at) })
}

// first returns the resource version by which something became so.
func (l *timeline) first(what string, is func(stored) bool) uint64 {
	l.env.Helper()
	all := l.ordered()
	i := slices.IndexFunc(all, is)
	if i < 0 {
		l.env.Fatalf("it never was so that %s\n%s", what, l.env.describe())
	}
	return all[i].at
}

// routeLists are HTTPRoutes to record.
func routeLists() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(httpRoute.GroupVersion().WithKind("HTTPRouteList"))
	return list
}

func isPodOf(version string) func(stored) bool {
	return func(s stored) bool {
		p, is := s.Object.(*corev1.Pod)
		return is && strings.HasSuffix(p.Spec.Containers[0].Image, ":"+version)
	}
}

// selects tells whether the user's Service selects Pods of one revision alone, and of which.
func selects(s stored) (hash string, is bool) {
	service, isService := s.Object.(*corev1.Service)
	if !isService || service.Name != "web" || s.deleted {
		return "", false
	}
	return service.Spec.Selector["pod-template-hash"], true
}

// workloads start ten Pods that are released in batches, with a route of which one rule leads to them.
func workloads() map[string]func(e *env, steps string) {
	prepare := func(e *env) {
		e.Helper()
		e.routes()
		e.Make(service)
		e.Make(threeRules)
	}
	return map[string]func(*env, string){
		"CloneSet": func(e *env, steps string) {
			prepare(e)
			e.start(fmt.Sprintf(cloneSet, 10, ""), routed(steps, byRoute))
		},
		"Deployment": func(e *env, steps string) {
			prepare(e)
			d := &deploymentEnv{env: e}
			d.beginWith(10, [2]string{"25%", "25%"}, rolloutOf(ofDeployment, steps)+"      trafficRoutings: ["+byRoute+"]\n")
		},
	}
}

// setImageOf gives a workload another version of its image.
func (e *env) setImageOf(kind, version string) {
	e.Helper()
	switch kind {
	case "CloneSet":
		e.setImage(version)
	case "DaemonSet":
		(&daemonEnv{e}).setImage(version)
	default:
		(&deploymentEnv{env: e}).setImage(version)
	}
}

// TestScenario7PinnedBeforeTheFirstPod: the write by which the Service selects old Pods alone is before that of the first new Pod.
func TestScenario7PinnedBeforeTheFirstPod(t *testing.T) {
	t.Parallel()
	for kind, start := range workloads() {
		t.Run(kind, func(t *testing.T) {
			e := newEnv(t)
			start(e, "{replicas: 1, matches: [{headers: [{name: user, value: beta}]}]}, {replicas: 100%}")
			l := e.record(&corev1.ServiceList{}, &corev1.PodList{})
			e.setImageOf(kind, "v2")
			e.paused(1, "v2", 1)
			l.end()
			pinned := l.first("the Service selects old Pods alone", func(s stored) bool {
				hash, is := selects(s)
				return is && hash != ""
			})
			if pod := l.first("a new Pod is there", isPodOf("v2")); pod < pinned {
				t.Errorf("the first new Pod was stored as version %d, and the Service that does not select it as %d", pod, pinned)
			}
		})
	}
}

// TestScenario8TrafficGoesBackFirst: the route leads to the old version alone before the first new Pod is deleted, and the condition says
// that the release is being cancelled.
func TestScenario8TrafficGoesBackFirst(t *testing.T) {
	t.Parallel()
	for kind, start := range workloads() {
		t.Run(kind, func(t *testing.T) {
			e := newEnv(t)
			start(e, "{replicas: 1, traffic: 10%}, {replicas: 50%, traffic: 50%}, {replicas: 100%}")
			before := e.untyped(httpRoute, "web").Object["spec"]
			e.setImageOf(kind, "v2")
			e.paused(1, "v2", 1)
			e.approve()
			e.paused(2, "v2", 5)
			l := e.record(routeLists(), &corev1.PodList{}, &v1beta1.RolloutList{})
			e.setImageOf(kind, "v1")
			e.Eventually("the release is over", func() error {
				r := e.rollout()
				if c := condition(r, v1beta1.ConditionSucceeded); r.Status.Phase != v1beta1.RolloutPhaseHealthy || c == nil || c.Status != corev1.ConditionFalse {
					return fmt.Errorf("phase %s, Succeeded %+v", r.Status.Phase, c)
				}
				return e.ready("v1", 10)
			})
			l.end()
			l.first("the condition says Cancelling", func(s stored) bool {
				r, is := s.Object.(*v1beta1.Rollout)
				if !is {
					return false
				}
				c := condition(r, v1beta1.ConditionProgressing)
				return c != nil && c.Status == corev1.ConditionTrue && c.Reason == v1beta1.ReasonCancelling
			})
			restored := l.first("the route leads to the old version alone", func(s stored) bool {
				route, is := s.Object.(*unstructured.Unstructured)
				return is && !strings.Contains(fmt.Sprint(route.Object["spec"]), "web-canary")
			})
			gone := l.first("a new Pod is deleted", func(s stored) bool {
				return isPodOf("v2")(s) && (s.deleted || s.GetDeletionTimestamp() != nil)
			})
			if gone < restored {
				t.Errorf("the first new Pod was deleted as version %d, and the route restored as %d", gone, restored)
			}
			e.untouched()
			if diff := gocmp.Diff(before, e.untyped(httpRoute, "web").Object["spec"]); diff != "" {
				t.Errorf("the route is not what its user wrote (-want +got):\n%s", diff)
			}
		})
	}
}

// TestScenario10NoTrafficForTheVersionBetween: while a third version takes the place of the second, the user's Service selects Pods of the
// first alone at every moment, and the route leads to the others only once they are of the third.
func TestScenario10NoTrafficForTheVersionBetween(t *testing.T) {
	t.Parallel()
	for kind, start := range workloads() {
		t.Run(kind, func(t *testing.T) {
			e := newEnv(t)
			start(e, "{replicas: 1, traffic: 10%}, {replicas: 50%, traffic: 50%}, {replicas: 100%}")
			e.setImageOf(kind, "v2")
			e.paused(1, "v2", 1)
			e.approve()
			e.paused(2, "v2", 5)
			first, second := e.selector("web")["pod-template-hash"], e.selector("web-canary")["pod-template-hash"]
			l := e.record(&corev1.ServiceList{}, routeLists())
			e.setImageOf(kind, "v3")
			e.paused(1, "v3", 1)
			for name, version := range map[string]string{"web": "v1", "web-canary": "v3"} {
				if diff := gocmp.Diff(e.ofVersion(version), e.selected(name)); diff != "" {
					t.Errorf("Service %s does not select the Pods of %s (-want +got):\n%s", name, version, diff)
				}
			}
			l.end()
			leads, restored, to := true, false, second
			for _, v := range l.ordered() {
				if hash, is := selects(v); is && hash != first {
					t.Errorf("the Service selects %q, and the first version is %s", hash, first)
				}
				switch o := v.Object.(type) {
				case *unstructured.Unstructured:
					leads = strings.Contains(fmt.Sprint(o.Object["spec"]), "web-canary")
					restored = restored || !leads
				case *corev1.Service:
					if o.Name != "web-canary" {
						continue
					}
					if to = o.Spec.Selector["pod-template-hash"]; v.deleted {
						to = "nothing"
					}
				}
				if leads && (to == "nothing" || restored && to == second) {
					t.Errorf("at version %d the route leads to a Service that selects %s", v.at, to)
				}
			}
			if !restored {
				t.Error("the route was never restored")
			}
			e.setImageOf(kind, "v1")
			e.Eventually("the release is over", func() error { return e.ready("v1", 10) })
			e.untouched()
		})
	}
}
