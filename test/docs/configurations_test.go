package docs

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	kubeletv1 "k8s.io/kubelet/config/v1"
	"sigs.k8s.io/yaml"
)

// TestConfigurations: what pages show of files that kubelets, API servers and clients read has the fields that these know.
func TestConfigurations(t *testing.T) {
	kinds := map[metav1.TypeMeta]func() any{
		{APIVersion: "kubelet.config.k8s.io/v1", Kind: "CredentialProviderConfig"}: func() any { return &kubeletv1.CredentialProviderConfig{} },
		{APIVersion: "apiserver.config.k8s.io/v1", Kind: "AdmissionConfiguration"}: func() any { return &apiserverv1.AdmissionConfiguration{} },
		{APIVersion: "v1", Kind: "Config"}:                                         func() any { return &clientcmdv1.Config{} },
	}
	found := 0
	for _, p := range read(t).pages {
		for _, block := range p.Blocks {
			if block.Language != "yaml" {
				continue
			}
			for document := range bytes.SplitSeq([]byte(block.Text), []byte("\n---\n")) {
				var is metav1.TypeMeta
				if err := yaml.Unmarshal(document, &is); err != nil {
					t.Errorf("%s: %v", block, err)
				}
				if into, known := kinds[is]; known {
					found++
					if err := yaml.UnmarshalStrict(document, into()); err != nil {
						t.Errorf("%s: %v", block, err)
					}
				}
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d configurations were found", found)
	}
}

// TestValues: the values of the charts that pages show are there. Such a block is a fragment of Values, or with a path of a part of them.
func TestValues(t *testing.T) {
	b := read(t)
	var charts []any
	for _, chart := range []string{"kruise", "kruise-rollout"} {
		var values any
		if err := yaml.Unmarshal([]byte(b.file("charts/"+chart+"/values.yaml")), &values); err != nil {
			t.Fatal(err)
		}
		charts = append(charts, values)
	}
	for _, p := range b.pages {
		for _, block := range p.Blocks {
			if block.Kind != "Values" {
				continue
			}
			var fragment any
			if err := yaml.Unmarshal([]byte(block.Text), &fragment); err != nil {
				t.Errorf("%s: %v", block, err)
			}
			if block.Path != "" {
				for _, step := range slices.Backward(strings.Split(block.Path, ".")) {
					fragment = map[string]any{step: fragment}
				}
			}
			if missing := missingIn(charts, fragment); missing != "" {
				t.Errorf("%s: no chart has the value %s", block, missing)
			}
		}
	}
	if missingIn(charts, map[string]any{"manager": map[string]any{"replica": 1}}) != "manager.replica" {
		t.Error("a value that no chart has is not found")
	}
}

// has reports whether values have one of a name. A map without any takes all, as annotations do.
func has(values map[string]any, name string) bool {
	_, is := values[name]
	return is || len(values) == 0
}

// missingIn returns the first value that none of the charts has.
func missingIn(charts []any, fragment any) string {
	fields, is := fragment.(map[string]any)
	if !is {
		return ""
	}
	for name, value := range fields {
		var below []any
		for _, chart := range charts {
			if values, is := chart.(map[string]any); chart == nil || is && has(values, name) {
				below = append(below, values[name]) // nil for what a map without any takes, below which anything may be
			}
		}
		if len(below) == 0 {
			return name
		}
		if missing := missingIn(below, value); missing != "" {
			return name + "." + missing
		}
	}
	return ""
}
