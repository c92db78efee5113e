package clusters

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
)

// session is one connection to a cluster. It ends when the cluster turns out to be another one, or the same as it was earlier.
type session struct {
	*Options
	id     string
	config *rest.Config
	client client.Client
	health rest.Interface
	cache  cache.Cache
	mapper meta.RESTMapper
	http   *http.Client
	cancel context.CancelFunc

	mu sync.Mutex
	// informers are those of the kinds that the cluster serves.
	informers map[schema.GroupVersionKind]cache.Informer
	// trouble is why a cache was last cut off.
	trouble error
	// newest is the newest revision of the cluster's storage that was seen.
	newest string
}

// workloads are the kinds of workloads that a subset can have.
func workloads() []client.Object {
	return []client.Object{&appsv1.Deployment{}, &appsv1.StatefulSet{}, &v1beta1.CloneSet{}, &v1beta1.StatefulSet{}}
}

// join connects to a cluster and fills caches of what the hub has there. It gives up when the context ends.
func join(ctx context.Context, config *rest.Config, o *Options) (*session, *connection.Problem) {
	s, err := newSession(config, o)
	if err != nil {
		return nil, problem("connecting", err)
	}
	if s.id, err = s.identity(ctx); err != nil {
		s.close()
		return nil, problem("reading namespace kube-system", err)
	}
	if s.id == o.HubID {
		s.close()
		return nil, &connection.Problem{
			Reason: connection.TargetIsHub, Message: "the cluster is the hub itself: leave targetCluster out for it",
		}
	}
	if why := s.fill(ctx); why != nil {
		s.close()
		return nil, why
	}
	return s, nil
}

func newSession(config *rest.Config, o *Options) (*session, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = o.UserAgent
	s := &session{Options: o, config: config, informers: map[schema.GroupVersionKind]cache.Informer{}, cancel: func() {}}
	var err error
	if s.http, err = newHTTPClient(config); err != nil {
		return nil, err
	}
	if s.mapper, err = apiutil.NewDynamicRESTMapper(config, s.http); err != nil {
		return nil, fmt.Errorf("asking for the cluster's kinds: %w", err)
	}
	if s.client, err = client.New(config, client.Options{Scheme: o.Scheme, Mapper: s.mapper, HTTPClient: s.http}); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	if s.health, err = rest.UnversionedRESTClientForConfigAndClient(unversioned(config, o), s.http); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	s.cache, err = cache.New(config, cache.Options{
		Scheme: o.Scheme, Mapper: s.mapper, HTTPClient: s.http, ReaderFailOnMissingInformer: true,
		DefaultLabelSelector:     labels.SelectorFromSet(labels.Set{keys.HubID: o.HubID}),
		DefaultTransform:         observe.Slim,
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) { s.cutOff(err) },
	})
	return s, err
}

func (s *session) cutOff(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = err
}

// fill starts the caches and waits until they are filled.
func (s *session) fill(ctx context.Context) *connection.Problem {
	if err := s.discover(ctx); err != nil {
		return problem("asking for the cluster's kinds", err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	go func() { _ = s.cache.Start(running) }() // it returns an error only if it was started before
	if s.cache.WaitForCacheSync(ctx) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble != nil {
		return problem("reading the hub's objects in the cluster", s.trouble)
	}
	return problem("reading the hub's objects in the cluster", errors.New("it takes too long"))
}

// discover begins to watch those kinds that the cluster serves and that were not watched before.
func (s *session) discover(ctx context.Context) error {
	for _, kind := range append(workloads(), &corev1.Pod{}) {
		gvk, err := apiutil.GVKForObject(kind, s.Scheme)
		if err != nil {
			return fmt.Errorf("finding the kind of %T: %w", kind, err)
		}
		if s.informer(gvk) != nil {
			continue
		}
		if _, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); meta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			return fmt.Errorf("asking for %s: %w", gvk.Kind, err)
		}
		informer, err := s.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %s: %w", gvk.Kind, err)
		}
		if _, err := informer.AddEventHandler(s.handler()); err != nil {
			return fmt.Errorf("watching %s: %w", gvk.Kind, err)
		}
		s.mu.Lock()
		s.informers[gvk] = informer
		s.mu.Unlock()
	}
	return nil
}

func (s *session) informer(kind schema.GroupVersionKind) cache.Informer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.informers[kind]
}

// filled returns of how many kinds the caches are filled; 0 of no session.
func (s *session) filled() (n int) {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, informer := range s.informers {
		if informer.HasSynced() {
			n++
		}
	}
	return n
}

// handler tells of changes of what a UnitedDeployment has in the cluster.
func (s *session) handler() toolscache.ResourceEventHandler {
	tell := func(object any) {
		if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if o, ok := object.(client.Object); ok && o.GetLabels()[keys.HubOwnerUID] != "" {
			s.Changed(types.UID(o.GetLabels()[keys.HubOwnerUID]))
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: tell, DeleteFunc: tell,
		UpdateFunc: func(before, after any) {
			was, ok := before.(client.Object)
			is, alsoOK := after.(client.Object)
			if ok && alsoOK && was.GetResourceVersion() != is.GetResourceVersion() {
				tell(after)
			}
		},
	}
}

// close ends the caches and what is under way.
func (s *session) close() {
	s.cancel()
	s.http.CloseIdleConnections()
}
