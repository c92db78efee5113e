package rollouts

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// TestScenario19RollbackInBatches: with the annotation, the way back follows the steps, of a CloneSet whose Pods are made anew and of one
// whose Pods are updated in place, which keep the labels of the release before.
func TestScenario19RollbackInBatches(t *testing.T) {
	t.Parallel()
	for name, manifest := range map[string]string{
		"Pods are made anew":          fmt.Sprintf(cloneSet, 20, ""),
		"Pods are updated in place":   fmt.Sprintf(cloneSet, 20, "") + "  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}\n",
		"Pods of an ordered workload": fmt.Sprintf(statefulSet, 20),
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			of, setImage := ofCloneSet, e.setImage
			if name == "Pods of an ordered workload" {
				of, setImage = ofStatefulSet, e.setImageOfStatefulSet
			}
			e.start(manifest, rolloutOf(of, steps("20%", "50%", "100%")))
			e.change(func(r *v1beta1.Rollout) { r.Annotations = map[string]string{keys.RollbackInBatch: "true"} })
			setImage("v2")
			e.paused(1, "v2", 4)
			e.approve()
			e.paused(2, "v2", 10)
			setImage("v1")
			e.paused(1, "v1", 12)
			e.batchesOfRelease(map[string]int{"1": 4})
			e.approve()
			e.paused(2, "v1", 15)
			e.batchesOfRelease(map[string]int{"1": 4, "2": 6})
			e.approve()
			e.Eventually("the release is over", func() error {
				if r := e.rollout(); r.Status.Phase != v1beta1.RolloutPhaseHealthy {
					return fmt.Errorf("phase %s", r.Status.Phase)
				}
				return e.ready("v1", 20)
			})
			if of == ofCloneSet {
				e.over("v1", 20, corev1.ConditionTrue)
			}
			e.batchesOfRelease(map[string]int{"1": 4, "2": 6, "3": 10})
		})
	}
}

// batchesOfRelease waits until so many live Pods are of each batch of the release that the Rollout names.
func (e *env) batchesOfRelease(want map[string]int) {
	e.Helper()
	e.Eventually(fmt.Sprintf("Pods are of the batches %v", want), func() error {
		id, got := e.rollout().Status.CanaryStatus.ObservedRolloutID, map[string]int{}
		for _, p := range e.Pods() {
			if batch := p.Labels[keys.RolloutBatchID]; batch != "" && p.DeletionTimestamp == nil && p.Labels[keys.RolloutID] == id {
				got[batch]++
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("release %s (-want +got):\n%s", id, diff)
		}
		return nil
	})
}

// TestScenario8TrafficGoesBackBeforePods: the old template comes back while a route leads to as many new Pods as maxSurge says, so that the
// stable ReplicaSet is complete. No new Pod goes before the route leads to old ones alone, whoever writes the manifest meanwhile, and in
// the end the spec is the one before the release.
func TestScenario8TrafficGoesBackBeforePods(t *testing.T) {
	e := &deploymentEnv{env: newEnv(t)}
	e.routes()
	e.Make(service)
	e.Make(threeRules)
	e.beginWith(6, [2]string{"2", "0"}, rolloutOf(ofDeployment, "{replicas: 2, traffic: 20%}, {replicas: 100%}")+"      trafficRoutings: ["+byRoute+"]\n")
	before := e.deployment()
	w := e.watch("v2", 2)
	e.setImage("v2")
	e.paused(1, "v2", 2)
	back := e.followWayBack("v2")
	e.setImage("v1")
	e.Eventually("the route leads to old Pods alone", func() error {
		edit(e.env, "web", &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Template = *before.Spec.Template.DeepCopy() })
		if back.at("route") == 0 {
			return errors.New("it leads to new ones")
		}
		return nil
	})
	e.over("v1", 6, corev1.ConditionFalse)
	w.verdict()
	if pods, route := back.at("pods"), back.at("route"); pods == 0 || pods <= route {
		t.Errorf("the first new Pod went at revision %d, requests were led back at revision %d", pods, route)
	}
	if diff := cmp.Diff(before.Spec, e.deployment().Spec, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the spec is not that of before (-want +got):\n%s", diff)
	}
	e.untouched()
}

// wayBack is at which revisions of the cluster something happened first.
type wayBack struct {
	sync.Mutex
	first map[string]uint64
}

func (b *wayBack) note(what, revision string) {
	n, err := strconv.ParseUint(revision, 10, 64)
	b.Lock()
	defer b.Unlock()
	if _, noted := b.first[what]; err == nil && !noted {
		b.first[what] = n
	}
}

func (b *wayBack) at(what string) uint64 {
	b.Lock()
	defer b.Unlock()
	return b.first[what]
}

// followWayBack notes when the ReplicaSet of a version is first made smaller ("pods"), and when the route leads to none of its Pods
// ("route").
func (e *deploymentEnv) followWayBack(version string) *wayBack {
	e.Helper()
	b, size := &wayBack{first: map[string]uint64{}}, int32(0)
	follow := func(list client.ObjectList, hear func(watch.Event)) {
		stop, err := e.Follow(e.Ctx, list, e.Namespace, hear)
		e.Must(err)
		e.Cleanup(func() { _ = stop() })
	}
	follow(&appsv1.ReplicaSetList{}, func(event watch.Event) {
		rs, is := event.Object.(*appsv1.ReplicaSet)
		if !is || rs.Spec.Template.Spec.Containers[0].Image != "web:"+version {
			return
		}
		if *rs.Spec.Replicas < size {
			b.note("pods", rs.ResourceVersion)
		}
		size = *rs.Spec.Replicas
	})
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(httpRoute.GroupVersion().WithKind(httpRoute.Kind + "List"))
	follow(list, func(event watch.Event) {
		route, is := event.Object.(*unstructured.Unstructured)
		if is && !slices.ContainsFunc(backends(route, 0), func(b string) bool { return strings.HasPrefix(b, "web-canary ") }) {
			b.note("route", route.GetResourceVersion())
		}
	})
	return b
}
