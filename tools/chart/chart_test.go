package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"
)

// repository is the folder of the repository.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// made returns the charts as they are generated for the version of the Makefile.
func made(t *testing.T) []chart {
	t.Helper()
	charts, err := request{root: repository(t), version: versionOf(t)}.charts()
	if err != nil {
		t.Fatal(err)
	}
	return charts
}

func versionOf(t *testing.T) version {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(repository(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^VERSION := (v\S+)$`).FindSubmatch(makefile)
	if found == nil {
		t.Fatal("the Makefile has no VERSION")
	}
	return version(found[1])
}

// install returns what Helm makes of a chart of the repository in a release, without a cluster. Values are as after --set.
func install(t *testing.T, chart, namespace string, values ...string) (*release.Release, error) {
	t.Helper()
	set := map[string]any{}
	for _, v := range values {
		if err := strvals.ParseInto(v, set); err != nil {
			t.Fatal(err)
		}
	}
	return installWith(t, chart, namespace, set)
}

func installWith(t *testing.T, chart, namespace string, set map[string]any) (*release.Release, error) {
	t.Helper()
	loaded, err := loader.Load(filepath.Join(repository(t), "charts", chart))
	if err != nil {
		t.Fatal(err)
	}
	i := action.NewInstall(&action.Configuration{})
	i.DryRun, i.ClientOnly, i.ReleaseName, i.Namespace = true, true, "test", namespace
	i.KubeVersion = &chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	return i.Run(loaded, set)
}

// rendered returns the objects of a release by kind, namespace and name, without hooks.
func rendered(t *testing.T, chart string, values ...string) map[string]any {
	t.Helper()
	r, err := install(t, chart, "default", values...)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	for _, text := range releaseutil.SplitManifests(r.Manifest) {
		addTo(t, out, []byte(text))
	}
	return out
}

func addTo(t *testing.T, out map[string]any, text []byte) {
	t.Helper()
	var o map[string]any
	if err := yaml.UnmarshalStrict(text, &o); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(o) == 0 {
		return
	}
	metadata := o["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	key := strings.Join([]string{o["kind"].(string), namespace, metadata["name"].(string)}, " ")
	if out[key] != nil {
		t.Errorf("there are two objects %s", key)
	}
	out[key] = o
}

// kustomized returns the objects that kustomize makes.
func kustomized(t *testing.T, folder string, components ...string) map[string]any {
	t.Helper()
	config := filepath.Join(repository(t), "config")
	for i := range components {
		components[i] = filepath.Join(config, components[i])
	}
	all, err := buildWith(filepath.Join(config, folder), components, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	for _, o := range all {
		text, err := encode(o.node)
		if err != nil {
			t.Fatal(err)
		}
		addTo(t, out, []byte(text))
	}
	return out
}

// unkept takes off what only Helm reads.
func unkept(objects map[string]any) map[string]any {
	for _, o := range objects {
		metadata := o.(map[string]any)["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		delete(annotations, "helm.sh/resource-policy")
		if annotations != nil && len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	return objects
}

func TestTheChartsOfTheRepositoryAreThoseThatAreGenerated(t *testing.T) {
	for _, c := range made(t) {
		want, err := c.files(versionOf(t))
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(repository(t), "charts", c.name)
		got := map[string]string{}
		err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			name, _ := filepath.Rel(dir, path)
			got[name] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for name := range maps.Keys(want) {
			if got[name] != want[name] {
				t.Errorf("charts/%s/%s is not what is generated: run make gen", c.name, name)
			}
			delete(got, name)
		}
		for name := range got {
			t.Errorf("charts/%s/%s is not generated: run make gen", c.name, name)
		}
	}
}

// TestAChartIsWhatKustomizeMakes compares object by object what the two ways of installing give a cluster.
func TestAChartIsWhatKustomizeMakes(t *testing.T) {
	for name, tc := range map[string]struct {
		chart, folder string
		components    []string
		values        []string
	}{
		"the default": {chart: "kruise", folder: "default"},
		"Rollouts":    {chart: "kruise-rollout", folder: "rollouts"},
		"distributed": {chart: "kruise", folder: "default", components: []string{"resourcedistribution"}, values: []string{"resourceDistribution.enabled=true"}},
		"distributed kinds": {chart: "kruise", folder: "default", components: []string{"resourcedistribution",
			"resourcedistribution/kinds"}, values: []string{"resourceDistribution.enabled=true,resourceDistribution.moreKinds=true"}},
	} {
		t.Run(name, func(t *testing.T) {
			want := kustomized(t, tc.folder, tc.components...)
			if len(want) < 10 {
				t.Fatalf("kustomize makes %d objects", len(want))
			}
			if diff := cmp.Diff(want, unkept(rendered(t, tc.chart, tc.values...))); diff != "" {
				t.Errorf("objects (-kustomize +chart):\n%s", diff)
			}
		})
	}
}

func TestOtherClustersAddWhatTheirFolderHas(t *testing.T) {
	before := rendered(t, "kruise")
	got := rendered(t, "kruise", "multicluster.enabled=true,featureGates=UnitedDeploymentMultiCluster=true")
	want := kustomized(t, "multicluster")
	for key := range before {
		if !strings.HasPrefix(key, "Deployment") && !strings.HasPrefix(key, "DaemonSet") { // which have the gate
			if diff := cmp.Diff(before[key], got[key]); diff != "" {
				t.Errorf("%s changes:\n%s", key, diff)
			}
		}
		delete(got, key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-kustomize +chart):\n%s", diff)
	}
	several := rendered(t, "kruise", "multicluster.enabled=true,multicluster.namespaces={one,two}")
	for _, namespace := range []string{"one", "two"} {
		if several["Role "+namespace+" kruise-cluster-objects"] == nil || several["RoleBinding "+namespace+" kruise-cluster-objects"] == nil {
			t.Errorf("namespace %s has no role for its cluster objects", namespace)
		}
	}
}

// TestAnUninstallKeeps what users have: their objects, and what they have put into a namespace.
func TestAnUninstallKeeps(t *testing.T) {
	keeps := func(chart string, values ...string) (kept, kinds []string) {
		for key, o := range rendered(t, chart, values...) {
			annotations, _ := o.(map[string]any)["metadata"].(map[string]any)["annotations"].(map[string]any)
			if annotations["helm.sh/resource-policy"] == "keep" {
				kept = append(kept, key)
			}
			if strings.HasPrefix(key, "CustomResourceDefinition ") {
				kinds = append(kinds, key)
			}
		}
		slices.Sort(kept)
		slices.Sort(kinds)
		return kept, kinds
	}
	for _, chart := range []string{"kruise", "kruise-rollout"} {
		var more []string
		if chart == "kruise" {
			more = []string{"Namespace  kruise-daemon-config"}
		}
		kept, kinds := keeps(chart)
		if diff := cmp.Diff(append(slices.Clone(kinds), more...), kept); diff != "" || len(kinds) == 0 {
			t.Errorf("%s keeps (-want +got):\n%s", chart, diff)
		}
		if kept, _ = keeps(chart, "crds.keep=false"); !slices.Equal(kept, more) {
			t.Errorf("%s with crds.keep=false keeps %v", chart, kept)
		}
		if _, kinds = keeps(chart, "crds.managed=false"); len(kinds) > 0 {
			t.Errorf("%s with crds.managed=false has %v", chart, kinds)
		}
	}
}

func TestNothingStaysInTheUsualNamespace(t *testing.T) {
	for chart, tc := range map[string]struct{ usual, values string }{
		"kruise": {"kruise-system", "multicluster.enabled=true,resourceDistribution.enabled=true,resourceDistribution.moreKinds=true," +
			"metrics.serviceMonitor.enabled=true"},
		"kruise-rollout": {"kruise-rollout", "uninstall.guard=true"},
	} {
		r, err := install(t, chart, "default", "installation.namespace=elsewhere,"+tc.values)
		if err != nil {
			t.Fatal(err)
		}
		all := r.Manifest
		for _, hook := range r.Hooks {
			all += hook.Manifest
		}
		// Accounts, Leases and images may have the name of the namespace. Nothing is in it, and no selector is about it.
		usual := regexp.MustCompile(`(?m)^\s*(namespace: |kubernetes.io/metadata.name: )` + tc.usual + `\s*$`)
		if found := usual.FindAllString(all, -1); len(found) > 0 {
			t.Errorf("%s: %d objects name the usual namespace", chart, len(found))
		}
		if !strings.Contains(all, "namespace: elsewhere") || !strings.Contains(all, "kind: Namespace\nmetadata:\n") {
			t.Errorf("%s has nothing in namespace elsewhere", chart)
		}
		if got := strings.Count(all, "\n      - elsewhere\n"); got == 0 {
			t.Errorf("%s: no webhook leaves out namespace elsewhere", chart)
		}
	}
}

// TestTheNamespaceOfTheReleaseIsNotMade: Helm has to have it before it stores the release.
func TestTheNamespaceOfTheReleaseIsNotMade(t *testing.T) {
	for chart, namespace := range map[string]string{"kruise": "kruise-system", "kruise-rollout": "kruise-rollout"} {
		r, err := install(t, chart, namespace)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(r.Manifest, "kind: Namespace\nmetadata:\n  name: "+namespace) {
			t.Errorf("%s makes namespace %s", chart, namespace)
		}
	}
}
