package reference

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPagesAreAsGenerated: what the repository has is what the CustomResourceDefinitions say; every field of every served version has a
// description, or there are no pages.
func TestPagesAreAsGenerated(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	want, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(want) < 20 {
		t.Fatalf("there are %d pages only", len(want))
	}
	have, err := filepath.Glob(filepath.Join(root, Folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range have {
		if _, is := want[filepath.Base(file)]; !is {
			t.Errorf("%s is a page of no kind: run make gen", file)
		}
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(root, Folder, name))
		if err != nil || string(got) != text {
			t.Errorf("%s is not up to date: run make gen (%v)", name, err)
		}
	}
}

// TestPage: defaults, enumerations, limits and rules are shown, and a field without a description is refused.
func TestPage(t *testing.T) {
	const text = `
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Set, plural: sets, singular: set, shortNames: [s]}
  versions:
  - name: v1alpha1
    served: true
    schema:
      openAPIV3Schema:
        description: A set.
        properties: {spec: {description: Wanted., properties: {size: {description: How many., type: string}}}}
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        description: A set.
        properties:
          spec:
            description: What is wanted.
            required: [size]
            x-kubernetes-validations: [{rule: "self.size > 0 || true", message: must not shrink, fieldPath: .size}]
            properties:
              size: {description: How many | there are., type: integer, minimum: 1, default: 3}
              mode: {description: DESCRIPTION, type: string, enum: [A, B]}
              parts: {description: Parts., type: array, items: {properties: {name: {description: Its name., type: string}}}}
`
	file := filepath.Join(t.TempDir(), "crd.yaml")
	made := func(text string) (string, error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := readDefinition(file)
		if err != nil {
			t.Fatal(err)
		}
		return page(t.TempDir(), d)
	}
	got, err := made(strings.ReplaceAll(text, "DESCRIPTION", "How it goes."))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| `spec.size` | integer, required | `3` | How many \\| there are. At least 1. |",
		"| `spec.mode` | string |  | How it goes. One of `A`, `B`. |",
		"| `spec.parts[].name` | string |  | Its name. |",
		"| `spec.size` | must not shrink | `self.size > 0 \\|\\| true` |",
		"## Version v1alpha1", "| `spec.size` | string |  | How many. |", "It does not have `spec.mode`, `spec.parts`.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	if _, err := made(strings.ReplaceAll(text, "DESCRIPTION", `""`)); err == nil || !strings.Contains(err.Error(), "spec.mode") {
		t.Errorf("a field without a description: %v", err)
	}
}
