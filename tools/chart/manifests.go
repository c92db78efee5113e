package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// object is one object of the manifests.
type object struct {
	kind, namespace, name string
	node                  *yaml.Node
}

// String returns the kind and the name, as messages have them.
func (o object) String() string { return o.kind + " " + o.name }

// same reports whether both are one object, whatever they say.
func (o object) same(other object) bool {
	return o.kind == other.kind && o.name == other.name && o.namespace == other.namespace
}

// build returns what kustomize makes of a folder, in its order.
func build(folder string) ([]object, error) {
	built, err := krusty.MakeKustomizer(&krusty.Options{PluginConfig: types.DisabledPluginConfig()}).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", folder, err)
	}
	var all []object
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", r.CurId(), err)
		}
		o, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", r.CurId(), err)
		}
		all = append(all, o)
	}
	return all, nil
}

// buildWith returns what kustomize makes of a folder with components and images, as a kustomization of a user would name them.
func buildWith(folder string, components []string, images []types.Image) ([]object, error) {
	dir, err := os.MkdirTemp("", "kruise-chart-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left of a folder for temporary files harms nobody
	overlay := types.Kustomization{
		TypeMeta: types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind}, Images: images,
	}
	if overlay.Resources, err = relative(dir, folder); err != nil {
		return nil, err
	}
	if overlay.Components, err = relative(dir, components...); err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(overlay)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text, 0o600); err != nil {
		return nil, err
	}
	return build(dir)
}

// relative returns paths as seen from a folder, for kustomize takes no others.
func relative(from string, paths ...string) ([]string, error) {
	var all []string
	for _, path := range paths {
		seen, err := filepath.Rel(from, path)
		if err != nil {
			return nil, err
		}
		all = append(all, seen)
	}
	return all, nil
}

// parse reads an object.
func parse(text []byte) (object, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return object{}, err
	}
	node := document.Content[0]
	var head struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
	}
	if err := node.Decode(&head); err != nil {
		return object{}, err
	}
	return object{kind: head.Kind, namespace: head.Metadata.Namespace, name: head.Metadata.Name, node: node}, nil
}

// encode writes a node as YAML.
func encode(node *yaml.Node) (string, error) {
	var text strings.Builder
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(node); err != nil {
		return "", fmt.Errorf("writing YAML: %w", err)
	}
	return text.String(), encoder.Close()
}
