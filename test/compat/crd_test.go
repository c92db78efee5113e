package compat

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"
)

// TestAPIServersTakeTheCRDs validates them as an API server does, which refuses rules that could cost it too much.
func TestAPIServersTakeTheCRDs(t *testing.T) {
	suite, err := filepath.Glob("../../config/crd/bases/*.yaml")
	rollouts, _ := filepath.Glob("../../config/rollouts/crd/rollouts.*.yaml") // the pattern is a good one
	if err != nil || len(suite) == 0 || len(rollouts) == 0 {
		t.Fatalf("found %d and %d CRDs: %v", len(suite), len(rollouts), err)
	}
	for _, f := range slices.Concat(suite, rollouts) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var v1 apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &v1); err != nil {
			t.Fatal(err)
		}
		apiextensionsv1.SetDefaults_CustomResourceDefinition(&v1)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
		var in apiextensions.CustomResourceDefinition
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &in, nil); err != nil {
			t.Fatal(err)
		}
		for _, v := range in.Spec.Versions {
			if v.Storage {
				in.Status.StoredVersions = []string{v.Name}
			}
		}
		for _, e := range validation.ValidateCustomResourceDefinition(context.Background(), &in) {
			t.Errorf("%s: %v", filepath.Base(f), e)
		}
	}
}
