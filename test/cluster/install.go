package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Install applies the CRDs and the webhook configurations, for a manager that runs as a process beside the cluster and fills in its address
// and its certificate.
func (c *Cluster) Install(ctx context.Context) error {
	root, err := Root()
	if err != nil {
		return err
	}
	var files []string
	for _, pattern := range []string{"config/crd/bases/*.yaml", "config/webhook/manifests.yaml"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("%s matches no file below %s", pattern, root)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		if err := c.ApplyFile(ctx, file); err != nil {
			return err
		}
	}
	return nil
}

// ApplyFile applies every object of a YAML file, server-side.
func (c *Cluster) ApplyFile(ctx context.Context, file string) error {
	return c.ApplyFileIn(ctx, file, "")
}

// ApplyFileIn does the same, for objects of a namespace that the file does not name; empty for objects of the whole cluster.
func (c *Cluster) ApplyFileIn(ctx context.Context, file, namespace string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := documents.Decode(&o.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		if len(o.Object) == 0 {
			continue
		}
		if namespace != "" {
			o.SetNamespace(namespace)
		}
		apply := client.ApplyConfigurationFromUnstructured(o)
		if err := c.Client.Apply(ctx, apply, client.FieldOwner("kruise-install"), client.ForceOwnership); err != nil {
			return fmt.Errorf("applying %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
}
