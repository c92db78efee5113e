package daemonset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
)

// Event reasons. Wire: users' alerts and tools match them.
const (
	eventSuccessfulCreate   = "SuccessfulCreate"
	eventFailedCreate       = "FailedCreate"
	eventSuccessfulDelete   = "SuccessfulDelete"
	eventFailedDelete       = "FailedDelete"
	eventFailedDaemonPod    = "FailedDaemonPod"
	eventSucceededDaemonPod = "SucceededDaemonPod"
	eventSelectingAll       = "SelectingAll"
)

// errSelectsAll is the problem of a DaemonSet that would own every Pod of its namespace.
var errSelectsAll = errors.New("This daemon set is selecting all pods. A non-empty selector is required.") //nolint:staticcheck // Wire: the message of an event

// Plan decides the next step. It reads only the survey and changes nothing but the survey's own notes.
//
// What is in flight is settled first, Pod by Pod, so that one odd node delays no other. Then every node is looked after: it gets its Pod, and what
// it has too much goes. Both go on while the update is paused. The update comes last; it counts every node that lacks an available Pod for
// whatever reason.
func Plan(v Survey) plan.Plan {
	b := plan.For(summary(&v))
	switch {
	case v.Set.DeletionTimestamp != nil:
		// The garbage collector takes the Pods and revisions along.
		return b.Plan()
	case errors.Is(v.problem, errSelectsAll):
		p := b.Stop(v.problem)
		p.Holds = append(p.Holds, plan.Hold{Why: v.problem.Error(), Event: eventSelectingAll})
		return p
	case v.problem != nil:
		return b.Stop(v.problem)
	}
	rollout.WriteHistory(v.history, b)
	if adopt(&v, b) {
		// Nobody knows yet which nodes they are on: the next pass does.
		return b.Plan()
	}
	s := &step{Survey: &v, b: b, pods: v.newPods(), creates: v.burst, deletes: v.burst, changes: v.burst}
	s.settle()
	s.manage()
	s.update()
	s.release()
	if err := v.preDownload(b); err != nil {
		b.Hold(plan.Hold{Why: err.Error()})
	}
	s.tellOfBurst()
	rollout.TrimHistory(v.history, v.Set.Spec.RevisionHistoryLimit, v.pods(), b)
	if v.nextAvailable > 0 {
		b.Recheck(v.nextAvailable, fmt.Sprintf("%s becomes available (minReadySeconds %d)", v.nextAvailablePod, v.Set.Spec.MinReadySeconds))
	}
	return b.Plan()
}

// step is a plan in the making.
type step struct {
	*Survey
	b    *plan.Builder
	pods *pods
	// creates, deletes and changes are how many more Pods may be created, deleted, and updated in place in this pass; late is how many writes
	// are left for the next one.
	creates, deletes, changes int
	late                      int
}

// summary describes the DaemonSet and its limits in a line.
func summary(v *Survey) string {
	var out strings.Builder
	fmt.Fprintf(&out, "DaemonSet %s/%s", v.Set.Namespace, v.Set.Name)
	if v.problem != nil || v.Set.DeletionTimestamp != nil {
		return out.String()
	}
	fmt.Fprintf(&out, "   nodes %d, pods %d", v.desired, len(v.Pods))
	switch {
	case v.onDelete():
		out.WriteString(", updates on delete")
		return out.String()
	case v.inPlace():
		out.WriteString(", in place if possible")
	}
	if v.paused() {
		out.WriteString(", paused")
	}
	limit := func(name string, value *intstr.IntOrString, number int) {
		fmt.Fprintf(&out, ", %s %d", name, number)
		if value != nil && value.Type == intstr.String {
			fmt.Fprintf(&out, " (%s)", value.StrVal)
		}
	}
	if v.limits.Partition > 0 {
		limit("partition", v.strategy.Partition, v.limits.Partition)
	}
	if v.canary != nil {
		fmt.Fprintf(&out, ", nodes with %s", v.canary)
	}
	if v.surges() {
		limit("maxSurge", v.strategy.MaxSurge, v.limits.MaxSurge)
	} else {
		limit("maxUnavailable", v.strategy.MaxUnavailable, v.limits.MaxUnavailable)
	}
	return out.String()
}

// adopt takes Pods over that nobody controls, such as those that a DaemonSet of Kubernetes has left behind, and reports whether there are any.
func adopt(v *Survey, b *plan.Builder) bool {
	for _, p := range v.Orphans {
		after := p.DeepCopy()
		after.OwnerReferences = append(after.OwnerReferences, ownerReference(v.Set))
		b.First(plan.Action{
			Verb: plan.Update, Concern: plan.Scale, Before: p, After: after,
			What: "adopt", Why: "it has the labels of a Pod of this DaemonSet, and no controller",
		})
	}
	return len(v.Orphans) > 0
}

// release lets go of Pods whose labels were changed such that the selector does not match them any more.
func (s *step) release() {
	for _, p := range s.Survey.release {
		after := p.DeepCopy()
		after.OwnerReferences = slices.DeleteFunc(after.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == s.Set.UID })
		s.b.Do(plan.Action{
			Verb: plan.Update, Concern: plan.Tidy, Before: p, After: after,
			What: "release", Why: "its labels do not match the selector any more",
		})
	}
}

// settle finishes what is in flight on each Pod: grace periods, the next batch of containers, readiness, hooks.
func (s *step) settle() {
	workload := s.workload()
	for _, p := range s.places {
		for _, m := range p.members {
			if m.runs() && !workload.IsSettled(m.pod) {
				m.settled = workload.Settle(m.pod, m.updated || !s.kept[p.name], s.b)
			}
		}
	}
}

// tellOfBurst says that not all that is due fits into this pass. The writes of this pass bring about the next one.
func (s *step) tellOfBurst() {
	if s.late > 0 {
		s.b.Hold(plan.Hold{Why: fmt.Sprintf("%d more writes follow: burstReplicas is %d", s.late, s.burst)})
	}
}
