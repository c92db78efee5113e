package invariant

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// Converged returns how a cluster at rest differs from what a CloneSet wants.
func Converged(c *simulate.Cluster, set *v1beta1.CloneSet) []string {
	var problems []string
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	b := boundsOf(set)
	active, serving, updated := 0, 0, 0
	for _, object := range c.Of(corev1.SchemeGroupVersion.WithKind("Pod")) {
		p := object.(*corev1.Pod)
		if metav1.IsControlledBy(p, set) && isActive(p) && !(window{seen: set}).has(p) {
			wrong("at rest, %s belongs to the CloneSet although its labels do not match", p.Name)
		}
		if !(window{seen: set}).has(p) {
			continue
		}
		active++
		if serves(p, set.Spec.MinReadySeconds, c.Now()) {
			serving++
		}
		if isAt(p, set.Status.UpdateRevision) {
			updated++
			if !runsTemplate(p, set) {
				wrong("at rest, %s is labelled %s and is not like its template", p.Name, revisionOf(p))
			}
		}
	}
	if active != b.replicas {
		wrong("at rest there are %d Pods, not %d", active, b.replicas)
	}
	if serving != active {
		wrong("at rest %d of %d Pods are available", serving, active)
	}
	if least := b.replicas - b.partition; updated < least {
		wrong("at rest %d Pods are updated, of %d", updated, least)
	}
	s := set.Status
	if s.ObservedGeneration != set.Generation {
		wrong("at rest the status speaks of generation %d, not %d", s.ObservedGeneration, set.Generation)
	}
	if int(s.Replicas) != active || int(s.AvailableReplicas) != serving || int(s.UpdatedReplicas) != updated {
		wrong("at rest the status says %d Pods, %d available, %d updated; there are %d, %d, %d",
			s.Replicas, s.AvailableReplicas, s.UpdatedReplicas, active, serving, updated)
	}
	return problems
}

func runsTemplate(p *corev1.Pod, set *v1beta1.CloneSet) bool {
	for i, container := range set.Spec.Template.Spec.Containers {
		spec, status := p.Spec.Containers[i], p.Status.ContainerStatuses[i]
		if spec.Image != container.Image || status.Image != container.Image ||
			!equality.Semantic.DeepEqual(spec.Resources.Requests, container.Resources.Requests) ||
			!equality.Semantic.DeepEqual(status.Resources.Requests, container.Resources.Requests) {
			return false
		}
	}
	return true
}
