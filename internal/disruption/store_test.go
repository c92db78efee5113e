package disruption

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	rules "github.com/seed-69ecc383/kruise/internal/rules/disruption"
)

// store is what an API server is to an evaluator: it stores a budget in versions, and takes a write only on top of the last one.
type store struct {
	client.Client
	mu       sync.Mutex
	versions []*v1beta1.PodUnavailableBudget
	// meddle, if there is one, is done before each write, as by somebody else.
	meddle        func(*store)
	reads, writes int
	// pods are the Pods that there are; looks is how often one was read.
	pods  []*corev1.Pod
	looks int
}

func newStore(b *v1beta1.PodUnavailableBudget) *store {
	s := &store{}
	s.put(b)
	return s
}

func (s *store) put(b *v1beta1.PodUnavailableBudget) {
	stored := b.DeepCopy()
	stored.ResourceVersion = strconv.Itoa(len(s.versions) + 1)
	s.versions = append(s.versions, stored)
}

func (s *store) last() *v1beta1.PodUnavailableBudget { return s.versions[len(s.versions)-1] }

func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := into.(*corev1.Pod); ok {
		s.looks++
		for _, there := range s.pods {
			if client.ObjectKeyFromObject(there) == key {
				there.DeepCopyInto(p)
				return nil
			}
		}
		return notFound(key.Name)
	}
	s.reads++
	if key.Name != s.last().Name {
		return notFound(key.Name)
	}
	s.last().DeepCopyInto(into.(*v1beta1.PodUnavailableBudget))
	return nil
}

func notFound(name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "podunavailablebudgets"}, name)
}

func (s *store) Status() client.SubResourceWriter { return statusOf{store: s} }

type statusOf struct {
	client.SubResourceWriter
	store *store
}

func (w statusOf) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meddle != nil {
		s.meddle(s)
	}
	text, err := patch.Data(o)
	if err != nil {
		return err
	}
	var sent struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(text, &sent); err != nil {
		return err
	}
	if sent.Metadata.ResourceVersion != s.last().ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Resource: "podunavailablebudgets"}, o.GetName(), errors.New("changed"))
	}
	s.writes++
	s.put(o.(*v1beta1.PodUnavailableBudget))
	o.SetResourceVersion(s.last().ResourceVersion)
	return nil
}

// cache is a reader that is behind by some versions.
type cache struct {
	client.Reader
	store  *store
	behind func() int
	pdbs   []policyv1.PodDisruptionBudget
	// ending is since when the namespace is being deleted; zero if it is not.
	ending time.Time
}

func (c *cache) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if n, ok := into.(*corev1.Namespace); ok {
		if !c.ending.IsZero() {
			n.DeletionTimestamp = &metav1.Time{Time: c.ending}
		}
		return nil
	}
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	if key.Name != c.store.last().Name {
		return notFound(key.Name)
	}
	at := max(0, len(c.store.versions)-1-c.behind())
	c.store.versions[at].DeepCopyInto(into.(*v1beta1.PodUnavailableBudget))
	return nil
}

func (c *cache) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*policyv1.PodDisruptionBudgetList).Items = c.pdbs
	return nil
}

var began = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func budget(allowed int32) *v1beta1.PodUnavailableBudget {
	one := intstr.FromInt32(allowed)
	return &v1beta1.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1},
		Spec:       v1beta1.PodUnavailableBudgetSpec{PodUnavailableBudgetBaseSpec: v1beta1.PodUnavailableBudgetBaseSpec{MaxUnavailable: &one}},
		Status: v1beta1.PodUnavailableBudgetStatus{
			ObservedGeneration: 1, TotalReplicas: 20, DesiredAvailable: 20 - allowed, CurrentAvailable: 20, UnavailableAllowed: allowed,
		},
	}
}

func guarded(n int, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("web-%d", n), CreationTimestamp: metav1.NewTime(began.Add(-time.Hour)),
			Labels: map[string]string{"app": "web"}, Annotations: map[string]string{keys.RelatedBudget: "web"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// setup is an evaluator with a store of its own.
type setup struct {
	*store
	*Evaluator
	cache   *cache
	numbers rules.Numbers
	now     time.Time
	// live are the numbers by the Pods that the API server has; those of the cache where nil.
	live *rules.Numbers
	// counts is how often the Pods of the cache were counted, liveCounts how often those of the API server.
	counts, liveCounts int
}

func newSetup(b *v1beta1.PodUnavailableBudget) *setup {
	c := &setup{store: newStore(b), now: began}
	c.cache = &cache{store: c.store, behind: func() int { return 0 }}
	c.Evaluator = New(Config{
		Cached: c.cache, Live: c.store, Now: func() time.Time { return c.now }, Resizing: rules.ResizeIsOwn, Exempt: []string{"admin"},
		Count: func(context.Context, *v1beta1.PodUnavailableBudget) (rules.Numbers, error) {
			c.counts++
			return c.numbers, nil
		},
		CountLive: func(context.Context, *v1beta1.PodUnavailableBudget) (rules.Numbers, error) {
			c.liveCounts++
			if c.live != nil {
				return *c.live, nil
			}
			return c.numbers, nil
		},
	})
	return c
}
