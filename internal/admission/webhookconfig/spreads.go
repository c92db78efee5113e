package webhookconfig

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/admission/pods"
	"github.com/seed-69ecc383/kruise/internal/rules/scope"
)

// pendingSpread is a WorkloadSpread that has been admitted and may not be stored yet. Only its creation is: its workload never changes.
//
// Wire: in the annotation keys.SpreadScopePending of the webhook configuration, as a JSON list.
type pendingSpread struct {
	Namespace string                         `json:"namespace"`
	Name      string                         `json:"name"`
	UID       types.UID                      `json:"uid"`
	At        metav1.Time                    `json:"at"`
	Target    *v1beta1.SpreadTargetReference `json:"target"`
}

func (p pendingSpread) isStored(stored []v1beta1.WorkloadSpread) bool {
	return slices.ContainsFunc(stored, func(s v1beta1.WorkloadSpread) bool { return s.UID == p.UID })
}

// expiry returns when it is pending no more: once every manager knows the WorkloadSpread, or the request must have failed.
func (p pendingSpread) expiry(stored []v1beta1.WorkloadSpread) time.Time {
	if p.isStored(stored) {
		return p.At.Add(pendingMinimum)
	}
	return p.At.Add(requestTimeout)
}

// parseSpreads reads the annotation. What can't be read was written by somebody else, and would have mattered for two minutes at most.
func parseSpreads(annotations map[string]string) []pendingSpread {
	var all []pendingSpread
	if json.Unmarshal([]byte(annotations[keys.SpreadScopePending]), &all) != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(p pendingSpread) bool { return p.Target == nil })
}

// spreadSelection is which Pods WorkloadSpreads select, and which of these are pending.
type spreadSelection struct {
	expression, pending string
	// recent means that one was admitted a moment ago, so that API servers may not yet go by the configuration as it is.
	recent bool
	expiry time.Time
}

// selectSpreads returns the selection by the WorkloadSpreads that are stored or pending, and by one more that is, if any.
func (r *Reconciler) selectSpreads(
	stored []v1beta1.WorkloadSpread, annotations map[string]string, more *pendingSpread,
) (spreadSelection, error) {
	var out spreadSelection
	if !r.Spreads {
		return out, nil
	}
	waiting := slices.DeleteFunc(parseSpreads(annotations), func(p pendingSpread) bool { return !p.expiry(stored).After(r.Now()) })
	if more != nil {
		out.recent = slices.ContainsFunc(waiting, func(p pendingSpread) bool { return r.isRecent(p.At) })
		waiting = append(slices.DeleteFunc(waiting, func(p pendingSpread) bool { return p.UID == more.UID }), *more)
	}
	var interests []scope.SpreadInterest
	for i := range stored {
		if interest, ok := scope.OfWorkloadSpread(&stored[i]); ok {
			interests = append(interests, interest)
		}
	}
	missing := 0
	for _, p := range waiting {
		interests = append(interests, scope.OfTarget(p.Namespace, p.Target))
		out.expiry = earlier(out.expiry, p.expiry(stored))
		if !p.isStored(stored) {
			missing++
		}
	}
	if more != nil && missing > maxPending {
		return out, fmt.Errorf("%d WorkloadSpreads have been admitted and are not stored yet: "+
			"try again when they are, or in %s if they never are", missing, requestTimeout)
	}
	out.expression = scope.SpreadExpression(interests)
	if len(waiting) > 0 {
		text, err := json.Marshal(waiting)
		if err != nil {
			return out, fmt.Errorf("writing annotation %s: %w", keys.SpreadScopePending, err)
		}
		out.pending = string(text)
	}
	return out, nil
}

// AdmitSpread widens the configuration for a WorkloadSpread that is about to be stored. When it returns, API servers send the Pods of its
// workload. It does nothing for one that is there already.
func (r *Reconciler) AdmitSpread(ctx context.Context, before, after *v1beta1.WorkloadSpread) error {
	if before != nil || after.Spec.TargetReference == nil || !r.Spreads {
		return nil
	}
	return r.admit(ctx, admitted{spread: &pendingSpread{
		Namespace: after.Namespace, Name: after.Name, UID: after.UID, At: metav1.NewTime(r.Now().Truncate(time.Second)),
		Target: after.Spec.TargetReference,
	}})
}

// AwaitSpreads returns a step that has a Pod wait until the WorkloadSpreads that were stored before it are in the cache. It comes before
// the step that gives it to a subset. Only one that is pending in the Pod's namespace and is not in the cache yet costs a request.
func AwaitSpreads(o AwaitOptions) pods.Step {
	return pods.Step{Name: "await-spreads", Run: func(ctx context.Context, s *pods.Subject) error {
		if s.DryRun {
			return nil
		}
		annotations, err := o.annotations(ctx)
		if err != nil {
			return fmt.Errorf("reading which WorkloadSpreads are pending: %w", err)
		}
		for _, p := range parseSpreads(annotations) {
			if p.Namespace != s.Namespace {
				continue
			}
			if err := o.awaitSpread(ctx, p); err != nil {
				return err
			}
		}
		return nil
	}}
}

// awaitSpread returns once the cache holds a pending WorkloadSpread, or if it is not stored.
func (o AwaitOptions) awaitSpread(ctx context.Context, p pendingSpread) error {
	key := client.ObjectKey{Namespace: p.Namespace, Name: p.Name}
	in := func(r client.Reader) (bool, error) {
		var found v1beta1.WorkloadSpread
		err := r.Get(ctx, key, &found)
		return err == nil && found.UID == p.UID, client.IgnoreNotFound(err)
	}
	if known, err := in(o.Cached); known || err != nil {
		return err
	}
	if stored, err := in(o.Live); !stored || err != nil {
		return err // the Pod comes before it
	}
	return poll(ctx, "WorkloadSpread "+p.Name, func() (bool, error) { return in(o.Cached) })
}
