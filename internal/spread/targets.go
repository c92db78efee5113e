package spread

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/observe"
	rules "github.com/seed-69ecc383/kruise/internal/rules/spread"
)

const (
	// configTTL is for how long the list of further kinds, and an object of such a kind, is not read again.
	configTTL = 5 * time.Second
	// maxOwners is of how many owners it is kept who owns them, and ownersTTL for how long: it hardly ever changes, but an owner without a
	// controller may be adopted.
	maxOwners = 4096
	ownersTTL = 10 * time.Minute
	// longestChain is more than any workload has owners above it.
	longestChain = 8
)

// Targets reads the workloads whose Pods are spread, and who owns them.
type Targets struct {
	// Cached knows the workloads of the kinds that WorkloadSpreads know; Live reads around it.
	Cached, Live client.Reader
	// Namespace is where the configuration is.
	Namespace string
	Now       func() time.Time

	once   sync.Once
	custom *observe.Kept[string, []CustomKind]
	totals *observe.Kept[types.UID, int32]
	mu     sync.Mutex
	above  map[types.UID]owners
}

// owners are the controllers above an object, as they were at a time.
type owners struct {
	above []rules.Reference
	at    time.Time
}

// CustomKind is a kind of workloads that the configuration lets be spread.
//
// Wire: in the ConfigMap kruise-configuration.
type CustomKind struct {
	Group, Version, Kind string
	// SubResources are the kinds that it makes, which own Pods or own what owns them.
	SubResources []schema.GroupKind `json:"subResources"`
	// ReplicasPath is where it says how many Pods it is to have.
	ReplicasPath string `json:"replicasPath"`
	// PodDeletionCost means that it deletes Pods of a lower deletion cost first.
	PodDeletionCost bool `json:"podDeletionCost"`
}

func (t *Targets) init() {
	t.once.Do(func() {
		t.custom = observe.NewKept[string, []CustomKind](configTTL, t.Now)
		t.totals = observe.NewKept[types.UID, int32](configTTL, t.Now)
		t.above = map[types.UID]owners{}
	})
}

// Custom returns the kinds that the configuration lists; none if there is no configuration.
func (t *Targets) Custom(ctx context.Context) ([]CustomKind, error) {
	t.init()
	if known, ok := t.custom.Get(""); ok {
		return known, nil
	}
	var config corev1.ConfigMap
	err := t.Live.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: keys.Configuration}, &config)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", keys.Configuration, err)
	}
	var list struct{ Workloads []CustomKind }
	if text := config.Data[keys.SpreadKinds]; err == nil && text != "" {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, fmt.Errorf("reading %s of ConfigMap %s: %w", keys.SpreadKinds, keys.Configuration, err)
		}
	}
	t.custom.Set("", list.Workloads)
	return list.Workloads, nil
}

// customOf returns what the configuration says of a kind; nil if it does not list it.
func (t *Targets) customOf(ctx context.Context, kind schema.GroupKind) (*CustomKind, error) {
	all, err := t.Custom(ctx)
	for i := range all {
		if all[i].Group == kind.Group && all[i].Kind == kind.Kind {
			return &all[i], nil
		}
	}
	return nil, err
}

// Fill returns how Pods fill the subsets of a WorkloadSpread whose workload is to have so many. The first error is that the spec can't be
// understood, the second one that the configuration can't be read.
func (t *Targets) Fill(ctx context.Context, s *v1beta1.WorkloadSpread, total int32) (fill rules.Fill, wrong, err error) {
	if fill, wrong = rules.FillOf(s, total); wrong != nil || rules.IsBuiltIn(rules.TargetOf(s).GroupKind) {
		return fill, wrong, nil
	}
	t.init()
	custom, err := t.customOf(ctx, rules.TargetOf(s).GroupKind)
	fill.HasCosts = custom != nil && custom.PodDeletionCost
	return fill, nil, err
}

// isKnown reports whether the owners of objects of a kind are followed.
func (t *Targets) isKnown(ctx context.Context, kind schema.GroupKind) (bool, error) {
	if rules.IsBuiltIn(kind) {
		return true, nil
	}
	all, err := t.Custom(ctx)
	for i := range all {
		if all[i].Group == kind.Group && all[i].Kind == kind.Kind {
			return true, nil
		}
		for _, sub := range all[i].SubResources {
			if sub == kind {
				return true, nil
			}
		}
	}
	return false, err
}

// Above returns the controllers above the controller of a Pod, as far as kinds are known. An owner is hardly ever read twice. It fails if
// one is missing: the Pod's controller tries again.
func (t *Targets) Above(ctx context.Context, namespace string, controller *metav1.OwnerReference) ([]rules.Reference, error) {
	t.init()
	t.mu.Lock()
	known, ok := t.above[controller.UID]
	t.mu.Unlock()
	if ok && t.Now().Sub(known.at) < ownersTTL {
		return known.above, nil
	}
	out := []rules.Reference{}
	next := controller
	for next != nil && len(out) < longestChain {
		follow, err := t.isKnown(ctx, rules.ReferenceOf(next).GroupKind)
		if err != nil {
			return nil, err
		}
		if !follow {
			break
		}
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(schema.FromAPIVersionAndKind(next.APIVersion, next.Kind))
		if err := t.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: next.Name}, object); err != nil {
			return nil, fmt.Errorf("reading %s %s, which owns the Pod: %w", next.Kind, next.Name, err)
		}
		if next = metav1.GetControllerOf(object); next != nil {
			out = append(out, rules.ReferenceOf(next))
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.above) >= maxOwners {
		clear(t.above)
	}
	t.above[controller.UID] = owners{out, t.Now()}
	return out, nil
}

// Total returns how many Pods the workload of a WorkloadSpread is to have; 0 if there is none.
func (t *Targets) Total(ctx context.Context, s *v1beta1.WorkloadSpread) (int32, error) {
	t.init()
	target := rules.TargetOf(s)
	filter := s.Spec.TargetFilter
	if filter != nil && len(filter.ReplicasPathList) > 0 {
		return t.sum(ctx, s, filter.ReplicasPathList)
	}
	if !rules.IsBuiltIn(target.GroupKind) {
		custom, err := t.customOf(ctx, target.GroupKind)
		if err != nil || custom == nil {
			return 0, err
		}
		path := custom.ReplicasPath
		if path == "" {
			path = "spec.replicas"
		}
		return t.sum(ctx, s, []string{path})
	}
	total, err := builtInTotal(ctx, t.Cached, s.Namespace, target)
	if apierrors.IsNotFound(err) && t.Live != nil { // it may be too new for the cache
		total, err = builtInTotal(ctx, t.Live, s.Namespace, target)
	}
	return total, client.IgnoreNotFound(err)
}

// builtInTotal returns how many Pods a workload is to have, or NotFound.
func builtInTotal(ctx context.Context, r client.Reader, namespace string, target rules.Reference) (int32, error) {
	if target.Kind == "Job" {
		var job batchv1.Job
		if err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: target.Name}, &job); err != nil {
			return 0, fmt.Errorf("reading Job %s: %w", target.Name, err)
		}
		if job.Spec.Parallelism == nil {
			return 1, nil
		}
		return *job.Spec.Parallelism, nil
	}
	w, err := observe.Workloads{Reader: observe.Reader{Reader: r}}.Get(ctx, namespace, target.WithVersion(""), target.Name)
	if err != nil {
		return 0, err
	}
	if w == nil || w.Replicas == nil {
		return 0, apierrors.NewNotFound(schema.GroupResource{Group: target.Group, Resource: target.Kind}, target.Name)
	}
	return *w.Replicas, nil
}

// sum returns the sum of fields of the workload, which is read as it is.
func (t *Targets) sum(ctx context.Context, s *v1beta1.WorkloadSpread, paths []string) (int32, error) {
	if known, ok := t.totals.Get(s.UID); ok && s.UID != "" {
		return known, nil
	}
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(s.Spec.TargetReference.APIVersion)
	object.SetKind(s.Spec.TargetReference.Kind)
	key := client.ObjectKey{Namespace: s.Namespace, Name: s.Spec.TargetReference.Name}
	if err := t.Live.Get(ctx, key, object); err != nil {
		if apierrors.IsNotFound(err) {
			return 0, nil
		}
		return 0, fmt.Errorf("reading %s %s: %w", object.GetKind(), key.Name, err)
	}
	total := int32(0)
	for _, path := range paths {
		number, err := NumberAt(object.Object, path)
		if err != nil {
			return 0, err
		}
		total += number
	}
	t.totals.Set(s.UID, total)
	return total, nil
}

// NumberAt returns the number at a path, such as spec.groups.0.replicas; a field that is not there is 1, the usual default of replicas.
func NumberAt(object any, path string) (int32, error) {
	at := object
	for _, name := range strings.Split(path, ".") {
		switch parent := at.(type) {
		case map[string]any:
			at = parent[name]
		case []any:
			index, err := strconv.Atoi(name)
			if err != nil || index < 0 || index >= len(parent) {
				return 0, fmt.Errorf("%s: there is no item %s", path, name)
			}
			at = parent[index]
		case nil:
		default:
			return 0, fmt.Errorf("%s: there is nothing in %q", path, name)
		}
	}
	switch number := at.(type) {
	case int64:
		return int32(number), nil
	case float64:
		return int32(number), nil
	case nil:
		return 1, nil
	}
	return 0, fmt.Errorf("%s is no number", path)
}
