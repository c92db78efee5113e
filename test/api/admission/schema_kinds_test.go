package admission

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// crds are the files of the kinds whose schemas are tested here. Those of CloneSet, StatefulSet and DaemonSet have tests of their own.
func crds() map[string]string {
	return map[string]string{
		"AdvancedCronJob": "apps.kruise.io_advancedcronjobs", "BroadcastJob": "apps.kruise.io_broadcastjobs",
		"ContainerRecreateRequest": "apps.kruise.io_containerrecreaterequests", "EphemeralJob": "apps.kruise.io_ephemeraljobs",
		"ImageListPullJob": "apps.kruise.io_imagelistpulljobs", "ImagePullJob": "apps.kruise.io_imagepulljobs", "NodeImage": "apps.kruise.io_nodeimages",
		"PersistentPodState": "apps.kruise.io_persistentpodstates", "ResourceDistribution": "apps.kruise.io_resourcedistributions",
		"NodePodProbe": "apps.kruise.io_nodepodprobes", "PodProbeMarker": "apps.kruise.io_podprobemarkers",
		"PodUnavailableBudget": "policy.kruise.io_podunavailablebudgets", "SidecarSet": "apps.kruise.io_sidecarsets",
		"WorkloadSpread": "apps.kruise.io_workloadspreads",
	}
}

// schemaCase is an object that a schema alone judges.
type schemaCase struct {
	kind string
	// version is the one that the kind is stored in unless set.
	version string
	name    string // "x" unless set
	spec    string
	want    string // "" if it is allowed
}

// ratchetCase is an object that was stored before the schema had a rule that it breaks.
type ratchetCase struct {
	schemaCase
	// change is a merge patch of another field. It must pass.
	change string
	// worse is a merge patch that breaks a rule anew. It must be refused, also in this object; "" if there is none.
	worse string
}

// kindSchemas is an API server that serves our kinds, without a manager.
type kindSchemas struct {
	*scene.Stage
	files map[string]*unstructured.Unstructured
}

// TestSchemasOfAllKinds asks an API server without a manager: it accepts all CRDs, refuses what their rules refuse, and lets what was stored before a
// rule be changed elsewhere.
func TestSchemasOfAllKinds(t *testing.T) {
	s := &kindSchemas{Stage: scene.NewStage(t, cluster.Options{Bare: true}), files: map[string]*unstructured.Unstructured{}}
	root, err := cluster.Root()
	s.Must(err)
	for kind, file := range crds() {
		text, err := os.ReadFile(filepath.Join(root, "config/crd/bases", file+".yaml"))
		s.Must(err)
		crd := &unstructured.Unstructured{}
		s.Must(yaml.Unmarshal(text, &crd.Object))
		s.files[kind] = crd
	}
	ratchets := slices.Concat(sidecarSetRatchets(), jobRatchets(), imageRatchets(), podRatchets())
	for _, kind := range slices.Sorted(maps.Keys(s.files)) {
		lax := s.files[kind].DeepCopy()
		withoutRules(lax.Object["spec"])
		s.Must(s.Client.Create(s.Ctx, lax))
	}
	for _, tc := range ratchets {
		s.soon(t, tc.kind+" is stored that breaks a rule to come", func() error { return s.Client.Create(s.Ctx, s.object(tc.schemaCase, "old")) })
	}
	for kind, crd := range s.files {
		patch, err := yaml.Marshal(map[string]any{"spec": crd.Object["spec"]})
		s.Must(err)
		patch, err = yaml.YAMLToJSON(patch)
		s.Must(err)
		lax := crd.DeepCopy()
		if err := s.Client.Patch(s.Ctx, lax, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Errorf("the API server does not take the CRD of %s: %v", kind, err)
		}
	}
	for _, tc := range ratchets {
		t.Run(tc.kind+", stored before a rule", func(t *testing.T) { s.ratchets(t, tc) })
	}
	tables := map[string]schemaCase{}
	for _, table := range []map[string]schemaCase{sidecarSetSchema(), jobSchema(), imageSchema(), podSchema(), operationsSchema()} {
		maps.Copy(tables, table)
	}
	for name, tc := range tables {
		t.Run(tc.kind+", "+name, func(t *testing.T) {
			o := s.object(tc, "new")
			err := s.Client.Create(s.Ctx, o.DeepCopy(), client.DryRunAll)
			wantError(t, err, tc.want)
			lintAnswers(t, o, err)
		})
	}
}

func (s *kindSchemas) ratchets(t *testing.T, tc ratchetCase) {
	t.Helper()
	s.soon(t, "the rule holds", func() error {
		if err := s.Client.Create(s.Ctx, s.object(tc.schemaCase, "new"), client.DryRunAll); err == nil || !strings.Contains(err.Error(), tc.want) {
			return fmt.Errorf("answered %v, want %s", err, tc.want) //nolint:errorlint // there may be none
		}
		return nil
	})
	patch := func(text string) error {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return s.Client.Patch(s.Ctx, s.object(tc.schemaCase, "old"), client.RawPatch(types.MergePatchType, raw))
	}
	if err := patch(tc.change); err != nil {
		t.Errorf("changing another field: %v", err)
	}
	if tc.worse != "" && patch(tc.worse) == nil {
		t.Error("a new mistake is let through")
	}
}

// soon waits until check succeeds, for as long as an API server takes to heed a CRD.
func (s *kindSchemas) soon(t *testing.T, what string, check func() error) {
	t.Helper()
	var err error
	for range 150 {
		if err = check(); err == nil {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Fatalf("%s: %v", what, err)
}

// object returns an object of a case; which tells those of one kind apart.
func (s *kindSchemas) object(tc schemaCase, which string) *unstructured.Unstructured {
	s.Helper()
	crd, o := s.files[tc.kind], &unstructured.Unstructured{Object: map[string]any{}}
	version := tc.version
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if fields, _ := v.(map[string]any); version == "" && fields["storage"] == true {
			version, _ = fields["name"].(string)
		}
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	var spec any
	s.Must(yaml.Unmarshal([]byte(tc.spec), &spec))
	o.Object["spec"] = spec
	o.SetAPIVersion(group + "/" + version)
	o.SetKind(tc.kind)
	if scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope"); scope == "Namespaced" {
		o.SetNamespace("default")
	}
	o.SetName(which)
	if tc.name != "" {
		o.SetName(tc.name + strings.TrimPrefix(which, "old"))
	}
	return o
}

// withoutRules takes the rules out of a schema. A property that has the name of a rule is a map, and stays.
func withoutRules(schema any) {
	switch schema := schema.(type) {
	case []any:
		for _, item := range schema {
			withoutRules(item)
		}
	case map[string]any:
		for _, rule := range []string{"x-kubernetes-validations", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"} {
			if _, property := schema[rule].(map[string]any); !property {
				delete(schema, rule)
			}
		}
		for _, child := range schema {
			withoutRules(child)
		}
	}
}
