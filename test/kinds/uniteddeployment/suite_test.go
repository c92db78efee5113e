// Package uniteddeployment runs UnitedDeployments, as a user would have them, on a real control plane with simulated nodes: one cluster and one manager
// for all tests, and for each a namespace and, where it needs them, nodes of its own.
package uniteddeployment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// shared is the cluster of all tests. The lease of a manager that was killed must not keep the next one waiting.
var shared = &scene.Site{Name: "united", Options: cluster.Options{Nodes: 12}, Args: []string{"--enable-leader-election=false", "--v=1"}}

func TestMain(m *testing.M) { scene.Main(m, shared) }

// env is a namespace of the shared cluster, for one test.
type env struct{ *scene.Env }

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	e := &env{shared.Enter(t)}
	e.Describe = e.describe
	return e
}

func (e *env) describe() string {
	var out strings.Builder
	for _, p := range e.Pods() {
		fmt.Fprintf(&out, "Pod %s %s on %q labels=%v\n", p.Name, p.Status.Phase, p.Spec.NodeName, p.Labels)
	}
	var sets v1beta1.UnitedDeploymentList
	if err := e.Client.List(context.WithoutCancel(e.Ctx), &sets, client.InNamespace(e.Namespace)); err == nil {
		for i := range sets.Items {
			text, _ := yaml.Marshal(sets.Items[i].Status)
			fmt.Fprintf(&out, "UnitedDeployment %s\n%s", sets.Items[i].Name, text)
		}
	}
	return out.String()
}

// templates are templates of each kind, for Pods of an image.
func template(field, image string) string {
	return "{" + field + `: {metadata: {labels: {app: web}}, spec: {selector: {matchLabels: {app: web}},
    template: {metadata: {labels: {app: web}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: app, image: "` + image + `"}]}}}}}`
}

// create makes a UnitedDeployment web.
func (e *env) create(replicas int, template, rest string) {
	e.Helper()
	e.Make(fmt.Sprintf(`
apiVersion: apps.kruise.io/v1beta1
kind: UnitedDeployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template: %s
  %s
`, replicas, template, rest))
}

func (e *env) set() *v1beta1.UnitedDeployment {
	e.Helper()
	set := &v1beta1.UnitedDeployment{}
	e.Read("web", set)
	return set
}

// patch changes the UnitedDeployment by a merge patch, as YAML.
func (e *env) patch(text string) {
	e.Helper()
	e.patchOf(e.set(), text)
}

func (e *env) patchOf(o client.Object, text string) {
	e.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	e.Must(err)
	e.Must(e.Client.Patch(e.Ctx, o, client.RawPatch(types.MergePatchType, raw)))
}

// workloads returns the workloads of the UnitedDeployment, by the names of their subsets. Two of one subset are an error.
func (e *env) workloads(list client.ObjectList) map[string]client.Object {
	e.Helper()
	e.Must(e.Client.List(e.Ctx, list, client.InNamespace(e.Namespace), client.HasLabels{keys.SubsetName}))
	out := map[string]client.Object{}
	add := func(o client.Object) {
		if owner := o.GetOwnerReferences(); len(owner) == 1 && owner[0].Kind == "UnitedDeployment" {
			out[o.GetLabels()[keys.SubsetName]] = o
		}
	}
	switch list := list.(type) {
	case *appsv1.DeploymentList:
		for i := range list.Items {
			add(&list.Items[i])
		}
	case *appsv1.StatefulSetList:
		for i := range list.Items {
			add(&list.Items[i])
		}
	case *v1beta1.CloneSetList:
		for i := range list.Items {
			add(&list.Items[i])
		}
	case *v1beta1.StatefulSetList:
		for i := range list.Items {
			add(&list.Items[i])
		}
	}
	return out
}

// ready returns the numbers of ready Pods of the subsets, such as "a=1 b=3".
func (e *env) ready(isWanted func(*corev1.Pod) bool) string {
	e.Helper()
	return readyOf(e.Pods(), isWanted)
}

// readyOf returns how many of some Pods are ready and wanted, by subset.
func readyOf(pods []corev1.Pod, isWanted func(*corev1.Pod) bool) string {
	counts := map[string]int{}
	for _, p := range pods {
		if scene.IsReady(&p) && p.DeletionTimestamp == nil && isWanted(&p) {
			counts[p.Labels[keys.SubsetName]]++
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%s=%d", name, counts[name]))
	}
	return strings.Join(out, " ")
}

func all(*corev1.Pod) bool { return true }

func runs(image string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image == image }
}

// settles waits until the subsets have so many ready Pods, and the status says so.
func (e *env) settles(want string) {
	e.Helper()
	e.Eventually("the Pods are ready: "+want, func() error {
		if got := e.ready(all); got != want {
			return fmt.Errorf("%s are", got)
		}
		set := e.set()
		total := int32(0)
		for _, of := range strings.Fields(want) {
			var subset int32
			_, err := fmt.Sscanf(of[strings.Index(of, "=")+1:], "%d", &subset)
			e.Must(err)
			total += subset
		}
		if s := set.Status; s.ObservedGeneration != set.Generation || s.ReadyReplicas != total || s.Replicas != total {
			return fmt.Errorf("the status says %+v", s)
		}
		return nil
	})
}

func (e *env) condition(t v1beta1.UnitedDeploymentConditionType) string {
	for _, c := range e.set().Status.Conditions {
		if c.Type == t {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}
