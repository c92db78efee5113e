package pods

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/inject"
)

// Catalog implements Facts over a cache. SidecarSets are compiled when they change and not when a Pod is created.
type Catalog struct {
	cached, live client.Reader
	// namespace is that of the revisions.
	namespace string
	synced    func() bool

	mu     sync.Mutex
	byName map[string]*inject.Candidate
	// all are those of byName, for readers.
	all atomic.Pointer[inject.Candidates]
}

// NewCatalog returns a catalog that follows a cache, whose namespaces are kept as metadata. What the cache does not have yet is read live.
func NewCatalog(ctx context.Context, informers cache.Cache, live client.Reader, namespace string) (*Catalog, error) {
	c := &Catalog{cached: informers, live: live, namespace: namespace, byName: map[string]*inject.Candidate{}}
	c.all.Store(inject.NewCandidates())
	informer, err := informers.GetInformer(ctx, &v1beta1.SidecarSet{})
	if err != nil {
		return nil, fmt.Errorf("following SidecarSets: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    c.put,
		UpdateFunc: func(_, set any) { c.put(set) },
		DeleteFunc: c.remove,
	})
	if err != nil {
		return nil, fmt.Errorf("following SidecarSets: %w", err)
	}
	c.synced = registration.HasSynced
	for _, kind := range []client.Object{namespaceMetadata(), &appsv1.ControllerRevision{}} {
		if _, err := informers.GetInformer(ctx, kind); err != nil {
			return nil, fmt.Errorf("following %T: %w", kind, err)
		}
	}
	return c, nil
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	n := &metav1.PartialObjectMetadata{}
	n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return n
}

func (c *Catalog) put(object any) {
	set, ok := object.(*v1beta1.SidecarSet)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.byName[set.Name]; known != nil && isSame(known.Set, set) {
		return
	}
	c.byName[set.Name] = inject.NewCandidate(set)
	c.publish()
}

// isSame reports whether two versions of a SidecarSet put the same into Pods. Annotations count: they make canaries, and don't raise the
// generation.
func isSame(a, b *v1beta1.SidecarSet) bool {
	return a.UID == b.UID && a.Generation == b.Generation && (a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		maps.Equal(a.Annotations, b.Annotations) && equality.Semantic.DeepEqual(a.Status.CollisionCount, b.Status.CollisionCount) &&
		a.Spec.CustomVersion == b.Spec.CustomVersion
}

func (c *Catalog) remove(object any) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	set, ok := object.(*v1beta1.SidecarSet)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byName, set.Name)
	c.publish()
}

// publish gives readers what has changed; the caller holds the lock.
func (c *Catalog) publish() {
	c.all.Store(inject.NewCandidates(slices.Collect(maps.Values(c.byName))...))
}

// Check reports whether the SidecarSets are known, as a readiness check.
func (c *Catalog) Check(*http.Request) error {
	_, err := c.Candidates()
	return err
}

// Candidates implements Facts.
func (c *Catalog) Candidates() (*inject.Candidates, error) {
	if !c.synced() {
		return nil, errors.New("the SidecarSets are not known yet")
	}
	return c.all.Load(), nil
}

// Namespace implements Facts. A namespace that was made a moment ago may not be in the cache yet.
func (c *Catalog) Namespace(ctx context.Context, name string) (map[string]string, error) {
	found := namespaceMetadata()
	err := c.cached.Get(ctx, client.ObjectKey{Name: name}, found)
	if apierrors.IsNotFound(err) {
		err = c.live.Get(ctx, client.ObjectKey{Name: name}, found)
	}
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return found.Labels, nil
}

// Revision implements Facts. One that was recorded a moment ago may not be in the cache yet.
func (c *Catalog) Revision(ctx context.Context, set *v1beta1.SidecarSet) (*appsv1.ControllerRevision, error) {
	var missing error
	for _, reader := range []client.Reader{c.cached, c.live} {
		var list appsv1.ControllerRevisionList
		if err := reader.List(ctx, &list, client.InNamespace(c.namespace), client.MatchingLabels{keys.SidecarSetName: set.Name}); err != nil {
			return nil, fmt.Errorf("listing the revisions of SidecarSet %s: %w", set.Name, err)
		}
		var all []*appsv1.ControllerRevision
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
		found, err := inject.Find(set, all)
		if err == nil {
			return found, nil
		}
		missing = err
	}
	return nil, Denied{fmt.Errorf("SidecarSet %s: %w", set.Name, missing)}
}
