package protection

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// guardOfWeb is the budget of all Pods with the label app=web; the number is maxUnavailable.
const guardOfWeb = `
apiVersion: policy.kruise.io/v1beta1
kind: PodUnavailableBudget
metadata: {name: guard}
spec:
  selector: {matchLabels: {app: web}}
  maxUnavailable: %d`

// workload makes a workload named web of Kruise, whose own strategy lets all Pods be updated at once, and waits until they are available.
func (e *env) workload(kind, update string, replicas int) client.Object {
	e.Helper()
	made := e.Make(fmt.Sprintf(`
apiVersion: apps.kruise.io/v1beta1
kind: %s
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  updateStrategy: {rollingUpdate: {podUpdatePolicy: %s, maxUnavailable: 100%%}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: app, image: "nginx:1"}]`, kind, replicas, update))
	e.Eventually("its Pods are available", func() error {
		if n := len(e.available()); n != replicas {
			return fmt.Errorf("%d of %d are", n, replicas)
		}
		return nil
	})
	return made
}

// guard makes the budget, and waits until it allows what it says.
func (e *env) guard(maxUnavailable, of int32) {
	e.Helper()
	e.Make(fmt.Sprintf(guardOfWeb, maxUnavailable))
	e.counts("guard", disruption.Counts{Allowed: maxUnavailable, Current: of, Desired: of - maxUnavailable, Total: of})
	e.Eventually("its Pods are linked", func() error {
		for _, p := range e.Pods() {
			if disruption.Related(p.Annotations) != "guard" {
				return fmt.Errorf("%s has %v", p.Name, p.Annotations)
			}
		}
		return nil
	})
}

// patch changes an object by a merge patch.
func (e *env) patch(o client.Object, patch string) {
	e.Helper()
	e.Must(e.Client.Patch(e.Ctx, o, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func (e *env) setImage(workload client.Object, image string) {
	e.Helper()
	e.patch(workload, `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"`+image+`"}]}}}}`)
}

// images returns how many Pods want each image of a container.
func (e *env) images(container string) map[string]int {
	e.Helper()
	out := map[string]int{}
	for _, p := range e.Pods() {
		for _, c := range p.Spec.Containers {
			if c.Name == container {
				out[c.Image]++
			}
		}
	}
	return out
}

// updated waits until so many Pods are available with an image.
func (e *env) updated(image string, want int) {
	e.Helper()
	e.Eventually(fmt.Sprintf("%d Pods run %s", want, image), func() error {
		n := 0
		for _, p := range e.available() {
			if slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Image == image }) {
				n++
			}
		}
		if n != want {
			return fmt.Errorf("%d do", n)
		}
		return nil
	})
}

// fewest follows the Pods; the returned function stops and says how many have been available at the least.
func (e *env) fewest() func() int {
	e.Helper()
	var mu sync.Mutex
	available := map[string]bool{}
	least := len(e.Pods())
	stop, err := e.Follow(e.Ctx, &corev1.PodList{}, e.Namespace, func(event watch.Event) {
		mu.Lock()
		defer mu.Unlock()
		p := event.Object.(*corev1.Pod)
		available[p.Name] = event.Type != watch.Deleted && disruption.Available(p)
		if event.Type == watch.Added {
			return // of the first Pods, which come one after the other, and of new ones, which change nothing
		}
		n := 0
		for _, is := range available {
			if is {
				n++
			}
		}
		least = min(least, n)
	})
	e.Must(err)
	return func() int {
		e.Helper()
		e.Must(stop())
		return least
	}
}

// waitsQuietly checks that the events of the workload tell of the budget, and of no failure.
func (e *env) waitsQuietly() {
	e.Helper()
	e.Eventually("an event tells that the update waits for the budget", func() error {
		for _, event := range e.Events("web") {
			if event.Reason == apply.EventWaits && strings.Contains(event.Message, "PodUnavailableBudget guard") {
				return nil
			}
		}
		return fmt.Errorf("the events are %v", e.Reasons("web"))
	})
	for _, event := range e.Events("web") {
		// On a machine that is busy, the API server may wait for the webhook in vain: the budget has refused nothing then.
		if strings.HasPrefix(event.Reason, "Failed") && !strings.Contains(event.Message, "failed calling webhook") {
			e.Errorf("event %s: %s", event.Reason, event.Message)
		}
	}
}

// TestABadImageGoesNoFurtherThanTheBudget, and a better one follows it.
func TestABadImageGoesNoFurtherThanTheBudget(t *testing.T) {
	e := newEnv(t)
	web := e.workload("CloneSet", "InPlaceIfPossible", 5)
	e.guard(2, 5)
	stop := e.fewest()
	e.setImage(web, "nginx:fail-pull")
	e.Eventually("two Pods get it", func() error {
		if n := e.images("app")["nginx:fail-pull"]; n != 2 {
			return fmt.Errorf("%d have", n)
		}
		return nil
	})
	// Longer than the permissions last: then the state of the Pods keeps the others from following.
	e.Always(disruption.UnavailableFor+scene.QuietPeriod, "no third Pod gets it", func() error {
		if n := e.images("app")["nginx:fail-pull"]; n != 2 {
			return fmt.Errorf("%d have", n)
		}
		return nil
	})
	e.waitsQuietly()
	e.setImage(web, "nginx:2")
	e.updated("nginx:2", 5)
	if least := stop(); least != 3 {
		t.Errorf("%d Pods were available at the least, want 3", least)
	}
}

// TestAnUpdateWaitsForItsBudget: with none allowed nothing is written to any Pod; once one is, the update goes on within seconds.
func TestAnUpdateWaitsForItsBudget(t *testing.T) {
	for name, tc := range map[string]struct{ kind, update string }{
		"a CloneSet in place":           {"CloneSet", "InPlaceIfPossible"},
		"a CloneSet, Pods made anew":    {"CloneSet", "ReCreate"},
		"a StatefulSet in place":        {"StatefulSet", "InPlaceIfPossible"},
		"a StatefulSet, Pods made anew": {"StatefulSet", "ReCreate"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			web := e.workload(tc.kind, tc.update, 3)
			e.guard(0, 3)
			stop := e.fewest()
			e.setImage(web, "nginx:2")
			e.waitsQuietly()
			e.Always(scene.QuietPeriod, "no Pod changes", func() error {
				if n := len(e.available()); n != 3 || e.images("app")["nginx:1"] != 3 {
					return fmt.Errorf("%d are available, images %v", n, e.images("app"))
				}
				return nil
			})
			e.patch(e.budget("guard"), `{"spec":{"maxUnavailable":1}}`)
			began := time.Now()
			e.updated("nginx:2", 3)
			t.Logf("the update took %s once it was allowed", time.Since(began))
			if least := stop(); least != 2 {
				t.Errorf("%d Pods were available at the least, want 2", least)
			}
		})
	}
}

// TestUpdatesOfAppAndSidecarShareABudget: a CloneSet and a SidecarSet begin at the same moment, each of which would take all Pods at once.
func TestUpdatesOfAppAndSidecarShareABudget(t *testing.T) {
	e := newEnv(t)
	set := e.Manifest(fmt.Sprintf(`
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: web}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  updateStrategy: {type: RollingUpdate, maxUnavailable: 100%%}
  containers: [{name: log, image: "log:1"}]`, e.Namespace))
	set.SetNamespace("")
	e.Must(e.Client.Create(e.Ctx, set))
	e.CleanUp(set)
	web := e.workload("CloneSet", "InPlaceIfPossible", 6)
	if n := e.images("log")["log:1"]; n != 6 {
		t.Fatalf("%d Pods have the sidecar", n)
	}
	e.guard(1, 6)
	stop := e.fewest()
	e.setImage(web, "nginx:2")
	e.patch(set, `{"spec":{"containers":[{"name":"log","image":"log:2"}]}}`)
	e.updated("nginx:2", 6)
	e.updated("log:2", 6)
	if least := stop(); least != 5 {
		t.Errorf("%d Pods were available at the least, want 5", least)
	}
}

// TestScaleInIsNoDisruption: what a workload does not want any more goes, as soon as it is not wanted, and nothing is said to have failed.
func TestScaleInIsNoDisruption(t *testing.T) {
	e := newEnv(t)
	web := e.workload("CloneSet", "InPlaceIfPossible", 8)
	e.guard(1, 8)
	e.patch(web, `{"spec":{"replicas":2}}`)
	e.Eventually("6 Pods are gone", func() error {
		if n := len(e.Pods()); n != 2 {
			return fmt.Errorf("%d are there", n)
		}
		return nil
	})
	e.counts("guard", disruption.Counts{Allowed: 1, Current: 2, Desired: 1, Total: 2})
	for _, event := range e.Events("web") {
		// On a machine that is busy, the API server may wait for the webhook in vain: the budget has refused nothing then.
		if strings.HasPrefix(event.Reason, "Failed") && !strings.Contains(event.Message, "failed calling webhook") {
			e.Errorf("event %s: %s", event.Reason, event.Message)
		}
	}
}

// TestADrainFinishes: kubectl tries again while the budget has it wait.
func TestADrainFinishes(t *testing.T) {
	e := newEnv(t)
	first, second := e.AddNode(), e.AddNode()
	e.EditNode(second, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	e.Make(fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, drained: %[2]s}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeSelector: {%[1]s: %[2]s}
      containers: [{name: app, image: "nginx:1"}]`, scene.Pool, e.Namespace))
	e.Eventually("its Pods are available", func() error {
		if n := len(e.available()); n != 3 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	e.guard(1, 3)
	stop := e.fewest()
	e.EditNode(second, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	// Pods of other tests may be on the node, too.
	out, err := e.Kubectl(e.Ctx, "drain", first, "--pod-selector=drained="+e.Namespace, "--timeout=110s")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	e.Eventually("all Pods are on the other node", func() error {
		for _, p := range e.available() {
			if p.Spec.NodeName != second {
				return fmt.Errorf("%s is on %s", p.Name, p.Spec.NodeName)
			}
		}
		if n := len(e.available()); n != 3 {
			return fmt.Errorf("%d are available", n)
		}
		return nil
	})
	if least := stop(); least < 2 {
		t.Errorf("%d Pods were available at the least, want 2", least)
	}
}
