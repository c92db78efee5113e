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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ScaleStands is for how long a scale is not read again: nothing tells when it changes.
const ScaleStands = 30 * time.Second

// Scales reads workloads of any kind live by their scale, which is all that the manager may read of them. What was read stands for a while.
type Scales struct {
	live  client.SubResourceClientConstructor
	kinds Kinds
	now   func() time.Time
	// anew means that nothing stands.
	anew bool
	*readings
}

// readings are what was read.
type readings struct {
	mu sync.Mutex
	of map[scaleKey]scaleRead
}

// Kinds tells what the API server serves.
type Kinds interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

type scaleKey struct {
	schema.GroupVersionKind
	types.NamespacedName
}

type scaleRead struct {
	workload *Workload
	at       time.Time
}

// NewScales returns Scales that have read nothing yet.
func NewScales(live client.SubResourceClientConstructor, kinds Kinds, now func() time.Time) *Scales {
	return &Scales{live: live, kinds: kinds, now: now, readings: &readings{of: map[scaleKey]scaleRead{}}}
}

// Anew returns Scales that read each scale anew, for those who have to know what is wanted now. What they read stands for these.
func (s *Scales) Anew() *Scales {
	anew := *s
	anew.anew = true
	return &anew
}

// Get returns a workload by its scale; nil if there is none of that name. It does not say how many Pods it should have if its kind has no scale or is
// not known, or if the manager may not read the scale.
func (s *Scales) Get(ctx context.Context, namespace string, kind schema.GroupVersionKind, name string) (*Workload, error) {
	key, now := scaleKey{kind, types.NamespacedName{Namespace: namespace, Name: name}}, s.now()
	if known, ok := s.recall(key, now); ok && !s.anew {
		return known.workload, nil
	}
	workload, err := s.ask(ctx, key)
	if err != nil {
		return nil, err
	}
	s.keep(key, scaleRead{workload: workload, at: now})
	return workload, nil
}

// recall returns what was read of a scale, and drops what does not stand any more.
func (r *readings) recall(key scaleKey, now time.Time) (scaleRead, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.of, func(_ scaleKey, known scaleRead) bool { return now.Sub(known.at) >= ScaleStands })
	known, ok := r.of[key]
	return known, ok
}

func (r *readings) keep(key scaleKey, read scaleRead) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of[key] = read
}

func (s *Scales) ask(ctx context.Context, key scaleKey) (*Workload, error) {
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
