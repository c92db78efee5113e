package traffic

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	rules "github.com/seed-69ecc383/kruise/internal/rules/traffic"
)

// service is the user's Service, and the one for new Pods.
type service struct {
	name string
	// splits means that the versions have a Service each; the others are left alone.
	splits bool
	// stable is nil if there is none. canary is nil unless it is the owner's.
	stable, canary *corev1.Service
	// taken means that an object of somebody else has the name of the one for new Pods.
	taken bool
}

// selects returns the revision that the user's Service selects; empty if it does not tell revisions apart.
func (s *service) selects(w *Routings) string {
	if s.stable == nil {
		return ""
	}
	return s.stable.Spec.Selector[w.Select.Label]
}

func (s *service) isPinned(w *Routings) bool { return w.Stable != "" && s.selects(w) == w.Stable }

// isComplete reports whether the Service for new Pods is there and selects them.
func (s *service) isComplete(w *Routings) bool {
	if s.stable == nil || s.canary == nil || w.Select.Hash == "" || s.canary.DeletionTimestamp != nil {
		return false
	}
	wanted := s.wanted(w)
	return maps.Equal(wanted.Spec.Selector, s.canary.Spec.Selector) && equality.Semantic.DeepEqual(wanted.Spec.Ports, portsOf(s.canary))
}

// portsOf returns the ports of a Service without what the API server gives them.
func portsOf(s *corev1.Service) []corev1.ServicePort {
	out := make([]corev1.ServicePort, len(s.Spec.Ports))
	for i := range out {
		out[i] = s.Spec.Ports[i]
		out[i].NodePort = 0
	}
	return out
}

// wanted returns the Service for new Pods. The pin of the user's Service is not part of it.
func (s *service) wanted(w *Routings) *corev1.Service {
	out := rules.CanaryService(s.stable, w.Select)
	out.OwnerReferences = w.ownedBy()
	return out
}

func (s *service) problem() string {
	switch {
	case !s.splits || s.stable == nil:
		return ""
	case s.taken:
		return fmt.Sprintf("Service %s is there and was not made for this release: delete or rename it", rules.CanaryName(s.name))
	case len(s.stable.Spec.Selector) == 0:
		return fmt.Sprintf("Service %s has no selector, so it can't tell old Pods from new ones: give it one", s.name)
	}
	return ""
}

// write returns what is still to be written for an action.
func (s *service) write(verb release.Verb, w *Routings) plan.Chain {
	switch {
	case verb == release.RemoveService:
		if s.canary == nil || s.canary.DeletionTimestamp != nil {
			return nil
		}
		return plan.Chain{{
			Verb: plan.Delete, Before: s.canary, What: "delete Service " + s.canary.Name, Why: "the release needs it no more",
		}}
	case s.stable == nil || s.stable.DeletionTimestamp != nil:
		return nil
	case verb == release.Pin:
		return s.pin(w)
	case verb == release.Unpin:
		return s.unpin(w)
	}
	return s.create(w)
}

func (s *service) pin(w *Routings) plan.Chain {
	if w.Stable == "" || w.Select.Label == "" || s.isPinned(w) || len(s.stable.Spec.Selector) == 0 {
		return nil
	}
	after := s.stable.DeepCopy()
	after.Spec.Selector[w.Select.Label] = w.Stable
	return plan.Chain{{
		Verb: plan.Update, Before: s.stable, After: after,
		What: fmt.Sprintf("have Service %s select revision %s", s.name, w.Stable),
		Why:  "no new Pod may get requests that no step leads to it",
	}}
}

func (s *service) unpin(w *Routings) plan.Chain {
	if s.selects(w) == "" {
		return nil
	}
	after := s.stable.DeepCopy()
	delete(after.Spec.Selector, w.Select.Label)
	return plan.Chain{{
		Verb: plan.Update, Before: s.stable, After: after,
		What: fmt.Sprintf("have Service %s select all revisions again", s.name), Why: "the release leads no traffic by it any more",
	}}
}

func (s *service) create(w *Routings) plan.Chain {
	if w.Select.Hash == "" || w.Select.Label == "" || s.taken || len(s.stable.Spec.Selector) == 0 || s.isComplete(w) {
		return nil
	}
	wanted := s.wanted(w)
	why := fmt.Sprintf("new Pods have revision %s", w.Select.Hash)
	switch {
	case s.canary == nil:
		return plan.Chain{{Verb: plan.Create, After: wanted, What: "create Service " + wanted.Name, Why: why}}
	case s.canary.DeletionTimestamp != nil:
		return nil
	}
	after := s.canary.DeepCopy()
	after.Spec.Selector, after.Spec.Ports = wanted.Spec.Selector, wanted.Spec.Ports
	return plan.Chain{{Verb: plan.Update, Before: s.canary, After: after, What: "correct Service " + wanted.Name, Why: why}}
}
