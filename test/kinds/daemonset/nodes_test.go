package daemonset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

func TestEveryNodeThatFitsRunsAPod(t *testing.T) {
	e := newEnv(t, 5)
	tainted := e.Nodes[2]
	e.taint(tainted, corev1.TaintEffectNoSchedule)
	e.Make(e.manifest("{}"))
	e.settled(4, 4)
	for _, p := range e.pods() {
		if nodeOf(&p) != p.Spec.NodeName || p.Spec.NodeName == tainted {
			t.Errorf("%s is pinned to %s and runs on %s", p.Name, nodeOf(&p), p.Spec.NodeName)
		}
		if n := len(p.Spec.Tolerations); n != 6 {
			t.Errorf("%s has %d tolerations, want 6", p.Name, n)
		}
		if hash := e.set().Status.UpdateRevision; p.Labels["controller-revision-hash"] != hash {
			t.Errorf("%s is labelled %s, want %s", p.Name, p.Labels["controller-revision-hash"], hash)
		}
	}
	// Tolerating the taint is a new template, with which the tainted node gets its Pod.
	e.edit(func(set *v1beta1.DaemonSet) {
		set.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}
	})
	e.settled(5, 5)
}

func TestNodesComeAndAreTainted(t *testing.T) {
	e := newEnv(t, 3)
	e.Make(e.manifest("{}"))
	e.settled(3, 3)
	e.AddNode()
	e.settled(4, 4)

	node := e.Nodes[1]
	before := e.podOn(node)
	e.taint(node, corev1.TaintEffectNoSchedule)
	set := e.settled(3, 3)
	if after := e.podOn(node); after.UID != before.UID || set.Status.NumberMisscheduled != 1 {
		t.Errorf("the Pod of a node that is tainted against new Pods was replaced, or is not counted: misscheduled %d", set.Status.NumberMisscheduled)
	}
	e.taint(node, corev1.TaintEffectNoExecute)
	e.Eventually("the Pod leaves the node", func() error {
		if pods := e.allPods(); len(pods) != 3 {
			return fmt.Errorf("%d Pods", len(pods))
		}
		return nil
	})
	e.EditNode(node, func(n *corev1.Node) { n.Spec.Taints = nil })
	e.settled(4, 4)
	// A node that leaves the selection loses its Pod.
	e.EditNode(node, func(n *corev1.Node) { delete(n.Labels, scene.Pool) })
	e.settled(3, 3)
}

func TestBurst(t *testing.T) {
	e := newEnv(t, 6)
	e.Make(e.manifest("{}", "burstReplicas: 1%"))
	e.settled(6, 6)
}

func TestCreationByPartition(t *testing.T) {
	e := newEnv(t, 5)
	e.Make(e.manifest(`{partition: 80%}`, "scaleStrategy: {partitionedScaling: true}"))
	first := func(n int) func() error {
		return func() error {
			var got []string
			for _, p := range e.allPods() {
				got = append(got, nodeOf(&p))
			}
			if fmt.Sprint(got) != fmt.Sprint(e.Nodes[:n]) {
				return fmt.Errorf("%v have a Pod, want %v", got, e.Nodes[:n])
			}
			return nil
		}
	}
	e.Eventually("one node has its Pod", first(1))
	e.Always(2*time.Second, "no other node gets one", first(1))
	e.edit(strategy(`{partition: 40%}`))
	e.Eventually("three nodes have their Pod", first(3))
	e.edit(func(set *v1beta1.DaemonSet) { set.Spec.ScaleStrategy = nil })
	e.settled(5, 5)
}

func TestPreDeleteHook(t *testing.T) {
	e := newEnv(t, 3)
	text := e.manifest("{maxUnavailable: 1}", `lifecycle: {preDelete: {labelsHandler: {example.com/hook: "yes"}}}`)
	e.Make(text)
	e.settled(3, 3)
	hook := func(p *corev1.Pod, set bool) {
		e.Helper()
		before := p.DeepCopy()
		delete(p.Labels, "example.com/hook")
		if set {
			p.Labels["example.com/hook"] = "yes"
		}
		e.Must(e.Client.Patch(e.Ctx, p, mergeFrom(before)))
	}
	for _, p := range e.pods() {
		hook(&p, true)
	}
	held := uids(e.pods())
	e.edit(image("nginx:1.28"))
	last := e.Nodes[2]
	waits := func() error {
		n := 0
		for _, p := range e.pods() {
			if p.Labels["lifecycle.apps.kruise.io/state"] == "PreparingDelete" {
				n++
			}
		}
		if n != 1 || e.podOn(last).Labels["lifecycle.apps.kruise.io/state"] != "PreparingDelete" {
			return fmt.Errorf("%d Pods wait", n)
		}
		return nil
	}
	e.Eventually("the last node's Pod waits for its hook", waits)
	e.Always(2*time.Second, "no other does", waits)
	e.same("Pods", held, uids(e.pods()))
	hook(e.podOn(last), false)
	e.Eventually("it is replaced, and the next one waits", func() error {
		if got := e.updatedNodes("nginx:1.28"); len(got) != 1 || got[0] != last {
			return fmt.Errorf("%v are updated", got)
		}
		if e.podOn(e.Nodes[1]).Labels["lifecycle.apps.kruise.io/state"] != "PreparingDelete" {
			return fmt.Errorf("the next one does not wait")
		}
		return nil
	})
	// Going back to the template that the waiting Pod has makes it wanted again.
	e.edit(image("nginx:1.27"))
	e.Eventually("the waiting Pod is back in service", func() error {
		if state := e.podOn(e.Nodes[1]).Labels["lifecycle.apps.kruise.io/state"]; state == "PreparingDelete" {
			return fmt.Errorf("it waits")
		}
		return nil
	})
	e.settled(3, 3)
}

func TestExamplesAreAccepted(t *testing.T) {
	e := newEnv(t, 0)
	e.AcceptsExamples("daemonset-*.yaml")
}

// TestMistakesAreRefused: by the schema, by the webhook, and by the API server's own rules for templates.
func TestMistakesAreRefused(t *testing.T) {
	e := newEnv(t, 0)
	for name, tc := range map[string]struct{ manifest, want string }{
		"both limits":        {e.manifest("{maxUnavailable: 1, maxSurge: 1}"), "spec.updateStrategy.rollingUpdate.maxSurge"},
		"surge in place":     {e.manifest("{rollingUpdateType: InPlaceIfPossible, maxSurge: 1}"), "must be 0 for InPlaceIfPossible type"},
		"more than all":      {e.manifest("{maxUnavailable: 101%}"), "spec.updateStrategy.rollingUpdate.maxUnavailable"},
		"a burst of none":    {e.manifest("{}", "burstReplicas: 0"), "spec.burstReplicas"},
		"a template of none": {strings.Replace(e.manifest("{}"), `containers: [{name: app, image: "nginx:1.27"}]`, "containers: []", 1), "spec.template.spec.containers"},
		"the other labels":   {strings.Replace(e.manifest("{}"), "selector: {matchLabels: {app: agent}}", "selector: {matchLabels: {app: other}}", 1), "spec.template.metadata.labels"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tc.manifest), &o.Object); err != nil {
				t.Fatal(err)
			}
			o.SetNamespace(e.Namespace)
			err := e.Client.Create(e.Ctx, o, client.DryRunAll)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("answered %v, want a refusal that says %s", err, tc.want)
			}
		})
	}
}
