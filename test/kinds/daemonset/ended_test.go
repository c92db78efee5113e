package daemonset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// end has the Pod of a node end, as a kubelet says that refuses it or whose containers are done.
func (e *env) end(p *corev1.Pod, phase corev1.PodPhase) {
	e.Helper()
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"phase":%q}}`, p.UID, phase)
	e.Must(e.Client.Status().Patch(e.Ctx, p, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// running waits until a Pod runs on the node that none of the known ones is, and returns it.
func (e *env) running(node string, known map[types.UID]bool) *corev1.Pod {
	e.Helper()
	var found *corev1.Pod
	e.Eventually("another Pod runs on "+node, func() error {
		for _, p := range e.pods() {
			if nodeOf(&p) == node && p.Status.Phase == corev1.PodRunning && !known[p.UID] {
				found = &p
				return nil
			}
		}
		return fmt.Errorf("none does")
	})
	known[found.UID] = true
	return found
}

// replaced waits until a Pod is deleted, and returns how long that took.
func (e *env) replaced(p *corev1.Pod) time.Duration {
	e.Helper()
	began := time.Now()
	e.Eventually(p.Name+" is deleted", func() error {
		if slices.Contains(uids(e.pods()), string(p.UID)) {
			return fmt.Errorf("it is there")
		}
		return nil
	})
	return time.Since(began)
}

// told counts the events of a reason on the DaemonSet; one that was seen several times counts as often.
func (e *env) told(reason string) int {
	e.Helper()
	var list corev1.EventList
	e.Must(e.Client.List(e.Ctx, &list, client.InNamespace(e.Namespace)))
	n := 0
	for _, event := range list.Items {
		if event.InvolvedObject.Name == "agent" && event.Reason == reason && event.Source.Component == "daemonset-controller" {
			n += int(max(event.Count, 1))
		}
	}
	return n
}

// TestPodsThatFailAreReplacedMoreAndMoreSlowly has the kubelet of a node refuse one Pod after the other.
func TestPodsThatFailAreReplacedMoreAndMoreSlowly(t *testing.T) {
	e := newEnv(t, 2)
	e.Make(e.manifest("{}"))
	e.settled(2, 2)
	node, other := e.Nodes[0], e.podOn(e.Nodes[1]).UID
	known := map[types.UID]bool{}
	fail := func() time.Duration {
		p := e.running(node, known)
		e.end(p, corev1.PodFailed)
		return e.replaced(p)
	}
	fail()
	began := time.Now()
	for range 3 {
		fail()
	}
	// The first is deleted at once, the others 1, 2 and 4 s after the one before.
	if took := time.Since(began); took < 6*time.Second || took > 30*time.Second {
		t.Errorf("three more Pods that failed were deleted within %s, want 7 s", took)
	}
	e.Eventually("each is told of", func() error {
		if n := e.told("FailedDaemonPod"); n != 4 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	if e.podOn(e.Nodes[1]).UID != other {
		t.Error("the other node's Pod was replaced")
	}

	// What the user changes may be what mends it: the next one is replaced at once, where 8 s would be due.
	e.running(node, known)
	e.edit(image("nginx:1.28"))
	e.settled(2, 2)
	clear(known)
	if took := fail(); took > 7*time.Second {
		t.Errorf("after a change, the first Pod that failed was deleted after %s", took)
	}
	e.settled(2, 2)
}

func TestPodsThatAreDoneAreReplaced(t *testing.T) {
	e := newEnv(t, 1)
	e.Make(e.manifest("{}"))
	e.settled(1, 1)
	known := map[types.UID]bool{}
	p := e.running(e.Nodes[0], known)
	e.end(p, corev1.PodSucceeded)
	e.replaced(p)
	e.settled(1, 1)
	next := e.podOn(e.Nodes[0])
	e.Eventually("it is told of", func() error {
		if n := e.told("SucceededDaemonPod"); n != 1 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	e.Always(2*time.Second, "it is replaced once", func() error {
		if now := e.podOn(e.Nodes[0]); now.UID != next.UID {
			return fmt.Errorf("%s is another one", now.Name)
		}
		return nil
	})
}

// TestAPodThatHasEndedAndCannotGoLeavesNoHole has something hold a Pod that failed.
func TestAPodThatHasEndedAndCannotGoLeavesNoHole(t *testing.T) {
	e := newEnv(t, 1)
	e.Make(e.manifest("{}"))
	e.settled(1, 1)
	p := e.podOn(e.Nodes[0])
	before := p.DeepCopy()
	p.Finalizers = []string{"example.com/held"}
	e.Must(e.Client.Patch(e.Ctx, p, mergeFrom(before)))
	e.end(p, corev1.PodFailed)
	e.running(e.Nodes[0], map[types.UID]bool{p.UID: true})
	e.Eventually("the node has an available Pod beside the one that is held", func() error {
		if s := e.set().Status; s.NumberAvailable != 1 || len(e.allPods()) != 2 {
			return fmt.Errorf("%d are available, %d Pods are there", s.NumberAvailable, len(e.allPods()))
		}
		return nil
	})
	e.Must(e.Client.Patch(e.Ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	e.settled(1, 1)
}

// tolerant is a DaemonSet whose Pods are wanted on dead nodes, too.
func (e *env) tolerant(strategy string) string {
	return strings.Replace(e.manifest(strategy), "nodeSelector:", "tolerations: [{operator: Exists}]\n      nodeSelector:", 1)
}

// TestAPodThatWaitsForANodeThatIsGone has a node that no Pod fits on, so that its Pod waits when the node is deleted.
func TestAPodThatWaitsForANodeThatIsGone(t *testing.T) {
	e := newEnv(t, 1)
	e.Make(e.tolerant("{}"))
	e.settled(1, 1)
	full := &corev1.Node{}
	full.Name = "full-" + e.Namespace
	full.Labels = map[string]string{scene.Pool: e.Namespace}
	e.Must(e.Client.Create(e.Ctx, full))
	e.Eventually("its Pod waits for it", func() error {
		pods := e.pods()
		if len(pods) != 2 {
			return fmt.Errorf("%d Pods are there", len(pods))
		}
		for _, p := range pods {
			if nodeOf(&p) == full.Name && p.Spec.NodeName == "" && p.Status.Phase == corev1.PodPending {
				return nil
			}
		}
		return fmt.Errorf("none waits")
	})
	e.Must(e.Client.Delete(e.Ctx, full))
	var set *v1beta1.DaemonSet
	e.Eventually("the Pod is gone with its node", func() error {
		set = e.set()
		if n := len(e.allPods()); n != 1 || set.Status.DesiredNumberScheduled != 1 {
			return fmt.Errorf("%d Pods are there, %d wanted", n, set.Status.DesiredNumberScheduled)
		}
		return nil
	})
}
