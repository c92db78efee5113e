package inject

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// as returns a client of another user. The user may create Pods in the namespace of the test.
func (e *env) as(user string) client.Client {
	e.Helper()
	meta := metav1.ObjectMeta{Namespace: e.Namespace, Name: "pods-of-" + user}
	pods := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "pods/ephemeralcontainers"}, Verbs: []string{"*"}}
	e.Must(e.Create(e.Ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{pods}}))
	e.Must(e.Create(e.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}))
	config := rest.CopyConfig(shared.Config)
	config.Impersonate.UserName = user
	c, err := client.New(config, client.Options{Scheme: e.Scheme()})
	e.Must(err)
	e.Eventually("the user has the rights", func() error { return c.List(e.Ctx, &corev1.PodList{}, client.InNamespace(e.Namespace)) })
	return c
}

// TestNothingThatATenantWritesLeavesOutSidecars: the API server resets much of a new Pod only after it was admitted, and takes the rest as it
// is. None of it is a reason to create a Pod without the sidecars and the launch order that are due.
func TestNothingThatATenantWritesLeavesOutSidecars(t *testing.T) {
	e := newEnv(t)
	set := e.sidecarSet("agent", `{containers: [{name: guard, image: i, env: [{name: KRUISE_CONTAINER_PRIORITY, value: "1"}]}]}`)
	tenant := e.as("tenant")
	node := fmt.Sprintf("{apiVersion: v1, kind: Node, name: %s, uid: x, controller: true}", "some-node")
	records := `{"` + set.Name + `":{"hash":"x","sidecarSetName":"` + set.Name + `","sidecarList":["guard"]}}`
	for name, changed := range map[string]string{
		"nothing special":                  `{}`,
		"a phase of the end":               `{status: {phase: Succeeded}}`,
		"a phase of failure":               `{status: {phase: Failed, reason: Evicted}}`,
		"a status with containers":         `{status: {phase: Running, containerStatuses: [{name: app, image: i, imageID: i, ready: true, restartCount: 0}]}}`,
		"a time of deletion":               `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 0}}`,
		"the look of a mirror":             `{metadata: {annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: some-node}}`,
		"the look of a static Pod":         `{metadata: {annotations: {kubernetes.io/config.source: file, kubernetes.io/config.hash: x}}}`,
		"a node as its owner":              `{metadata: {ownerReferences: [` + node + `]}}`,
		"a controller as its owner":        `{metadata: {ownerReferences: [{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: x, uid: x, controller: true}]}}`,
		"a name to be made":                `{metadata: {name: "", generateName: web-}}`,
		"a node already":                   `{spec: {nodeName: some-node}}`,
		"a priority of the system's":       `{spec: {priorityClassName: system-cluster-critical}}`,
		"a time of creation":               `{metadata: {creationTimestamp: "2020-01-01T00:00:00Z", generation: 7}}`,
		"the list of what was injected":    `{metadata: {annotations: {kruise.io/sidecarset-injected-list: "` + set.Name + `"}}}`,
		"records of what was injected":     `{metadata: {annotations: {kruise.io/sidecarset-hash: '` + records + `', kruise.io/sidecarset-hash-without-image: '` + records + `'}}}`,
		"records that can't be read":       `{metadata: {annotations: {kruise.io/sidecarset-hash: "{"}}}`,
		"the mark of an injected one":      `{spec: {containers: [{name: app, image: i, env: [{name: IS_INJECTED, value: "true"}]}]}}`,
		"a launch order that is over":      `{metadata: {annotations: {apps.kruise.io/container-launch-priority-completed: "true"}}}`,
		"a barrier of its own":             `{spec: {containers: [{name: app, image: i, env: [{name: KRUISE_CONTAINER_BARRIER, value: x}]}]}}`,
		"labels that make it Kruise's own": `{metadata: {labels: {control-plane: openkruise, app.kubernetes.io/part-of: kruise}}}`,
	} {
		for way, create := range map[string]func(map[string]any) (*corev1.Pod, error){
			"POST": func(fields map[string]any) (*corev1.Pod, error) { return e.post(tenant, fields) },
			"apply": func(fields map[string]any) (*corev1.Pod, error) {
				p := scene.Parse(e.Env, &corev1.Pod{}, "{}")
				if meta := fields["metadata"].(map[string]any); meta["name"] == "" {
					meta["name"] = "made"
				}
				raw, err := json.Marshal(fields)
				e.Must(err)
				p.Name = fields["metadata"].(map[string]any)["name"].(string)
				return p, tenant.Patch(e.Ctx, p, client.RawPatch(types.ApplyPatchType, raw), client.FieldOwner("tenant"), client.DryRunAll)
			},
		} {
			t.Run(name+" by "+way, func(t *testing.T) {
				p, err := create(e.tenantsPod(changed))
				if err != nil {
					t.Fatal(err)
				}
				held := p.Spec.Containers[0].Env
				isHeld := slices.ContainsFunc(held, func(v corev1.EnvVar) bool { return v.Name == keys.ContainerBarrierEnv })
				if problem := containers("guard app")(p); problem != nil || !isHeld {
					t.Errorf("%v, and its sidecar waits for no barrier: %v", problem, !isHeld)
				}
			})
		}
	}
}

// tenantsPod returns the fields of a Pod with one container, with those of a manifest over them.
func (e *env) tenantsPod(changed string) map[string]any {
	e.Helper()
	fields := map[string]any{}
	for _, text := range []string{
		`{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: ` + e.Namespace + `, labels: ` + e.selected() + `},
			spec: {containers: [{name: app, image: i}]}}`, changed,
	} {
		var more map[string]any
		e.Must(yaml.Unmarshal([]byte(text), &more))
		overlay(fields, more)
	}
	return fields
}

func overlay(on, more map[string]any) {
	for key, value := range more {
		inner, isMap := value.(map[string]any)
		if under, both := on[key].(map[string]any); both && isMap {
			overlay(under, inner)
		} else {
			on[key] = value
		}
	}
}

// post creates a Pod from fields as they are: types of Go would leave some of them out.
func (e *env) post(by client.Client, fields map[string]any) (*corev1.Pod, error) {
	e.Helper()
	raw, err := json.Marshal(fields)
	e.Must(err)
	p := &corev1.Pod{}
	e.Must(json.Unmarshal(raw, p))
	return p, by.Create(e.Ctx, p, client.DryRunAll)
}

// TestMirrorsAreLeftAlone: a kubelet shows the Pods that it runs from files, which can't be changed any more. Only a node may say so.
func TestMirrorsAreLeftAlone(t *testing.T) {
	e := newEnv(t)
	e.sidecarSet("agent", `{containers: [{name: guard, image: i}]}`)
	var nodes corev1.NodeList
	e.Must(e.List(e.Ctx, &nodes))
	node := nodes.Items[0]
	config := rest.CopyConfig(shared.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + node.Name, Groups: []string{"system:nodes"}}
	kubelet, err := client.New(config, client.Options{Scheme: e.Scheme()})
	e.Must(err)
	fields := e.tenantsPod(fmt.Sprintf(`{metadata: {annotations: {kubernetes.io/config.mirror: x}, ownerReferences: [
		{apiVersion: v1, kind: Node, name: %s, uid: %s, controller: true}]}, spec: {nodeName: %s}}`, node.Name, node.UID, node.Name))
	p, err := e.post(kubelet, fields)
	e.Must(err)
	e.Must(containers("app")(p))
}

// TestPodsOfNativeWorkloadsGetSidecars: their controllers create Pods with the rights of the system.
func TestPodsOfNativeWorkloadsGetSidecars(t *testing.T) {
	e := newEnv(t)
	e.sidecarSet("agent", `{containers: [{name: guard, image: i}]}`)
	template := `template: {metadata: {labels: ` + e.selected() + `}, spec: {containers: [{name: app, image: i}]}}`
	selector := `selector: {matchLabels: ` + e.selected() + `}`
	for _, kind := range []string{"apps/v1/Deployment", "apps/v1/StatefulSet", "apps/v1/ReplicaSet", "apps/v1/DaemonSet", "batch/v1/Job"} {
		group, name := kind[:strings.LastIndex(kind, "/")], kind[strings.LastIndex(kind, "/")+1:]
		spec := selector + ", " + template
		if name == "Job" {
			spec = strings.Replace(template, "{containers", "{restartPolicy: Never, containers", 1)
		}
		meta := `{name: ` + strings.ToLower(name) + `, labels: {kind: ` + name + `}}`
		if name != "Job" { // one does not adopt the Pods of another
			spec = strings.ReplaceAll(spec, e.selected(), `{test: `+e.Namespace+`, kind: `+name+`}`)
		} else {
			spec = strings.ReplaceAll(spec, `labels: `+e.selected(), `labels: {test: `+e.Namespace+`, kind: Job}`)
		}
		e.apply("apiVersion: " + group + "\nkind: " + name + "\nmetadata: " + meta + "\nspec: {" + spec + "}")
		e.Eventually("there are Pods of the "+name, func() error {
			var pods corev1.PodList
			if err := e.List(e.Ctx, &pods, client.InNamespace(e.Namespace), client.MatchingLabels{"kind": name}); err != nil {
				return err
			}
			if len(pods.Items) == 0 {
				return fmt.Errorf("there are none")
			}
			for i := range pods.Items {
				if problem := containers("guard app")(&pods.Items[i]); problem != nil {
					t.Errorf("a Pod of the %s: %v", name, problem)
				}
			}
			return nil
		})
	}
}

// TestEphemeralContainersDoNotCount: a Pod can't be created with them, and those that are added later leave the sidecars where they are.
func TestEphemeralContainersDoNotCount(t *testing.T) {
	e := newEnv(t)
	e.sidecarSet("agent", `{containers: [{name: guard, image: i}]}`)
	debug := `ephemeralContainers: [{name: debug, image: i}]`
	if _, err := e.tryPod(`{metadata: {name: web, labels: ` + e.selected() + `}, spec: {containers: [{name: app, image: i}], ` + debug + `}}`); err == nil {
		t.Error("a Pod was created with ephemeral containers")
	}
	p := e.newPod(`{metadata: {name: web, labels: ` + e.selected() + `}, spec: {containers: [{name: app, image: i}]}}`)
	e.Must(e.SubResource("ephemeralcontainers").Patch(e.Ctx, p, client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"spec":{"ephemeralContainers":[{"name":"debug","image":"i"}]}}`))))
	e.Must(containers("guard app")(p))
}

// TestOnlyAdministratorsExemptNamespaces: a label takes a namespace out of the reach of the webhooks. Who may label namespaces, as owners of
// projects often may, can't thereby leave injection: it takes the right to change the webhook configuration itself.
func TestOnlyAdministratorsExemptNamespaces(t *testing.T) {
	e := newEnv(t)
	owner := "owner-" + e.Namespace
	meta := metav1.ObjectMeta{Name: owner}
	all := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces", "namespaces/status", "namespaces/finalize"}, Verbs: []string{"*"}},
	}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: all}
	e.Must(e.Create(e.Ctx, role))
	e.CleanUp(role)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: owner},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: owner}},
	}
	e.Must(e.Create(e.Ctx, binding))
	e.CleanUp(binding)
	c := e.as(owner)
	namespace := &corev1.Namespace{}
	e.Eventually("the owner may label namespaces", func() error {
		namespace.Name = e.Namespace
		return c.Patch(e.Ctx, namespace, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"x"}}}`)))
	})
	exempt := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"control-plane":"openkruise"}}}`))
	labelled := namespace.DeepCopy()
	labelled.Labels["control-plane"] = "openkruise"
	for way, try := range map[string]func() error{
		"a patch":               func() error { return c.Patch(e.Ctx, namespace.DeepCopy(), exempt) },
		"an update":             func() error { return c.Update(e.Ctx, labelled.DeepCopy()) },
		"a patch of the status": func() error { return c.SubResource("status").Patch(e.Ctx, namespace.DeepCopy(), exempt) },
		"an update of the finalizers": func() error {
			return c.SubResource("finalize").Update(e.Ctx, labelled.DeepCopy())
		},
		"server-side apply": func() error {
			raw := []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + e.Namespace + `","labels":{"control-plane":"openkruise"}}}`)
			return c.Patch(e.Ctx, namespace.DeepCopy(), client.RawPatch(types.ApplyPatchType, raw), client.FieldOwner("owner"))
		},
		"a new namespace": func() error {
			other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace + "-new", Labels: labelled.Labels}}
			return c.Create(e.Ctx, other, client.DryRunAll)
		},
	} {
		if err := try(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "control-plane=openkruise") {
			t.Errorf("%s is answered with %v", way, err)
		}
		after := &corev1.Namespace{}
		e.Must(e.Get(e.Ctx, client.ObjectKeyFromObject(namespace), after))
		if after.Labels["control-plane"] != "" {
			t.Fatalf("the namespace is exempt after %s", way)
		}
	}
	e.Must(e.Patch(e.Ctx, namespace.DeepCopy(), exempt)) // an administrator may
	if err := c.Patch(e.Ctx, namespace.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"y"}}}`))); err != nil {
		t.Errorf("another label of an exempt namespace is answered with %v", err)
	}
}
