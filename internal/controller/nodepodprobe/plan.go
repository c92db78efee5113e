package nodepodprobe

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/probe"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// eventLeftOut tells of a marker's probes that a node does not run because there are too many.
const eventLeftOut = "ProbesLeftOut"

// Plan decides the next step. It reads only the snapshot and changes nothing.
func Plan(v Snapshot) plan.Plan {
	b := plan.For(fmt.Sprintf("Node %s   pods %d, markers %d", v.Node.Name, len(v.Pods), len(v.Markers)))
	markers := probe.NewMarkers(v.Markers)
	switch {
	case v.isVirtual() || v.Node.DeletionTimestamp != nil:
		if v.Probes != nil && v.Probes.DeletionTimestamp == nil {
			b.Do(remove(v.Probes, "no daemon runs on the node, or not for long"))
		}
	default:
		v.ask(b, markers)
	}
	for _, p := range v.Pods {
		after, err := v.mark(p, markers)
		if err != nil {
			b.Hold(plan.Hold{Code: reason.Held, Why: err.Error()})
		}
		if after != p {
			// It is right whatever else has changed on the Pod: it speaks only of keys and conditions of its own.
			b.Do(plan.Action{
				Verb: plan.UpdateStatus, Concern: plan.Settle, Before: p, After: after, AnyVersion: true,
				What: "mark", Why: "its containers have answered, or others are to be asked",
			})
		}
	}
	return b.Plan()
}

func (v Snapshot) isVirtual() bool { return v.Node.Labels[keys.NodeType] == keys.NodeTypeVirtual }

// mark returns a Pod with the answers of its containers on it and, on a virtual node, with what the node's provider is to ask; the Pod
// itself when it has all that. Mostly admission has told the provider already, but no Pod waits for a manager because of it.
func (v Snapshot) mark(p *corev1.Pod, markers probe.Markers) (*corev1.Pod, error) {
	if !v.isVirtual() {
		if v.Probes == nil || !probe.IsProbed(p) {
			return p, nil
		}
		probes, _ := markers.ProbesOf(p)
		return probe.Mark(p, probes, probe.ResultsOf(p, &v.Probes.Status)), nil
	}
	if !v.Options.Virtual || !pod.IsActive(p) {
		return p, nil
	}
	probes, _ := markers.ProbesOf(p)
	after := probe.Mark(p, probes, probe.FromConditions(p, probes))
	_, err := markers.Annotate(after, func() *corev1.Pod {
		if after == p {
			after = p.DeepCopy()
		}
		return after
	})
	return after, err
}

// ask has the node's daemon ask what the markers want.
func (v Snapshot) ask(b *plan.Builder, markers probe.Markers) {
	probes, leftOut := markers.PodProbes(v.Pods)
	wanted := v1alpha1.NodePodProbeSpec{PodProbes: probes}
	for _, m := range v.Markers {
		if leftOut[m] == 0 {
			continue
		}
		on := plan.Reference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "PodProbeMarker", Namespace: m.Namespace, Name: m.Name, UID: m.UID,
		}
		b.Hold(plan.Hold{Code: reason.WaitBudget, Event: eventLeftOut, On: on, Why: fmt.Sprintf(
			"some probes are not run on node %s: its Pods have more probes than a node runs, and each namespace gets its "+
				"share", v.Node.Name)})
	}
	switch {
	case v.Probes == nil:
		created := &v1alpha1.NodePodProbe{Spec: wanted}
		created.Name = v.Node.Name
		// A cache that starts over while it is deleted again by hand tells of neither.
		b.Recheck(time.Minute, "it is looked for once more")
		b.Do(plan.Action{Verb: plan.Create, Concern: plan.Scale, After: created, What: "create", Why: "every node with a daemon has one"})
	case v.Probes.DeletionTimestamp == nil && !equality.Semantic.DeepEqual(v.Probes.Spec, wanted):
		after := v.Probes.DeepCopy()
		after.Spec = wanted
		b.Do(plan.Action{
			Verb: plan.Update, Concern: plan.Scale, Before: v.Probes, After: after,
			AnyVersion: true, // the daemon writes the status all the time
			What:       "ask", Why: fmt.Sprintf("%d Pods are to be asked", len(wanted.PodProbes)),
		})
	}
}

func remove(p *v1alpha1.NodePodProbe, why string) plan.Action {
	return plan.Action{Verb: plan.Delete, Concern: plan.Tidy, Before: p, AnyVersion: true, What: "delete", Why: why}
}
