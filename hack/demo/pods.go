package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// podTable is the table of Pods, which tells what became of each in a step.
type podTable struct {
	// origin holds the restarts that each Pod had before this step, by its UID; latest those that it had when it was last seen.
	origin, latest map[types.UID]int32
}

// begin begins a step.
func (t *podTable) begin() { t.origin, t.latest = t.latest, map[types.UID]int32{} }

func (t *podTable) draw(pods []corev1.Pod) string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "  POD\tREVISION\tIMAGE\tSTATE\tREADY\tNODE\tIP\tHOW")
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range pods {
		p := &pods[i]
		state := string(pod.State(p))
		if p.DeletionTimestamp != nil {
			state = "Terminating"
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%v\t%s\t%s\t%s\n", p.Name, p.Labels[appsv1.ControllerRevisionHashLabelKey],
			p.Spec.Containers[0].Image, state, pod.IsReady(p), p.Spec.NodeName, p.Status.PodIP, t.how(p))
	}
	_ = table.Flush() // a strings.Builder does not fail
	return out.String()
}

// how says what became of a Pod in this step.
func (t *podTable) how(p *corev1.Pod) string {
	restarts := pod.MaxRestarts(p)
	t.latest[p.UID] = restarts
	switch before, known := t.origin[p.UID]; {
	case !known:
		return "new"
	case restarts > before:
		return "updated in place"
	default:
		return ""
	}
}
