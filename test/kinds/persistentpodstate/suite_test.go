// Package persistentpodstate has Pods come back to where they ran, as a user would have it, on a real control plane with simulated nodes: one cluster
// and one manager for all tests, and for each a namespace and nodes of its own.
package persistentpodstate

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

const (
	host = "kubernetes.io/hostname"
	zone = "topology.kubernetes.io/zone"
)

// shared is the cluster of all tests. Nodes are not given back: tests cordon and delete theirs.
var shared = &scene.Site{Name: "place", Options: cluster.Options{Nodes: 30}, Args: []string{"--enable-leader-election=false"}}

func TestMain(m *testing.M) { scene.Main(m, shared) }

// env is a namespace and nodes for one test.
type env struct{ *scene.Env }

// newEnv returns a namespace with nodes in zones a, b and so on, one in each.
func newEnv(t *testing.T, nodes int) *env {
	t.Helper()
	t.Parallel()
	e := &env{shared.Enter(t)}
	e.Describe = e.describe
	for i := range nodes {
		name := e.AddNode()
		e.EditNode(name, func(n *corev1.Node) { n.Labels[zone] = string(rune('a' + i)) })
	}
	return e
}

func (e *env) describe() string {
	var out strings.Builder
	var states v1beta1.PersistentPodStateList
	if err := e.List(context.Background(), &states, client.InNamespace(e.Namespace)); err != nil {
		return err.Error()
	}
	for i := range states.Items {
		text, err := yaml.Marshal(states.Items[i].Status)
		fmt.Fprintf(&out, "PersistentPodState %s: %s %v\n", states.Items[i].Name, text, err)
	}
	for _, p := range e.Pods() {
		fmt.Fprintf(&out, "Pod %s on %q %s deleted=%v selector=%v affinity=%v annotations=%v %+v\n",
			p.Name, p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp, p.Spec.NodeSelector, p.Spec.Affinity, p.Annotations, p.Status.Conditions)
	}
	return out.String()
}

// wishes are annotations that ask for a required zone and a preferred host, and for the annotation ip to be recorded.
const wishes = `{kruise.io/auto-generate-persistent-pod-state: "true", kruise.io/required-persistent-topology: topology.kubernetes.io/zone,
	kruise.io/preferred-persistent-topology: kubernetes.io/hostname, kruise.io/persistent-pod-annotations: ip}`

// newSet creates a StatefulSet web on the nodes of the test, with annotations and further fields of its spec.
func (e *env) newSet(apiVersion string, replicas int, annotations string, more ...string) {
	e.Helper()
	e.Make(fmt.Sprintf(`{apiVersion: %s, kind: StatefulSet, metadata: {name: web, annotations: %s}, spec: {
		replicas: %d, serviceName: web, podManagementPolicy: Parallel, selector: {matchLabels: {app: web}}, %s template: {
			metadata: {labels: {app: web}}, spec: {terminationGracePeriodSeconds: 0, nodeSelector: {%s: %s}, containers: [{name: app, image: "nginx:1"}]}}}}`,
		apiVersion, annotations, replicas, strings.Join(more, " "), scene.Pool, e.Namespace))
}

// newState creates a PersistentPodState named pps for StatefulSet web of ours, with further fields of its spec.
func (e *env) newState(more string) {
	e.Helper()
	e.Make(`{apiVersion: apps.kruise.io/v1beta1, kind: PersistentPodState, metadata: {name: pps}, spec: {
		targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, name: web}, ` + more + `}}`)
}

const (
	requiredHost  = `requiredPersistentTopology: {keys: [kubernetes.io/hostname]}`
	preferredHost = `preferredPersistentTopology: [{weight: 100, preference: {keys: [kubernetes.io/hostname]}}]`
)

func (e *env) patchSet(apiVersion, patch string) {
	e.Helper()
	json, err := yaml.YAMLToJSON([]byte(patch))
	e.Must(err)
	set := e.Manifest(`{apiVersion: ` + apiVersion + `, kind: StatefulSet, metadata: {name: web}}`)
	e.Must(e.Client.Patch(e.Ctx, set, client.RawPatch(types.MergePatchType, json)))
}

const ours = "apps.kruise.io/v1beta1"

func (e *env) scale(replicas int) { e.patchSet(ours, fmt.Sprintf("{spec: {replicas: %d}}", replicas)) }

// recorded waits until just these Pods are recorded by the PersistentPodState of a name, and returns the records.
func (e *env) recorded(name string, pods ...string) map[string]v1beta1.PodState {
	e.Helper()
	state := &v1beta1.PersistentPodState{}
	e.Eventually(fmt.Sprintf("%s has records of %v", name, pods), func() error {
		if err := e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, state); err != nil {
			return err
		}
		for _, p := range pods {
			if _, ok := state.Status.PodStates[p]; !ok {
				return fmt.Errorf("none of %s", p)
			}
		}
		if len(state.Status.PodStates) != len(pods) || int(state.Status.Recorded) != len(pods) {
			return fmt.Errorf("there are %d, and it says %d", len(state.Status.PodStates), state.Status.Recorded)
		}
		return nil
	})
	return state.Status.PodStates
}

// pod waits until a Pod is ready that is not one of before, and returns it.
func (e *env) pod(name string, before ...types.UID) *corev1.Pod {
	e.Helper()
	p := &corev1.Pod{}
	e.Eventually("Pod "+name+" is ready", func() error {
		if err := e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, p); err != nil {
			return err
		}
		for _, uid := range before {
			if p.UID == uid {
				return fmt.Errorf("it is the one before")
			}
		}
		if p.DeletionTimestamp != nil || !scene.IsReady(p) {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	return p
}

// isSent waits until new Pods of a workload are sent to the manager.
func (e *env) isSent(workload string) {
	e.Helper()
	e.Eventually("new Pods of "+workload+" are sent", func() error {
		var configuration admissionv1.MutatingWebhookConfiguration
		if err := e.Get(e.Ctx, client.ObjectKey{Name: "kruise-mutating-webhook-configuration"}, &configuration); err != nil {
			return err
		}
		for _, w := range configuration.Webhooks {
			for _, c := range w.MatchConditions {
				if strings.Contains(c.Expression, e.Namespace+"/"+workload) {
					return nil
				}
			}
		}
		return fmt.Errorf("no webhook asks for them")
	})
	e.HeedsWebhooks(e.Client, e.Namespace)
}

// recreated deletes a Pod, and returns the next one of its name, which is ready.
func (e *env) recreated(p *corev1.Pod) *corev1.Pod {
	e.Helper()
	e.Must(e.Client.Delete(e.Ctx, p))
	return e.pod(p.Name, p.UID)
}

// prefers returns the values that a Pod prefers of a node label.
func prefers(p *corev1.Pod, key string) []string {
	var out []string
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil {
		return nil
	}
	for _, term := range p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		for _, e := range term.Preference.MatchExpressions {
			if e.Key == key {
				out = append(out, e.Values...)
			}
		}
	}
	return out
}

func (e *env) isBound(p *corev1.Pod, state string) {
	e.Helper()
	if p.Annotations[keys.InjectedPodState] != state {
		e.Errorf("Pod %s is bound by %q, want %q", p.Name, p.Annotations[keys.InjectedPodState], state)
	}
}

func (e *env) cordon(node string) {
	e.EditNode(node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
}

// isGone waits until there is no PersistentPodState of a name.
func (e *env) isGone(name string) {
	e.Helper()
	e.Eventually(name+" is gone", func() error {
		err := e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, &v1beta1.PersistentPodState{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
}
