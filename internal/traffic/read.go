package traffic

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	rules "github.com/seed-69ecc383/kruise/internal/rules/traffic"
)

// ConfigMapName is the ConfigMap with the scripts of operators, in the namespace of the manager.
//
// Wire: it is stored in users' clusters.
const ConfigMapName = "kruise-rollout-configuration"

// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes;grpcroutes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=networking.istio.io,resources=virtualservices;destinationrules,verbs=get;list;watch;patch

// Options are the choices made for all of traffic at start-up.
type Options struct {
	// Namespace is that of the manager, which has the ConfigMap.
	Namespace string
	// Kinds has caches hold kinds of routes; nil where the reader reads any kind by itself.
	Kinds Holder
}

// Holder has a cache hold the objects of a kind.
type Holder interface {
	// Hold returns nil once the cache has all objects of the kind.
	Hold(ctx context.Context, kind schema.GroupVersionKind) error
}

// Observe reads what leads traffic.
func (o Options) Observe(ctx context.Context, from observe.Reader, w Routings) (*Observed, error) {
	out := &Observed{Routings: w}
	r := reading{Options: o, from: from, out: out}
	for i := range w.Refs {
		if err := r.ref(ctx, &w.Refs[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// reading is one look.
type reading struct {
	Options
	from observe.Reader
	out  *Observed
	// scripts is the ConfigMap; nil until it is read.
	scripts map[string]string
}

func (r *reading) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: r.out.Owner.GetNamespace(), Name: name}
}

func (r *reading) missing(what string) { r.out.missing = append(r.out.missing, what) }

// ref reads what one reference names.
func (r *reading) ref(ctx context.Context, ref *v1beta1.TrafficRoutingRef) error {
	if err := r.service(ctx, ref); err != nil {
		return err
	}
	for _, name := range routesOf(ref) {
		if err := r.route(ctx, ref, name); err != nil {
			return err
		}
	}
	if ref.Ingress == nil {
		return nil
	}
	return r.ingress(ctx, ref)
}

func (r *reading) service(ctx context.Context, ref *v1beta1.TrafficRoutingRef) error {
	s := service{name: ref.Service, splits: r.out.splits(ref)}
	var err error
	if s.stable, err = observe.Find(ctx, r.from, r.key(ref.Service), &corev1.Service{}); err != nil {
		return err
	}
	if s.stable == nil {
		r.missing("Service " + ref.Service)
	}
	if s.splits {
		canary, err := observe.Find(ctx, r.from, r.key(rules.CanaryName(ref.Service)), &corev1.Service{})
		if err != nil {
			return err
		}
		if canary != nil && !metav1.IsControlledBy(canary, r.out.Owner) {
			s.taken, canary = true, nil
		}
		s.canary = canary
	}
	r.out.services = append(r.out.services, s)
	return nil
}

func (r *reading) ingress(ctx context.Context, ref *v1beta1.TrafficRoutingRef) error {
	i := &ingress{name: ref.Ingress.Name, wanted: map[string]wantedIngress{}, union: map[string]bool{}}
	var err error
	if i.stable, err = observe.Find(ctx, r.from, r.key(i.name), &networkingv1.Ingress{}); err != nil {
		return err
	}
	if i.canary, err = observe.Find(ctx, r.from, r.key(rules.CanaryName(i.name)), &networkingv1.Ingress{}); err != nil {
		return err
	}
	if i.canary != nil && !metav1.IsControlledBy(i.canary, r.out.Owner) {
		i.taken, i.canary = true, nil
	}
	r.out.leads = append(r.out.leads, i)
	if i.stable == nil {
		r.missing("Ingress " + i.name)
		return nil
	}
	annotate, err := r.annotator(ctx, ref.Ingress.ClassType)
	if err != nil || annotate == nil {
		return err
	}
	for _, g := range r.out.goals(ref) {
		wanted := wantedIngress{err: g.err}
		if wanted.err == nil {
			wanted.Ingress, wanted.err = rules.CanaryRules(i.stable, g.split)
		}
		if wanted.err == nil {
			wanted.Annotations, wanted.err = annotate(i.stable.Annotations, g.split)
		}
		if wanted.err == nil {
			for key := range wanted.Annotations {
				i.union[key] = true
			}
		}
		i.wanted[g.key] = wanted
	}
	return nil
}

// route reads an object that is edited.
func (r *reading) route(ctx context.Context, ref *v1beta1.TrafficRoutingRef, name routeName) error {
	live, err := r.object(ctx, name)
	var unserved *unservedError
	switch {
	case errors.As(err, &unserved):
		r.missing(err.Error())
		return nil
	case apierrors.IsForbidden(err):
		r.out.problems = append(r.out.problems, fmt.Sprintf(
			"the manager may not read, watch and patch %s of %s: give its account a role for them", name.Kind, name.Group))
		return nil
	case err != nil:
		return err
	case live == nil:
		r.missing(name.String())
		return nil
	}
	goals := r.out.goals(ref)
	edit, known := rules.EditorOf(name.GroupKind())
	if !known {
		if edit, err = r.editor(ctx, name, goals); err != nil {
			return err
		}
	}
	found := newRoute(name, live, edit, goals)
	if found.others, err = r.isOthers(ctx, found.by); err != nil {
		return err
	}
	r.out.leads = append(r.out.leads, found)
	return nil
}

// object returns an object of any kind; nil if there is none of that name. Of Gateway API, the first version is read that is served.
func (r *reading) object(ctx context.Context, name routeName) (live *unstructured.Unstructured, err error) {
	versions := []string{name.Version}
	if name.Group == rules.GatewayGroup && name.Kind == string(rules.HTTPRoute) {
		versions = gatewayVersions()
	}
	for _, version := range versions {
		kind := name.GroupVersionKind
		kind.Version = version
		live, err = r.versioned(ctx, kind, name.name)
		var unserved *unservedError
		if !errors.As(err, &unserved) {
			return live, err
		}
	}
	return nil, &unservedError{name.GroupVersionKind}
}

func (r *reading) versioned(ctx context.Context, kind schema.GroupVersionKind, name string) (*unstructured.Unstructured, error) {
	if r.Kinds != nil && r.from.Indexed {
		if err := r.Kinds.Hold(ctx, kind); err != nil {
			return nil, unservedAs(kind, err)
		}
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(kind)
	live, err := observe.Find(ctx, r.from, r.key(name), live)
	return live, unservedAs(kind, err)
}

// unservedError means that the cluster does not serve a kind.
type unservedError struct{ kind schema.GroupVersionKind }

// Error implements error.
func (e *unservedError) Error() string {
	return fmt.Sprintf("CustomResourceDefinition of %s in %s", e.kind.Kind, e.kind.GroupVersion())
}

func unservedAs(kind schema.GroupVersionKind, err error) error {
	if meta.IsNoMatchError(err) {
		return &unservedError{kind}
	}
	return err
}

// isOthers reports whether an object is changed by the release of somebody else, who is there.
func (r *reading) isOthers(ctx context.Context, by string) (bool, error) {
	kind, name, named := strings.Cut(by, " ")
	if by == nobody || by == r.out.by() || !named {
		return false, nil
	}
	var owner client.Object
	switch kind {
	case "Rollout":
		owner = &v1beta1.Rollout{}
	case "TrafficRouting":
		owner = &v1alpha1.TrafficRouting{}
	default:
		return false, nil
	}
	err := r.from.Get(ctx, r.key(name), owner)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading %s: %w", by, err)
	}
	return err == nil, nil
}
