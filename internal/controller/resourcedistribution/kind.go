package resourcedistribution

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/distribution"
)

// Options are the choices made for the whole controller at start-up.
type Options struct {
	// Copies are where the copies are known.
	Copies Copies
	// Kinds are the kinds that are distributed.
	Kinds []distribution.Kind

	// verified are the versions of copies that are as they are to be, by the UID of the copy, for each ResourceDistribution.
	verified *apply.PerOwner[map[types.UID]version]
}

// Copies knows the objects with the label of a copy.
type Copies interface {
	// Of returns the objects of a kind that carry the label of a ResourceDistribution: no more than their metadata has to be known.
	Of(ctx context.Context, kind string, owner types.UID) ([]client.Object, error)
	// Named returns the objects of a kind with a name in all namespaces, live: no more than their metadata has to be known.
	Named(ctx context.Context, kind, name string) ([]client.Object, error)
	// Watches returns what is heard of changes of objects with the label.
	Watches(changed func(ctx context.Context, before, after client.Object) ([]types.NamespacedName, error)) []loop.Watch
}

// version is a version of a copy, and the resource that it was compared with.
type version struct{ copy, source string }

// Kind is the controller of ResourceDistributions.
func Kind(o Options) loop.Kind[*v1beta1.ResourceDistribution, State, v1beta1.ResourceDistributionStatus] {
	o.verified = &apply.PerOwner[map[types.UID]version]{}
	return loop.Kind[*v1beta1.ResourceDistribution, State, v1beta1.ResourceDistributionStatus]{
		Name: "resourcedistribution",
		Watches: func(cached observe.Reader) []loop.Watch {
			d := distributions{cached}
			return append(o.Copies.Watches(d.ofCopy), loop.Affected(&corev1.Namespace{}, d.ofNamespace))
		},
		Read:     o.read,
		Plan:     Plan,
		Status:   Status,
		StatusOf: func(o *v1beta1.ResourceDistribution) *v1beta1.ResourceDistributionStatus { return &o.Status },
		Remember: o.remember,
		Forget:   o.verified.Forget,
	}
}

// distributions finds the ResourceDistributions that a change concerns.
type distributions struct{ observe.Reader }

func (d distributions) affected(
	ctx context.Context, affected func(*v1beta1.ResourceDistribution) bool,
) ([]types.NamespacedName, error) {
	var list v1beta1.ResourceDistributionList
	all, err := observe.List(ctx, d, &list, &list.Items)
	return observe.Keys(all, affected), err
}

// ofNamespace returns those that a namespace may have a copy of, by its labels of now or before.
func (d distributions) ofNamespace(ctx context.Context, before, after *corev1.Namespace) ([]types.NamespacedName, error) {
	if before != nil && after != nil && before.ResourceVersion == after.ResourceVersion {
		return nil, nil
	}
	var versions []map[string]string
	for _, n := range []*corev1.Namespace{before, after} {
		if n != nil {
			versions = append(versions, n.Labels)
		}
	}
	name := cmp.Or(after, before).Name
	return d.affected(ctx, func(of *v1beta1.ResourceDistribution) bool { return distribution.Concerns(&of.Spec, name, versions...) })
}

// ofCopy returns the one that has made a copy that comes, changes or goes: a creation may land late, where no copy is wanted any more.
func (d distributions) ofCopy(ctx context.Context, before, after client.Object) ([]types.NamespacedName, error) {
	owners := map[string]bool{}
	for _, object := range []client.Object{before, after} {
		if object != nil {
			owners[object.GetLabels()[keys.DistributedBy]] = true
		}
	}
	return d.affected(ctx, func(of *v1beta1.ResourceDistribution) bool { return owners[string(of.UID)] })
}

// remember notes the versions of copies that are as they are to be: those that were compared, and those that were just written.
func (o Options) remember(s State, outcome apply.Outcome) {
	o.verified.Do(s.Owner.UID, func(known *map[types.UID]version) {
		next := map[types.UID]version{}
		for _, p := range s.places {
			if p.standing == current {
				next[p.uid] = version{p.version, s.fingerprint()}
			}
		}
		for _, r := range outcome.Results {
			if r.Err == nil && r.Object != nil {
				next[r.Object.GetUID()] = version{r.Object.GetResourceVersion(), s.fingerprint()}
			}
		}
		*known = next
	})
}
