package lint

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

func checked(t *testing.T, manifests []Manifest) Result {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, v1beta1.AddToScheme, policyv1beta1.AddToScheme, rolloutsv1beta1.AddToScheme,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	now := func() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }
	out, err := Check(context.Background(), manifests, Options{Scheme: s, Namespace: "shop", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestExamplesAreTaken reads the examples, one file after the other.
func TestExamplesAreTaken(t *testing.T) {
	names, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil || len(names) < 40 {
		t.Fatalf("%d examples: %v", len(names), err)
	}
	for _, name := range names {
		manifests, err := Read(nil, []string{name}, false)
		if err != nil {
			t.Fatal(err)
		}
		found := checked(t, manifests)
		for _, f := range found.Findings {
			if f.Severity == Error {
				t.Errorf("%s:%d: %s: %s: %s", f.File, f.Line, f.Object, f.Field, f.Message)
			}
		}
		if found.Objects == 0 {
			t.Errorf("%s holds no object", name)
		}
	}
}

const template = `{metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: "web:v1"}]}}`

func cloneSet(version, metadata, spec string) string {
	return fmt.Sprintf("apiVersion: apps.kruise.io/%s\nkind: CloneSet\nmetadata: {name: web%s}\nspec: {selector: {matchLabels: {app: web}}, template: %s%s}\n",
		version, metadata, template, spec)
}

func deployment(metadata, env string) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web%s}\nspec: {selector: {matchLabels: {app: web}}, template: "+
		"{metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: 'web:v1'%s}]}}}\n", metadata, env)
}

func TestFindings(t *testing.T) {
	rollout := `
apiVersion: rollouts.kruise.io/v1beta1
kind: Rollout
metadata: {name: demo}
spec:
  workloadRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}
  strategy: {canary: {steps: [{replicas: 50%}], trafficRoutings: [{service: web, ingress: {name: web}}]}}
`
	service := "\n---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: %s}}\n"
	sidecarSet := "apiVersion: apps.kruise.io/v1beta1\nkind: SidecarSet\nmetadata: {name: %s}\nspec: {selector: {matchLabels: {app: web}}, containers: [{name: log, image: 'log:v1'}]}\n---\n"
	for name, tc := range map[string]struct {
		text string
		// want is "line severity field: a part of the message" of each finding.
		want []string
	}{
		"a good one":             {cloneSet("v1beta1", "", ""), nil},
		"a good one of v1alpha1": {cloneSet("v1alpha1", "", ""), nil},
		"no YAML":                {"a: b: c", []string{"1 error : mapping values"}},
		"a field twice":          {"apiVersion: v1\nkind: ConfigMap\nkind: ConfigMap", []string{`1 error : key "kind" already set`}},
		"no object":              {"a: b", []string{"1 error : apiVersion and kind are missing"}},
		"a version that is not":  {cloneSet("v1", "", ""), []string{`1 error apiVersion: Unsupported value: "apps.kruise.io/v1": supported values: "apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"`}},
		"an unknown field":       {cloneSet("v1beta1", "", ", replica: 3"), []string{"1 error spec.replica: unknown field"}},
		"a wrong type":           {cloneSet("v1beta1", "", ", replicas: many"), []string{"1 error spec.replicas: Invalid value", "1 error spec.replicas: Invalid value"}},
		"a negative number":      {cloneSet("v1beta1", "", ", replicas: -1"), []string{"1 error spec.replicas: Invalid value: -1", "1 error spec.replicas: Invalid value: -1"}},
		"what only the webhook refuses": {
			strings.Replace(cloneSet("v1beta1", "", ""), "labels: {app: web}", "labels: {app: other}", 1), []string{"1 error spec.template.metadata.labels: Invalid value"},
		},
		"a misspelt field of the template": {strings.Replace(cloneSet("v1beta1", "", ""), "image: ", "imagePullPolice: Always, image: ", 1), []string{
			`1 warning : unknown field "template.spec.containers[0].imagePullPolice"`,
		}},
		"a misspelt label":        {deployment(", labels: {policy.kruise.io/delete-protecton: Always}", ""), []string{"1 warning metadata.labels[policy.kruise.io/delete-protecton]: did you mean policy.kruise.io/delete-protection?"}},
		"a label that is none":    {deployment(", labels: {apps.kruise.io/something: x}", ""), []string{"1 warning metadata.labels[apps.kruise.io/something]: it is read by no part of Kruise"}},
		"a value that is none":    {deployment(", labels: {policy.kruise.io/delete-protection: always}", ""), []string{`1 warning metadata.labels[policy.kruise.io/delete-protection]: "always" has no effect: use Always or Cascading`}},
		"the wrong place":         {deployment(", annotations: {policy.kruise.io/delete-protection: Always}", ""), []string{"1 warning metadata.annotations[policy.kruise.io/delete-protection]: move it to labels"}},
		"a misspelt variable":     {deployment("", ", env: [{name: KRUISE_CONTAINER_PRIORTY, value: '1'}]"), []string{"1 warning spec.template.spec.containers[0].env[0].name: did you mean KRUISE_CONTAINER_PRIORITY?"}},
		"a priority that is none": {deployment("", ", env: [{name: KRUISE_CONTAINER_PRIORITY, value: first}]"), []string{`1 warning spec.template.spec.containers[0].env[0].value: "first" is no priority`}},
		"keys of others":          {deployment(", annotations: {example.com/team: web, deployment.kubernetes.io/revision: '1'}, labels: {app.kubernetes.io/name: web}", ""), nil},
		"a Rollout of nothing":    {rollout, []string{"2 warning spec.workloadRef: CloneSet web is not among", "2 warning spec.strategy.canary.trafficRoutings[0].service: Service web is not among", "2 warning spec.strategy.canary.trafficRoutings[0].ingress.name: Ingress web is not among"}},
		"a Service of other Pods": {strings.Replace(rollout, ", ingress: {name: web}", "", 1) + fmt.Sprintf(service, "shop") + "---\n" + cloneSet("v1beta1", "", ""), []string{"2 error", "2 warning spec.strategy.canary.trafficRoutings[0].service: Service web selects app=shop, which Pods of CloneSet web do not have"}},
		"a partition for all":     {cloneSet("v1beta1", "", ", replicas: 3, updateStrategy: {rollingUpdate: {partition: 3}}"), []string{"1 warning spec.updateStrategy.rollingUpdate.partition: 3 keeps all 3 Pods"}},
		"a budget of none": {
			"apiVersion: policy.kruise.io/v1beta1\nkind: PodUnavailableBudget\nmetadata: {name: web}\nspec: {selector: {matchLabels: {app: shop}}, maxUnavailable: 1}\n---\n" + cloneSet("v1beta1", "", ""),
			[]string{"1 warning spec.selector: app=shop selects no Pods of these files"},
		},
		"a budget of some": {"apiVersion: policy.kruise.io/v1beta1\nkind: PodUnavailableBudget\nmetadata: {name: web}\nspec: {selector: {matchLabels: {app: web}}, maxUnavailable: 1}\n---\n" + cloneSet("v1beta1", "", ""), nil},
		"two SidecarSets of one container": {
			fmt.Sprintf(sidecarSet, "a") + fmt.Sprintf(sidecarSet, "b"),
			[]string{"1 error spec.containers[0].name", "6 error spec.containers[0].name"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := checked(t, parse("-", []byte(tc.text))).Findings
			for i, f := range got {
				line := fmt.Sprintf("%d %s %s: %s", f.Line, f.Severity, f.Field, f.Message)
				if i >= len(tc.want) {
					t.Errorf("found %s", line)
					continue
				}
				head, message, _ := strings.Cut(tc.want[i], ": ")
				if !strings.HasPrefix(line, head) || !strings.Contains(line, message) {
					t.Errorf("found %s\nwant  %s", line, tc.want[i])
				}
			}
			for _, want := range tc.want[min(len(got), len(tc.want)):] {
				t.Errorf("not found: %s", want)
			}
		})
	}
}

// TestFolders reads folders, with and without those in them.
func TestFolders(t *testing.T) {
	at := t.TempDir()
	if err := os.Mkdir(filepath.Join(at, "more"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.yaml": cloneSet("v1beta1", "", "") + "---\n# nothing\n---\n" + deployment("", ""), "b.txt": "a: b: c", "more/c.json": `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Secret"}]}`} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for recursive, want := range map[bool]int{false: 2, true: 3} {
		got, err := Read(nil, []string{at}, recursive)
		if err != nil || len(got) != want {
			t.Errorf("%d objects, want %d: %v", len(got), want, err)
		}
	}
	if _, err := Read(nil, []string{filepath.Join(at, "none")}, false); err == nil {
		t.Error("a file that is not there is read")
	}
}

// TestAllKeysAreKnown reads the names of keys in their source: a key that is in no list would be called unknown.
func TestAllKeysAreKnown(t *testing.T) {
	files, err := filepath.Glob("../../../api/keys/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, is := n.(*ast.BasicLit)
			if !is || literal.Kind != token.STRING {
				return true
			}
			key, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			if domain, _, slash := strings.Cut(key, "/"); !slash || !strings.HasSuffix(domain, "kruise.io") {
				return true
			}
			found++
			_, users := byUsers()[key]
			if !users && !slices.Contains(byControllers(), key) && !slices.Contains(prefixes(), key) {
				t.Errorf("key %s is in no list", key)
			}
			return true
		})
	}
	if found < 80 {
		t.Errorf("only %d keys were found", found)
	}
}
