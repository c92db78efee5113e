package launchpriority

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/launch"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

const (
	// conflictEvent is the reason of the event that tells that the barrier's name is taken.
	conflictEvent = "BarrierConflict"
	// failedEvent is the reason of the event that tells that the barrier could not be made, such as for a quota.
	failedEvent = "BarrierFailed"
)

// recheckConflict is when to look again whether a taken name has become free: ConfigMaps that are not ours send no events.
const recheckConflict = 30 * time.Second

// Plan decides the next step. It reads only s and changes nothing.
func Plan(s Snapshot) plan.Plan {
	b := plan.For("Pod " + s.Pod.Namespace + "/" + s.Pod.Name)
	turn, held := launch.Next(s.Pod)
	name, err := launch.BarrierName(s.Pod.Name)
	switch {
	case !held || err != nil:
	case s.Pod.DeletionTimestamp != nil:
		remove(s, b)
	case !pod.IsActive(s.Pod):
		// Nothing starts any more, and the barrier goes with the Pod.
	case isCompleted(s.Pod) && isOwned(s) && isOpen(s):
	default:
		if isCompleted(s.Pod) {
			turn, _ = launch.Final(s.Pod)
		}
		open(s, b, name, turn)
	}
	return b.Plan()
}

func isCompleted(p *corev1.Pod) bool {
	return p.Annotations[keys.ContainerLaunchPriorityCompleted] == "true"
}

func isOwned(s Snapshot) bool {
	return s.Barrier != nil && launch.OwnershipOf(s.Barrier, s.Pod) == launch.Owned
}

// isOpen tells whether the barrier lets all containers start. One of a Pod that is completed may not: where somebody deletes it, a creation
// that is late makes it anew as it was before.
func isOpen(s Snapshot) bool {
	final, _ := launch.Final(s.Pod)
	opened, some := launch.Opened(s.Barrier)
	return some && opened <= final.Priority && s.Barrier.Labels[keys.ContainerLaunchBarrier] != ""
}

// remove deletes the barrier of a Pod that is being deleted: the next Pod of the same name would find its keys.
func remove(s Snapshot, b *plan.Builder) {
	if isOwned(s) && s.Barrier.DeletionTimestamp == nil {
		b.Do(plan.Action{
			Verb: plan.Delete, Concern: plan.Tidy, Before: s.Barrier, AnyVersion: true,
			What: "delete " + s.Barrier.Name, Why: "its Pod is being deleted",
		})
	}
}

// open lets the containers of a turn start, and then writes that into the Pod.
func open(s Snapshot, b *plan.Builder, name string, turn launch.Turn) {
	create := plan.Action{
		Verb: plan.Create, Concern: plan.Settle, After: launch.NewBarrier(s.Pod, name, turn),
		What: "create " + name, Why: "containers wait for " + launch.Key(turn.Priority),
		FailedEvent: failedEvent,
	}
	if s.Barrier == nil {
		b.Do(create)
		return
	}
	switch launch.OwnershipOf(s.Barrier, s.Pod) {
	case launch.Foreign:
		b.Hold(plan.Hold{Code: reason.Conflict, Name: name, Event: conflictEvent, Why: fmt.Sprintf(
			"ConfigMap %s is not the barrier of this Pod: its containers can't start in order until the ConfigMap is gone", name)})
		b.Recheck(recheckConflict, "ConfigMap "+name+" may be gone")
		return
	case launch.Outdated:
		b.Do(plan.Action{
			Verb: plan.Delete, Concern: plan.Settle, Before: s.Barrier, AnyVersion: true,
			What: "delete " + name, Why: "it is the barrier of an earlier Pod of this name",
		}, create)
		return
	}
	opened, some := launch.Opened(s.Barrier)
	if some && opened < turn.Priority {
		// A container of higher priority is not ready any more; what has started stays started.
		turn, _ = launch.At(s.Pod, opened)
	}
	if !some || opened > turn.Priority || s.Barrier.Labels[keys.ContainerLaunchBarrier] == "" {
		after := s.Barrier.DeepCopy()
		launch.Open(after, turn)
		b.Do(plan.Action{
			Verb: plan.Update, Concern: plan.Settle, Before: s.Barrier, After: after, AnyVersion: true,
			What: "open " + launch.Key(turn.Priority), Why: "all containers of higher priority are ready",
		})
		return
	}
	tell(s.Pod, b, turn)
}

// tell writes into the Pod how far its containers may start: when all may, and when a kubelet has to be woken. It is a pass of its own,
// because what the cache shows of the barrier by then, kubelets see as well.
func tell(p *corev1.Pod, b *plan.Builder, turn launch.Turn) {
	key := launch.Key(turn.Priority)
	after := p.DeepCopy()
	action := plan.Action{Verb: plan.Update, Concern: plan.Settle, Before: p, After: after, AnyVersion: true}
	switch {
	case turn.Last && !isCompleted(p):
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, keys.ContainerLaunchPriorityCompleted, "true")
		action.What, action.Why = "mark "+p.Name+" as completed", "all containers may start"
	case launch.IsStuck(p, turn) && p.Annotations[keys.ContainerLaunchPriorityCurrent] != key:
		action.What, action.Why = "wake the kubelet of "+p.Name, "it could not create a container before"
	default:
		return
	}
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, keys.ContainerLaunchPriorityCurrent, key)
	b.Do(action)
}
