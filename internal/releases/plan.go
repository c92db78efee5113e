package releases

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// BatchFinalizer keeps a BatchRelease until its workload is given back.
//
// Wire: it is in users' objects.
const BatchFinalizer = "rollouts.kruise.io/batch-release-finalizer"

// Chain returns the writes to a workload and what belongs to it, one after the other; none if nothing is to be changed.
func Chain(o steer.Objects, w steer.Writes, what, why string) plan.Chain {
	var out plan.Chain
	for _, c := range w.First {
		out = append(out, Action(c, why))
	}
	if w.Workload != nil && w.Workload != o.Workload {
		out = append(out, Action(steer.Change{Before: o.Workload, After: w.Workload, What: what}, why))
	}
	for _, c := range w.Then {
		out = append(out, Action(c, why))
	}
	return out
}

// Action returns the write of a change.
func Action(c steer.Change, why string) plan.Action {
	a := plan.Action{Verb: plan.Update, Concern: plan.Rollout, What: c.What, Why: why}
	switch {
	case c.Before == nil:
		a.Verb, a.After = plan.Create, c.After
	case c.After == nil:
		a.Verb, a.Before = plan.Delete, c.Before
	default:
		a.Before, a.After = c.Before, c.After
	}
	return a
}

// LetsGo reports whether a BatchRelease that is to let its workload go may do so by itself. One of a Rollout may for the template that it
// was told of (keys.ResumedRevision). Any other may have come since, as a release of its own: of that, the Rollout decides.
func LetsGo(b *v1beta1.BatchRelease, f steer.Facts) bool {
	if metav1.GetControllerOfNoCopy(b) == nil || !f.Frozen {
		return true
	}
	return f.Settled && b.Annotations[keys.ResumedRevision] == f.Update
}

// IsOfAnother reports whether a BatchRelease updates Pods to another template than the one that the workload has.
func IsOfAnother(b *v1beta1.BatchRelease, f steer.Facts) bool {
	return f.Settled && b.Status.UpdateRevision != "" && b.Status.UpdateRevision != f.Update
}
