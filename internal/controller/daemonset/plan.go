package daemonset

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
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

// predecessorLook is how often is looked whether a DaemonSet of Kubernetes of the same name is gone, of which no event tells.
const predecessorLook = time.Second

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
	case v.Predecessor:
		b.Hold(plan.Hold{
			Name: v.Set.Name, Failure: plan.Scale,
			Why: fmt.Sprintf("DaemonSet %s of Kubernetes is being deleted: no Pod is created until it has let go of its own", v.Set.Name),
		})
		b.Recheck(predecessorLook, "the DaemonSet of Kubernetes may be gone")
		return b.Plan()
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
	v.awaited.Recheck(v.Set.Spec.MinReadySeconds, b)
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
		fmt.Fprintf(&out, ", %s %s", name, budget.Words(number, value))
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
		b.First(rollout.Adopt(p, ownerReference(v.Set)))
	}
	return len(v.Orphans) > 0
}

// release lets go of Pods whose labels were changed such that the selector does not match them any more.
func (s *step) release() {
	for _, p := range s.Survey.release {
		s.b.Do(rollout.Release(p, ownerReference(s.Set), "its labels do not match the selector any more"))
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
