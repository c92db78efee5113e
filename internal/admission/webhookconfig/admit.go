package webhookconfig

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/admission/pods"
	"github.com/seed-69ecc383/kruise/internal/rules/inject"
	"github.com/seed-69ecc383/kruise/internal/rules/scope"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// admitTries is how often an admission tries a write on which other managers were first.
const admitTries = 8

// Admit widens the configuration for a SidecarSet that is about to be stored; before is nil if it is created. When it returns, API servers
// send the Pods that the SidecarSet selects. It does nothing if it selects what it selected before.
func (r *Reconciler) Admit(ctx context.Context, before, after *v1beta1.SidecarSet) error {
	selected, ok := scope.OfSidecarSet(after)
	if !ok {
		return nil
	}
	if before != nil {
		if was, ok := scope.OfSidecarSet(before); ok && was.Equal(selected) {
			return nil
		}
	}
	more := newPending(before, after, r.Now())
	return r.admit(ctx, admitted{set: &more})
}

// admitted is an object that is about to be stored and selects Pods.
type admitted struct {
	set    *pending
	spread *pendingSpread
}

// admit widens the configuration, and returns when API servers go by it.
func (r *Reconciler) admit(ctx context.Context, more admitted) error {
	widened := false
	backoff := wait.Backoff{Duration: r.RetryDelay, Factor: 2, Jitter: 1, Steps: admitTries}
	err := retry.RetryOnConflict(backoff, func() (err error) {
		widened, err = r.widen(ctx, more)
		return err
	})
	if err == nil && widened {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(r.Propagation):
		}
	}
	if err != nil {
		return fmt.Errorf("making the API server send the Pods that it selects: %w", err)
	}
	return nil
}

// widen adds a pending object to the configuration, and reports whether API servers may not yet go by what the configuration says.
func (r *Reconciler) widen(ctx context.Context, more admitted) (bool, error) {
	r.mutating.Lock()
	defer r.mutating.Unlock()
	live := &admissionv1.MutatingWebhookConfiguration{}
	if err := r.readOne(ctx, r.Mutating.Name, live); err != nil {
		return false, err
	}
	selection, err := r.readSelection(ctx, live, more)
	if err != nil {
		return false, err
	}
	next := Desired(live, Input{Manifests: r.Manifests, Pods: selection.scope})
	written, err := r.write(ctx, live, next)
	if err != nil {
		return false, err
	}
	if written {
		log.FromContext(ctx).Info("Changed which Pods are sent", "webhooks", selection.scope.len())
	}
	after, ok := next.(*admissionv1.MutatingWebhookConfiguration)
	return selection.recent || ok && !equality.Semantic.DeepEqual(live.Webhooks, after.Webhooks), nil
}

// A Pod waits for a SidecarSet to appear in the cache for at most awaitTimeout, with a look each awaitInterval. The API server waits for a
// second longer, so that whoever creates the Pod is told why.
const awaitInterval, awaitTimeout = 5 * time.Millisecond, 2 * time.Second

// AwaitOptions is what Await needs.
type AwaitOptions struct {
	// Configuration is the name of the mutating webhook configuration, and Cached a cache that holds few others, if any.
	Configuration string
	Cached, Live  client.Reader
	// Known returns the SidecarSets in the cache.
	Known func() (*inject.Candidates, error)
}

// Await returns a step that has a Pod wait until the SidecarSets that were stored before it are in the cache. It comes before the step that
// injects. A Pod may be created a millisecond after its SidecarSet, and be sent to a manager before the watch event of the SidecarSet is.
// But the configuration says for longer that the SidecarSet is pending.
//
// Only a SidecarSet that is pending, selects the Pod and is not in the cache yet costs a request.
func Await(o AwaitOptions) pods.Step {
	return pods.Step{Name: "await", Run: o.run}
}

func (o AwaitOptions) run(ctx context.Context, s *pods.Subject) error {
	annotations, err := o.annotations(ctx)
	if err != nil {
		return fmt.Errorf("reading which SidecarSets are pending: %w", err)
	}
	all, err := parsePending(annotations[keys.PodScopePending])
	if err != nil {
		return nil //nolint:nilerr // somebody else wrote it; the leader removes it
	}
	for _, p := range all {
		selected, err := sidecar.Select(p.Selector, p.NamespaceSelector)
		if err != nil || !selected.MatchesLabels(s.Pod().Labels) {
			continue
		}
		if err := o.await(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// annotations returns those of the configuration; nothing where that is missing. The configuration is not copied for every Pod: it is
// large.
func (o AwaitOptions) annotations(ctx context.Context) (map[string]string, error) {
	var all admissionv1.MutatingWebhookConfigurationList
	if err := o.Cached.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if all.Items[i].Name == o.Configuration {
			return all.Items[i].Annotations, nil
		}
	}
	return nil, nil
}

// await returns once the cache holds a pending SidecarSet, or if it is not stored.
func (o AwaitOptions) await(ctx context.Context, p pending) error {
	known, err := o.knows(p)
	if known || err != nil {
		return err
	}
	stored := &v1beta1.SidecarSet{}
	if err := o.Live.Get(ctx, client.ObjectKey{Name: p.Name}, stored); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading SidecarSet %s: %w", p.Name, err)
	} else if err != nil || !p.isOlderThan(stored) {
		return nil // the Pod comes before it
	}
	return poll(ctx, "SidecarSet "+p.Name, func() (bool, error) { return o.knows(p) })
}

// poll returns once an object is known.
func poll(ctx context.Context, object string, knows func() (bool, error)) error {
	err := wait.PollUntilContextTimeout(ctx, awaitInterval, awaitTimeout, true, func(context.Context) (bool, error) { return knows() })
	if err != nil {
		return fmt.Errorf("%s is not known to this manager yet, try again: %w", object, err)
	}
	return nil
}

func (o AwaitOptions) knows(p pending) (bool, error) {
	known, err := o.Known()
	if err != nil {
		return false, err
	}
	candidate := known.Named(p.Name)
	return candidate != nil && p.isOlderThan(candidate.Set), nil
}
