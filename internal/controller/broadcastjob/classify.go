package broadcastjob

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// State is a Snapshot, classified once for the plan and the status.
type State struct {
	Snapshot
	// targets are the nodes that fit the template or have a Pod, by name, including nodes that are gone.
	targets []*target
	// members are all Pods of the job.
	members []*member
	// desired is the number of nodes that the job is for, limit the most Pods that may be active.
	desired, limit int
	// active, succeeded and failed are numbers of Pods.
	active, succeeded, failed int
	result                    result
	// problem is what can't be read in the spec; nothing is planned then.
	problem error
}

// target is a node that fits the template or has a Pod.
type target struct {
	name string
	// node is nil when it is gone.
	node    *corev1.Node
	fits    bool
	members []*member
}

// class says how a Pod counts.
type class int

const (
	// active Pods are under way.
	active class = iota
	// succeeded Pods have ended well.
	succeeded
	// failed Pods have ended badly, or were restarted more often than the limit allows.
	failed
	// terminating Pods are being deleted and have not ended; they do not count.
	terminating
)

// member is a Pod of the job.
type member struct {
	pod   *corev1.Pod
	class class
	// unfit says why the Pod must leave its node, empty when it may stay.
	unfit string
}

// Classify returns the state of a snapshot.
func Classify(s Snapshot) State {
	v := State{Snapshot: s}
	if s.Job.DeletionTimestamp != nil {
		return v
	}
	v.classifyPods()
	if isFinished(s.Job) {
		return v
	}
	for _, t := range v.targets {
		if t.isDesired() {
			v.desired++
		}
	}
	v.limit = math.MaxInt32
	if parallelism := s.Job.Spec.Parallelism; parallelism != nil {
		if v.limit, v.problem = budget.Scaled(parallelism, v.desired, budget.Up); v.problem != nil {
			v.problem = fmt.Errorf("reading parallelism: %w", v.problem)
			return v
		}
	}
	v.result, v.problem = v.evaluate()
	return v
}

// classifyPods counts the Pods and finds the node that each is for.
func (v *State) classifyPods() {
	byName := map[string]*target{}
	on := func(name string) *target {
		if byName[name] == nil {
			byName[name] = &target{name: name}
			v.targets = append(v.targets, byName[name])
		}
		return byName[name]
	}
	fit := nodefit.OfJob(&v.Job.Spec.Template.Spec)
	nodes := make(map[string]*corev1.Node, len(v.Nodes))
	for _, node := range v.Nodes {
		nodes[node.Name] = node
		if fit.On(node).Run {
			on(node.Name).fits = true
		}
	}
	for _, p := range v.Pods {
		m := &member{pod: p, class: classOf(p, v.Job)}
		v.members = append(v.members, m)
		switch m.class {
		case active:
			v.active++
		case succeeded:
			v.succeeded++
		case failed:
			v.failed++
		case terminating:
		}
		if name := nodefit.NodeOf(p); name != "" {
			on(name).members = append(on(name).members, m)
		}
	}
	for _, t := range v.targets {
		t.node = nodes[t.name]
		for _, m := range t.members {
			m.unfit = t.unfitReason(m)
		}
	}
	slices.SortFunc(v.targets, func(a, b *target) int { return cmp.Compare(a.name, b.name) })
	slices.SortFunc(v.members, func(a, b *member) int { return cmp.Compare(a.pod.Name, b.pod.Name) })
}

// classOf returns how a Pod of the job counts. Where containers are restarted, a restart beyond the limit is a failure: with a limit of 2
// the third one.
func classOf(p *corev1.Pod, job *v1beta1.BroadcastJob) class {
	switch {
	case p.Status.Phase == corev1.PodSucceeded:
		return succeeded
	case p.Status.Phase == corev1.PodFailed:
		return failed
	case p.DeletionTimestamp != nil:
		return terminating
	case p.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && pod.Restarts(p) > job.Spec.FailurePolicy.RestartLimit:
		return failed
	}
	return active
}

// unfitReason says why a Pod must leave the node; empty when it may stay. A running Pod stays on a node that no longer fits. An ended Pod
// is never deleted: its node would get a second Pod as soon as it fits again.
func (t *target) unfitReason(m *member) string {
	switch {
	case m.class != active:
		return ""
	case t.node == nil:
		return fmt.Sprintf("node %s is gone", t.name)
	case t.fits:
		return ""
	case m.pod.Status.StartTime == nil && m.pod.Status.Phase == corev1.PodPending:
		return fmt.Sprintf("node %s does not fit the template any more, and the Pod has not started", t.name)
	case !nodefit.Endures(m.pod.Spec.Tolerations, t.node):
		return fmt.Sprintf("the Pod does not tolerate the taints of node %s", t.name)
	}
	return ""
}

// isDesired reports whether the job is for the node: it fits, or has a Pod that may stay.
func (t *target) isDesired() bool {
	return t.fits || slices.ContainsFunc(t.members, func(m *member) bool { return m.unfit == "" })
}

// isDone reports whether nothing is left to do on the node.
func (t *target) isDone() bool {
	done := false
	for _, m := range t.members {
		switch m.class {
		case active:
			return false
		case succeeded, failed:
			done = true
		case terminating:
		}
	}
	return done
}

// isFinished reports whether the job has completed or failed.
func isFinished(job *v1beta1.BroadcastJob) bool {
	return job.Status.Phase == v1beta1.BroadcastJobCompleted || job.Status.Phase == v1beta1.BroadcastJobFailed || finishedAt(job) != nil
}

// finishedAt returns when the job finished, or nil if no condition says that it did.
func finishedAt(job *v1beta1.BroadcastJob) *metav1.Time {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if (c.Type == v1beta1.BroadcastJobComplete || c.Type == v1beta1.BroadcastJobFailure) && c.Status == corev1.ConditionTrue {
			if job.Status.CompletionTime != nil {
				return job.Status.CompletionTime
			}
			return &c.LastTransitionTime
		}
	}
	return nil
}

// Event reasons. Wire: users' alerts and tools match them, the one with spaces included.
const (
	eventSuccessfulCreate = "SuccessfulCreate"
	eventFailedCreate     = "FailedCreate"
	eventSuccessfulDelete = "SuccessfulDelete"
	eventFailedDelete     = "FailedDelete"
	eventJobComplete      = "JobComplete"
	eventDeadlineExceeded = "DeadlineExceeded"
	eventFailedPod        = "failed pod is found"
	eventPaused           = "Paused"
	eventContinue         = "Continue"
	eventTooManyActive    = "TooManyActivePods"
	eventDuplicatePod     = "DuplicatePodCreatedOnSameNode"
)

// result is how far a job has come, and the event that tells of it, if that is new.
type result struct {
	phase v1beta1.BroadcastJobPhase
	// message is that of the condition of a finished job.
	message string
	// event, eventType and eventMessage are emitted with the status; empty for none.
	event, eventType, eventMessage string
	// pauses means that the failure policy turns spec.paused on.
	pauses bool
}

func (r result) isFinished() bool {
	return r.phase == v1beta1.BroadcastJobCompleted || r.phase == v1beta1.BroadcastJobFailed
}

// finished is the result of a job that completes or fails now, which its event says as well.
func finished(phase v1beta1.BroadcastJobPhase, event, message string) result {
	r := result{phase: phase, message: message, event: event, eventType: corev1.EventTypeNormal, eventMessage: message}
	if phase == v1beta1.BroadcastJobFailed {
		r.eventType = corev1.EventTypeWarning
	}
	return r
}

// evaluate returns how far an unfinished job has come. While the user pauses it, neither its deadline nor a failed Pod counts; both count
// when it goes on.
func (v *State) evaluate() (result, error) {
	job := v.Job
	if job.Spec.Paused {
		return result{phase: v1beta1.BroadcastJobPaused}, nil
	}
	switch policy := job.Spec.FailurePolicy.Type; policy {
	case v1beta1.FailurePolicyTypeContinue:
	case v1beta1.FailurePolicyTypeFailFast, "":
		if v.failed > 0 {
			const message = "failure policy is FailurePolicyTypeFailFast and failed pod is found" // Wire
			return finished(v1beta1.BroadcastJobFailed, eventFailedPod, message), nil
		}
	case v1beta1.FailurePolicyTypePause:
		if v.failed > pausedAt(job) {
			return result{phase: v1beta1.BroadcastJobPaused, pauses: true}, nil
		}
	default:
		return result{}, fmt.Errorf("failurePolicy.type is %q, want FailFast, Continue or Pause", policy)
	}
	if left, limited := v.untilDeadline(); limited && left <= 0 {
		message := fmt.Sprintf("Job %s/%s was active longer than specified deadline", job.Namespace, job.Name) // Wire
		return finished(v1beta1.BroadcastJobFailed, eventDeadlineExceeded, message), nil
	}
	if v.isComplete() {
		message := fmt.Sprintf("Job completed, %d pods succeeded, %d pods failed", v.succeeded, v.failed) // Wire
		return finished(v1beta1.BroadcastJobCompleted, eventJobComplete, message), nil
	}
	r := result{phase: v1beta1.BroadcastJobRunning}
	if job.Status.Phase == v1beta1.BroadcastJobPaused {
		r.event, r.eventType, r.eventMessage = eventContinue, corev1.EventTypeNormal, "Job goes on"
	}
	return r, nil
}

// ends reports whether the job is one that ends by itself.
func ends(job *v1beta1.BroadcastJob) bool {
	return job.Spec.CompletionPolicy.Type != v1beta1.NeverComplete
}

// isComplete reports whether every node is done and no Pod is active. A job without nodes waits for one.
func (v *State) isComplete() bool {
	isOpen := func(t *target) bool { return t.isDesired() && !t.isDone() }
	return ends(v.Job) && v.desired > 0 && v.active == 0 && !slices.ContainsFunc(v.targets, isOpen)
}

// untilDeadline returns how long the job may still take, if there is a limit. Pauses do not stop the clock.
func (v *State) untilDeadline() (left time.Duration, limited bool) {
	if !ends(v.Job) {
		return 0, false
	}
	return plan.UntilDeadline(v.Job.Status.StartTime, v.Job.Spec.CompletionPolicy.ActiveDeadlineSeconds, v.Now)
}

// pausedAt returns the number of failures at which the user resumed the job: with 1, the second failure pauses it again.
func pausedAt(job *v1beta1.BroadcastJob) int {
	n, err := strconv.Atoi(job.Annotations[keys.BroadcastJobPausedAtFailed])
	if err != nil {
		return 0 // absent, or not ours
	}
	return n
}
