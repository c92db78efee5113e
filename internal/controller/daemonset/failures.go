package daemonset

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// A Pod that has ended is deleted at once, the next one on its node a second after that, and each further one after twice the time of the
// one before, up to a quarter of an hour. A node that was quiet for twice as long begins anew.
const (
	firstDelay = time.Second
	lastDelay  = 15 * time.Minute
)

// Failure is what is known of a node whose Pods end.
type Failure struct {
	// Count is the number of Pods deleted there because they had ended.
	Count int
	// Last is when that happened last.
	Last time.Time
}

// retry returns when the next Pod that has ended may be deleted.
func (f Failure) retry() time.Time {
	if f.Count == 0 {
		return f.Last
	}
	delay := lastDelay
	if doublings := f.Count - 1; doublings < 10 { // 2^10 seconds are more than a quarter of an hour
		delay = min(firstDelay<<doublings, lastDelay)
	}
	return f.Last.Add(delay)
}

// memory remembers the failures of all DaemonSets. A new generation of the spec begins anew, because it may repair them.
type memory struct{ apply.PerOwner[remembered] }

type remembered struct {
	generation int64
	nodes      map[string]Failure
}

// failures returns what is known at a generation.
func (m *memory) failures(owner types.UID, generation int64) (nodes map[string]Failure) {
	m.Do(owner, func(r *remembered) {
		if r.generation == generation {
			nodes = maps.Clone(r.nodes)
		}
	})
	return nodes
}

// deleted notes that a Pod was deleted because it had ended, and drops what is too long ago to matter.
func (m *memory) deleted(owner types.UID, generation int64, node string, now time.Time) {
	m.Do(owner, func(r *remembered) {
		if r.generation != generation || r.nodes == nil {
			*r = remembered{generation: generation, nodes: map[string]Failure{}}
		}
		maps.DeleteFunc(r.nodes, func(_ string, f Failure) bool { return now.Sub(f.Last) > 2*lastDelay })
		f := r.nodes[node]
		r.nodes[node] = Failure{Count: f.Count + 1, Last: now}
	})
}

// note remembers which nodes' Pods a pass has deleted because they had ended.
func (m *memory) note(v State, done apply.Outcome) {
	for _, result := range done.Results {
		p, isPod := result.Action.Before.(*corev1.Pod)
		if isPod && result.Action.Verb == plan.Delete && result.Err == nil && pod.IsFinished(p) {
			m.deleted(v.Set.UID, v.Set.Generation, nodefit.NodeOf(p), v.Now)
		}
	}
}
