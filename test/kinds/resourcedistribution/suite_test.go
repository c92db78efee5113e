// Package resourcedistribution has Secrets and ConfigMaps copied into namespaces, as a user would have it, on a real control plane: one cluster and one
// manager for all tests, and for each namespaces and a name of its own.
package resourcedistribution

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// shared is the cluster of all tests. Its first manager has neither the gate nor the rights.
var shared = &scene.Site{Name: "copies", Args: []string{"--enable-leader-election=false"}}

func TestMain(m *testing.M) { scene.Main(m, shared) }

// setUp is what is done once.
type setUp struct {
	sync.Once
	// gateOff and rightsLacking are how a ResourceDistribution was refused before the gate was on, and before the manager had the rights.
	gateOff, rightsLacking, err error
}

var before setUp

// turnOn has the gate, and then the rights, turned on, as an operator does.
func (s *setUp) turnOn() {
	ctx := context.Background()
	try := func() error {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(`{apiVersion: apps.kruise.io/v1beta1, kind: ResourceDistribution, metadata: {name: early}, spec: {
			resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}, targets: {}}}`), &o.Object); err != nil {
			return err
		}
		return shared.Client.Create(ctx, o, client.DryRunAll)
	}
	if s.err = shared.Up(); s.err != nil {
		return
	}
	const gate, kinds = "--feature-gates=ResourceDistributionGate=true", "--resourcedistribution-kinds=LimitRange,NetworkPolicy"
	s.gateOff = try()
	shared.Manager.Kill()
	if s.err = shared.Relaunch(ctx, gate, kinds); s.err != nil {
		return
	}
	s.rightsLacking = try()
	if s.err = s.grant(ctx); s.err != nil {
		return
	}
	shared.Manager.Kill()
	s.err = shared.Relaunch(ctx, gate, kinds)
}

// grant gives the manager what the components of the manifests do.
func (s *setUp) grant(ctx context.Context) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "config", "resourcedistribution")
	for _, file := range []string{"role.yaml", "kinds/role.yaml", "kinds/policy.yaml"} {
		if err := shared.ApplyFile(ctx, filepath.Join(dir, file)); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "policy.yaml"))
	if err != nil {
		return err
	}
	patch, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	policy := &unstructured.Unstructured{}
	if err := policy.UnmarshalJSON(patch); err != nil {
		return err
	}
	return shared.Client.Patch(ctx, policy, client.RawPatch(types.MergePatchType, patch))
}

// env is a name for one test, which is that of its first namespace, too.
type env struct{ *scene.Env }

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	before.Do(before.turnOn)
	if before.err != nil {
		t.Fatal(before.err)
	}
	e := &env{shared.Enter(t)}
	e.Describe = e.describe
	return e
}

func (e *env) describe() string {
	d := &v1beta1.ResourceDistribution{}
	if err := e.Get(context.Background(), client.ObjectKey{Name: e.Namespace}, d); err != nil {
		return err.Error()
	}
	text, err := yaml.Marshal(d)
	return fmt.Sprintf("%s %v", text, err)
}

// configMap is a resource with a value.
func configMap(value string) string {
	return `resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: env, labels: {from: rd}}, data: {k: ` + value + `}}`
}

// distribute creates the ResourceDistribution of the test.
func (e *env) distribute(spec ...string) {
	e.Helper()
	e.Must(e.tryDistribute("v1beta1", spec...))
}

func (e *env) tryDistribute(version string, spec ...string) error {
	e.Helper()
	o := e.Manifest(fmt.Sprintf(`{apiVersion: apps.kruise.io/%s, kind: ResourceDistribution, metadata: {name: %s}, spec: {%s}}`,
		version, e.Namespace, strings.Join(spec, ", ")))
	o.SetNamespace("")
	err := e.Client.Create(e.Ctx, o)
	if err == nil {
		e.CleanUp(o)
	}
	return err
}

func (e *env) edit(spec string) {
	e.Helper()
	e.Must(e.tryEdit(spec))
}

func (e *env) tryEdit(spec string) error {
	e.Helper()
	patch, err := yaml.YAMLToJSON([]byte("spec: {" + spec + "}"))
	e.Must(err)
	return e.Client.Patch(e.Ctx, e.distribution(), client.RawPatch(types.MergePatchType, patch))
}

func (e *env) distribution() *v1beta1.ResourceDistribution {
	e.Helper()
	d := &v1beta1.ResourceDistribution{}
	e.Must(e.Get(e.Ctx, client.ObjectKey{Name: e.Namespace}, d))
	return d
}

// included names namespaces as targets.
func included(namespaces ...string) string {
	return `targets: {includedNamespaces: {list: [{name: "` + strings.Join(namespaces, `"}, {name: "`) + `"}]}}`
}

// has waits until a namespace has the ConfigMap env with a value, and returns it.
func (e *env) has(namespace, value string) *corev1.ConfigMap {
	e.Helper()
	c := &corev1.ConfigMap{}
	e.Eventually(fmt.Sprintf("namespace %s has env with %q", namespace, value), func() error {
		if err := e.Get(e.Ctx, client.ObjectKey{Namespace: namespace, Name: "env"}, c); err != nil {
			return err
		}
		if c.Data["k"] != value {
			return fmt.Errorf("it has %v", c.Data)
		}
		return nil
	})
	return c
}

// lacks waits until a namespace has no ConfigMap env.
func (e *env) lacks(namespace string) {
	e.Helper()
	e.Eventually("namespace "+namespace+" has no env", func() error {
		err := e.Get(e.Ctx, client.ObjectKey{Namespace: namespace, Name: "env"}, &corev1.ConfigMap{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it has one: %w", err)
	})
}

// says waits until the status has these numbers, and of the problems just one, or none, in these namespaces.
func (e *env) says(desired, succeeded int32, problem v1beta1.ResourceDistributionConditionType, namespaces ...string) {
	e.Helper()
	e.Eventually(fmt.Sprintf("the status says %d, %d and %s of %v", desired, succeeded, problem, namespaces), func() error {
		s := e.distribution().Status
		if s.Desired != desired || s.Succeeded != succeeded || s.Failed != desired-succeeded {
			return fmt.Errorf("it says %d, %d and %d", s.Desired, s.Succeeded, s.Failed)
		}
		order := []v1beta1.ResourceDistributionConditionType{
			"GetResourceFailed", "CreateResourceFailed", "UpdateResourceFailed", "DeleteResourceFailed", "ConflictOccurred", "NamespaceNotExists", "Ready",
		}
		if len(s.Conditions) != len(order) {
			return fmt.Errorf("it has %d conditions", len(s.Conditions))
		}
		for i, c := range s.Conditions {
			if c.Type == v1beta1.ResourceDistributionReady {
				if (c.Status == "True") != (problem == "" && desired == succeeded) {
					return fmt.Errorf("condition %d is %+v", i, c)
				}
				continue
			}
			want := c.Type == problem
			if c.Type != order[i] || (c.Status == "True") != want || want && strings.Join(c.FailedNamespaces, ",") != strings.Join(namespaces, ",") {
				return fmt.Errorf("condition %d is %+v", i, c)
			}
		}
		return nil
	})
}
