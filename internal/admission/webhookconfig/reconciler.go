package webhookconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/internal/admission/certs"
)

const (
	// caOverlap is how long a CA stays in the configurations after the leader first saw another one stored. All managers serve under that
	// one then: they see it within a minute, and serve under it a minute later.
	caOverlap = 24 * time.Hour
	// conflictDelay is the wait after another manager was first, on average.
	conflictDelay = 100 * time.Millisecond
)

// The parts that are reconciled, which are the names in requests.
const (
	allParts       = "all"
	mutatingPart   = "mutating"
	validatingPart = "validating"
	crdsPart       = "crds"
)

// Parts returns the names of the parts that Serving has to see.
func Parts() []string { return []string{mutatingPart, validatingPart, crdsPart} }

// Options is what a Reconciler needs.
type Options struct {
	Manifests
	// Client must read without a cache: what is stored counts, not what is known of it here.
	Client client.WithWatch
	// CRDs are the names of the kinds that the managers convert.
	CRDs    []string
	Issuer  certs.Issuer
	Serving *certs.Serving
	// Elected is closed once this manager leads.
	Elected <-chan struct{}
	// Pods, Markers, PodStates, Spreads and Evictions say that the gates want Pods of SidecarSets, of PodProbeMarkers, of
	// PersistentPodStates and of WorkloadSpreads, and evictions to be sent.
	Pods, Markers, PodStates, Spreads, Evictions bool
	// Workloads returns the further kinds of workloads that are sent because Rollouts name them, sorted, and when to ask again although no
	// Rollout has changed; nil where there are no Rollouts.
	Workloads func(context.Context) (resources []schema.GroupVersionResource, again time.Duration, err error)
	// Propagation is how long API servers may take to go by a changed configuration; mostly it is milliseconds.
	Propagation time.Duration
	// RetryDelay is the wait before an admission tries a write again because another manager was first; it doubles with each try.
	RetryDelay time.Duration
	Now        func() time.Time
}

// Reconciler keeps the webhook configurations and the CRDs. Make it with New.
type Reconciler struct {
	Options

	// mutating is held from a read of the mutating configuration to the write on top of it: users write many SidecarSets at the same time,
	// whose admissions must not conflict with each other.
	mutating sync.Mutex

	// issue is what the store of the CA held last; nil to read it anew.
	issue *certs.Issue
	// ca is the CA that is stored, and caSince when it was first seen.
	ca      string
	caSince time.Time

	mu sync.Mutex
	// evictionsSince is when a namespace was first seen here to have its evictions sent.
	evictionsSince map[string]time.Time
}

// New returns a Reconciler.
func New(o Options) *Reconciler { return &Reconciler{Options: o} }

func (r *Reconciler) isLeader() bool {
	select {
	case <-r.Elected:
		return true
	default:
		return false
	}
}

// Reconcile brings one part, or all of them, in line with what Desired returns.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	next, err := r.reconcile(ctx, request.Name)
	r.Serving.Failed(err)
	if apierrors.IsConflict(err) || errors.Is(err, certs.ErrConflict) {
		return reconcile.Result{RequeueAfter: wait.Jitter(conflictDelay/2, 2)}, nil
	}
	return reconcile.Result{RequeueAfter: next}, err
}

// reconcile returns when to reconcile again; 0 if there is no hurry. A part that fails does not stop the others.
func (r *Reconciler) reconcile(ctx context.Context, name string) (next time.Duration, err error) {
	parts := []string{name}
	if name == allParts {
		parts, r.issue = Parts(), nil
	}
	if slices.Contains(parts, mutatingPart) {
		r.mutating.Lock()
		defer r.mutating.Unlock()
	}
	live, failed := map[string][]client.Object{}, []error(nil)
	for _, part := range parts {
		objects, err := r.read(ctx, part)
		if live[part] = objects; err != nil {
			failed = append(failed, err)
			delete(live, part)
		}
	}
	// The rest is read after the configuration, see the comment of the package. The CA has to be newer only for the leader, who takes
	// others
	// away.
	if r.issue == nil || r.isLeader() {
		issue, err := r.Issuer.Current(ctx)
		if err != nil {
			return 0, errors.Join(append(failed, err)...)
		}
		r.issue = &issue
	}
	for _, part := range parts {
		if objects, ok := live[part]; ok {
			again, err := r.reconcilePart(ctx, part, objects)
			next, failed = soonest(next, again), append(failed, err)
		}
	}
	return next, errors.Join(failed...)
}

func (r *Reconciler) reconcilePart(ctx context.Context, part string, live []client.Object) (time.Duration, error) {
	in := Input{Manifests: r.Manifests, CA: r.issue.CA, OnlyCA: r.isOverlapOver(r.issue.CA)}
	seen, expiry := certs.Seen{Part: part}, time.Duration(0)
	var scopeErr error
	if r.isLeader() {
		in.Leads = true
		// Objects that are stored in v1alpha1 can only be read once a manager converts them, for which the CA must have been written.
		expiry, scopeErr = r.readScope(ctx, live[0], &in)
	}
	for _, o := range live {
		next := Desired(o, in)
		written, err := r.write(ctx, o, next)
		if err != nil {
			return 0, err
		}
		seen.Written = seen.Written || written
		seen.Bundles = append(seen.Bundles, bundles(next, r.Endpoint)...)
	}
	if in.Evictions != nil {
		r.noteEvictions(in.Evictions.Namespaces)
		if seen.Written {
			log.FromContext(ctx).Info("Changed whose evictions are sent", "namespaces", len(in.Evictions.Namespaces))
		}
	}
	if in.Pods != nil && seen.Written {
		log.FromContext(ctx).Info("Changed which Pods are sent", "webhooks", in.Pods.len())
	}
	served, err := r.Serving.Observe(*r.issue, seen)
	return soonest(served, expiry), errors.Join(err, scopeErr)
}

// soonest returns the shorter of two waits, of which 0 is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// isOverlapOver reports whether no manager serves under another CA any more. Only the leader takes CAs away.
func (r *Reconciler) isOverlapOver(ca []byte) bool {
	if r.ca != string(ca) || r.caSince.IsZero() {
		r.ca, r.caSince = string(ca), r.Now()
	}
	return r.isLeader() && r.Now().Sub(r.caSince) >= caOverlap
}

// readScope fills in what the leader follows for a part, and returns how long it takes until a pending SidecarSet expires; 0 if none is
// pending.
func (r *Reconciler) readScope(ctx context.Context, live client.Object, in *Input) (time.Duration, error) {
	switch live := live.(type) {
	case *admissionv1.MutatingWebhookConfiguration:
		if r.Workloads != nil {
			resources, again, err := r.Workloads(ctx)
			if err == nil {
				in.Workloads = &WorkloadScope{Resources: resources}
			}
			return again, err
		}
		if !r.Pods {
			return 0, nil
		}
		selection, err := r.readSelection(ctx, live, admitted{})
		if err != nil {
			return 0, err
		}
		if in.Pods = selection.scope; selection.expiry.IsZero() {
			return 0, nil
		}
		return max(narrowDelay, selection.expiry.Sub(r.Now())), nil
	case *admissionv1.ValidatingWebhookConfiguration:
		namespaces, err := r.namespacesWithBudgets(ctx)
		if err != nil {
			return 0, err
		}
		in.Evictions = &EvictionScope{Namespaces: namespaces}
		return 0, nil
	default:
		return 0, nil
	}
}

// read returns the objects of a part.
func (r *Reconciler) read(ctx context.Context, part string) ([]client.Object, error) {
	switch part {
	case mutatingPart:
		live := &admissionv1.MutatingWebhookConfiguration{}
		return []client.Object{live}, r.readOne(ctx, r.Mutating.Name, live)
	case validatingPart:
		live := &admissionv1.ValidatingWebhookConfiguration{}
		return []client.Object{live}, r.readOne(ctx, r.Validating.Name, live)
	default:
		var all []client.Object
		for _, name := range r.CRDs {
			live := &apiextensionsv1.CustomResourceDefinition{}
			if err := r.readOne(ctx, name, live); err != nil {
				return nil, err
			}
			all = append(all, live)
		}
		return all, nil
	}
}

func (r *Reconciler) readOne(ctx context.Context, name string, into client.Object) error {
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, into)
	if apierrors.IsNotFound(err) {
		// A manager can't make it: a right to create webhook configurations could not be limited to these names.
		return fmt.Errorf("%T %s is missing, install it with: kubectl apply --server-side -k config/default: %w", into, name, err)
	}
	if err != nil {
		return fmt.Errorf("reading %T %s: %w", into, name, err)
	}
	return nil
}

// write writes the difference of two versions of an object, if there is one, on top of the version that was read. It returns a conflict as
// it is.
func (r *Reconciler) write(ctx context.Context, live, next client.Object) (bool, error) {
	if equality.Semantic.DeepEqual(live, next) {
		return false, nil
	}
	err := r.Client.Patch(ctx, next, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return false, err
	}
	if err != nil {
		return false, fmt.Errorf("writing %T %s: %w", live, live.GetName(), err)
	}
	return true, nil
}
