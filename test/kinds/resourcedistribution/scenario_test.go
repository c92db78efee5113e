package resourcedistribution

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

func (e *env) patch(namespace, patch string) {
	e.Helper()
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "env"}}
	e.Must(e.Client.Patch(e.Ctx, c, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// TestCopiesFollowTheResource (scenarios 1, 2, 3, 4, 10 and 14).
func TestCopiesFollowTheResource(t *testing.T) {
	e := newEnv(t)
	a, b := e.NewNamespace(nil), e.NewNamespace(nil)
	e.distribute(configMap("one"), included(a, b))
	for _, namespace := range []string{a, b} {
		c := e.has(namespace, "one")
		sum := sha256.Sum256(e.distribution().Spec.Resource.Raw)
		if !metav1.IsControlledBy(c, e.distribution()) || c.Annotations[keys.DistributedFrom] != e.Namespace ||
			c.Annotations[keys.DistributedHash] != hex.EncodeToString(sum[:]) || c.Labels["from"] != "rd" {
			t.Errorf("the copy is %+v", c.ObjectMeta)
		}
	}
	e.says(2, 2, "")

	old := e.has(a, "one").Annotations[keys.DistributedHash]
	e.edit(`resource: {data: {k: two}}`)
	if e.has(a, "two").Annotations[keys.DistributedHash] == old {
		t.Error("the hash is that of before")
	}
	e.has(b, "two")

	e.patch(a, `{"metadata":{"labels":{"mine":"1"}},"data":{"k":"by hand","more":"x"}}`)
	if c := e.has(a, "two"); c.Labels["mine"] != "1" || len(c.Data) != 1 {
		t.Errorf("it is %v with labels %v", c.Data, c.Labels)
	}
	deleted := e.has(b, "two")
	e.Must(e.Client.Delete(e.Ctx, deleted))
	e.Eventually("it is made anew", func() error {
		if c := e.has(b, "two"); c.UID == deleted.UID {
			return fmt.Errorf("it is that of before")
		}
		return nil
	})

	e.edit(`resource: {metadata: {labels: {from: null, to: you}}}`)
	e.Eventually("labels alone reach the copies", func() error {
		c := e.has(a, "two")
		if _, old := c.Labels["from"]; old || c.Labels["to"] != "you" || c.Labels["mine"] != "1" {
			return fmt.Errorf("they are %v", c.Labels)
		}
		return nil
	})
	e.says(2, 2, "")
	e.Must(e.Client.Delete(e.Ctx, e.distribution()))
	e.lacks(a)
	e.lacks(b)
}

// TestNamespacesComeAndGo (scenarios 5, 6, 7 and 9).
func TestNamespacesComeAndGo(t *testing.T) {
	e := newEnv(t)
	label := func(namespace, value string) {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		e.Must(e.Client.Patch(e.Ctx, n, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"test":"`+value+`"}}}`))))
	}
	a, missing := e.NewNamespace(nil), e.Namespace+"-later"
	e.distribute(configMap("one"), `targets: {namespaceSelector: {matchLabels: {test: `+e.Namespace+`}}, includedNamespaces: {list: [{name: `+missing+`}, {name: kube-system}]}}`)
	e.says(1, 0, v1beta1.ResourceDistributionNamespaceNotExists, missing)
	label(a, e.Namespace)
	e.has(a, "one")
	later := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: missing}}
	e.Must(e.Client.Create(e.Ctx, later))
	e.CleanUp(later)
	e.has(missing, "one")
	e.says(2, 2, "")
	label(a, "another")
	e.lacks(a)
	e.says(1, 1, "")
	e.edit(`targets: {excludedNamespaces: {list: [{name: ` + a + `}]}}`)
	label(a, e.Namespace)
	e.says(1, 1, "")
	e.edit(`targets: {excludedNamespaces: null}`)
	e.has(a, "one")
	e.edit(`targets: {excludedNamespaces: {list: [{name: ` + a + `}]}}`)
	e.lacks(a)
	e.has(missing, "one")
	e.Must(e.Client.Delete(e.Ctx, later))
	e.says(1, 0, v1beta1.ResourceDistributionNamespaceNotExists, missing)
}

// TestAllNamespaces (scenario 6): a new one, too, but those of the system never.
func TestAllNamespaces(t *testing.T) {
	e := newEnv(t)
	e.distribute(`resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: `+e.Namespace+`}}`, "targets: {allNamespaces: true}")
	exists := func(namespace string) error {
		return e.Get(e.Ctx, client.ObjectKey{Namespace: namespace, Name: e.Namespace}, &corev1.ConfigMap{})
	}
	fresh := e.NewNamespace(nil)
	e.Eventually("all have it", func() error {
		for _, namespace := range []string{"default", e.Namespace, fresh} {
			if err := exists(namespace); err != nil {
				return err
			}
		}
		return nil
	})
	for _, system := range []string{"kube-system", "kube-public"} {
		if err := exists(system); !apierrors.IsNotFound(err) {
			t.Errorf("in %s: %v", system, err)
		}
	}
}

// TestNamespacesByPattern: namespaces whose names fit a pattern get a copy, also those that come later, and those that fit an excluded one do not.
func TestNamespacesByPattern(t *testing.T) {
	e := newEnv(t)
	named := func(suffix string) string {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace + suffix}}
		e.Must(e.Client.Create(e.Ctx, n))
		e.CleanUp(n)
		return n.Name
	}
	first, old := named("-team-a"), named("-team-old")
	e.distribute(configMap("one"), fmt.Sprintf("targets: {includedNamespaces: {patterns: [%[1]s-team-*]}, excludedNamespaces: {patterns: ['%[1]s-*-old']}}", e.Namespace))
	e.has(first, "one")
	e.says(1, 1, "")
	e.has(named("-team-b"), "one")
	e.says(2, 2, "")
	e.lacks(old)
	e.lacks(e.Namespace)
	_, err := e.Kubectl(e.Ctx, "wait", "--for=condition=Ready", "--timeout=10s", "resourcedistribution/"+e.Namespace)
	e.Must(err)
}

// TestTheComponent has kubectl build a kustomization that turns ResourceDistributions on, as docs/resourcedistribution.md has it.
func TestTheComponent(t *testing.T) {
	e := newEnv(t)
	root, err := cluster.Root()
	e.Must(err)
	dir := t.TempDir()
	config, err := filepath.Rel(dir, filepath.Join(root, "config"))
	e.Must(err)
	text := fmt.Sprintf("resources: [%[1]s/default]\ncomponents: [%[1]s/resourcedistribution, %[1]s/resourcedistribution/kinds]\n", config)
	e.Must(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	built, err := e.Kubectl(e.Ctx, "kustomize", dir)
	e.Must(err)
	found := map[string]*unstructured.Unstructured{}
	for document := range strings.SplitSeq(built, "\n---\n") {
		o := &unstructured.Unstructured{}
		e.Must(yaml.Unmarshal([]byte(document), &o.Object))
		found[o.GetKind()+"/"+o.GetName()] = o
	}
	for _, name := range []string{"ClusterRole/kruise-resourcedistribution-role", "ClusterRoleBinding/kruise-resourcedistribution-rolebinding",
		"ClusterRole/kruise-resourcedistribution-kinds-role", "ValidatingAdmissionPolicy/kruise-manager-distributed"} {
		if found[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	for want, name := range map[string]string{
		"--feature-gates=ResourceDistributionGate=true":                          "Deployment/kruise-controller-manager",
		"--resourcedistribution-kinds=ServiceAccount,LimitRange,NetworkPolicy\"": "Deployment/kruise-controller-manager",
		"apps.kruise.io/distributed-by":                                          "ValidatingAdmissionPolicy/kruise-manager-configmaps",
	} {
		if o := found[name]; o == nil {
			t.Errorf("there is no %s", name)
		} else if text, err := o.MarshalJSON(); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %s (%v):\n%s", name, want, err, text)
		}
	}
}

// TestAnObjectOfOthers (scenario 8): is left alone, until it goes or may be taken.
func TestAnObjectOfOthers(t *testing.T) {
	e := newEnv(t)
	foreign := e.Make(`{apiVersion: v1, kind: ConfigMap, metadata: {name: env}, data: {k: mine}}`)
	e.distribute(configMap("one"), included(e.Namespace))
	e.says(1, 0, v1beta1.ResourceDistributionConflictOccurred, e.Namespace)
	if c := e.has(e.Namespace, "mine"); c.ResourceVersion != foreign.GetResourceVersion() {
		t.Error("it was written")
	}
	e.edit(`conflictPolicy: Adopt`)
	e.says(1, 0, v1beta1.ResourceDistributionConflictOccurred, e.Namespace)
	e.Must(e.Client.Delete(e.Ctx, foreign))
	e.has(e.Namespace, "one")
	e.says(1, 1, "")

	other := e.NewNamespace(nil)
	e.Must(e.Client.Create(e.Ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "env", Labels: map[string]string{"mine": "1"}}, Data: map[string]string{"k": "one"}}))
	e.edit(included(other))
	e.Eventually("what is the same is adopted", func() error {
		if c := e.has(other, "one"); !metav1.IsControlledBy(c, e.distribution()) || c.Labels["mine"] != "1" {
			return fmt.Errorf("it is not: %+v", c.ObjectMeta)
		}
		return nil
	})
	e.says(1, 1, "")
	third := e.NewNamespace(nil)
	e.Must(e.Client.Create(e.Ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: third, Name: "env"}, Data: map[string]string{"k": "theirs"}}))
	e.edit(`conflictPolicy: Overwrite, ` + included(third))
	e.has(third, "one")
}

// TestWhatIsRefused (scenario 11): with the gate off, without the rights, another name or kind, a namespace in both lists, two sources.
func TestWhatIsRefused(t *testing.T) {
	e := newEnv(t)
	for want, err := range map[string]error{
		"feature-gate ResourceDistributionGate is not enabled": before.gateOff, "the manager may not": before.rightsLacking,
	} {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for spec, want := range map[string]string{
		`resource: {apiVersion: v1, kind: Pod, metadata: {name: p}}, targets: {}`: "only support [Secret, ConfigMap, ",
		`targets: {}`: "must have either resource or resourceFrom",
		configMap("one") + `, targets: {includedNamespaces: {list: [{name: a}]}, excludedNamespaces: {list: [{name: a}]}}`: "ambiguous targets",
		configMap("one") + `, targets: {includedNamespaces: {list: [{name: "A"}]}}`:                                        "name",
		`resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, dota: {a: b}}, targets: {}`:                      "unknown field",
	} {
		if err := e.tryDistribute("v1beta1", spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
	e.distribute(configMap("one"), "targets: {}")
	e.says(0, 0, "")
	for _, change := range []string{`resource: {metadata: {name: other}}`, `resource: {kind: Secret}`} {
		if err := e.tryEdit(change); err == nil || !strings.Contains(err.Error(), "immutable") {
			t.Errorf("%s: %v", change, err)
		}
	}
	e.AcceptsExamples("resourcedistribution-*.yaml")
}

// TestEitherVersion (scenario 12).
func TestEitherVersion(t *testing.T) {
	e := newEnv(t)
	e.Must(e.tryDistribute("v1alpha1", configMap("one"), `targets: {namespaceLabelSelector: {matchLabels: {a: b}}, includedNamespaces: {list: [{name: `+e.Namespace+`-not}]}}`))
	e.says(1, 0, v1beta1.ResourceDistributionNamespaceNotExists, e.Namespace+"-not")
	if got := e.distribution().Spec.Targets.NamespaceSelector.MatchLabels["a"]; got != "b" {
		t.Errorf("the hub version selects %q", got)
	}
	older := &v1alpha1.ResourceDistribution{}
	e.Must(e.Get(e.Ctx, client.ObjectKey{Name: e.Namespace}, older))
	if older.Spec.Targets.NamespaceLabelSelector.MatchLabels["a"] != "b" || !slices.Equal(older.Status.Conditions[5].FailedNamespace, []string{e.Namespace + "-not"}) {
		t.Errorf("the older version is %+v", older)
	}
}

// TestASecretIsWrittenOnce (scenario 13): what the API server folds together is not written again, nor is it after the spec is touched.
func TestASecretIsWrittenOnce(t *testing.T) {
	e := newEnv(t)
	e.distribute(`resource: {apiVersion: v1, kind: Secret, metadata: {name: pull}, stringData: {k: v}}`, included(e.Namespace))
	e.says(1, 1, "")
	s := &corev1.Secret{}
	e.Read("pull", s)
	if string(s.Data["k"]) != "v" || s.Type != corev1.SecretTypeOpaque {
		t.Errorf("it is %+v", s)
	}
	e.edit(included(e.Namespace, e.Namespace+"-not"))
	e.says(2, 1, v1beta1.ResourceDistributionNamespaceNotExists, e.Namespace+"-not")
	status := e.distribution().ResourceVersion
	e.Always(5*time.Second, "nothing is written", func() error {
		now := &corev1.Secret{}
		e.Read("pull", now)
		if now.ResourceVersion != s.ResourceVersion || e.distribution().ResourceVersion != status {
			return fmt.Errorf("the Secret is at %s, and was at %s", now.ResourceVersion, s.ResourceVersion)
		}
		return nil
	})
}

// TestManyNamespaces (scenario 15): one whose quota is used up stops none of the others, and is tried again.
func TestManyNamespaces(t *testing.T) {
	const many = 60
	e := newEnv(t)
	full := e.NewNamespace(map[string]string{"many": e.Namespace})
	e.In(full).Make(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: full}, spec: {hard: {configmaps: "1"}}}`)
	e.Eventually("the quota is used up", func() error {
		q := &corev1.ResourceQuota{}
		e.In(full).Read("full", q)
		if used := q.Status.Used[corev1.ResourceConfigMaps]; used.Value() != 1 {
			return fmt.Errorf("%s are used", used.String())
		}
		return nil
	})
	for range many - 1 {
		e.NewNamespace(map[string]string{"many": e.Namespace})
	}
	e.distribute(configMap("one"), `targets: {namespaceSelector: {matchLabels: {many: `+e.Namespace+`}}}`)
	e.says(many, many-1, v1beta1.ResourceDistributionCreateResourceFailed, full)
	if detail := e.distribution().Status.Namespaces; len(detail) != 1 || detail[0].Name != full || !strings.Contains(detail[0].Message, "exceeded quota") {
		t.Errorf("the details are %+v", detail)
	}
	e.Must(e.Client.Delete(e.Ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: full, Name: "full"}}))
	e.says(many, many, "")
}

// TestAStagedRollout: copies that a rollout does not reach stay as they are; new ones are made from the resource as it is. Each may name its namespace.
func TestAStagedRollout(t *testing.T) {
	e := newEnv(t)
	a, b := e.NewNamespace(nil), e.NewNamespace(nil)
	e.distribute(configMap("one"), included(a, b))
	e.says(2, 2, "")
	e.edit(`rollout: {percent: 50}, resource: {data: {k: two}}`)
	e.Eventually("one of them follows", func() error {
		if s := e.distribution().Status; s.Updated != 1 || s.Succeeded != 2 {
			return fmt.Errorf("%d do, and %d are well", s.Updated, s.Succeeded)
		}
		return nil
	})
	fresh := e.NewNamespace(nil)
	e.edit(`rollout: {paused: true}, ` + included(a, b, fresh))
	e.has(fresh, "two")
	e.edit(`rollout: null`)
	e.has(a, "two")
	e.has(b, "two")
	e.edit(`expandNamespace: true, resource: {data: {k: "in $(namespace)"}}`)
	e.has(a, "in "+a)
	e.has(b, "in "+b)
	e.edit(`expandNamespace: false`)
	e.has(a, "in $(namespace)")
}

// TestFromAnotherObject: a source that is copied as it is at any time, by whoever may read it; copies that outlive the ResourceDistribution.
func TestFromAnotherObject(t *testing.T) {
	e := newEnv(t)
	target := e.NewNamespace(nil)
	e.distribute(`resourceFrom: {kind: ConfigMap, namespace: `+e.Namespace+`, name: env}`, `deletionPolicy: Retain`, included(target))
	e.Eventually("the source is missed", func() error {
		if c := e.distribution().Status.Conditions; len(c) != 7 || c[0].Status != "True" {
			return fmt.Errorf("the conditions are %+v", c)
		}
		return nil
	})
	e.Make(`{apiVersion: v1, kind: ConfigMap, metadata: {name: env}, data: {k: one}}`)
	c := e.has(target, "one")
	e.says(1, 1, "")
	e.Must(e.Client.Delete(e.Ctx, e.distribution()))
	e.Always(3*time.Second, "the copy stays", func() error {
		return e.Get(e.Ctx, client.ObjectKeyFromObject(c), &corev1.ConfigMap{})
	})
}

// TestImmutableCopies are kept, and said to be, unless they are to be replaced.
func TestImmutableCopies(t *testing.T) {
	e := newEnv(t)
	e.distribute(`resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: env}, immutable: true, data: {k: one}}`, included(e.Namespace))
	e.says(1, 1, "")
	e.edit(`resource: {data: {k: two}}`)
	e.says(1, 0, v1beta1.ResourceDistributionUpdateResourceFailed, e.Namespace)
	e.edit(`immutablePolicy: Replace`)
	e.has(e.Namespace, "two")
	e.says(1, 1, "")
}
