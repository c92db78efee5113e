package access

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
)

func TestNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		args        []string
		defaultType string
		want        []Target
		refused     string
	}{
		"TYPE/NAME":                   {[]string{"clone/web"}, "", []Target{{"clone", "web"}}, ""},
		"several of them":             {[]string{"clone/web", "asts/db"}, "", []Target{{"clone", "web"}, {"asts", "db"}}, ""},
		"TYPE NAME":                   {[]string{"cloneset", "web", "api"}, "", []Target{{"cloneset", "web"}, {"cloneset", "api"}}, ""},
		"a type alone":                {[]string{"clonesets"}, "", []Target{{"clonesets", ""}}, ""},
		"a name of the default type":  {[]string{"web"}, "rollout", []Target{{"rollout", "web"}}, ""},
		"the default type and a name": {[]string{"rollout", "web"}, "rollout", []Target{{"rollout", "web"}}, ""},
		"a full type and a name":      {[]string{"rollouts.v1beta1.rollouts.kruise.io", "web"}, "rollout", []Target{{"rollouts.v1beta1.rollouts.kruise.io", "web"}}, ""},
		"an object with that name":    {[]string{"rollout"}, "rollout", []Target{{"rollout", "rollout"}}, ""},
		"nothing":                     {nil, "", nil, "no object is named"},
		"no name after the slash":     {[]string{"clone/"}, "", nil, "is not TYPE/NAME"},
		"two slashes":                 {[]string{"a/b/c"}, "", nil, "is not TYPE/NAME"},
		"both forms":                  {[]string{"clone", "clone/web"}, "", nil, "either TYPE NAME or TYPE/NAME"},
		"both forms, the other way":   {[]string{"clone/web", "api"}, "", nil, "is not TYPE/NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Named(tc.args, tc.defaultType)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("error %v, want one about %q", err, tc.refused)
				}
				return
			}
			if d := cmp.Diff(tc.want, got); err != nil || d != "" {
				t.Error(err, d)
			}
		})
	}
}

// TestPatchOf checks what is written of a change, in either version.
func TestPatchOf(t *testing.T) {
	const text = `{metadata: {name: web, namespace: shop, uid: u, resourceVersion: "7"}, spec: {replicas: 3, template: {spec: {containers: [{name: app, image: a:1, newer: kept}]}}}}`
	for version, want := range map[string]string{
		"v1beta1":  `{"metadata":{"resourceVersion":"7","uid":"u"},"spec":{"updateStrategy":{"rollingUpdate":{"paused":true}}}}`,
		"v1alpha1": `{"metadata":{"resourceVersion":"7","uid":"u"},"spec":{"updateStrategy":{"paused":true}}}`,
	} {
		t.Run(version, func(t *testing.T) {
			kind, err := kinds.Of(schema.GroupKind{Group: "apps.kruise.io", Kind: "CloneSet"})
			if err != nil {
				t.Fatal(err)
			}
			read := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(text), &read.Object); err != nil {
				t.Fatal(err)
			}
			served := schema.GroupVersion{Group: "apps.kruise.io", Version: version}
			read.SetGroupVersionKind(served.WithKind("CloneSet"))
			o, err := toHub(kind, served, read)
			if err != nil {
				t.Fatal(err)
			}
			wanted := o.DeepCopy()
			if patch, err := patchOf(o, wanted); err != nil || patch != nil {
				t.Errorf("nothing was changed, and the patch is %s, %v", patch, err)
			}
			if err := unstructured.SetNestedField(wanted.Object, true, kind.Paused...); err != nil {
				t.Fatal(err)
			}
			patch, err := patchOf(o, wanted)
			if err != nil || string(patch) != want {
				t.Errorf("the patch is %s, %v\nwant %s", patch, err, want)
			}
		})
	}
}

// TestMeant checks which kind is meant by a name that others have as well.
func TestMeant(t *testing.T) {
	rollout := schema.GroupResource{Resource: "rollout"}
	argo := schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}
	ambiguous := &meta.AmbiguousResourceError{PartialResource: rollout.WithVersion("")}
	for name, tc := range map[string]struct {
		found    schema.GroupVersionKind
		resource schema.GroupResource
		err      error
		want     string
		refused  string
	}{
		"ours":                     {schema.GroupVersionKind{Group: "rollouts.kruise.io", Kind: "Rollout"}, rollout, nil, "rollouts.kruise.io", ""},
		"that of another project":  {argo, rollout, nil, "rollouts.kruise.io", ""},
		"both":                     {schema.GroupVersionKind{}, rollout, ambiguous, "rollouts.kruise.io", ""},
		"the other one, by name":   {argo, schema.GroupResource{Group: "argoproj.io", Resource: "rollout"}, nil, "", "is no kind that this program knows"},
		"ours, which is not there": {schema.GroupVersionKind{}, rollout, &meta.NoResourceMatchError{}, "", "the cluster has no kind Rollout"},
		"what nobody has":          {schema.GroupVersionKind{}, schema.GroupResource{Resource: "thing"}, &meta.NoResourceMatchError{}, "", "has no resource"},
	} {
		t.Run(name, func(t *testing.T) {
			kind, err := meant(tc.found, tc.resource, tc.resource.Resource, tc.err)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("error %v, want one about %q", err, tc.refused)
				}
				return
			}
			if err != nil || kind.Group != tc.want {
				t.Errorf("it is %v, %v, want one of %s", kind, err, tc.want)
			}
		})
	}
}
