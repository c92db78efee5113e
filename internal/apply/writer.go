package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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

func (e *Executor) write(ctx context.Context, owner plan.Object, a plan.Action, condition precondition) (plan.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	switch a.Verb {
	case plan.Create:
		return e.create(ctx, owner, a)
	case plan.Delete:
		return nil, e.delete(ctx, owner, a, condition)
	case plan.Update:
		return e.patch(ctx, owner, a, main, condition)
	case plan.Resize:
		return e.patch(ctx, owner, a, resize, condition)
	case plan.AddContainers:
		object, err := e.patch(ctx, owner, a, ephemeral, condition)
		return object, goneIsConflict(a.Object().GetName(), err)
	case plan.UpdateStatus:
		return e.updateStatus(ctx, owner, a, condition)
	default:
		return nil, fmt.Errorf("unknown verb %q", a.Verb)
	}
}

// create makes an object. One of that name that the owner already controls is the one that an earlier try made without our knowledge.
func (e *Executor) create(ctx context.Context, owner plan.Object, a plan.Action) (plan.Object, error) {
	object := copyOf(a.After)
	err := e.Writer.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		existing := named(a.After)
		if readErr := e.Writer.Read(ctx, existing); readErr != nil {
			return nil, errors.Join(err, fmt.Errorf("reading what has the name: %w", readErr))
		}
		if existing.GetDeletionTimestamp() != nil || !metav1.IsControlledBy(existing, owner) {
			e.owners.Do(owner.GetUID(), func(m *memory) { m.noteTaken(object.GetName()) })
			return nil, err
		}
		object, err = existing, nil
	}
	if err != nil {
		return nil, err
	}
	return object, e.wrote(owner, object)
}

func (e *Executor) delete(ctx context.Context, owner plan.Object, a plan.Action, condition precondition) error {
	conditions := metav1.Preconditions{UID: &condition.uid}
	if condition.resourceVersion != "" {
		conditions.ResourceVersion = &condition.resourceVersion
	}
	version, err := e.Writer.Delete(ctx, a.Before, conditions)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return e.note(owner, a.Before, version)
}

func (e *Executor) patch(ctx context.Context, owner plan.Object, a plan.Action, p part, condition precondition) (plan.Object, error) {
	object := named(a.After)
	if patch, ok, err := conditional(a); err != nil {
		return nil, err
	} else if ok {
		if err := e.Writer.Patch(ctx, object, string(p), types.JSONPatchType, patch); err != nil {
			return nil, failedTestIsConflict(object.GetName(), err)
		}
		return object, e.wrote(owner, object)
	}
	patchType, patch, err := diff(a.Before, a.After, p, condition)
	if err != nil || patch == nil {
		return nil, err
	}
	if err := e.Writer.Patch(ctx, object, string(p), patchType, patch); err != nil {
		return nil, err
	}
	return object, e.wrote(owner, object)
}

// updateStatus patches the status, with labels and annotations. Should a server not take those along, they get a write of their own.
func (e *Executor) updateStatus(ctx context.Context, owner plan.Object, a plan.Action, condition precondition) (plan.Object, error) {
	object, err := e.patch(ctx, owner, a, status, condition)
	if err != nil || object == nil || !lacksMetadata(object, a.Before, a.After) {
		return object, err
	}
	rest := a
	rest.Before = copyOf(a.After)
	rest.Before.SetLabels(a.Before.GetLabels())
	rest.Before.SetAnnotations(a.Before.GetAnnotations())
	rest.Before.SetFinalizers(a.Before.GetFinalizers())
	return e.patch(ctx, owner, rest, main, precondition{uid: condition.uid, resourceVersion: object.GetResourceVersion()})
}

// lacksMetadata reports whether metadata that the plan changes did not arrive.
func lacksMetadata(stored, before, after plan.Object) bool {
	if _, isPod := stored.(*corev1.Pod); !isPod {
		return false
	}
	arrived := func(was, want, is map[string]string) bool {
		for key, value := range want {
			if was[key] != value && is[key] != value {
				return false
			}
		}
		for key := range was {
			if _, kept := want[key]; !kept {
				if _, still := is[key]; still {
					return false
				}
			}
		}
		return true
	}
	return !arrived(before.GetLabels(), after.GetLabels(), stored.GetLabels()) ||
		!arrived(before.GetAnnotations(), after.GetAnnotations(), stored.GetAnnotations()) ||
		(!equality.Semantic.DeepEqual(before.GetFinalizers(), after.GetFinalizers()) &&
			!equality.Semantic.DeepEqual(after.GetFinalizers(), stored.GetFinalizers()))
}

func (e *Executor) wrote(owner, object plan.Object) error {
	return e.note(owner, object, object.GetResourceVersion())
}

func (e *Executor) note(owner, object plan.Object, version string) error {
	kind, err := apiutil.GVKForObject(object, e.Scheme)
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", object, err)
	}
	e.noteVersion(owner.GetUID(), kind, version)
	return nil
}

// named returns an object with nothing but the name of another one, to take the server's answer: what an answer leaves out would stay in an
// object that is filled already.
func named(object plan.Object) plan.Object {
	empty := reflect.New(reflect.TypeOf(object).Elem()).Interface().(plan.Object)
	empty.SetNamespace(object.GetNamespace())
	empty.SetName(object.GetName())
	return empty
}

func copyOf(object plan.Object) plan.Object {
	return object.DeepCopyObject().(plan.Object)
}
