// Package observe holds the reads that controllers share. A reader is a cache, or, where the cache can't be trusted, the API server itself;
// what a cache returns must not be changed.
package observe

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// ByController is the index of objects by the UID of their controller; objects that nobody controls are under NoController.
const (
	ByController = "kruise.controllerUID"
	NoController = "none"
)

// ByInjected is the index of Pods by the names of the SidecarSets that put sidecars into them.
const ByInjected = "kruise.injectedBy"

// AddIndexes adds the indexes that the reads of this package use to a cache.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1.Pod{}, ByInjected, InjectedKeys); err != nil {
		return fmt.Errorf("indexing Pods by their SidecarSets: %w", err)
	}
	return AddControllerIndex(ctx, indexer, &corev1.Pod{}, &appsv1.ControllerRevision{})
}

// AddControllerIndex adds the index ByController for further kinds, which have the cache hold them.
func AddControllerIndex(ctx context.Context, indexer client.FieldIndexer, kinds ...client.Object) error {
	for _, kind := range kinds {
		if err := indexer.IndexField(ctx, kind, ByController, ControllerKey); err != nil {
			return fmt.Errorf("indexing %T by controller: %w", kind, err)
		}
	}
	return nil
}

// InjectedKeys returns the keys of a Pod in the index ByInjected.
func InjectedKeys(object client.Object) []string {
	list := object.GetAnnotations()[keys.SidecarSetInjectedList]
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// ControllerKey returns the key of an object in the index ByController.
func ControllerKey(object client.Object) []string {
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		return []string{string(controller.UID)}
	}
	return []string{NoController}
}

// Reader reads what belongs to one owner.
type Reader struct {
	client.Reader
	// Indexed means that the reader is a cache with the indexes of AddIndexes; without them everything in the namespace is read and sorted
	// out.
	Indexed bool
	// pods are those of the cache; nil where they are listed instead.
	pods heldPods
}

// controlledBy returns the options that select the objects of a controller; without the index, all objects of the namespace.
func (r Reader) controlledBy(controller, namespace string) []client.ListOption {
	options := []client.ListOption{client.InNamespace(namespace)}
	if r.Indexed {
		options = append(options, client.MatchingFields{ByController: controller})
	}
	return options
}

// Pods returns the Pods that the owner controls.
func (r Reader) Pods(ctx context.Context, namespace string, owner types.UID) ([]*corev1.Pod, error) {
	if r.pods != nil && r.pods.HasSynced() {
		return controlledPods(r.pods, namespace, owner)
	}
	var list corev1.PodList
	pods, err := List(ctx, r, &list, &list.Items, r.controlledBy(string(owner), namespace)...)
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return !isControlledBy(p, owner) }), err
}

// Controlled returns the objects of a kind that the owner controls. The list is an empty one of that kind, which must be indexed by
// controller.
func (r Reader) Controlled(ctx context.Context, list client.ObjectList, namespace string, owner types.UID) ([]client.Object, error) {
	options := append(r.controlledBy(string(owner), namespace), client.UnsafeDisableDeepCopy)
	if err := r.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing %T: %w", list, err)
	}
	var out []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok && isControlledBy(object, owner) {
			out = append(out, object)
		}
		return nil
	})
	return out, err
}

// InjectedPods returns the Pods of all namespaces that a SidecarSet put sidecars into.
func (r Reader) InjectedPods(ctx context.Context, set string) ([]*corev1.Pod, error) {
	var list corev1.PodList
	var options []client.ListOption
	if r.Indexed {
		options = append(options, client.MatchingFields{ByInjected: set})
	}
	pods, err := List(ctx, r, &list, &list.Items, options...)
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return !slices.Contains(InjectedKeys(p), set) }), err
}

// Claims returns the claims that match the selector and that the owner controls, or that one of the Pods owns.
func (r Reader) Claims(
	ctx context.Context, namespace string, selector labels.Selector, owner types.UID, pods []*corev1.Pod,
) ([]*corev1.PersistentVolumeClaim, error) {
	var list corev1.PersistentVolumeClaimList
	claims, err := List(ctx, r, &list, &list.Items, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
	if len(claims) == 0 {
		return nil, err // mostly, and then Pods by the thousand need not be sorted
	}
	owners := map[types.UID]bool{owner: true}
	for _, p := range pods {
		owners[p.UID] = true
	}
	return slices.DeleteFunc(claims, func(c *corev1.PersistentVolumeClaim) bool {
		return !slices.ContainsFunc(c.OwnerReferences, func(reference metav1.OwnerReference) bool { return owners[reference.UID] })
	}), err
}

// OrphanPods returns the Pods that the selector matches and that nobody controls. A cache may hold no more of them than what identifies
// them.
func (r Reader) OrphanPods(ctx context.Context, namespace string, selector labels.Selector) ([]*corev1.Pod, error) {
	var list corev1.PodList
	options := append(r.controlledBy(NoController, namespace), client.MatchingLabelsSelector{Selector: selector})
	pods, err := List(ctx, r, &list, &list.Items, options...)
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return metav1.GetControllerOfNoCopy(p) != nil }), err
}

// ClaimsNamed returns the claims whose names are wanted, whoever owns them.
func (r Reader) ClaimsNamed(
	ctx context.Context, namespace string, isWanted func(name string) bool,
) ([]*corev1.PersistentVolumeClaim, error) {
	var list corev1.PersistentVolumeClaimList
	claims, err := List(ctx, r, &list, &list.Items, client.InNamespace(namespace))
	return slices.DeleteFunc(claims, func(c *corev1.PersistentVolumeClaim) bool { return !isWanted(c.Name) }), err
}

// Revisions returns the revisions that the owner controls, and those that the selector matches and nobody controls.
func (r Reader) Revisions(
	ctx context.Context, namespace string, selector labels.Selector, owner types.UID,
) ([]*appsv1.ControllerRevision, error) {
	var revisions []*appsv1.ControllerRevision
	read := func(controller string) error {
		var list appsv1.ControllerRevisionList
		found, err := List(ctx, r, &list, &list.Items, r.controlledBy(controller, namespace)...)
		for _, rev := range found {
			orphan := metav1.GetControllerOfNoCopy(rev) == nil && selector.Matches(labels.Set(rev.Labels))
			if rev.DeletionTimestamp == nil && (isControlledBy(rev, owner) || orphan) {
				revisions = append(revisions, rev)
			}
		}
		return err
	}
	err := read(string(owner))
	if err == nil && r.Indexed {
		err = read(NoController)
	}
	return revisions, err
}

// NodeLabels returns the labels of the nodes that the Pods are on. A node that is gone has none.
func (r Reader) NodeLabels(ctx context.Context, pods []*corev1.Pod) (map[string]map[string]string, error) {
	out := map[string]map[string]string{}
	for _, p := range pods {
		name := p.Spec.NodeName
		if _, known := out[name]; known || name == "" {
			continue
		}
		var node corev1.Node
		if err := client.IgnoreNotFound(r.Get(ctx, client.ObjectKey{Name: name}, &node)); err != nil {
			return nil, fmt.Errorf("reading node %s: %w", name, err)
		}
		out[name] = node.Labels
	}
	return out, nil
}

func isControlledBy(object metav1.Object, owner types.UID) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && controller.UID == owner
}

// NodeImages returns all NodeImages.
func (r Reader) NodeImages(ctx context.Context) ([]*v1beta1.NodeImage, error) {
	var list v1beta1.NodeImageList
	return List(ctx, r, &list, &list.Items)
}

// SelectedPods returns the Pods of a namespace that the selector matches. A cache may hold no more of them than what identifies them and
// where they are.
func (r Reader) SelectedPods(ctx context.Context, namespace string, selector labels.Selector) ([]*corev1.Pod, error) {
	var list corev1.PodList
	return List(ctx, r, &list, &list.Items, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
}

// ImagePullJobs returns the jobs that the owner controls.
func (r Reader) ImagePullJobs(ctx context.Context, namespace string, owner types.UID) ([]*v1beta1.ImagePullJob, error) {
	var list v1beta1.ImagePullJobList
	jobs, err := List(ctx, r, &list, &list.Items, r.controlledBy(string(owner), namespace)...)
	return slices.DeleteFunc(jobs, func(job *v1beta1.ImagePullJob) bool { return !isControlledBy(job, owner) }), err
}

// Secrets returns the Secrets of a namespace.
func (r Reader) Secrets(ctx context.Context, namespace string) ([]*corev1.Secret, error) {
	var list corev1.SecretList
	return List(ctx, r, &list, &list.Items, client.InNamespace(namespace))
}

// ErrOutdated means that a cache shows an owner as it is no more: it is being deleted or gone, perhaps with another one in its place.
// Nothing may be done for it until the cache knows.
var ErrOutdated = errors.New("the cache does not know yet that the owner is gone")

// Adoptable returns the Pods that the owner may take over: those that the selector matches, that nobody controls and that are not being
// deleted. A cache may hold no more of them than what identifies them.
//
// Such Pods may be what the owner itself has left behind by its deletion, of which its cache does not know yet: adopted for one that is
// gone, they would be deleted by the garbage collector, and taken for missing, they would be replaced by others beside them. So the owner
// is read once more from live before there are any, and the error is ErrOutdated where it is not the one that is meant.
func (r Reader) Adoptable(ctx context.Context, live client.Reader, owner client.Object, selector labels.Selector) ([]*corev1.Pod, error) {
	if owner.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	pods, err := r.OrphanPods(ctx, owner.GetNamespace(), selector)
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	if err != nil || len(pods) == 0 {
		return nil, err
	}
	now := reflect.New(reflect.TypeOf(owner).Elem()).Interface().(client.Object)
	switch err := live.Get(ctx, client.ObjectKeyFromObject(owner), now); {
	case apierrors.IsNotFound(err):
		return nil, ErrOutdated
	case err != nil:
		return nil, fmt.Errorf("reading the owner of Pods without a controller: %w", err)
	case now.GetUID() != owner.GetUID() || now.GetDeletionTimestamp() != nil:
		return nil, ErrOutdated
	}
	return pods, nil
}

// Nodes returns all nodes.
func (r Reader) Nodes(ctx context.Context) ([]*corev1.Node, error) {
	var list corev1.NodeList
	return List(ctx, r, &list, &list.Items)
}

// List reads a list and returns pointers to its items, which must not be changed: a cache does not copy them.
func List[T any](ctx context.Context, r client.Reader, list client.ObjectList, items *[]T, options ...client.ListOption) ([]*T, error) {
	if err := r.List(ctx, list, append(slices.Clip(options), client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("listing %ss: %w", reflect.TypeFor[T]().Name(), err)
	}
	out := make([]*T, len(*items))
	for i := range *items {
		out[i] = &(*items)[i]
	}
	return out, nil
}

// Find reads an object into out and returns it; nil if there is none of that name.
func Find[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r client.Reader, key types.NamespacedName, out P) (P, error) {
	err := r.Get(ctx, key, out)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s %s: %w", reflect.TypeFor[T]().Name(), key, err)
	}
	return out, nil
}

// Keys returns the names of those objects that a change concerns.
func Keys[T client.Object](objects []T, concerned func(T) bool) []types.NamespacedName {
	var out []types.NamespacedName
	for _, object := range objects {
		if concerned(object) {
			out = append(out, client.ObjectKeyFromObject(object))
		}
	}
	return out
}
