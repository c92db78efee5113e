package workloadspread

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// system is the namespace of the configuration.
const system = "kruise-system"

// TestOtherKinds is scenarios 11 and 12: kinds that the configuration lists, of which one makes Pods and the other makes ReplicaSets.
func TestOtherKinds(t *testing.T) {
	e := newEnv(t)
	for kind, plural := range map[string]string{"Training": "trainings", "Rollout": "rollouts"} {
		crd := e.Manifest(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.spread.example.com}
spec:
  group: spread.example.com
  names: {kind: %[1]s, plural: %[2]s}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]`, kind, plural))
		e.makeGlobal(crd)
	}
	e.makeGlobal(e.Manifest(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: spread-example},
		rules: [{apiGroups: [spread.example.com], resources: [trainings, rollouts], verbs: [get]}]}`))
	e.makeGlobal(e.Manifest(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: spread-example},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: spread-example},
		subjects: [{kind: ServiceAccount, name: kruise-manager, namespace: kruise-system}]}`))
	config := e.In(system).Manifest(`{apiVersion: v1, kind: ConfigMap, metadata: {name: kruise-configuration}, data: {WorkloadSpread_Watch_Custom_Workload_WhiteList:
		'{"workloads":[{"Group":"spread.example.com","Kind":"Training","podDeletionCost":true},{"Group":"spread.example.com","Version":"v1","Kind":"Rollout","subResources":[{"Group":"apps","Kind":"ReplicaSet"}]}]}'}}`)
	e.Must(e.Client.Create(e.Ctx, config))
	e.CleanUp(config)
	training := e.owner("Training", "train", map[string]any{"workers": int64(4)})
	filtered := e.Manifest(spreadOf("spread.example.com/v1", "Training", "train", "a=50%", "b"))
	e.Must(unstructured.SetNestedMap(filtered.Object, map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"role": "worker"}}, "replicasPathList": []any{"spec.workers"},
	}, "spec", "targetFilter"))
	e.Eventually("the configuration counts", func() error { return e.Client.Create(e.Ctx, filtered.DeepCopy()) })
	for i := range 6 {
		p := newPod(e)
		p.OwnerReferences = []metav1.OwnerReference{training}
		if p.Labels = map[string]string{"role": "worker"}; i >= 4 {
			p.Labels["role"] = "server"
		}
		e.Must(e.Client.Create(e.Ctx, p))
	}
	e.Eventually("only the workers are counted", func() error {
		s := e.read("train").Status.SubsetStatuses
		if len(s) != 2 || s[0].Replicas != 2 || s[1].Replicas != 2 {
			return fmt.Errorf("the status is %+v", s)
		}
		if got := e.subsets(); got["a"] != 2 || got["b"] != 2 || got[""] != 2 {
			return fmt.Errorf("the subsets are %v", got)
		}
		return nil
	})
	e.costs(map[string][]string{"a": {"200", "200"}, "b": {"100", "100"}, "": {"", ""}})
	e.rollout()
}

// rollout is a kind that makes ReplicaSets.
func (e *env) rollout() {
	e.Helper()
	for _, p := range e.Pods() {
		e.Must(e.Client.Delete(e.Ctx, &p, client.GracePeriodSeconds(0)))
	}
	owner := e.owner("Rollout", "roll", map[string]any{"replicas": int64(3)})
	e.over("spread.example.com/v1", "Rollout", "roll", "a=1", "b")
	e.workload("apps/v1", "ReplicaSet", "made-by-roll", 0)
	set := &appsv1.ReplicaSet{}
	e.Read("made-by-roll", set)
	before := set.DeepCopy()
	set.OwnerReferences = []metav1.OwnerReference{owner}
	set.Spec.Replicas = new(int32(3))
	e.Must(e.Client.Patch(e.Ctx, set, client.MergeFrom(before)))
	e.spreads("roll", map[string]int{"a": 1, "b": 2})
}

// owner makes an object of a kind, and returns how it owns others.
func (e *env) owner(kind, name string, spec map[string]any) metav1.OwnerReference {
	e.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion("spread.example.com/v1")
	o.SetKind(kind)
	o.SetNamespace(e.Namespace)
	o.SetName(name)
	e.Eventually("there is a kind "+kind, func() error { return e.Client.Create(e.Ctx, o) })
	return *metav1.NewControllerRef(o, o.GroupVersionKind())
}

func (e *env) makeGlobal(o *unstructured.Unstructured) {
	e.Helper()
	o.SetNamespace("")
	e.Must(e.Client.Create(e.Ctx, o))
	e.CleanUp(o)
}

// TestAuthors: who may not create Pods can't have them patched, and who may not delete them can't have them moved.
func TestAuthors(t *testing.T) {
	e := newEnv(t)
	e.Make(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: author}, rules: [{apiGroups: [apps.kruise.io], resources: [workloadspreads], verbs: ["*"]}]}`)
	e.Make(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: author}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: author},
		subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: author}]}`)
	config := rest.CopyConfig(e.Config)
	config.Impersonate.UserName = "author"
	author, err := client.New(config, client.Options{Scheme: e.Client.Scheme()})
	e.Must(err)
	plain := strings.ReplaceAll(spreadOf(clone, "CloneSet", "web", "a=1", "b"), "\n    patch: ", "\n    #")
	for what, tc := range map[string]struct{ text, want string }{
		"patches": {spreadOf(clone, "CloneSet", "web", "a=1", "b"), "may not create pods"},
		"moves":   {plain + "\n  scheduleStrategy: {type: Adaptive}", "may not delete pods"},
		"surplus": {plain + "\n  surplusPolicy: Move", "may not delete pods"},
		"neither": {plain, ""},
	} {
		e.Eventually(what+" is answered", func() error {
			err := author.Create(e.Ctx, e.Manifest(tc.text), client.DryRunAll)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				return fmt.Errorf("answered %v, want %q", err, tc.want) //nolint:errorlint // there may be none
			}
			return nil
		})
	}
}

// TestWithoutAManagersAnswer creates Pods that the webhook is not asked about, as when no manager answers: they are there, and taken over.
func TestWithoutAManagersAnswer(t *testing.T) {
	e := newEnv(t)
	e.over(clone, "CloneSet", "web", "a=1", "b", "c", "drain")
	e.workload(clone, "CloneSet", "web", 0)
	p := e.podOf("web")
	p.Annotations = map[string]string{"apps.kruise.io/matched-workloadspread": "{}"} // the webhook leaves it alone
	e.scale(clone, "CloneSet", "web", 1)
	e.Must(e.Client.Create(e.Ctx, p))
	e.Eventually("each Pod is in the subset of its node", func() error {
		for _, p := range e.active() {
			node := &corev1.Node{}
			if p.Spec.NodeName == "" {
				return errors.New("one has no node")
			}
			e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Name: p.Spec.NodeName}, node))
			if text := p.Annotations["apps.kruise.io/matched-workloadspread"]; !strings.Contains(text, fmt.Sprintf(`"subset":%q`, node.Labels["zone"])) {
				return fmt.Errorf("Pod %s in zone %s is in %s", p.Name, node.Labels["zone"], text)
			}
		}
		return nil
	})
}
