package access

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
)

// UnavailableAllowed returns how many more Pods a PodUnavailableBudget lets be unavailable. Both versions of the kind say so in one field.
func (c *Cluster) UnavailableAllowed(ctx context.Context, namespace, name string) (int32, error) {
	kind := kinds.Kind{GroupVersionKind: policyv1beta1.GroupVersion.WithKind("PodUnavailableBudget")}
	served, err := c.served(kind)
	if err != nil {
		return 0, err
	}
	read := &unstructured.Unstructured{}
	read.SetGroupVersionKind(schema.GroupVersionKind{Group: served.Group, Version: served.Version, Kind: kind.GroupVersionKind.Kind})
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, read); err != nil {
		return 0, fmt.Errorf("reading PodUnavailableBudget %s: %w", name, err)
	}
	allowed, _, err := unstructured.NestedInt64(read.Object, "status", "unavailableAllowed")
	if err != nil {
		return 0, fmt.Errorf("reading PodUnavailableBudget %s: %w", name, err)
	}
	return int32(allowed), nil
}

// IsNotInstalled reports whether an error says that the API server does not have a kind.
func IsNotInstalled(err error) bool {
	var not *NotInstalled
	return errors.As(err, &not)
}
