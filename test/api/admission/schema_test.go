package admission

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// edits are values, as YAML, by the paths of fields, such as "spec.replicas"; "~" removes a field.
type edits = map[string]string

// schema is what the CRD of a kind refuses by itself, and so refuses while there is no manager.
type schema struct {
	// crd is the name of the file in config/crd/bases.
	crd string
	// object is a valid object of the hub version, older the same in v1alpha1 where it differs in more than the version.
	object string
	// harmless changes a field that no rule is about.
	harmless edits
	creates  map[string]create
	updates  map[string]update
}

// create is the creation of an object with edits.
type create struct {
	set   edits
	older bool   // in v1alpha1
	want  string // a part of the refusal; "" if it is allowed
	// unstorable says that no earlier CRD let the object be stored.
	unstorable bool
	// less makes a stored object less wrong, which is allowed.
	less edits
}

// update is the update of an object that is stored with the edits old to one with the edits new.
type update struct {
	old, new edits
	want     string
}

func schemas() map[string]schema {
	return map[string]schema{
		"CloneSet":         cloneSetSchema(),
		"DaemonSet":        daemonSetSchema(),
		"StatefulSet":      statefulSetSchema(),
		"UnitedDeployment": unitedDeploymentSchema(),
	}
}

// TestTheSchemaAloneHolds: these rules need no webhook, and so hold while there is no manager. What an earlier CRD without the rules has let pass can
// still be updated, as long as the update leaves alone what is wrong.
func TestTheSchemaAloneHolds(t *testing.T) {
	at := scene.NewStage(t, cluster.Options{Bare: true})
	s := &server{Stage: at, ctx: at.Ctx}
	kinds := map[string]*schemaTest{}
	for kind, schema := range schemas() {
		test := &schemaTest{server: s, schema: schema, kind: kind, stored: map[string]*unstructured.Unstructured{}}
		kinds[kind] = test
		test.install(lax)
	}
	for _, test := range kinds {
		test.store()
	}
	for _, test := range kinds {
		test.install(func(*apiextensionsv1.JSONSchemaProps) {})
	}
	for kind, test := range kinds {
		t.Run(kind, test.run)
	}
}

// schemaTest tests the schema of one kind.
type schemaTest struct {
	*server
	schema
	kind string
	// stored are the objects that the CRD would refuse today, by the names of the cases.
	stored map[string]*unstructured.Unstructured
}

// install installs the CRD with its schemas changed.
func (s *schemaTest) install(change func(*apiextensionsv1.JSONSchemaProps)) {
	s.Helper()
	root, err := cluster.Root()
	s.must(err)
	text, err := os.ReadFile(filepath.Join(root, "config/crd/bases", s.crd))
	s.must(err)
	crd, installed := &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
	s.must(yaml.Unmarshal(text, crd))
	for i := range crd.Spec.Versions {
		change(crd.Spec.Versions[i].Schema.OpenAPIV3Schema)
	}
	switch err := s.Client.Get(s.ctx, client.ObjectKeyFromObject(crd), installed); {
	case apierrors.IsNotFound(err):
		s.must(s.Client.Create(s.ctx, crd))
	default:
		s.must(err)
		installed.Spec = crd.Spec
		s.must(s.Client.Update(s.ctx, installed))
	}
}

// lax takes all rules out of a schema but the types of fields and which of them have to be there.
func lax(s *apiextensionsv1.JSONSchemaProps) {
	s.XValidations, s.Enum, s.Minimum, s.Maximum, s.Pattern = nil, nil, nil, nil, ""
	s.MinLength, s.MaxLength, s.MinItems, s.MaxItems, s.Format = nil, nil, nil, nil, ""
	if s.XListType != nil {
		atomic := "atomic"
		s.XListType, s.XListMapKeys = &atomic, nil
	}
	for name := range s.Properties {
		property := s.Properties[name]
		lax(&property)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		lax(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		lax(s.AdditionalProperties.Schema)
	}
}

// edited returns the valid object with edits.
func (s *schemaTest) edited(name string, older bool, sets ...edits) *unstructured.Unstructured {
	s.Helper()
	o := &unstructured.Unstructured{}
	s.must(yaml.Unmarshal([]byte(s.object), &o.Object))
	if older {
		o.SetAPIVersion(o.GroupVersionKind().Group + "/v1alpha1")
	}
	o.SetName(name)
	for _, set := range sets {
		s.edit(o, set)
	}
	return o
}

func (s *schemaTest) edit(o *unstructured.Unstructured, set edits) {
	s.Helper()
	for _, path := range slices.Sorted(maps.Keys(set)) {
		steps := strings.Split(path, ".")
		if set[path] == "~" {
			unstructured.RemoveNestedField(o.Object, steps...)
			continue
		}
		var value any
		s.must(yaml.Unmarshal([]byte(set[path]), &value))
		s.must(unstructured.SetNestedField(o.Object, whole(value), steps...))
	}
}

// whole returns value with whole numbers where JSON has numbers.
func whole(value any) any {
	switch value := value.(type) {
	case float64:
		return int64(value)
	case []any:
		for i := range value {
			value[i] = whole(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = whole(value[key])
		}
	}
	return value
}

// store creates what will be refused once the CRD has its rules.
func (s *schemaTest) store() {
	s.Helper()
	s.eventually("the CRD is served", func() error {
		return s.Client.Create(s.ctx, s.edited("probe", false), client.DryRunAll)
	})
	for i, name := range slices.Sorted(maps.Keys(s.creates)) {
		if c := s.creates[name]; c.want != "" && !c.older && !c.unstorable {
			s.stored[name] = s.edited(fmt.Sprintf("stored-%d", i), false, c.set)
			if err := s.Client.Create(s.ctx, s.stored[name]); err != nil {
				s.Fatalf("%s: storing %q: %v", s.kind, name, err)
			}
		}
	}
}

func (s *schemaTest) run(t *testing.T) {
	first := slices.MinFunc(slices.Collect(maps.Keys(s.stored)), strings.Compare)
	s.eventually("the rules are in force", func() error {
		if err := s.Client.Create(s.ctx, s.edited("probe", false, s.creates[first].set), client.DryRunAll); err == nil {
			return fmt.Errorf("%s is allowed", first)
		}
		return nil
	})
	for name, c := range s.creates {
		t.Run(name, func(t *testing.T) {
			o := s.edited("new", c.older, c.set)
			err := s.Client.Create(s.ctx, o.DeepCopy(), client.DryRunAll)
			wantError(t, err, c.want)
			lintAnswers(t, o, err)
		})
	}
	for name, u := range s.updates {
		t.Run("update/"+name, func(t *testing.T) {
			o := s.edited("changed", false, u.old)
			s.must(s.Client.Create(s.ctx, o))
			defer func() { s.must(s.Client.Delete(context.WithoutCancel(s.ctx), o)) }()
			changed := o.DeepCopy()
			s.edit(changed, u.new)
			wantError(t, s.Client.Update(s.ctx, changed, client.DryRunAll), u.want)
		})
	}
	for name, o := range s.stored {
		t.Run("stored before/"+name, func(t *testing.T) {
			s.edit(o, s.harmless)
			wantError(t, s.Client.Update(s.ctx, o), "")
			s.edit(o, s.creates[name].less)
			wantError(t, s.Client.Update(s.ctx, o, client.DryRunAll), "")
		})
	}
}

// wantError checks for an ordinary 422 that says want; an empty want means no error.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "":
		if err != nil {
			t.Errorf("refused: %v", err)
		}
	case err == nil || !strings.Contains(err.Error(), want):
		t.Errorf("got %v, want %s", err, want)
	case apierrors.ReasonForError(err) != "Invalid" || codeOf(err) != http.StatusUnprocessableEntity:
		t.Errorf("got reason %s and code %d, want 422 Invalid", apierrors.ReasonForError(err), codeOf(err))
	}
}

func codeOf(err error) int32 {
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		return 0
	}
	return status.Status().Code
}
