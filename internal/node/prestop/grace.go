package prestop

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// defaultGrace is the grace of a Pod that does not say.
	defaultGrace = 30 * time.Second
	// leastStop is the time that every container gets to end by itself, however long its hook took.
	leastStop = 2 * time.Second
)

// Grace returns how long the hook and the end of a container of the Pod may take together.
func Grace(p *corev1.Pod) time.Duration {
	if seconds := p.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return defaultGrace
}

// Rest returns how long a container has to end by itself after its hook has used some of the grace.
//
// Example: of 30 s after a hook of 12.4 s it is 18 s; after one of 29.5 s it is 2 s.
func Rest(grace, used time.Duration) time.Duration {
	return max(leastStop, grace-used.Truncate(time.Second))
}
