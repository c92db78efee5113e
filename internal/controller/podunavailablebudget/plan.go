package podunavailablebudget

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// Reasons of events.
const (
	eventNoPods      = "NoPods"
	eventNotDeleted  = "NotDeleted"
	eventCountFailed = "CalculateExpectedPodCountFailed"
)

// recheckProblem is when to try again what could not be read.
const recheckProblem = 5 * time.Second

// recheckLive is when to look by the cache again after a pass that read live.
const recheckLive = time.Second

// Plan decides the next step from the snapshot alone.
func Plan(s Snapshot) plan.Plan {
	b := plan.For(fmt.Sprintf("PodUnavailableBudget %s/%s   %d Pods of %d", s.Budget.Namespace, s.Budget.Name, len(s.Pods), s.Total))
	for _, l := range s.Links {
		after := l.Pod.DeepCopy()
		after.Annotations = disruption.Link(l.Pod.Annotations, l.To)
		what := "link " + l.Pod.Name + " to " + l.To
		if l.To == "" {
			what = "unlink " + l.Pod.Name
		}
		// Nothing else about the Pod matters: kubelets write to it all the time.
		b.Do(plan.Action{Verb: plan.Update, Concern: plan.Tidy, Before: l.Pod, After: after, AnyVersion: true, What: what,
			Why: "that is the budget that guards it"})
	}
	if len(s.Pods) == 0 && s.Problem == nil {
		b.Hold(plan.Hold{Code: reason.Nothing, Event: eventNoPods, EventType: corev1.EventTypeNormal, Why: "No matching pods found"})
	}
	if _, err := s.counts(); err != nil {
		b.Hold(plan.Hold{Code: reason.WriteFailed, Event: eventCountFailed, Why: err.Error()})
		b.Recheck(recheckProblem, "what could not be read may be readable")
	}
	b.Recheck(s.Pending, "all evictions are evaluated by then")
	s.reportUnused(b)
	if s.Polled {
		b.Recheck(observe.ScaleTTL, "a scale may have changed")
	}
	return b.Plan()
}

// reportUnused tells of permissions that were not used, and looks again when the next one ends.
func (s Snapshot) reportUnused(b *plan.Builder) {
	pruned := s.ledger()
	b.Recheck(pruned.Recheck, "a permission ends")
	if s.Live && pruned.Ledger.Len() > 0 {
		b.Recheck(recheckLive, "the cache may tell which permissions were used")
	}
	for _, name := range pruned.Overdue {
		for _, p := range s.Pods {
			if p.Name != name {
				continue
			}
			b.Hold(plan.Hold{
				Code: reason.Nothing, Name: name, Event: eventNotDeleted, On: plan.Reference{APIVersion: "v1", Kind: "Pod",
					Namespace: p.Namespace, Name: name,
					UID: p.UID},
				Why: fmt.Sprintf("its deletion was permitted by PodUnavailableBudget %s %s ago and has not begun: it counts as "+
					"available again", s.Budget.Name, disruption.DisruptedFor),
			})
		}
	}
}

// ledger is what is left of the ledger; all of it as long as nothing is known of the Pods.
func (s Snapshot) ledger() disruption.Pruned {
	if s.Problem != nil {
		return disruption.Pruned{Ledger: disruption.LedgerOf(&s.Budget.Status)}
	}
	return disruption.LedgerOf(&s.Budget.Status).Prune(disruption.Seen{Pods: s.Pods, Live: s.Live, Gone: s.Gone, Now: s.Now})
}

func (s Snapshot) counts() (disruption.Counts, error) {
	if s.Problem != nil {
		return disruption.Counts{}, s.Problem
	}
	return disruption.Count(s.Budget, s.Pods, s.Total, s.ledger().Ledger)
}

// IsSurplus reports whether there are more Pods than there should be, by which deletions are evaluated otherwise (disruption.Numbers.For).
func (s Snapshot) IsSurplus() bool { return s.Problem == nil && len(s.Pods) > int(s.Total) }

// Status returns the numbers. Where they can't be known nothing more is permitted, and they stay those of the spec that they were of.
func Status(s Snapshot, _ plan.Plan, _ apply.Outcome) v1beta1.PodUnavailableBudgetStatus {
	status := *s.Budget.Status.DeepCopy()
	pruned := s.ledger()
	status.DisruptedPods, status.UnavailablePods = pruned.Ledger.Disrupted, pruned.Ledger.Unavailable
	counts, err := s.counts()
	if err != nil {
		status.UnavailableAllowed = 0
		return status
	}
	if s.Pending == 0 {
		status.ObservedGeneration = s.Budget.Generation
	}
	status.UnavailableAllowed, status.CurrentAvailable = counts.Allowed, counts.Current
	status.DesiredAvailable, status.TotalReplicas = counts.Desired, counts.Total
	s.setCondition(&status, metav1.Condition{
		Type: v1beta1.ConditionTotalReplicasUnknown, Reason: "NoReplicas",
		Message: "these do not say how many Pods they should have, so those that are there are counted: " + strings.Join(s.Silent, ", "),
	}, len(s.Silent) > 0)
	s.setCondition(&status, metav1.Condition{
		Type: v1beta1.ConditionSurplusPods, Reason: "MorePodsThanReplicas",
		Message: fmt.Sprintf("there are %d Pods where there should be %d", len(s.Pods), s.Total),
	}, s.IsSurplus())
	return status
}

// setCondition puts a condition into the status while it holds, and removes it otherwise.
func (s Snapshot) setCondition(status *v1beta1.PodUnavailableBudgetStatus, c metav1.Condition, holds bool) {
	if !holds {
		meta.RemoveStatusCondition(&status.Conditions, c.Type)
		if len(status.Conditions) == 0 {
			status.Conditions = nil
		}
		return
	}
	c.Status, c.ObservedGeneration, c.LastTransitionTime = metav1.ConditionTrue, s.Budget.Generation, metav1.NewTime(s.Now)
	meta.SetStatusCondition(&status.Conditions, c)
}
