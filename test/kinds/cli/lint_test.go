package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/cli/lint"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// lintCases are objects that the webhooks refuse, or that the schema refuses before they are asked.
func lintCases() map[string]string {
	return map[string]string{
		"labels that the selector does not select": strings.Replace(replicated("apps.kruise.io/v1beta1", "CloneSet", "replicas: 1"), "labels: {app: web}", "labels: {app: shop}", 1),
		"the same in v1alpha1":                     strings.Replace(replicated("apps.kruise.io/v1alpha1", "CloneSet", "replicas: 1"), "labels: {app: web}", "labels: {app: shop}", 1),
		"a negative number":                        replicated("apps.kruise.io/v1beta1", "CloneSet", "replicas: -1"),
		"a type that is not":                       replicated("apps.kruise.io/v1beta1", "CloneSet", "updateStrategy: {type: Sometimes}"),
		"a name that is none":                      strings.Replace(replicated("apps.kruise.io/v1beta1", "CloneSet", "replicas: 1"), "name: web}", "name: Web}", 1),
		"a StatefulSet that selects others":        strings.Replace(replicated("apps.kruise.io/v1beta1", "StatefulSet", "serviceName: web"), "labels: {app: web}", "labels: {app: shop}", 1),
		"a DaemonSet that selects others":          strings.Replace(replicated("apps.kruise.io/v1alpha1", "DaemonSet", "minReadySeconds: 1"), "labels: {app: web}", "labels: {app: shop}", 1),
		"a budget of nothing": `
apiVersion: policy.kruise.io/v1beta1
kind: PodUnavailableBudget
metadata: {name: web}
spec: {maxUnavailable: 1}
`,
		"a schedule that is none": `
apiVersion: apps.kruise.io/v1beta1
kind: AdvancedCronJob
metadata: {name: web}
spec:
  schedule: "every day"
  template: {jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}}}}
`,
		"a sidecar of two SidecarSets": `
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: lint-other}
spec: {selector: {matchLabels: {lint: "yes"}}, containers: [{name: log, image: "log:v1"}]}
`,
		"steps that go back": strings.Replace(steps, `{replicas: 1}, {replicas: 2}`, `{replicas: 2}, {replicas: 1}`, 1),
	}
}

// TestLint asks lint, and the API server with the webhooks of the managers, about the same objects: both answer the same, to the letter.
func TestLint(t *testing.T) {
	e := newEnv(t)
	server, err := lint.NewServer(e.Cluster.Client, time.Now)
	e.Must(err)
	first := e.Manifest(strings.Replace(lintCases()["a sidecar of two SidecarSets"], "lint-other", "lint-first", 1))
	first.SetNamespace("")
	e.Must(e.Create(e.Ctx, first))
	e.CleanUp(first)
	for name, text := range lintCases() {
		t.Run(name, func(t *testing.T) {
			if e.answersAlike(t, server, e.Manifest(text)) == "" {
				t.Error("it is taken")
			}
		})
	}
	root, err := cluster.Root()
	e.Must(err)
	files, err := filepath.Glob(filepath.Join(root, "examples", "*.yaml"))
	e.Must(err)
	manifests, err := lint.Read(nil, files, false)
	e.Must(err)
	// The schema alone is asked about the first, and the managers of this suite have the gates of the others off.
	notHere := []string{"ContainerRecreateRequest", "ImagePullJob", "ImageListPullJob", "ResourceDistribution"}
	asked := 0
	for _, m := range manifests {
		if m.Unreadable != nil || !server.Has(m.Object.GroupVersionKind().GroupKind()) || slices.Contains(notHere, m.Object.GetKind()) {
			continue
		}
		asked++
		m.Object.SetNamespace(e.Namespace)
		t.Run(filepath.Base(m.File), func(t *testing.T) { e.answersAlike(t, server, m.Object) })
	}
	if asked < 30 {
		t.Errorf("only %d examples were asked about", asked)
	}
}

// answersAlike compares both answers to the creation of an object, and returns the message.
func (e *env) answersAlike(t *testing.T, server *lint.Server, o *unstructured.Unstructured) string {
	t.Helper()
	switch o.GetKind() {
	case "SidecarSet", "ResourceDistribution", "NodeImage":
		o.SetNamespace("")
	}
	answer, err := server.Create(e.Ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	if err := e.Create(e.Ctx, o.DeepCopy(), client.DryRunAll); err != nil {
		want = err.Error()
	}
	if got := answer.Message(); got != want {
		t.Errorf("lint answers\n%s\nand the API server\n%s", got, want)
	}
	return want
}

// TestLintCommand runs the command without a cluster.
func TestLintCommand(t *testing.T) {
	e := newEnv(t)
	at := filepath.Join(t.TempDir(), "web.yaml")
	e.Must(os.WriteFile(at, []byte(lintCases()["a negative number"]), 0o600))
	e.ends(1, "spec.replicas: Invalid value: -1", "lint", "-f", at)
	e.ends(1, "no file is named", "lint")
	e.Must(os.WriteFile(at, []byte(replicated("apps.kruise.io/v1alpha1", "CloneSet", "replicas: 1")), 0o600))
	e.ok("the API server would take all of them", "lint", "-f", at)
	var found lint.Result
	e.encoded(&found, "lint", "-f", filepath.Dir(at))
	if found.Objects != 1 || found.Ours != 1 {
		t.Errorf("it found %+v", found)
	}
}
