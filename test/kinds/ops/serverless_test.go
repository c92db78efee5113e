package ops

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// healthy is the marker of these tests, and told what the provider of a virtual node reads of it.
const (
	healthy = `{selector: {matchLabels: {app: game}}, probes: [{name: healthy, containerName: main, podConditionType: game.kruise.io/healthy,
  probe: {exec: {command: [bash, /data/probe.sh]}},
  markerPolicy: [{state: Succeeded, labels: {healthy: "yes"}}, {state: Failed, annotations: {sick: "true"}}]}]}`
	told = `[{"name":"healthy","containerName":"main","probe":{"exec":{"command":["bash","/data/probe.sh"]}},"podConditionType":"game.kruise.io/healthy"}]`
)

// virtualNode makes a node without a machine, and so without a daemon.
func (e *env) virtualNode() string {
	e.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "virtual-of-" + e.Namespace, Labels: map[string]string{keys.NodeType: keys.NodeTypeVirtual}},
	}
	e.Must(e.Client.Create(e.Ctx, node))
	return node.Name
}

func game(namespace, name, node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "game"}}}
	p.Spec.NodeName, p.Spec.Containers = node, []corev1.Container{{Name: "main", Image: "image"}}
	return p
}

// answers has the provider of a virtual node write what a probe has come to.
func (e *env) answers(p *corev1.Pod, status corev1.ConditionStatus) {
	e.Helper()
	before := p.DeepCopy()
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
		{Type: "game.kruise.io/healthy", Status: status, LastTransitionTime: metav1.Now()},
	}
	e.Must(e.Client.Status().Patch(e.Ctx, p, client.StrategicMergeFrom(before)))
}

// TestProvidersOfVirtualNodesAskInPlaceOfDaemons: they are told at the creation of a Pod, and what they answer is acted on.
func TestProvidersOfVirtualNodesAskInPlaceOfDaemons(t *testing.T) {
	e := newEnv(t)
	node := e.virtualNode()
	early := game(e.Namespace, "early", node)
	e.Must(e.Client.Create(e.Ctx, early))
	marker := e.mark("m", healthy)
	e.Eventually("Pods of the marker are sent to the manager", func() error {
		try := game(e.Namespace, "try", node)
		if err := e.Client.Create(e.Ctx, try, client.DryRunAll); err != nil {
			return err
		}
		if got := try.Annotations[keys.PodProbes]; got != told {
			return fmt.Errorf("the Pod says %q", got)
		}
		return nil
	})
	p := game(e.Namespace, "p", node)
	e.Must(e.Client.Create(e.Ctx, p))
	e.expect("probes", p.Annotations[keys.PodProbes], told)
	e.expect("markers", p.Annotations[keys.PodProbeMarkers], "m")
	e.Eventually("a Pod that was there before is told of, too", func() error {
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(early), early))
		if got := early.Annotations[keys.PodProbes]; got != told {
			return fmt.Errorf("it says %q", got)
		}
		return nil
	})

	began := time.Now()
	e.answers(p, corev1.ConditionTrue)
	e.Eventually("the answer yes is acted on", func() error {
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(p), p))
		if p.Labels["healthy"] != "yes" || p.Annotations["sick"] != "" {
			return fmt.Errorf("labels %v, annotations %v", p.Labels, p.Annotations)
		}
		return nil
	})
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s, want it at once", took)
	}
	e.answers(p, corev1.ConditionFalse)
	e.Eventually("the answer no is acted on", func() error {
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(p), p))
		if p.Labels["healthy"] != "" || p.Annotations["sick"] != "true" {
			return fmt.Errorf("labels %v, annotations %v", p.Labels, p.Annotations)
		}
		return nil
	})
	if err := e.Client.Get(e.Ctx, client.ObjectKey{Name: node}, &v1alpha1.NodePodProbe{}); !apierrors.IsNotFound(err) {
		t.Errorf("a virtual node has a NodePodProbe: %v", err)
	}
	e.AtRest(2*time.Second, "a Pod at rest", func() string {
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(p), p))
		return p.ResourceVersion
	})

	e.Must(e.Client.Delete(e.Ctx, marker))
	e.Eventually("what is not asked any more is not told any more", func() error {
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(p), p))
		if _, still := p.Annotations[keys.PodProbes]; still {
			return fmt.Errorf("annotations %v", p.Annotations)
		}
		return nil
	})
	e.Eventually("the marker goes", func() error {
		if err := e.Client.Get(e.Ctx, client.ObjectKeyFromObject(marker), marker); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// TestNodesThatComeAfterTheirPods: a Pod that is bound before there is a NodePodProbe is asked once there is one.
func TestNodesThatComeAfterTheirPods(t *testing.T) {
	e := newEnv(t)
	e.script().says("ask", 0, "fine", "")
	e.mark("m", `{selector: {matchLabels: {app: p}}, probes: [
  {name: a, containerName: main, podConditionType: example.com/a, probe: {exec: {command: [ask]}, periodSeconds: 1}}]}`)
	node := &corev1.Node{}
	e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Name: e.node.Name}, node))
	// The API server takes a Pod for a node that it does not know yet.
	e.Must(e.Client.Delete(e.Ctx, node))
	e.Eventually("nothing is asked there", func() error {
		if _, err := e.asks(); !apierrors.IsNotFound(err) {
			return fmt.Errorf("there is a NodePodProbe: %w", err)
		}
		return nil
	})
	p := e.runPod("p", nil, "main")
	time.Sleep(500 * time.Millisecond)
	if _, err := e.asks(); !apierrors.IsNotFound(err) {
		t.Fatalf("there is a NodePodProbe without a node: %v", err)
	}
	began := time.Now()
	e.Must(e.Client.Create(e.Ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}))
	e.eventuallyAsks("p m#a")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s, want it at once", took)
	}
	// The rights of a daemon are those of a node of that UID: the new one has a daemon of its own.
	e.killDaemon()
	e.startDaemon()
	e.eventuallyShows(p, "example.com/a", "True fine")

	// By hand.
	e.Must(e.Client.Delete(e.Ctx, &v1alpha1.NodePodProbe{ObjectMeta: objectMeta(node.Name)}))
	e.Eventually("it is made again with all that is asked and answered", func() error {
		n := &v1alpha1.NodePodProbe{}
		if err := e.Client.Get(e.Ctx, client.ObjectKey{Name: node.Name}, n); err != nil {
			return err
		}
		if len(n.Spec.PodProbes) != 1 || len(n.Status.PodProbeStatuses) != 1 {
			return errors.New("it is empty")
		}
		return nil
	})
}
