package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Writer is how an Executor reaches the API server. Errors are those of the API.
type Writer interface {
	// Create makes the object and updates it with the server's answer.
	Create(ctx context.Context, object plan.Object) error
	// Patch patches the object, or one of its subresources, and updates it with the server's answer.
	Patch(ctx context.Context, object plan.Object, subresource string, patchType types.PatchType, patch []byte) error
	// Delete deletes the object on conditions, and returns the resource version of its deletion, or nothing where the server does not say.
	Delete(ctx context.Context, object plan.Object, conditions metav1.Preconditions) (string, error)
	// Read reads the object live.
	Read(ctx context.Context, object plan.Object) error
}

// server is the Writer to a real API server.
type server struct {
	client.Client
	config *rest.Config
	http   *http.Client
	codecs serializer.CodecFactory
	// deleters holds the REST client of each kind that was deleted so far, by schema.GroupVersionKind.
	deleters sync.Map
}

// NewWriter returns the Writer to the API server that the client and the configuration are for. The client's own reads must not be cached.
func NewWriter(c client.Client, config *rest.Config, httpClient *http.Client) Writer {
	return &server{Client: c, config: config, http: httpClient, codecs: serializer.NewCodecFactory(c.Scheme())}
}

func (s *server) Create(ctx context.Context, object plan.Object) error {
	return s.Client.Create(ctx, object)
}

func (s *server) Patch(ctx context.Context, object plan.Object, subresource string, patchType types.PatchType, patch []byte) error {
	raw := client.RawPatch(patchType, patch)
	name := object.GetName()
	if subresource == "" {
		return replacedIsConflict(name, s.Client.Patch(ctx, object, raw))
	}
	return replacedIsConflict(name, s.SubResource(subresource).Patch(ctx, object, raw))
}

// replacedIsConflict turns the answer to a patch of an object that another one has replaced under the same name into a conflict. The API
// server checks only the version as a precondition; without one it calls the patch invalid, because it would change the UID.
func replacedIsConflict(name string, err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "metadata.uid" {
			details := status.Status().Details
			return apierrors.NewConflict(schema.GroupResource{Group: details.Group, Resource: details.Kind}, name, err)
		}
	}
	return err
}

func (s *server) Read(ctx context.Context, object plan.Object) error {
	return s.Get(ctx, client.ObjectKeyFromObject(object), object)
}

// Delete goes around the client, which drops the answer: the resource version of the deletion is in it.
func (s *server) Delete(ctx context.Context, object plan.Object, conditions metav1.Preconditions) (string, error) {
	gvk, err := apiutil.GVKForObject(object, s.Scheme())
	if err != nil {
		return "", fmt.Errorf("finding the kind of %T: %w", object, err)
	}
	mapping, err := s.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return "", fmt.Errorf("finding the resource of %s: %w", gvk.Kind, err)
	}
	group, err := s.restClient(gvk)
	if err != nil {
		return "", err
	}
	background := metav1.DeletePropagationBackground
	answer, err := group.Delete().
		NamespaceIfScoped(object.GetNamespace(), mapping.Scope.Name() == meta.RESTScopeNameNamespace).
		Resource(mapping.Resource.Resource).Name(object.GetName()).
		Body(&metav1.DeleteOptions{Preconditions: &conditions, PropagationPolicy: &background}).
		Do(ctx).Get()
	if err != nil {
		return "", err
	}
	if deleted, err := meta.Accessor(answer); err == nil {
		return deleted.GetResourceVersion(), nil
	}
	// A mere Status: the cache will not be waited for, which costs one pass that sees the object again at worst.
	return "", nil
}

func (s *server) restClient(gvk schema.GroupVersionKind) (rest.Interface, error) {
	if known, ok := s.deleters.Load(gvk); ok {
		return known.(rest.Interface), nil
	}
	group, err := apiutil.RESTClientForGVK(gvk, false, false, s.config, s.codecs, s.http)
	if err != nil {
		return nil, fmt.Errorf("connecting for %s: %w", gvk.Kind, err)
	}
	s.deleters.Store(gvk, group)
	return group, nil
}
