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
	crowding := o.crowding(all)
	ranked := slices.Clone(candidates)
	slices.SortStableFunc(ranked, func(a, b *corev1.Pod) int {
		return o.compare(a, b, crowding)
	})
	return ranked
}

// compare orders by worth, with the crowding of each Pod's place between the deletion cost and the age.
func (o ScaleInOptions) compare(a, b *corev1.Pod, crowding map[*corev1.Pod]float64) int {
	return cmp.Or(
		ByPhase(a, b),
		cmp.Compare(o.readiness(a), o.readiness(b)),
		cmp.Compare(deletionCost(a), deletionCost(b)),
		cmp.Compare(crowding[b], crowding[a]),
		ByAge(a, b),
	)
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

// crowding rates how much the place of each Pod would be relieved by its deletion.
func (o ScaleInOptions) crowding(pods []*corev1.Pod) map[*corev1.Pod]float64 {
	sameNode := o.sameNode(pods)
	if len(o.Constraints) == 0 {
		return sameNode
	}
	crowding := map[*corev1.Pod]float64{}
	for _, constraint := range o.Constraints {
		within := sameNode
		if constraint.TopologyKey == corev1.LabelHostname {
			within = nil
		}
		domains := o.group(pods, func(p *corev1.Pod) (string, bool) { return o.domain(p, constraint.TopologyKey) }, within)
		// A domain counts for more among many, where an uneven one stands out more.
		weight := math.Log(float64(len(domains) + 2))
		for _, members := range domains {
			for i, p := range members {
				crowding[p] += float64(len(members)-i) * weight
			}
		}
	}
	return crowding
}

// domain returns the value of the topology key on the Pod's node; false when the node, or its label, is not known.
func (o ScaleInOptions) domain(p *corev1.Pod, topologyKey string) (string, bool) {
	if o.NodeLabels == nil || !pod.IsScheduled(p) {
		return "", false
	}
	domain, ok := o.NodeLabels(p.Spec.NodeName)[topologyKey]
	return domain, ok
}

// sameNode rates the Pods of each node with several: the first to go gets the number of the others, the last one 0.
func (o ScaleInOptions) sameNode(pods []*corev1.Pod) map[*corev1.Pod]float64 {
	crowding := map[*corev1.Pod]float64{}
	for _, members := range o.group(pods, func(p *corev1.Pod) (string, bool) { return p.Spec.NodeName, pod.IsScheduled(p) }, nil) {
		for i, p := range members {
			crowding[p] = float64(len(members) - 1 - i)
		}
	}
	return crowding
}

// group sorts Pods into places and ranks those of each.
func (o ScaleInOptions) group(
	pods []*corev1.Pod, place func(*corev1.Pod) (string, bool), crowding map[*corev1.Pod]float64,
) map[string][]*corev1.Pod {
	groups := map[string][]*corev1.Pod{}
	for _, p := range pods {
		if at, ok := place(p); ok {
			groups[at] = append(groups[at], p)
		}
	}
	for _, members := range groups {
		slices.SortStableFunc(members, func(a, b *corev1.Pod) int { return o.compare(a, b, crowding) })
	}
	return groups
}
