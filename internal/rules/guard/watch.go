package guard

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

// How many old Pods are compared with, and how many failed Pods a status keeps.
const (
	maxOld    = 200
	maxFailed = 20
)

// defaultWindow is how long Pods are watched where the Rollout says nothing.
const defaultWindow = 5 * time.Minute

func window(settings *v1beta1.Guard) time.Duration {
	if settings == nil || settings.WindowSeconds == nil {
		return defaultWindow
	}
	return time.Duration(*settings.WindowSeconds) * time.Second
}

// Begin looks at the old Pods, before the first one is updated, and returns what updated Pods are compared with during the release.
func Begin(old []Pod, settings *v1beta1.Guard, now time.Time) *v1beta1.GuardStatus {
	old = sample(inOrder(old))
	l := limits{now: now, begun: now, window: window(settings), toReady: ToReady(old)}
	if settings != nil && settings.ReadySeconds != nil {
		l.toReady = time.Duration(*settings.ReadySeconds) * time.Second
	}
	st := &v1beta1.GuardStatus{
		Phase: v1beta1.AnalysisRunning, Begun: metav1.NewTime(now), OldPods: int32(len(old)), ReadySeconds: int32(l.toReady / time.Second),
	}
	for i, p := range old {
		if l.oldFailed(p) {
			st.OldFailed = append(st.OldFailed, int32(i))
		}
	}
	return st
}

// Watch adds to the status which updated Pods have failed, and whether that proves that the release is bad. It returns when to look again
// without an event; 0 is never. A Pod that has failed once stays failed, and one that has not failed yet counts as one that does not.
func Watch(st *v1beta1.GuardStatus, updated []Pod, settings *v1beta1.Guard, now time.Time) time.Duration {
	if st.Phase != v1beta1.AnalysisRunning {
		return 0
	}
	l := limits{now: now, begun: st.Begun.Time, window: window(settings), toReady: time.Duration(st.ReadySeconds) * time.Second}
	w := watch{limits: l, GuardStatus: st}
	for _, p := range updated {
		w.add(p)
	}
	w.judge()
	if st.Phase != v1beta1.AnalysisRunning {
		return 0
	}
	return w.after
}

// watch is one look at the updated Pods.
type watch struct {
	limits
	*v1beta1.GuardStatus
	// well are the Pods that have not failed.
	well []Pod
	// more are failed Pods that the status has no room for.
	more  []v1beta1.FailedPod
	after time.Duration
}

// add looks at one updated Pod.
func (w *watch) add(p Pod) {
	known := func(f v1beta1.FailedPod) bool { return f.Name == p.Name && f.Since.Unix() == p.Since.Unix() }
	if slices.ContainsFunc(w.Failed, known) {
		return
	}
	why := w.updatedFailed(p)
	if why == "" {
		w.well = append(w.well, p)
		if after := w.next(p); after > 0 && (w.after == 0 || after < w.after) {
			w.after = after
		}
		return
	}
	f := v1beta1.FailedPod{Name: p.Name, Since: metav1.NewTime(p.Since), Reason: why}
	if len(w.Failed) < maxFailed {
		w.Failed = append(w.Failed, f)
	} else {
		w.more = append(w.more, f)
	}
}

// judge weighs the evidence.
func (w *watch) judge() {
	failed := slices.Concat(w.Failed, w.more)
	if len(failed) == 0 {
		return
	}
	type outcome struct {
		Pod
		bad bool
	}
	var all []outcome
	for _, f := range failed {
		all = append(all, outcome{Pod{Name: f.Name, Since: f.Since.Time}, true})
	}
	for _, p := range w.well {
		all = append(all, outcome{p, false})
	}
	slices.SortFunc(all, func(a, b outcome) int { return inTime(a.Pod, b.Pod) })
	outcomes := make([]bool, len(all))
	for i := range all {
		outcomes[i] = all[i].bad
	}
	before := make([]bool, w.OldPods)
	for _, i := range w.OldFailed {
		if i >= 0 && i < w.OldPods {
			before[i] = true
		}
	}
	w.Message = fmt.Sprintf("%d of %d updated Pods failed, and %d of %d old ones; Pod %s: %s",
		len(failed), len(all), len(w.OldFailed), w.OldPods, failed[0].Name, failed[0].Reason)
	if _, bad := evidence(outcomes, before); bad {
		w.Phase = v1beta1.AnalysisFailed
	}
}

// inTime orders Pods by their start.
func inTime(a, b Pod) int {
	return cmp.Or(cmp.Compare(a.Since.Unix(), b.Since.Unix()), cmp.Compare(a.Name, b.Name))
}

func inOrder(pods []Pod) []Pod {
	pods = slices.Clone(pods)
	slices.SortFunc(pods, inTime)
	return pods
}

// sample returns at most maxOld of the Pods, evenly from all of them.
func sample(pods []Pod) []Pod {
	if len(pods) <= maxOld {
		return pods
	}
	out := make([]Pod, maxOld)
	for i := range out {
		out[i] = pods[i*len(pods)/maxOld]
	}
	return out
}

// Facts returns what is known of a Pod; false for one that says nothing of its version, because it is being deleted, or was ended as a
// whole, which only its node does.
func Facts(p *corev1.Pod) (Pod, bool) {
	if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		return Pod{}, false
	}
	out := Pod{Name: p.Name, Since: p.CreationTimestamp.Time}
	inPlace := false
	if state, err := inplace.State(p); err == nil && state != nil && state.UpdateTimestamp.After(out.Since) {
		out.Since, inPlace = state.UpdateTimestamp.Time, true
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			out.Ready, out.ReadyChanged = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		out.ended(c, inPlace)
	}
	for i, c := range p.Status.InitContainerStatuses {
		if i < len(p.Spec.InitContainers) && restarts(p.Spec.InitContainers, c.Name) {
			out.ended(c, inPlace)
		} else if t := ending(c); t != nil && t.ExitCode != 0 {
			out.ended(c, inPlace)
		}
	}
	return out, true
}

// restarts tells whether a container among the init containers is a sidecar, which runs as long as the Pod.
func restarts(init []corev1.Container, name string) bool {
	return slices.ContainsFunc(init, func(c corev1.Container) bool {
		return c.Name == name && ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
	})
}

// ending returns the last end of a container; nil if there was none.
func ending(c corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if c.State.Terminated != nil {
		return c.State.Terminated
	}
	return c.LastTerminationState.Terminated
}

// ended notes the last end of a container. One that began before an update in place was ended by it.
func (p *Pod) ended(c corev1.ContainerStatus, inPlace bool) {
	t := ending(c)
	if t == nil || inPlace && t.StartedAt.Time.Before(p.Since) {
		return
	}
	if inPlace {
		p.Restarts++
	} else {
		p.Restarts += c.RestartCount
	}
	if t.FinishedAt.After(p.ExitedAt) || p.ExitedAt.IsZero() {
		p.ExitedAt, p.ExitCode = t.FinishedAt.Time, t.ExitCode
	}
}
