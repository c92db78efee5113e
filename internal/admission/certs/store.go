package certs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrConflict is returned by a Save on top of a version that is no longer the stored one: another manager was first.
var ErrConflict = errors.New("another manager has stored a CA in the meantime")

// A Store keeps the CA of all managers of a cluster.
type Store interface {
	// Load returns what is stored and its version; nothing and "" if there is nothing yet.
	Load(ctx context.Context) (data map[string][]byte, version string, err error)
	// Save replaces that version, and returns ErrConflict if it is not the stored one.
	Save(ctx context.Context, data map[string][]byte, version string) error
}

// SecretStore keeps the CA in a Secret.
type SecretStore struct {
	// Client must read without a cache.
	Client client.Client
	Name   types.NamespacedName
}

// Load implements Store.
func (s SecretStore) Load(ctx context.Context) (map[string][]byte, string, error) {
	secret := &corev1.Secret{}
	if err := s.Client.Get(ctx, s.Name, secret); apierrors.IsNotFound(err) {
		return nil, "", nil
	} else if err != nil {
		return nil, "", fmt.Errorf("reading Secret %s: %w", s.Name, err)
	}
	return secret.Data, secret.ResourceVersion, nil
}

// Save implements Store. Labels and further keys of an existing Secret stay.
func (s SecretStore) Save(ctx context.Context, data map[string][]byte, version string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Name.Namespace, Name: s.Name.Name}}
	if version == "" {
		secret.Data = data
		return s.saved(s.Client.Create(ctx, secret))
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": version}, "data": data})
	if err != nil {
		return fmt.Errorf("encoding Secret %s: %w", s.Name, err)
	}
	return s.saved(s.Client.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch)))
}

func (s SecretStore) saved(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return ErrConflict
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s: %w", s.Name, err)
	}
	return nil
}
