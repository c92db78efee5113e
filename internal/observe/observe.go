// Package observe holds the reads that controllers share. A reader is a cache, or, where the cache can't be trusted, the API server itself;
// what a cache returns must not be changed.
package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	// Indexed means that the reader is a cache with the indexes of AddIndexes; without them everything in the namespace is read and sorted out.
	Indexed bool
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
	var list corev1.PodList
	pods, err := List(ctx, r, &list, &list.Items, r.controlledBy(string(owner), namespace)...)
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return !isControlledBy(p, owner) }), err
}

// Controlled returns the objects of a kind that the owner controls. The list is an empty one of that kind, which must be indexed by controller.
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
func (r Reader) Claims(ctx context.Context, namespace string, selector labels.Selector, owner types.UID, pods []*corev1.Pod) ([]*corev1.PersistentVolumeClaim, error) {
	var list corev1.PersistentVolumeClaimList
	claims, err := List(ctx, r, &list, &list.Items, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
	owners := map[types.UID]bool{owner: true}
	for _, p := range pods {
		owners[p.UID] = true
	}
	return slices.DeleteFunc(claims, func(c *corev1.PersistentVolumeClaim) bool {
		return !slices.ContainsFunc(c.OwnerReferences, func(reference metav1.OwnerReference) bool { return owners[reference.UID] })
	}), err
}

// OrphanPods returns the Pods that the selector matches and that nobody controls. A cache may hold no more of them than what identifies them.
func (r Reader) OrphanPods(ctx context.Context, namespace string, selector labels.Selector) ([]*corev1.Pod, error) {
	var list corev1.PodList
	options := append(r.controlledBy(NoController, namespace), client.MatchingLabelsSelector{Selector: selector})
	pods, err := List(ctx, r, &list, &list.Items, options...)
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return metav1.GetControllerOfNoCopy(p) != nil }), err
}

// ClaimsNamed returns the claims whose names are wanted, whoever owns them.
func (r Reader) ClaimsNamed(ctx context.Context, namespace string, isWanted func(name string) bool) ([]*corev1.PersistentVolumeClaim, error) {
	var list corev1.PersistentVolumeClaimList
	claims, err := List(ctx, r, &list, &list.Items, client.InNamespace(namespace))
	return slices.DeleteFunc(claims, func(c *corev1.PersistentVolumeClaim) bool { return !isWanted(c.Name) }), err
}

// Revisions returns the revisions that the owner controls, and those that the selector matches and nobody controls.
func (r Reader) Revisions(ctx context.Context, namespace string, selector labels.Selector, owner types.UID) ([]*appsv1.ControllerRevision, error) {
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
