package webhookconfig

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/scope"
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

// widen adds a pending SidecarSet to the configuration, and reports whether API servers may not yet go by what the configuration says.
func (r *Reconciler) widen(ctx context.Context, more pending) (bool, error) {
	r.mutating.Lock()
	defer r.mutating.Unlock()
	live := &admissionv1.MutatingWebhookConfiguration{}
	if err := r.readOne(ctx, r.Mutating.Name, live); err != nil {
		return false, err
	}
	selection, err := r.readSelection(ctx, live, &more)
	if err != nil {
		return false, err
	}
	next := Desired(live, Input{Manifests: r.Manifests, Pods: selection.scope})
	written, err := r.write(ctx, live, next)
	if err != nil {
		return false, err
	}
	if written {
		log.FromContext(ctx).Info("Changed which Pods are sent", "webhooks", len(selection.scope.SidecarSets)+len(selection.scope.Markers))
	}
	after, ok := next.(*admissionv1.MutatingWebhookConfiguration)
	return selection.recent || ok && !equality.Semantic.DeepEqual(live.Webhooks, after.Webhooks), nil
}
