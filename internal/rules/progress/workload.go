package progress

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// workload is what the status of any workload tells of a rollout.
type workload struct {
	// seen means that the status is of the present spec.
	seen bool
	// paused and onDelete are how the user keeps the controller from updating Pods.
	paused, onDelete bool
	// failed says why the rollout counts as failed; empty while it does not.
	failed string
	// waits says what the controller waits for, or what it failed in and tries again.
	waits string
	// code is the reason for that, and since is when it began.
	code  reason.Code
	since *time.Time
	// failure is what it failed in, and budget what it says of a PodUnavailableBudget that it waits for.
	failure, budget string
	// replicas are the Pods that are wanted, pods those that there are.
	replicas, pods int32
	// expected are the Pods that are wanted at the newest template.
	expected, updated, updatedAvailable, available int32
}

// progress judges the numbers. The first case that holds counts.
func (w workload) progress() Progress {
	p := Progress{
		Phase: Updating, Updated: w.updated, Wanted: w.expected, Total: w.replicas, Ready: w.updatedAvailable, Available: w.available,
		Message: w.waits, Failure: w.failure, Budget: w.budget, Seen: w.seen, Since: w.since, waits: w.code,
	}
	behind := w.expected - w.updated
	serving := w.pods == w.replicas && w.available >= w.replicas
	switch {
	case !w.seen:
		p.Message = "the controller has not seen the present spec yet"
	case w.onDelete && w.updated < w.pods:
		p.Phase, p.Reason = Waiting, OnDelete
		p.Message = fmt.Sprintf("type OnDelete: %d Pods are updated when they are deleted", w.pods-w.updated)
		p.Next = "delete them, or set updateStrategy.type RollingUpdate"
	case w.failed != "":
		p.Phase, p.Reason, p.Message = Failed, DeadlineExceeded, w.failed
	case w.paused && behind > 0 && w.updated < w.pods: // else Pods are to be created
		p.Phase, p.Reason, p.Next = Waiting, Paused, "resume it"
		p.Message = fmt.Sprintf("paused: %d Pods are not updated", behind)
	case behind <= 0 && serving && w.updatedAvailable >= w.expected:
		p.Phase, p.Message = Done, "all Pods are updated and in service"
		if p.waits = ""; w.updated < w.replicas {
			p.held = true
			p.Message = fmt.Sprintf("as far as the partition lets it: %d Pods stay at the old template", w.replicas-w.updated)
			p.Next = "lower the partition"
		}
	case w.waits == "":
		p.Message = w.missing(behind)
	}
	return p
}

// missing says what is not there yet.
func (w workload) missing(behind int32) string {
	switch {
	case behind > 0:
		return fmt.Sprintf("%d Pods are to be updated", behind)
	case w.updatedAvailable < w.expected:
		return fmt.Sprintf("%d updated Pods are not in service", w.expected-w.updatedAvailable)
	case w.pods > w.replicas:
		return fmt.Sprintf("%d Pods are to be deleted", w.pods-w.replicas)
	case w.pods < w.replicas:
		return fmt.Sprintf("%d Pods are to be created", w.replicas-w.pods)
	}
	return fmt.Sprintf("%d Pods are not in service", w.replicas-w.available)
}

// told is a condition of any type of this API.
type told struct {
	is              string
	status          corev1.ConditionStatus
	reason, message string
	since           metav1.Time
}

// conditionOf returns the condition of a type; an empty one where there is none.
func conditionOf[C any](all []C, name string, read func(C) told) told {
	for _, c := range all {
		if t := read(c); t.is == name {
			return t
		}
	}
	return told{}
}

// deadlineExceeded is the reason of condition Progressing once there was no progress for progressDeadlineSeconds.
const deadlineExceeded = "ProgressDeadlineExceeded"

// fromConditions reads what conditions tell that the workloads of Kruise have in common.
func (w *workload) fromConditions(get func(name string) told, failures ...string) {
	if c := get("Progressing"); c.status == corev1.ConditionFalse && c.reason == deadlineExceeded {
		w.failed, w.since = "past its deadline: "+c.message, at(c.since)
	}
	if c := get("Waiting"); c.status == corev1.ConditionTrue {
		w.waits, w.code, w.since = c.message, reason.Code(c.reason), at(c.since)
		if w.code == reason.WaitPUB {
			w.budget = c.message
		}
	}
	for _, name := range failures {
		if c := get(name); c.status == corev1.ConditionTrue {
			w.waits, w.failure, w.since = c.message, c.message, at(c.since)
		}
	}
	if w.failed != "" && w.waits != "" {
		w.failed += "; " + w.waits
	}
}

func cloneSet(o *v1beta1.CloneSet) (Progress, error) {
	s, update := o.Status, o.Spec.UpdateStrategy
	w := workload{
		seen: seen(s.ObservedGeneration, o.ObjectMeta), onDelete: update.Type == v1beta1.OnDeleteCloneSetStrategyType,
		replicas: value(o.Spec.Replicas, 1), pods: s.Replicas, available: s.AvailableReplicas,
		updated: s.UpdatedReplicas, updatedAvailable: s.UpdatedAvailableReplicas,
	}
	w.expected = w.replicas
	if r := update.RollingUpdate; r != nil && !w.onDelete {
		kept, err := budget.Partition(r.Partition, int(w.replicas))
		if err != nil {
			return Progress{}, fmt.Errorf("updateStrategy.rollingUpdate.%w", err)
		}
		w.expected, w.paused = w.replicas-int32(kept), r.Paused
	}
	w.fromConditions(func(name string) told {
		return conditionOf(s.Conditions, name, func(c v1beta1.CloneSetCondition) told {
			return told{string(c.Type), c.Status, c.Reason, c.Message, c.LastTransitionTime}
		})
	}, "FailedScale", "FailedUpdate")
	return w.progress(), nil
}

func statefulSet(o *v1beta1.StatefulSet) Progress {
	s, update := o.Status, o.Spec.UpdateStrategy
	w := workload{
		seen: seen(s.ObservedGeneration, o.ObjectMeta), onDelete: update.Type == appsv1.OnDeleteStatefulSetStrategyType,
		replicas: value(o.Spec.Replicas, 1), pods: s.Replicas, available: s.AvailableReplicas,
		updated: s.UpdatedReplicas, updatedAvailable: s.UpdatedAvailableReplicas,
	}
	w.expected = w.replicas
	if r := update.RollingUpdate; r != nil && !w.onDelete {
		w.expected, w.paused = max(w.replicas-value(r.Partition, 0), 0), r.Paused
	}
	w.fromConditions(func(name string) told {
		return conditionOf(s.Conditions, name, func(c v1beta1.StatefulSetCondition) told {
			return told{string(c.Type), c.Status, c.Reason, c.Message, c.LastTransitionTime}
		})
	}, string(v1beta1.StatefulSetConditionFailedCreatePod), string(v1beta1.StatefulSetConditionFailedUpdatePod))
	return w.progress()
}

func daemonSet(o *v1beta1.DaemonSet) (Progress, error) {
	s, update := o.Status, o.Spec.UpdateStrategy
	w := workload{
		seen: seen(s.ObservedGeneration, o.ObjectMeta), onDelete: update.Type == v1beta1.OnDeleteDaemonSetStrategyType,
		replicas: s.DesiredNumberScheduled, pods: s.CurrentNumberScheduled, available: s.NumberAvailable,
		updated: s.UpdatedNumberScheduled,
	}
	w.expected = w.replicas
	if r := update.RollingUpdate; r != nil && !w.onDelete {
		kept, err := budget.Scaled(r.Partition, int(w.replicas), budget.Down)
		if err != nil {
			return Progress{}, fmt.Errorf("updateStrategy.rollingUpdate.partition: %w", err)
		}
		w.expected, w.paused = max(w.replicas-int32(kept), 0), value(r.Paused, false)
	}
	// The status does not tell which of the updated Pods are in service; Pods that are not count as updated ones.
	w.updatedAvailable = max(w.updated-max(w.replicas-w.available, 0), 0)
	w.fromConditions(func(name string) told {
		return conditionOf(s.Conditions, name, func(c appsv1.DaemonSetCondition) told {
			return told{string(c.Type), c.Status, c.Reason, c.Message, c.LastTransitionTime}
		})
	}, string(v1beta1.DaemonSetConditionFailedScale), string(v1beta1.DaemonSetConditionFailedUpdate))
	return w.progress(), nil
}
