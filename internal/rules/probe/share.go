package probe

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
)

// What the probes of a node and their results take together, in bytes as JSON: the API server stores no object of more than 1.5 MiB, and a
// NodePodProbe that it refused would end the probes of everybody on the node.
const (
	maxNodeSize = 1250 << 10
	// resultSize is what one result takes at most, besides the names in it.
	resultSize = maxEncoded + 200
)

// LeftOut are the numbers of probes that a node does not run, by their markers.
type LeftOut map[*v1alpha1.PodProbeMarker]int

// candidate is a probe in one Pod of a node.
type candidate struct {
	pod   int
	probe v1alpha1.ContainerProbe
	of    *v1alpha1.PodProbeMarker
	size  int
}

// share returns the probes that a node runs: all if they fit into its NodePodProbe. Else the namespaces take turns, and next is always the
// one whose probes take the least so far: one namespace can't take what others need.
//
// Example: of room for 500 probes alike, namespaces with 1000, 20 and 300 of them get 240, 20 and 240.
func share(pods []v1alpha1.PodProbe, all []candidate) ([]v1alpha1.PodProbe, LeftOut) {
	queues, total := map[string][]candidate{}, 0
	for _, c := range all {
		namespace := pods[c.pod].Namespace
		queues[namespace], total = append(queues[namespace], c), total+c.size
	}
	chosen, leftOut := all, LeftOut{}
	if total > maxNodeSize {
		chosen, leftOut = takeTurns(queues)
	}
	out := slices.Clone(pods)
	for _, c := range chosen {
		out[c.pod].Probes = append(out[c.pod].Probes, c.probe)
	}
	return slices.DeleteFunc(out, func(p v1alpha1.PodProbe) bool { return len(p.Probes) == 0 }), leftOut
}

// takeTurns chooses from the probes of each namespace, in their order.
func takeTurns(queues map[string][]candidate) ([]candidate, LeftOut) {
	var chosen []candidate
	leftOut, used, total := LeftOut{}, map[string]int{}, 0
	for len(queues) > 0 {
		next := slices.MinFunc(slices.Collect(maps.Keys(queues)),
			func(a, b string) int { return cmp.Or(used[a]-used[b], cmp.Compare(a, b)) })
		c := queues[next][0]
		if queues[next] = queues[next][1:]; len(queues[next]) == 0 {
			delete(queues, next)
		}
		if total+c.size > maxNodeSize {
			leftOut[c.of]++
			continue
		}
		used[next] += c.size
		total += c.size
		chosen = append(chosen, c)
	}
	return chosen, leftOut
}

// sizeOf returns what a probe and its result take in a NodePodProbe at most, with what says which Pod they are of.
func sizeOf(p v1alpha1.PodProbe, probe v1alpha1.ContainerProbe) int {
	p.Probes = []v1alpha1.ContainerProbe{probe}
	text, err := json.Marshal(p)
	if err != nil {
		return maxNodeSize + 1 // nor could it be stored
	}
	return len(text) + len(p.Namespace) + len(p.Name) + len(p.UID) + len(probe.Name) + resultSize
}
