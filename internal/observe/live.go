package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kept are values that were read live and count as known for a while.
type Kept[K comparable, V any] struct {
	ttl time.Duration
	now func() time.Time
	mu  sync.Mutex
	of  map[K]keptValue[V]
}

type keptValue[V any] struct {
	value V
	at    time.Time
}

// NewKept returns Kept without values, which keeps each for the given time.
func NewKept[K comparable, V any](ttl time.Duration, now func() time.Time) *Kept[K, V] {
	return &Kept[K, V]{ttl: ttl, now: now, of: map[K]keptValue[V]{}}
}

// Get returns what was read not long ago, and drops what was read before that.
func (k *Kept[K, V]) Get(key K) (V, bool) {
	now := k.now()
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.of, func(_ K, known keptValue[V]) bool { return now.Sub(known.at) >= k.ttl })
	known, ok := k.of[key]
	return known.value, ok
}

// Set notes what was read just now.
func (k *Kept[K, V]) Set(key K, value V) {
	at := k.now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.of[key] = keptValue[V]{value, at}
}

// ScaleTTL is for how long a scale is not read again: nothing tells when it changes.
const ScaleTTL = 30 * time.Second

// Scales reads workloads of any kind live by their scale, which is all that the manager may read of them. What was read is kept for
// ScaleTTL.
type Scales struct {
	live  client.SubResourceClientConstructor
	kinds Kinds
	// anew reads again what is kept.
	anew bool
	kept *Kept[scaleKey, *Workload]
}

// Kinds tells what the API server serves.
type Kinds interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

type scaleKey struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// NewScales returns Scales that have read nothing yet.
func NewScales(live client.SubResourceClientConstructor, kinds Kinds, now func() time.Time) *Scales {
	return &Scales{live: live, kinds: kinds, kept: NewKept[scaleKey, *Workload](ScaleTTL, now)}
}

// Anew returns Scales that read each scale anew, for those who have to know what is wanted now. What they read is kept for these.
func (s *Scales) Anew() *Scales {
	anew := *s
	anew.anew = true
	return &anew
}

// Get returns a workload by its scale; nil if there is none of that name. It does not say how many Pods it should have if its kind has no
// scale or is not known, or if the manager may not read the scale.
func (s *Scales) Get(ctx context.Context, namespace string, kind schema.GroupVersionKind, name string) (*Workload, error) {
	key := scaleKey{kind, types.NamespacedName{Namespace: namespace, Name: name}}
	if known, ok := s.kept.Get(key); ok && !s.anew {
		return known, nil
	}
	workload, err := s.read(ctx, key)
	if err != nil {
		return nil, err
	}
	s.kept.Set(key, workload)
	return workload, nil
}

func (s *Scales) read(ctx context.Context, key scaleKey) (*Workload, error) {
	object, answer := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	object.SetGroupVersionKind(key.GroupVersionKind)
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	answer.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	silent := &Workload{GroupKind: key.GroupKind(), Name: key.Name, Polled: true}
	err := s.live.SubResource("scale").Get(ctx, object, answer)
	switch {
	case apierrors.IsNotFound(err):
		// Of a kind without a scale the API server says the same as of an object that is not there.
		if scalable, err := s.isScalable(key.GroupVersionKind); scalable || err != nil {
			return nil, err
		}
		return silent, nil
	case meta.IsNoMatchError(err), apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err):
		return silent, nil
	case err != nil:
		return nil, fmt.Errorf("reading the scale of %s %s: %w", key.Kind, key.Name, err)
	}
	var scale autoscalingv1.Scale
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, &scale); err != nil {
		return nil, fmt.Errorf("reading the scale of %s %s: %w", key.Kind, key.Name, err)
	}
	silent.UID, silent.Replicas, silent.Selector = scale.UID, &scale.Spec.Replicas, scale.Status.Selector
	return silent, nil
}

// isScalable reports whether a kind has a scale.
func (s *Scales) isScalable(kind schema.GroupVersionKind) (bool, error) {
	served, err := s.kinds.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking for the kinds of %s: %w", kind.GroupVersion(), err)
	}
	for i := range served.APIResources {
		if r := &served.APIResources[i]; r.Kind == kind.Kind && !strings.Contains(r.Name, "/") {
			return slices.ContainsFunc(served.APIResources, func(sub metav1.APIResource) bool { return sub.Name == r.Name+"/scale" }), nil
		}
	}
	return false, nil
}

// Sources reads Secrets by name, live: the manager may neither list nor watch them. What was read is kept for SourceTTL.
type Sources struct {
	live client.Reader
	kept *Kept[types.NamespacedName, secretRead]
}

type secretRead struct {
	secret *corev1.Secret
	err    error
}

// SourceTTL is for how long a Secret is not read again.
const SourceTTL = 5 * time.Second

// NewSources returns Sources that have read nothing yet.
func NewSources(live client.Reader, now func() time.Time) *Sources {
	return &Sources{live: live, kept: NewKept[types.NamespacedName, secretRead](SourceTTL, now)}
}

// Get returns a Secret, or what the API server said to the last try to read it. The Secret must not be changed.
func (s *Sources) Get(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	if known, ok := s.kept.Get(key); ok {
		return known.secret, known.err
	}
	read := secretRead{secret: &corev1.Secret{}}
	if read.err = s.live.Get(ctx, key, read.secret); read.err != nil {
		read.secret = nil
	}
	s.kept.Set(key, read)
	return read.secret, read.err
}
