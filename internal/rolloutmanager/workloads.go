package rolloutmanager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/webhookconfig"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

const (
	// rightsTTL is how long an answer of the API server about our own rights is kept.
	rightsTTL = 10 * time.Second
	// dropPeriod is how often kinds that no Rollout names any more are looked for among those that are watched.
	dropPeriod = 30 * time.Second
)

// workloads has Rollouts release workloads of kinds that are only like a StatefulSet. A kind is watched from when the first Rollout names
// it until none does.
type workloads struct {
	*observe.HeldKinds
	live   client.Client
	cached client.Reader
	mapper meta.RESTMapper
	// lacks keeps which right on a resource is missing, "" for none.
	lacks *observe.Kept[schema.GroupVersionResource, string]
	now   func() time.Time

	mu sync.Mutex
	// sent is since when a resource is seen to be sent.
	sent map[schema.GroupVersionResource]time.Time
}

func (s settings) newWorkloads() *workloads {
	return &workloads{
		HeldKinds: observe.NewHeldKinds(s.mgr.GetCache(), s.live), live: s.live, cached: s.mgr.GetCache(), mapper: s.mgr.GetRESTMapper(),
		lacks: observe.NewKept[schema.GroupVersionResource, string](rightsTTL, s.clock.Now), now: s.clock.Now,
		sent: map[schema.GroupVersionResource]time.Time{},
	}
}

// Hold implements releases.Foreign.
func (w *workloads) Hold(ctx context.Context, kind schema.GroupVersionKind) error {
	resource, err := w.resourceOf(kind)
	if err == nil {
		var lacks string
		if lacks, err = w.missing(ctx, resource); err == nil && lacks != "" {
			return unusable("the manager may not %s %s: make a ClusterRole with label rollouts.kruise.io/aggregate-to-manager: \"true\"",
				lacks, resource.GroupResource())
		}
	}
	if err == nil {
		err = w.HeldKinds.Hold(ctx, kind)
	}
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return unusable("the cluster has no kind %s in %s: install its CustomResourceDefinition", kind.Kind, kind.GroupVersion())
	case apierrors.IsForbidden(err):
		return unusable("the manager may not list %s: %v", resource.GroupResource(), err)
	}
	return err
}

func unusable(format string, of ...any) error {
	return &releases.UnusableError{Why: fmt.Sprintf(format, of...)}
}

func (w *workloads) resourceOf(kind schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	mapping, err := w.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("looking for %s: %w", kind.Kind, err)
	}
	return mapping.Resource, nil
}

// missing returns the rights on a resource that a release needs and the manager does not have, such as "watch, patch".
func (w *workloads) missing(ctx context.Context, resource schema.GroupVersionResource) (string, error) {
	if known, ok := w.lacks.Get(resource); ok {
		return known, nil
	}
	var out []string
	for _, verb := range []string{"get", "list", "watch", "patch"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Verb: verb,
			},
		}}
		if err := w.live.Create(ctx, review); err != nil {
			return "", fmt.Errorf("asking for our own rights: %w", err)
		}
		if !review.Status.Allowed {
			out = append(out, verb)
		}
	}
	w.lacks.Set(resource, strings.Join(out, ", "))
	return strings.Join(out, ", "), nil
}

// Intercepts implements releases.Foreign: once the webhook configuration has said so for as long as API servers may take to go by it.
func (w *workloads) Intercepts(ctx context.Context, kind schema.GroupVersionKind) (bool, error) {
	resource, err := w.resourceOf(kind)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var c admissionv1.MutatingWebhookConfiguration
	if err := w.cached.Get(ctx, types.NamespacedName{Name: mutatingConfiguration}, &c); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !webhookconfig.SendsWorkloads(&c, resource) {
		delete(w.sent, resource)
		return false, nil
	}
	if _, seen := w.sent[resource]; !seen {
		w.sent[resource] = w.now()
	}
	return w.now().Sub(w.sent[resource]) >= propagation, nil
}

// dropUnnamed watches no kind any more that no Rollout or BatchRelease names.
func (w *workloads) dropUnnamed(ctx context.Context) error {
	return w.Drop(ctx, func(kind schema.GroupVersionKind) (bool, error) {
		for _, list := range []client.ObjectList{&v1beta1.RolloutList{}, &v1beta1.BatchReleaseList{}} {
			if err := w.cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
				return true, fmt.Errorf("listing %T: %w", list, err)
			}
			named := false
			err := meta.EachListItem(list, func(o runtime.Object) error {
				ref, _ := releases.RefOf(o.(client.Object))
				named = named || schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind) == kind
				return nil
			})
			if named || err != nil {
				return true, err
			}
		}
		return false, nil
	})
}

// Start implements manager.Runnable.
func (w *workloads) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := w.dropUnnamed(ctx); err != nil {
			log.FromContext(ctx).Error(err, "Looking for kinds that no Rollout names any more")
		}
	}, dropPeriod)
	return nil
}

// namedResources returns what webhookconfig.Options.Workloads is: the resources of the kinds that Rollouts name and releases do not know.
func (s settings) namedResources(ctx context.Context) (out []schema.GroupVersionResource, again time.Duration, err error) {
	if s.FilterWorkloadType {
		return nil, 0, nil
	}
	var all v1beta1.RolloutList
	if err := s.live.List(ctx, &all); err != nil {
		return nil, 0, fmt.Errorf("listing Rollouts: %w", err)
	}
	for i := range all.Items {
		ref := all.Items[i].Spec.WorkloadRef
		if !steer.IsForeign(releases.GroupKind(ref)) {
			continue
		}
		kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
		mapping, err := s.mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case meta.IsNoMatchError(err):
			again = releases.UnusableRecheck
		case err != nil:
			return nil, 0, fmt.Errorf("looking for %s: %w", kind.Kind, err)
		case !slices.Contains(out, mapping.Resource):
			out = append(out, mapping.Resource)
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) })
	return out, again, nil
}
