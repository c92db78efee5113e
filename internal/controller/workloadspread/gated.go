package workloadspread

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/spread"
)

// gated is a Pod that waits at its gate, because no webhook was asked about it, and what it is given.
type gated struct {
	pod   *corev1.Pod
	given spread.Given
	// due means that it may have it now: room that is counted has to be in the stored ledger first.
	due bool
}

// gatedRetry is when to look again at a Pod that waits at its gate: nothing tells of a write that failed.
const gatedRetry = 3 * time.Second

// isWaiting reports whether a Pod waits at its gate.
func isWaiting(p *corev1.Pod) bool {
	_, claimed := spread.MatchedOf(p)
	return !claimed && pod.IsActive(p) && spread.IsGated(p)
}

// giveGated gives room to the Pods that wait at their gates, the oldest first, and enters it into the ledger.
func (s Snapshot) giveGated(l *counted) {
	var waiting []*corev1.Pod
	for _, p := range s.Owned {
		if isWaiting(p) {
			waiting = append(waiting, p)
		}
	}
	slices.SortFunc(waiting, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range waiting {
		l.gated = append(l.gated, s.give(l, p))
	}
}

func (s Snapshot) give(l *counted, p *corev1.Pod) gated {
	kind, open := spread.TargetOf(s.Spread).GroupKind, spread.Open(l.spread)
	if spread.ByOrdinal(kind) {
		g := gated{pod: p, given: spread.Given{Subset: -1}, due: true}
		if ordinal, ok := spread.OrdinalOf(p.Name); ok {
			g.given.Subset = s.OfOrdinal(ordinal, open)
		}
		return g
	}
	entry, version := spread.GatedEntry(p), spread.VersionOf(kind, p)
	has := spread.Counts(l.spread, version, s.Total)
	if at, since, ok := spread.PlaceOf(l.spread, entry); ok {
		subset := spread.IndexOf(s.Spread, at.Subset)
		// An entry that is about to leave the ledger by its age is renewed before anything is done by it.
		renewed := s.Now.Sub(since) > spread.LeaseFor
		if renewed {
			spread.Take(l.spread, s.Limits, at, map[string]metav1.Time{entry: metav1.NewTime(s.Now)})
		}
		return gated{p, spread.Given{Subset: subset, Entry: entry, Cost: s.CostIn(subset, max(0, has[subset]-1))}, !renewed}
	}
	subset := s.Next(has, open)
	if subset < 0 {
		return gated{p, spread.Given{Subset: -1}, true}
	}
	g := gated{p, spread.Given{Subset: subset, Cost: s.CostIn(subset, has[subset])}, true}
	if s.IsCounted(subset, has[subset]) {
		g.given.Entry, g.due = entry, false
		at := spread.Place{Version: version, Subset: s.Spread.Spec.Subsets[subset].Name}
		spread.Take(l.spread, s.Limits, at, map[string]metav1.Time{entry: metav1.NewTime(s.Now)})
	}
	return g
}

// planGated lets the Pods that wait at their gates be scheduled, in the subsets that they are given.
func (s Snapshot) planGated(b *plan.Builder, l counted) {
	for _, g := range l.gated {
		b.Recheck(gatedRetry, "Pod "+g.pod.Name+" waits at its gate")
		if !g.due {
			continue
		}
		after, why := g.pod.DeepCopy(), "no subset has room for it"
		if g.given.Subset >= 0 {
			spread.Admit(after, s.Spread, g.given)
			why = fmt.Sprintf("it is given to subset %s", s.Spread.Spec.Subsets[g.given.Subset].Name)
		}
		spread.OpenGate(after)
		b.Do(plan.Action{
			Verb: plan.Update, Concern: plan.Scale, Before: g.pod, After: after, Optional: true, What: "open its gate", Why: why,
			FailedEvent: eventAdmitFailed, FailedPrefix: "giving a subset to Pod " + g.pod.Name + ": ",
		})
	}
}
