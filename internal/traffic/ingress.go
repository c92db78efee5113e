package traffic

import (
	"fmt"
	"maps"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/seed-69ecc383/kruise/internal/plan"
	rules "github.com/seed-69ecc383/kruise/internal/rules/traffic"
)

// ingress is the user's Ingress, and the one beside it that leads to the new version.
type ingress struct {
	name string
	// stable is nil if there is none. canary is nil unless it is the owner's.
	stable, canary *networkingv1.Ingress
	// taken means that an object of somebody else has the name of the one beside it.
	taken bool
	// wanted is that one for each goal.
	wanted map[string]wantedIngress
	// union are the annotations that some goal sets.
	union map[string]bool
}

type wantedIngress struct {
	*networkingv1.Ingress
	err error
}

func (i *ingress) shows(key string) bool {
	wanted, known := i.wanted[key]
	return known && wanted.err == nil && i.canary != nil && i.canary.DeletionTimestamp == nil &&
		rules.IngressShows(wanted.Ingress, i.canary, i.union)
}

func (i *ingress) untouched() bool { return i.canary == nil }

func (i *ingress) problem(key string) string {
	switch wanted := i.wanted[key]; {
	case i.taken:
		return fmt.Sprintf("Ingress %s is there and was not made for this release: delete or rename it", rules.CanaryName(i.name))
	case wanted.err != nil:
		return fmt.Sprintf("Ingress %s: %v", i.name, wanted.err)
	}
	return ""
}

func (i *ingress) set(key string, w *Routings) plan.Chain {
	wanted, known := i.wanted[key]
	if !known || wanted.err != nil || i.taken || i.shows(key) {
		return nil
	}
	what := fmt.Sprintf("have Ingress %s lead %s to the new version", wanted.Name, key)
	switch {
	case i.canary == nil:
		created := wanted.Ingress.DeepCopy()
		created.OwnerReferences = w.ownedBy()
		return plan.Chain{{Verb: plan.Create, After: created, What: what, Why: "the step says so"}}
	case i.canary.DeletionTimestamp != nil:
		return nil
	}
	after := i.canary.DeepCopy()
	after.Spec = *wanted.Spec.DeepCopy()
	after.Labels, after.Annotations = merged(after.Labels, wanted.Labels), merged(after.Annotations, wanted.Annotations)
	maps.DeleteFunc(after.Annotations, func(name, _ string) bool {
		_, given := wanted.Annotations[name]
		return i.union[name] && !given
	})
	return plan.Chain{{Verb: plan.Update, Before: i.canary, After: after, What: what, Why: "the step says so"}}
}

// merged returns a map with all of another one.
func merged(into, from map[string]string) map[string]string {
	if into == nil {
		return maps.Clone(from)
	}
	maps.Copy(into, from)
	return into
}

func (i *ingress) restore() plan.Chain {
	if i.canary == nil || i.canary.DeletionTimestamp != nil {
		return nil
	}
	return plan.Chain{{
		Verb: plan.Delete, Before: i.canary, What: "delete Ingress " + i.canary.Name, Why: "the release leads no traffic by it any more",
	}}
}
