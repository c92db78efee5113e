package disruption

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// Available reports whether a Pod counts as available: it runs, is ready, is not being deleted, no label says that it is unavailable, and it is what
// its spec says. The ledger is not looked at.
func Available(p *corev1.Pod) bool {
	return pod.IsActive(p) && pod.IsReady(p) && !IsMarked(p) && IsConsistent(p)
}

// IsMarked reports whether a label says that the Pod is unavailable, whatever its conditions are.
func IsMarked(p *corev1.Pod) bool {
	for label := range p.Labels {
		if strings.HasPrefix(label, keys.UnavailablePrefix) {
			return true
		}
	}
	return false
}

// IsConsistent reports whether a Pod runs what its spec says. From the moment that an update in place has changed the spec until the containers have
// followed, kubelets may still call it ready.
func IsConsistent(p *corev1.Pod) bool {
	for i := range p.Spec.Containers {
		if !inplace.RunsDigest(p, &p.Spec.Containers[i]) {
			return false
		}
	}
	return inplace.Progress(p, inplace.Options{}).Done && sidecar.Updating(p) == ""
}

// IsFree reports whether the Pod's annotations free it from every budget.
func IsFree(p *corev1.Pod) bool {
	free, err := strconv.ParseBool(p.Annotations[keys.NoProtect])
	return err == nil && free
}

// Related returns the name of the budget that guards the Pod, by its annotations; empty where none does.
func Related(annotations map[string]string) string {
	if name := annotations[keys.RelatedBudget]; name != "" {
		return name
	}
	return annotations[keys.RelatedBudgetOld]
}
