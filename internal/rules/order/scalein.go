package order

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// ScaleInOptions are what the order of scaling in depends on besides the Pods.
type ScaleInOptions struct {
	Now             time.Time
	MinReadySeconds int32
	// NodeLabels returns the labels of a node, or nil when it is not known. Only constraints need it.
	NodeLabels func(node string) map[string]string
	// Constraints are the topology spread constraints of the template; without any, Pods are spread over nodes.
	Constraints []corev1.TopologySpreadConstraint
}

// ScaleIn returns the candidates in the order in which a workload that shrinks deletes them: those that serve least, then those that
// the user values least, then those of which a node or a zone has the most. all are the active Pods of the workload, candidates
// included: crowding is measured over all of them.
func ScaleIn(candidates, all []*corev1.Pod, o ScaleInOptions) []*corev1.Pod {
	ranks := make([]*rank, len(all))
	of := make(map[*corev1.Pod]*rank, len(all))
	for at, p := range all {
		ranks[at] = &rank{worth: worthOf(p), readiness: o.readiness(p), deletionCost: deletionCost(p)}
		of[p] = ranks[at]
	}
	crowding := o.crowding(ranks)
	sorted := make([]*rank, len(candidates))
	for at, p := range candidates {
		sorted[at] = of[p]
	}
	sortRanks(sorted, crowding)
	out := make([]*corev1.Pod, len(sorted))
	for at, r := range sorted {
		out[at] = r.pod
	}
	return out
}

// rank is what decides about a Pod, read once: sorting thousands of Pods compares each of them many times.
type rank struct {
	worth
	readiness    int
	deletionCost int32
	// sameNode and overall are how crowded its place is: on its node, and by all constraints.
	sameNode, overall float64
}

// sortRanks orders by worth, with the crowding of each Pod's place between the deletion cost and the age.
func sortRanks(ranks []*rank, crowding func(*rank) float64) {
	slices.SortStableFunc(ranks, func(a, b *rank) int {
		if by := a.comparePhase(&b.worth); by != 0 {
			return by
		}
		if by := cmp.Compare(a.readiness, b.readiness); by != 0 {
			return by
		}
		if by := cmp.Compare(a.deletionCost, b.deletionCost); by != 0 {
			return by
		}
		if by := cmp.Compare(crowding(b), crowding(a)); by != 0 {
			return by
		}
		return a.compareAge(&b.worth)
	})
}

// readiness ranks Pods that are not ready before those that are not available yet, and these before the others.
func (o ScaleInOptions) readiness(p *corev1.Pod) int {
	if available, _ := pod.Available(p, o.MinReadySeconds, o.Now); available {
		return 2
	}
	if pod.IsReady(p) {
		return 1
	}
	return 0
}

// deletionCost returns what the user wrote on the Pod; anything that is not a plain integer of 32 bits counts as 0. As with ReplicaSets, a
// plus sign and leading zeros are not plain.
func deletionCost(p *corev1.Pod) int32 {
	text := p.Annotations[corev1.PodDeletionCost]
	if strings.HasPrefix(text, "+") || (len(text) > 1 && text[0] == '0') {
		return 0
	}
	cost, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return int32(cost)
}

// crowding rates how much the place of each Pod would be relieved by its deletion, and returns where the rate is.
func (o ScaleInOptions) crowding(ranks []*rank) func(*rank) float64 {
	none := func(*rank) float64 { return 0 }
	sameNode := func(r *rank) float64 { return r.sameNode }
	for _, members := range group(ranks, func(p *corev1.Pod) (string, bool) { return p.Spec.NodeName, pod.IsScheduled(p) }, none) {
		for i, r := range members { // the first to go gets the number of the others, the last one 0
			r.sameNode = float64(len(members) - 1 - i)
		}
	}
	if len(o.Constraints) == 0 {
		return sameNode
	}
	for _, constraint := range o.Constraints {
		within := sameNode
		if constraint.TopologyKey == corev1.LabelHostname {
			within = none
		}
		domains := group(ranks, func(p *corev1.Pod) (string, bool) { return o.domain(p, constraint.TopologyKey) }, within)
		// A domain counts for more among many, where an uneven one stands out more.
		weight := math.Log(float64(len(domains) + 2))
		for _, members := range domains {
			for i, r := range members {
				r.overall += float64(len(members)-i) * weight
			}
		}
	}
	return func(r *rank) float64 { return r.overall }
}

// domain returns the value of the topology key on the Pod's node; false when the node, or its label, is not known.
func (o ScaleInOptions) domain(p *corev1.Pod, topologyKey string) (string, bool) {
	if o.NodeLabels == nil || !pod.IsScheduled(p) {
		return "", false
	}
	domain, ok := o.NodeLabels(p.Spec.NodeName)[topologyKey]
	return domain, ok
}

// group sorts Pods into places and ranks those of each.
func group(ranks []*rank, place func(*corev1.Pod) (string, bool), crowding func(*rank) float64) map[string][]*rank {
	groups := map[string][]*rank{}
	for _, r := range ranks {
		if at, ok := place(r.pod); ok {
			groups[at] = append(groups[at], r)
		}
	}
	for _, members := range groups {
		sortRanks(members, crowding)
	}
	return groups
}
