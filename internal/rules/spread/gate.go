package spread

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// IsGated reports whether a Pod must not be scheduled before it is given to a subset.
func IsGated(p *corev1.Pod) bool { return slices.ContainsFunc(p.Spec.SchedulingGates, isGate) }

func isGate(g corev1.PodSchedulingGate) bool { return g.Name == keys.SpreadGate }

// OpenGate lets a Pod be scheduled, as far as its subset is concerned.
func OpenGate(p *corev1.Pod) {
	p.Spec.SchedulingGates = slices.DeleteFunc(slices.Clone(p.Spec.SchedulingGates), isGate)
	if len(p.Spec.SchedulingGates) == 0 {
		p.Spec.SchedulingGates = nil
	}
}

// GatedEntry returns the entry of the ledger of a Pod that is stored and waits at its gate.
func GatedEntry(p *corev1.Pod) string { return "gated-" + string(p.UID) }

// PlaceOf returns the place in whose ledger an entry is, and since when; false if there is none.
func PlaceOf(s *v1beta1.WorkloadSpread, entry string) (Place, time.Time, bool) {
	for version, statuses := range s.Status.VersionedSubsetStatuses {
		for i := range statuses {
			if since, ok := statuses[i].CreatingPods[entry]; ok {
				return Place{version, statuses[i].Name}, since.Time, true
			}
		}
	}
	return Place{}, time.Time{}, false
}

// Admit makes a Pod that waits at its gate one of a subset, as far as a Pod that is stored may be changed: where it may run, and the labels
// and annotations of the subset's patch.
func Admit(p *corev1.Pod, s *v1beta1.WorkloadSpread, given Given) {
	of := &s.Spec.Subsets[given.Subset]
	p.Spec.Tolerations = slices.Clip(p.Spec.Tolerations)
	addPlacement(&p.Spec, of)
	addMetadata(&p.ObjectMeta, of)
	mark(p, s, given)
}
