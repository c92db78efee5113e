package ephemeraljob

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/ephemeral"
	"github.com/seed-69ecc383/kruise/internal/rules/order"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// State is a Snapshot, classified once for the plan and the status.
type State struct {
	Snapshot
	// targets are the Pods that the job is for: those that have its containers, and then those that are to get them, in that order.
	targets []target
	// unfit are Pods that the selector matches and that can't take the containers, by name.
	unfit []unfit
	// waiting, running, succeeded and failed are numbers of Pods that have the containers, absent of those that are to get them.
	waiting, running, succeeded, failed, absent int
	// busy is the number of Pods in which a container runs or may still start.
	busy   int
	result result
	// problem is what can't be read in the spec; nothing is planned then.
	problem error
}

// target is a Pod that the job is for.
type target struct {
	pod *corev1.Pod
	ephemeral.Progress
}

// unfit is a Pod that can't take the containers.
type unfit struct{ name, why string }

// Classify returns the state of a snapshot.
func Classify(s Snapshot) State {
	v := State{Snapshot: s}
	if s.Job.DeletionTimestamp != nil || isFinished(s.Job) {
		return v
	}
	if _, v.problem = selectorOf(s.Job); v.problem == nil && len(s.Job.Spec.Template.EphemeralContainers) == 0 {
		v.problem = errors.New("template has no ephemeralContainers: add one")
	}
	if v.problem == nil {
		v.choose()
		v.count()
	}
	v.result = v.evaluate()
	return v
}

// choose finds the Pods that the job is for. A Pod that has the containers stays one, whatever its labels. Of the other Pods those come
// first that have a node, and of these the oldest. The order is the same in each pass: a controller that takes over with an older cache
// chooses the same Pods.
func (v *State) choose() {
	containers := v.Job.Spec.Template.EphemeralContainers
	var candidates []target
	for _, p := range v.Pods {
		t := target{p, ephemeral.ProgressOf(p, v.Job.UID)}
		switch {
		case t.State != ephemeral.Absent:
			v.targets = append(v.targets, t)
		case !pod.IsActive(p):
		default:
			if why := ephemeral.Unfit(p, containers); why != "" {
				v.unfit = append(v.unfit, unfit{p.Name, why})
				continue
			}
			candidates = append(candidates, t)
		}
	}
	slices.SortFunc(v.targets, func(a, b target) int { return byAge(a.pod, b.pod) })
	slices.SortFunc(v.unfit, func(a, b unfit) int { return cmp.Compare(a.name, b.name) })
	slices.SortFunc(candidates, func(a, b target) int {
		return cmp.Or(
			order.FalseFirst(v.isRefused(a.pod), v.isRefused(b.pod)),
			order.FalseFirst(!pod.IsScheduled(a.pod), !pod.IsScheduled(b.pod)),
			byAge(a.pod, b.pod),
		)
	})
	if limit := v.Job.Spec.Replicas; limit != nil {
		room := max(0, int(*limit)-len(v.targets))
		candidates = candidates[:min(room, len(candidates))]
	}
	v.targets = append(v.targets, candidates...)
}

// isRefused reports whether the API server has just refused the containers for the Pod: other Pods come first.
func (v *State) isRefused(p *corev1.Pod) bool {
	_, refused := v.Refused[p.UID]
	return refused
}

func byAge(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

func (v *State) count() {
	for _, t := range v.targets {
		switch t.State {
		case ephemeral.Absent:
			v.absent++
		case ephemeral.Waiting:
			v.waiting++
		case ephemeral.Running:
			v.running++
		case ephemeral.Succeeded:
			v.succeeded++
		case ephemeral.Failed:
			v.failed++
		}
		if t.Busy {
			v.busy++
		}
	}
}

// parallelism is the most Pods in which containers may run at the same time.
func parallelism(job *v1alpha1.EphemeralJob) int {
	if job.Spec.Parallelism == nil {
		return 1
	}
	return int(*job.Spec.Parallelism)
}

// isFinished reports whether the job has succeeded or failed.
func isFinished(job *v1alpha1.EphemeralJob) bool {
	return job.Status.Phase == v1alpha1.EphemeralJobSucceeded || job.Status.Phase == v1alpha1.EphemeralJobFailed
}

// defaultTTLSeconds is how long a finished job is kept where the user does not say.
const defaultTTLSeconds = 1800

// finishedAt returns when a job finished. Older controllers did not always write it down.
func finishedAt(job *v1alpha1.EphemeralJob) *metav1.Time {
	if job.Status.CompletionTime != nil {
		return job.Status.CompletionTime
	}
	at := &job.CreationTimestamp
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.LastTransitionTime.After(at.Time) {
			at = &c.LastTransitionTime
		}
	}
	return at
}

// Reasons of events and conditions. Wire: users' alerts and tools match them.
const (
	reasonCreateFailed     = "CreateFailed"
	reasonDeadlineExceeded = "DeadlineExceeded"
	reasonMatchEmpty       = "MatchEmpty"
	reasonInitialized      = "Initialized"
	reasonSucceeded        = "JobSucceeded"
	reasonFailed           = "JobFailed"
	reasonInvalid          = "InvalidSpec"
	eventLeftOut           = "PodsLeftOut"
)

// result is how far a job has come, and the condition that says so; that has no type for most phases.
type result struct {
	phase           v1alpha1.EphemeralJobPhase
	condition       v1alpha1.EphemeralJobConditionType
	reason, message string
}

func (r result) isFinished() bool {
	return r.phase == v1alpha1.EphemeralJobSucceeded || r.phase == v1alpha1.EphemeralJobFailed
}

func (r result) eventType() string {
	if r.phase == v1alpha1.EphemeralJobFailed {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// evaluate returns how far an unfinished job has come. A job whose containers have ended in all Pods is finished even past its deadline and
// while paused.
func (v *State) evaluate() result {
	all := len(v.targets)
	switch {
	case v.problem != nil:
		return result{v1alpha1.EphemeralJobError, v1alpha1.EphemeralJobIsInError, reasonInvalid, v.problem.Error()}
	case all > 0 && v.succeeded == all:
		message := fmt.Sprintf("%s succeeded", pods(all))
		return result{v1alpha1.EphemeralJobSucceeded, v1alpha1.EphemeralJobIsSucceeded, reasonSucceeded, message}
	case all > 0 && v.succeeded+v.failed == all:
		message := fmt.Sprintf("%d of %s failed: %s", v.failed, pods(all), v.failures())
		return result{v1alpha1.EphemeralJobFailed, v1alpha1.EphemeralJobIsFailed, reasonFailed, message}
	}
	if left, limited := v.untilDeadline(); limited && left <= 0 {
		return result{v1alpha1.EphemeralJobFailed, v1alpha1.EphemeralJobIsFailed, reasonDeadlineExceeded, v.overdue()}
	}
	switch {
	case all == 0:
		return result{v1alpha1.EphemeralJobWaiting, v1alpha1.EphemeralJobMatchedEmpty, reasonMatchEmpty, v.empty()}
	case v.running > 0:
		return result{phase: v1alpha1.EphemeralJobRunning}
	case v.waiting < all && v.Job.Spec.Paused:
		return result{phase: v1alpha1.EphemeralJobPaused}
	case v.succeeded+v.failed > 0:
		return result{phase: v1alpha1.EphemeralJobRunning} // between two Pods
	default:
		return result{phase: v1alpha1.EphemeralJobWaiting}
	}
}

// pods returns a number of Pods in words: "1 Pod", "3 Pods".
func pods(n int) string {
	if n == 1 {
		return "1 Pod"
	}
	return fmt.Sprintf("%d Pods", n)
}

// most is the number of Pods that a message names.
const most = 3

// listed returns the first few of some items, and how many more there are.
func listed(items []string) string {
	if len(items) <= most {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(items[:most], ", "), len(items)-most)
}

func (v *State) failures() string {
	var out []string
	for _, t := range v.targets {
		if t.State == ephemeral.Failed {
			out = append(out, fmt.Sprintf("%s (%s)", t.pod.Name, t.Why))
		}
	}
	return listed(out)
}

func (v *State) leftOut() string {
	var out []string
	for _, u := range v.unfit {
		out = append(out, fmt.Sprintf("%s (%s)", u.name, u.why))
	}
	return listed(out)
}

// empty says that the job has no Pods, and which it would have if they could take the containers.
func (v *State) empty() string {
	const message = "job match no pods" // Wire
	if len(v.unfit) == 0 {
		return message
	}
	return fmt.Sprintf("%s: %s can't take the containers: %s", message, pods(len(v.unfit)), v.leftOut())
}

// overdue says that the deadline has passed, and in how many Pods containers still run: they can't be stopped.
func (v *State) overdue() string {
	message := fmt.Sprintf("Job %s/%s was active longer than specified deadline", v.Job.Namespace, v.Job.Name)
	if v.busy > 0 {
		message += fmt.Sprintf("; its containers run on in %s until they end or their Pods do", pods(v.busy))
	}
	return message
}

// untilDeadline returns how long the job may still take, if there is a limit. Pauses do not stop the clock.
func (v *State) untilDeadline() (left time.Duration, limited bool) {
	return plan.UntilDeadline(v.Job.Status.StartTime, v.Job.Spec.ActiveDeadlineSeconds, v.Now)
}
