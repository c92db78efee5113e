package sidecarset

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// TestTheFirstManifest applies, strictly, a manifest of the first releases: its strategy works, is kept as it was written, and is warned of.
func TestTheFirstManifest(t *testing.T) {
	e := newEnv(t)
	root, err := cluster.Root()
	e.Must(err)
	file := filepath.Join(root, "examples", "sidecarset-basic.yaml")
	set := &v1beta1.SidecarSet{}
	set.Name = "test-sidecarset"
	e.CleanUp(set)
	apply := func(file string) {
		t.Helper()
		_, err := shared.Kubectl(e.Ctx, "-n", e.Namespace, "apply", "--validate=strict", "-f", file)
		e.Must(err)
	}
	limit := func(want int) {
		t.Helper()
		e.Must(e.Get(e.Ctx, client.ObjectKeyFromObject(set), set))
		if got := set.Spec.UpdateStrategy.MaxUnavailable.IntValue(); got != want {
			t.Errorf("maxUnavailable is %d, want %d", got, want)
		}
	}
	apply(file)
	limit(2)
	before := set.DeepCopy()
	apply(file)
	limit(2)
	// Other than kubectl, which sees only that defaults are not in the file, the API server sees that nothing changes.
	if set.Generation != before.Generation || !maps.Equal(set.Annotations, before.Annotations) || !maps.Equal(set.Labels, before.Labels) {
		t.Errorf("applying the same again makes %+v of %+v", set.ObjectMeta, before.ObjectMeta)
	}
	text, err := os.ReadFile(file)
	e.Must(err)
	changed := filepath.Join(t.TempDir(), "changed.yaml")
	e.Must(os.WriteFile(changed, []byte(strings.Replace(string(text), "maxUnavailable: 2", "maxUnavailable: 3", 1)), 0o600))
	apply(changed)
	limit(3)
	var older v1alpha1.SidecarSet
	e.Must(e.Get(e.Ctx, client.ObjectKeyFromObject(set), &older))
	if got := older.Spec.Strategy; got == nil || got.RollingUpdate.MaxUnavailable.IntValue() != 3 {
		t.Errorf("the older version shows the strategy %+v", got)
	}
	e.Eventually("the Pod has its sidecar", func() error { return e.ready(1) })
	p := e.pod("test-pod")
	if imageOf(p, "sidecar1") != "centos:6.7" || !strings.Contains(p.Annotations["kruise.io/sidecarset-hash"], "4zbdc2xzc8w7c4x2c6984266bc9d7zf87x946v7xdfv988f6c6fc9b7dz47w8zd5") {
		t.Errorf("the Pod is not as the original made it:\n%s", e.describe())
	}
}

// TestTheFirstSpellingIsWarnedOf writes a strategy as the first releases did: users are told once what to write instead.
func TestTheFirstSpellingIsWarnedOf(t *testing.T) {
	e := newEnv(t)
	var heard warnings
	config := *shared.Config
	config.WarningHandler = &heard
	c, err := client.New(&config, client.Options{Scheme: e.Scheme()})
	e.Must(err)
	set := &v1alpha1.SidecarSet{}
	e.Must(yaml.UnmarshalStrict([]byte(`{metadata: {name: warned}, spec: {selector: {matchLabels: {app: warned}}, containers: [{name: warned, image: i}], strategy: {rollingUpdate: {maxUnavailable: 2}}}}`), set))
	e.Must(c.Create(e.Ctx, set, client.DryRunAll))
	if want := []string{"spec.strategy is deprecated, use spec.updateStrategy.maxUnavailable"}; !slices.Equal(heard, want) {
		t.Errorf("the warnings are %q, want %q", heard, want)
	}
}

// warnings are what the API server warns of.
type warnings []string

func (w *warnings) HandleWarningHeader(_ int, _, text string) { *w = append(*w, text) }

// TestExamplesAreAccepted runs beside no other test: a SidecarSet of one may have a container of the same name, and its selectors do not say
// that they select other Pods.
func TestExamplesAreAccepted(t *testing.T) {
	e := newSerialEnv(t)
	root, err := cluster.Root()
	e.Must(err)
	files, err := filepath.Glob(filepath.Join(root, "examples", "sidecarset-*.yaml"))
	e.Must(err)
	if len(files) < 4 {
		t.Fatalf("there are %d examples", len(files))
	}
	for _, file := range files {
		if _, err := shared.Kubectl(e.Ctx, "-n", e.Namespace, "apply", "--dry-run=server", "--validate=strict", "-f", file); err != nil {
			t.Errorf("%s: %v", filepath.Base(file), err)
		}
	}
}

// TestARefusalNamesTheField goes through the API server: what it says is what users see.
func TestARefusalNamesTheField(t *testing.T) {
	e := newEnv(t)
	for name, tc := range map[string]struct{ set, want string }{
		"an empty selector":  {`{selector: {}, containers: [{name: a, image: a}]}`, "spec.selector: Invalid value: empty selector is not valid for sidecarset."},
		"no container":       {`{selector: {matchLabels: {a: b}}}`, "spec.containers: Required value: containers or initContainers must have an item"},
		"a broken container": {`{selector: {matchLabels: {a: b}}, containers: [{name: a, image: a, volumeMounts: [{name: data, mountPath: /data}]}]}`, "spec.containers[0].volumeMounts[0].name: Not found"},
		"an unknown place":   {`{selector: {matchLabels: {a: b}}, containers: [{name: a, image: a, podInjectPolicy: Middle}]}`, "spec.containers[0].podInjectPolicy: Unsupported value"},
		"a partition beside": {`{selector: {matchLabels: {a: b}}, containers: [{name: a, image: a}], updateStrategy: {partition: 1, selector: {matchLabels: {c: d}}}}`, "spec.updateStrategy.partition: Invalid value: must be 0 together with a selector"},
		"an annotation":      {`{selector: {matchLabels: {a: b}}, containers: [{name: a, image: a}], patchPodMetadata: [{annotations: {x: one}}]}`, "spec.patchPodMetadata[0].annotations[x]: Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "set.yaml")
			e.Must(os.WriteFile(file, []byte("{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: refused}, spec: "+tc.set+"}"), 0o600))
			_, err := shared.Kubectl(e.Ctx, "create", "--dry-run=server", "-f", file)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
