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
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/inject"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// Facts reads what injection needs of the cluster. Callers must not change what they get.
type Facts interface {
	// Candidates returns all SidecarSets. It fails while they are not known yet.
	Candidates() (*inject.Candidates, error)
	// Namespace returns the labels of a namespace.
	Namespace(ctx context.Context, name string) (map[string]string, error)
	// Revision returns the revision that a SidecarSet's injection strategy asks for. A Denied says that there is none.
	Revision(ctx context.Context, set *v1beta1.SidecarSet) (*appsv1.ControllerRevision, error)
}

// SidecarOptions configure the injection.
type SidecarOptions struct {
	Facts Facts
	// SortByName sorts the sidecars of all SidecarSets by name.
	SortByName bool
	Now        func() time.Time
	// Metrics may be nil.
	Metrics *Metrics
}

// Sidecars puts the containers of SidecarSets into the Pods that these select.
func Sidecars(o SidecarOptions) Step {
	s := &sidecars{SidecarOptions: o, counts: map[string]int{}, compiled: map[types.UID]*inject.Sidecars{}}
	return Step{Name: "sidecarset", Run: s.run}
}

type sidecars struct {
	SidecarOptions
	mu sync.Mutex
	// counts holds the number of Pods so far, modulo 100, of each SidecarSet of which some Pods get an older revision.
	counts map[string]int
	// compiled are revisions, whose content never changes.
	compiled map[types.UID]*inject.Sidecars
}

func (s *sidecars) run(ctx context.Context, subject *Subject) error {
	candidates, err := s.Facts.Candidates()
	if err != nil {
		return err
	}
	matching, err := candidates.Match(subject.Pod().Labels, func() (map[string]string, error) {
		return s.Facts.Namespace(ctx, subject.Namespace)
	})
	if err != nil || len(matching) == 0 {
		return err
	}
	chosen := make([]*inject.Sidecars, 0, len(matching))
	for _, c := range matching {
		if c.Problem != nil {
			return deny(c, c.Problem)
		}
		one, err := s.choose(ctx, c, subject)
		if err != nil {
			return err
		}
		chosen = append(chosen, one)
	}
	notices, err := inject.Into(subject.Edit(), chosen, inject.Options{SortByName: s.SortByName, Now: s.Now()})
	if err != nil {
		return Denied{err}
	}
	for _, notice := range notices {
		subject.Warn("%s", notice.Text)
		if notice.Replaced != "" {
			s.Metrics.countReplaced(notice.SidecarSet)
		}
	}
	return nil
}

func deny(c *inject.Candidate, why error) Denied {
	return Denied{fmt.Errorf("SidecarSet %s: %w", c.Set.Name, why)}
}

// choose returns the revision of a SidecarSet that the Pod gets.
func (s *sidecars) choose(ctx context.Context, c *inject.Candidate, subject *Subject) (*inject.Sidecars, error) {
	choice, percent := inject.Choose(c, subject.Pod().Labels)
	if choice == inject.Current {
		return c.Current, nil
	}
	requested, err := s.Facts.Revision(ctx, c.Set)
	if err != nil {
		return nil, err
	}
	if choice == inject.Split && !s.getsRequested(c, requested, percent, subject) {
		return c.Current, nil
	}
	compiled, err := s.compile(c, requested)
	if err != nil {
		return nil, deny(c, err)
	}
	return compiled, nil
}

// getsRequested decides between the present spec and the requested revision. A Pod that has one of the two, because it was admitted before
// or is written from another one, stays with it.
func (s *sidecars) getsRequested(c *inject.Candidate, requested *appsv1.ControllerRevision, percent int, subject *Subject) bool {
	records, err := sidecar.RecordsIn(subject.Pod(), keys.SidecarSetHash)
	if has := records[c.Set.Name].ControllerRevision; err == nil && (has == requested.Name || has == c.Current.Revision()) {
		return has == requested.Name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	count, known := s.counts[c.Set.Name]
	if !known {
		s.forgetOthers()
	}
	if !subject.DryRun {
		s.counts[c.Set.Name] = (count + 1) % 100
	}
	return inject.GetsRequested(count, percent)
}

// forgetOthers drops the numbers of SidecarSets that are gone. The caller holds the lock.
func (s *sidecars) forgetOthers() {
	present, err := s.Facts.Candidates()
	if err != nil {
		return
	}
	maps.DeleteFunc(s.counts, func(name string, _ int) bool { return present.Named(name) == nil })
}

// maxCompiled is how many compiled revisions are kept; few are in use at a time.
const maxCompiled = 256

func (s *sidecars) compile(c *inject.Candidate, revision *appsv1.ControllerRevision) (*inject.Sidecars, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.compiled[revision.UID]; known != nil {
		return known, nil
	}
	set, err := sidecar.AtRevision(c.Set, revision)
	if err != nil {
		return nil, err
	}
	compiled, err := inject.CompileRevision(set, revision.Name)
	if err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", revision.Name, err)
	}
	if len(s.compiled) >= maxCompiled {
		clear(s.compiled)
	}
	s.compiled[revision.UID] = compiled
	return compiled, nil
}

// Catalog implements Facts over a cache. SidecarSets are compiled when they change and not when a Pod is created.
type Catalog struct {
	CatalogOptions
	cached client.Reader
	synced func() bool

	mu     sync.Mutex
	byName map[string]*inject.Candidate
	// all are those of byName, for readers.
	all atomic.Pointer[inject.Candidates]
}

// CatalogOptions configure a Catalog.
type CatalogOptions struct {
	// Live reads what the cache does not have yet.
	Live client.Reader
	// RevisionNamespace is that of the revisions.
	RevisionNamespace string
	// Metrics are those that forget SidecarSets which are gone; may be nil.
	Metrics *Metrics
}

// NewCatalog returns a catalog that follows a cache, whose namespaces are kept as metadata.
func NewCatalog(ctx context.Context, informers cache.Cache, o CatalogOptions) (*Catalog, error) {
	c := &Catalog{CatalogOptions: o, cached: informers, byName: map[string]*inject.Candidate{}}
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
	c.Metrics.forgetSidecarSet(set.Name)
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
		err = c.Live.Get(ctx, client.ObjectKey{Name: name}, found)
	}
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return found.Labels, nil
}

// Revision implements Facts. One that was recorded a moment ago may not be in the cache yet.
func (c *Catalog) Revision(ctx context.Context, set *v1beta1.SidecarSet) (*appsv1.ControllerRevision, error) {
	var missing error
	for _, reader := range []client.Reader{c.cached, c.Live} {
		var list appsv1.ControllerRevisionList
		ofSet := client.MatchingLabels{keys.SidecarSetName: set.Name}
		if err := reader.List(ctx, &list, client.InNamespace(c.RevisionNamespace), ofSet); err != nil {
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
