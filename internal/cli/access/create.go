package access

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
)

// New returns an object that is not stored yet, of the hub version.
func (c *Cluster) New(kind kinds.Kind, fields *unstructured.Unstructured) (Object, error) {
	served, err := c.served(kind)
	return Object{Unstructured: fields, Kind: kind, served: served}, err
}

// Create stores an object, or has the API server check it with dryRun. Fields that the kind does not have are refused: what they say would
// be lost.
func (c *Cluster) Create(ctx context.Context, o Object, dryRun bool) (Object, error) {
	encoded, err := o.encode(o.Unstructured)
	if err != nil {
		return Object{}, err
	}
	stored := &unstructured.Unstructured{}
	if err := json.Unmarshal(encoded, &stored.Object); err != nil {
		return Object{}, err
	}
	options := []client.CreateOption{client.FieldOwner(FieldManager), client.FieldValidation(metav1.FieldValidationStrict)}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	if err := c.client.Create(ctx, stored, options...); err != nil {
		return Object{}, fmt.Errorf("creating %s: %w", o, err)
	}
	return toHub(o.Kind, o.served, stored)
}

// Release deletes an object, as it was read and no other, and leaves what it controls behind.
func (c *Cluster) Release(ctx context.Context, o Object, dryRun bool) error {
	uid, version := o.GetUID(), o.GetResourceVersion()
	options := []client.DeleteOption{
		client.PropagationPolicy(metav1.DeletePropagationOrphan), client.Preconditions{UID: &uid, ResourceVersion: &version},
	}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	if err := c.client.Delete(ctx, o.identity(), options...); err != nil {
		return fmt.Errorf("deleting %s, without its Pods: %w", o, err)
	}
	return nil
}
