package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/pages"
)

// documented is an object that a page or an example shows.
type documented struct {
	at     string
	object *unstructured.Unstructured
}

// TestDocumentedObjects: the API server, with all webhooks and policies, takes every object of every page and example, and knows all of its
// fields. A fragment is judged at its place in an object of its kind that has what is required besides.
func TestDocumentedObjects(t *testing.T) {
	e := newEnv(t)
	e.presupposed()
	all := e.documented()
	if len(all) < 60 {
		t.Errorf("only %d objects were found", len(all))
	}
	for _, d := range all {
		if elsewhere(d.object) {
			continue
		}
		if scoped, err := e.Client.IsObjectNamespaced(d.object); err != nil {
			t.Errorf("%s: %v", d.at, err)
			continue
		} else if scoped {
			d.object.SetNamespace(e.Namespace)
		}
		// Pods that a CloneSet names have to be its own, and a new one has none.
		unstructured.RemoveNestedField(d.object.Object, "spec", "scaleStrategy", "podsToDelete")
		err := e.Client.Create(e.Ctx, d.object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		if err != nil && !isOff(d.object, err) {
			t.Errorf("%s: creating %s %s: %v", d.at, d.object.GetKind(), d.object.GetName(), err)
		}
	}
}

// presupposed makes the Pods that objects of pages and examples speak of.
func (e *env) presupposed() {
	e.Helper()
	e.Make(`{apiVersion: v1, kind: Pod, metadata: {name: web-0}, spec: {containers: [{name: app, image: web}, {name: proxy, image: proxy}]}}`)
	e.Eventually("Pod web-0 is ready", func() error {
		p := &corev1.Pod{}
		e.Read("web-0", p)
		if !pod.IsReady(p) {
			return errors.New(string(p.Status.Phase))
		}
		return nil
	})
}

// elsewhere reports whether an object is read by a program, and none of this cluster's: configurations, which test/docs knows, and routes whose
// CustomResourceDefinitions this cluster does not have.
func elsewhere(o *unstructured.Unstructured) bool {
	group := o.GroupVersionKind().Group
	return slices.Contains([]string{
		"kubelet.config.k8s.io", "apiserver.config.k8s.io", "gateway.networking.k8s.io", "monitoring.coreos.com", "kustomize.config.k8s.io",
		"networking.istio.io", "source.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io", "argoproj.io",
	}, group) || o.GetAPIVersion() == "v1" && o.GetKind() == "Config"
}

// isOff reports whether an object was refused only because what it is for is off by default, as its page says: the schema has been checked then.
func isOff(o *unstructured.Unstructured, err error) bool {
	gate := map[string]string{
		"ResourceDistribution": "ResourceDistributionGate", "ImagePullJob": "ImagePullJobGate", "ImageListPullJob": "ImagePullJobGate",
		"UnitedDeployment": "UnitedDeploymentMultiCluster", "AdvancedCronJob": "ImagePullJobGate",
	}[o.GetKind()]
	return gate != "" && strings.Contains(err.Error(), gate)
}

func (e *env) documented() []documented {
	e.Helper()
	root, err := cluster.Root()
	e.Must(err)
	book, err := pages.All(root)
	e.Must(err)
	var out []documented
	for _, p := range book {
		for _, block := range p.Blocks {
			if block.Language == "yaml" && block.Kind != "Kustomization" && block.Kind != "Values" {
				out = append(out, e.objects(block)...)
			}
		}
	}
	for file, text := range e.Examples("*.yaml") {
		out = append(out, e.objects(pages.Block{File: "examples/" + file, Text: text})...)
	}
	return out
}

func (e *env) objects(block pages.Block) []documented {
	e.Helper()
	if block.Kind != "" {
		o, err := whole(block)
		if err != nil {
			e.Errorf("%s: %v", block, err)
			return nil
		}
		return []documented{{block.String(), o}}
	}
	var out []documented
	for text := range strings.SplitSeq("\n"+block.Text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			e.Errorf("%s: %v", block, err)
		} else if len(o.Object) > 0 {
			out = append(out, documented{block.String(), o})
		}
	}
	return out
}

// whole returns the object that a fragment is a part of.
func whole(block pages.Block) (*unstructured.Unstructured, error) {
	text, is := bases()[block.Kind]
	if !is {
		return nil, fmt.Errorf("nothing is known of a %s: add an object of this kind to bases in this test", block.Kind)
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		return nil, err
	}
	var fragment any
	if err := yaml.Unmarshal([]byte(block.Text), &fragment); err != nil {
		return nil, err
	}
	if block.Path != "" {
		steps := strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(block.Path), ".")
		for _, step := range slices.Backward(steps) {
			fragment = map[string]any{step: fragment}
		}
	}
	merged, err := merge(o.Object, fragment)
	if err != nil {
		return nil, err
	}
	o.Object = merged.(map[string]any) //nolint:forcetypeassert // what a map is merged into is a map
	if _, other, _ := unstructured.NestedMap(o.Object, "spec", "strategy", "blueGreen"); other {
		unstructured.RemoveNestedField(o.Object, "spec", "strategy", "canary") // that of the base: a Rollout has one style
	}
	return o, nil
}

// merge puts what a fragment says into a value: fields over fields, items of a list by their numbers, everything else as it is.
func merge(into, fragment any) (any, error) {
	fields, is := fragment.(map[string]any)
	if !is {
		return fragment, nil
	}
	switch into := into.(type) {
	case nil:
		return fields, nil
	case []any:
		for key, value := range fields {
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(into) {
				return nil, fmt.Errorf("there is no item %s", key)
			}
			if into[i], err = merge(into[i], value); err != nil {
				return nil, err
			}
		}
		return into, nil
	case map[string]any:
		for key, value := range fields {
			var err error
			if into[key], err = merge(into[key], value); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
		}
		return into, nil
	}
	return nil, errors.New("a value has no fields")
}

// bases returns, by kind, objects with what is required for fragments to be merged into.
func bases() map[string]string {
	const template = `{metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "nginx:1.29"}]}}`
	workload := func(apiVersion, kind, more string) string {
		return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: web}, spec: {%sselector: {matchLabels: {app: web}}, template: %s}}",
			apiVersion, kind, more, template)
	}
	return map[string]string{
		"CloneSet":         workload("apps.kruise.io/v1beta1", "CloneSet", ""),
		"StatefulSet":      workload("apps.kruise.io/v1beta1", "StatefulSet", "serviceName: web, "),
		"DaemonSet":        workload("apps.kruise.io/v1beta1", "DaemonSet", ""),
		"StatefulSet.apps": workload("apps/v1", "StatefulSet", "serviceName: web, "),
		"DaemonSet.apps":   workload("apps/v1", "DaemonSet", ""),
		"Deployment":       workload("apps/v1", "Deployment", ""),
		"UnitedDeployment": `{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}},
			template: {deploymentTemplate: {metadata: {labels: {app: web}}, spec: {selector: {matchLabels: {app: web}}, template: ` + template + `}}},
			topology: {subsets: [{name: a}, {name: b}, {name: c}]}}}`,
		"SidecarSet": `{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: log}, spec: {selector: {matchLabels: {app: web}},
			containers: [{name: log, image: "busybox:1"}]}}`,
		"Rollout": `{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, metadata: {name: web}, spec: {
			workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}, strategy: {canary: {steps: [{replicas: 100%}], trafficRoutings: [
			{service: web, ingress: {name: web}}]}}}}`,
		"Pod":         `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main, image: "nginx:1.29"}]}}`,
		"ConfigMap":   "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}",
		"ClusterRole": "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: web}}",
	}
}

// TestDocumentedKustomizations: the kustomizations of pages can be built, beside those of the repository.
func TestDocumentedKustomizations(t *testing.T) {
	e := newEnv(t)
	root, err := cluster.Root()
	e.Must(err)
	config := filepath.Join(t.TempDir(), "config")
	e.Must(os.CopyFS(config, os.DirFS(filepath.Join(root, "config"))))
	book, err := pages.All(root)
	e.Must(err)
	for _, p := range book {
		for i, block := range p.Blocks {
			if block.Kind != "Kustomization" {
				continue
			}
			at := filepath.Join(config, fmt.Sprintf("mine-%d", i))
			e.Must(os.Mkdir(at, 0o755))
			e.Must(os.WriteFile(filepath.Join(at, "kustomization.yaml"), []byte(block.Text), 0o600))
			if out, err := e.Kubectl(e.Ctx, "kustomize", at); err != nil {
				t.Errorf("%s: %v\n%s", block, err, out)
			}
		}
	}
}

// TestDocumentedFlagsOfKubectl: kubectl itself reads each command of kubectl in the pages, down to its flags; it carries none out.
func TestDocumentedFlagsOfKubectl(t *testing.T) {
	e := newEnv(t)
	root, err := cluster.Root()
	e.Must(err)
	book, err := pages.All(root)
	e.Must(err)
	asked := map[string]bool{}
	for _, p := range book {
		for at, c := range p.Commands() {
			i := slices.Index(c.Words, "kubectl")
			if i < 0 || i > 2 || p.File == "CHANGELOG.md" {
				continue
			}
			args := c.Words[i+1:]
			if dashes := slices.Index(args, "--"); dashes >= 0 {
				args = args[:dashes]
			}
			// What differs in names alone is asked once.
			key := strings.Join(slices.Concat(args[:min(len(args), 2)], c.Flags()), " ")
			if asked[key] || len(args) == 0 || slices.Contains(args, "kruise") || args[0] == "ARGS..." {
				continue
			}
			asked[key] = true
			if out, err := e.Kubectl(e.Ctx, append(slices.Clone(args), "--help")...); err != nil {
				t.Errorf("%s: kubectl %s: %v\n%s", at, strings.Join(args, " "), err, out)
			}
		}
	}
	if len(asked) < 30 {
		t.Errorf("only %d different commands of kubectl were found", len(asked))
	}
}

// TestPageOfCloneSets: a reader who follows the page gets its rollout, and back.
func TestPageOfCloneSets(t *testing.T) {
	e := newEnv(t)
	root, err := cluster.Root()
	e.Must(err)
	text, err := os.ReadFile(filepath.Join(root, "docs/cloneset.md"))
	e.Must(err)
	blocks := pages.Read("docs/cloneset.md", string(text)).Blocks
	e.Make(blocks[0].Text)
	e.done("cloneset/web")
	updated := 0
	for _, c := range blocks[1].Commands() {
		if c.Words[1] != "kruise" {
			_, err := e.Kubectl(e.Ctx, slices.Concat([]string{"-n", e.Namespace}, c.Words[1:])...)
			e.Must(err)
			e.done("cloneset/web")
			updated = e.images()["nginx:1.30"]
			continue
		}
		// A plan that ends where a person has to go on ends with exit code 2.
		if r := e.run(c.Words[2:]...); r.code != 0 && (c.Words[2] != "plan" || r.code != 2) {
			t.Fatalf("%s:%d: %s: %s", "docs/cloneset.md", c.Line, strings.Join(c.Words, " "), r)
		}
		if c.Words[2] == "status" && e.images()["nginx:1.30"] != 2 {
			t.Errorf("under the partition the Pods run %v", e.images())
		}
	}
	if updated != 5 {
		t.Errorf("%d Pods were updated without the partition", updated)
	}
	e.done("cloneset/web")
	e.allRun("nginx:1.29", 5)
}
