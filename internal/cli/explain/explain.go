// Package explain says why a workload or a Pod stands still, and what would free it.
package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// Situation is what an explanation goes by.
type Situation struct {
	// Arg names the workload as an argument of a command.
	Arg      string
	Progress progress.Progress
	// Rollout is the name of the Rollout that releases the workload now; empty if none does.
	Rollout string
	Paused  bool
	// Plan is what the controller would do now; empty for a kind that there is no forecast for.
	Plan plan.Plan
	// Pods are those of the workload. Updated is the revision that they are wanted at, as the status names it.
	Pods    []*corev1.Pod
	Updated string
	// Label is the label by which a Pod says at which revision it is; controller-revision-hash if it is empty.
	Label string
	// Native means that a controller of Kubernetes itself works on it.
	Native bool
	// Deleted is when the workload was deleted; nil if it was not. It is there until nobody's finalizer holds it.
	Deleted    *time.Time
	Finalizers []string
	// Refused is what the API server has refused, as an event tells it where the status does not; empty if nothing was.
	Refused string
	// Lifecycle and MinReadySeconds are those of the workload.
	Lifecycle       *pub.Lifecycle
	MinReadySeconds int32
	Now             time.Time

	// next are the writes that the plan begins with on Pods, held what it holds back, by the names of Pods.
	next map[string]plan.Action
	held map[string]plan.Hold
}

// indexed returns the situation with its plan by the names of Pods.
func (s Situation) indexed() Situation {
	s.next, s.held = map[string]plan.Action{}, map[string]plan.Hold{}
	for _, a := range s.Plan.Actions() {
		if p, is := a.Object().(*corev1.Pod); is && a.What != "" {
			if _, known := s.next[p.Name]; !known {
				s.next[p.Name] = a
			}
		}
	}
	for _, h := range s.Plan.Holds {
		if _, known := s.held[h.Name]; !known {
			s.held[h.Name] = h
		}
	}
	return s
}

// Reason is why a Pod, or the workload, waits.
type Reason struct {
	// Pod is the name of the Pod; empty for a cause that is the workload's own.
	Pod  string      `json:"pod,omitempty"`
	Code reason.Code `json:"code"`
	// Why is a sentence.
	Why string `json:"why"`
	// Since is when it began; nil where that is not known.
	Since *time.Time `json:"since,omitempty"`
	// Free is what would free it; empty where nothing has to be done.
	Free string `json:"free,omitempty"`
}

// Explanation is why a workload stands as it does.
type Explanation struct {
	// Cause is the one thing that matters.
	Cause Reason `json:"cause"`
	// Pods are the reasons of all Pods that are not up to date, those out of service first.
	Pods []Reason `json:"pods,omitempty"`
	// UpToDate is how many Pods are, InService how many are in service of which that is not known.
	UpToDate  int `json:"upToDate"`
	InService int `json:"inService,omitempty"`
}

// Explain says why a workload stands as it does.
func Explain(s Situation) Explanation {
	s = s.indexed()
	var e Explanation
	for _, p := range s.Pods {
		switch r := s.podReason(p); r.Code {
		case reason.UpToDate:
			e.UpToDate++
		case reason.InService:
			e.InService++
		default:
			e.Pods = append(e.Pods, r)
		}
	}
	slices.SortStableFunc(e.Pods, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(a.Code.Rank(), b.Code.Rank()), cmp.Compare(a.Pod, b.Pod))
	})
	e.Cause = s.cause(e.Pods)
	e.Cause.Free = cmp.Or(e.Cause.Free, s.free(e.Cause), s.Progress.Next)
	return e
}

// EachPod returns the reasons of all Pods, in the order in which the situation has them.
func EachPod(s Situation) []Reason {
	s = s.indexed()
	out := make([]Reason, len(s.Pods))
	for i, p := range s.Pods {
		out[i] = s.podReason(p)
	}
	return out
}

// OfPod says why one Pod stands as it does; false if the workload has no Pod of that name.
func OfPod(s Situation, name string) (Reason, bool) {
	i := slices.IndexFunc(s.Pods, func(p *corev1.Pod) bool { return p.Name == name })
	if i < 0 {
		return Reason{}, false
	}
	return s.indexed().podReason(s.Pods[i]), true
}

// cause returns the one thing that matters. The first that holds counts.
func (s Situation) cause(pods []Reason) Reason {
	p := s.Progress
	broken := slices.IndexFunc(pods, func(r Reason) bool { return r.Code.OutOfService() || r.Code == reason.InPlaceRefused })
	switch {
	case s.Deleted != nil:
		return s.deleted()
	case s.Plan.Problem != nil:
		return Reason{Code: reason.InvalidSpec, Why: s.Plan.Problem.Error()}
	case !p.Seen:
		return Reason{Code: reason.ControllerLag, Why: "the controller has not seen the present spec"}
	case p.Failure != "":
		return Reason{Code: reason.OfFailure(p.Failure), Why: p.Failure, Since: p.Since}
	case s.Rollout != "" && broken < 0:
		return Reason{Code: reason.HeldByRollout, Why: "rollout/" + s.Rollout + " releases it in steps"}
	case p.Phase == progress.Done && broken < 0:
		if p.Code == reason.HeldByPartition || len(pods) > 0 && pods[0].Code == reason.HeldByPartition {
			return Reason{Code: reason.HeldByPartition, Why: p.Message}
		}
		return Reason{Code: reason.Nothing, Why: p.Message}
	}
	if r, is := wanted(p); is && s.Rollout == "" {
		return r
	}
	switch {
	case broken >= 0:
		return pods[broken]
	case s.Refused != "":
		return Reason{Code: reason.OfFailure(s.Refused), Why: s.Refused}
	case p.Budget != "":
		return Reason{Code: reason.WaitPUB, Why: p.Budget}
	case p.Phase == progress.Failed:
		return Reason{Code: reason.DeadlineExceeded, Why: p.Message}
	case len(pods) > 0:
		return pods[0]
	}
	return Reason{Code: cmp.Or(p.Code, reason.Updating), Why: p.Message, Since: p.Since}
}

// deleted says what keeps a workload that was deleted.
func (s Situation) deleted() Reason {
	r := Reason{Code: reason.WaitDeletion, Why: "it is being deleted", Since: s.Deleted, Free: "wait: the garbage collector takes it away"}
	if len(s.Finalizers) > 0 {
		names := strings.Join(s.Finalizers, ", ")
		r.Why += ", and has finalizers: " + names
		r.Free = "have the owners of " + names + " take them off " + s.Arg
	}
	return r
}

// wanted returns the cause where a rollout stands as a person wanted it, or until a person acts; false where it does not.
func wanted(p progress.Progress) (Reason, bool) {
	r := Reason{Why: p.Message, Since: p.Since}
	switch p.Reason {
	case progress.Paused:
		r.Code = reason.HeldByPause
	case progress.OnDelete:
		r.Code = reason.OnDelete
	case progress.NeedsApproval:
		r.Code, r.Free = reason.WaitApproval, p.Next
	case progress.NeedsRecreation:
		r.Code, r.Free = reason.InPlaceRefused, p.Next
	case progress.InvalidSpec:
		r.Code = reason.InvalidSpec
	case progress.Halted:
		r.Code, r.Free = reason.Stopped, p.Next
	case progress.GivenUp:
		r.Code, r.Free = reason.Stopped, cmp.Or(p.Next, "mend what it names, and create it anew: it is not tried again")
	}
	return r, r.Code != ""
}

// podReason says why a Pod stands as it does, and what would free it.
func (s Situation) podReason(p *corev1.Pod) Reason {
	available, wait := pod.Available(p, s.MinReadySeconds, s.Now)
	m := rollout.Member{
		Pod: p, State: pod.State(p), Leaving: p.DeletionTimestamp != nil, Ended: pod.IsFinished(p),
		Ready: pod.IsReady(p), Available: available,
	}
	var r Reason
	switch {
	case !available || m.Leaving || m.IsHeld():
		r = s.outOfService(&m, wait)
	case s.Updated == "":
		r = Reason{Pod: p.Name, Code: reason.InService, Why: "it is in service"}
	case s.isUpdated(p):
		r = Reason{Pod: p.Name, Code: reason.UpToDate, Why: "it has the newest template and is in service"}
	default:
		r = s.outdated(p)
	}
	if r.Code == reason.WaitLifecycleHook {
		r.Free = s.freeHook(p)
	}
	r.Free = cmp.Or(r.Free, s.free(r))
	return r
}

// isUpdated reports whether a Pod is at the newest revision, which a status names in full or by its hash.
func (s Situation) isUpdated(p *corev1.Pod) bool {
	label := p.Labels[cmp.Or(s.Label, appsv1.ControllerRevisionHashLabelKey)]
	return revision.IsOf(label, s.Updated) || label != "" && revision.ShortHash(label) == s.Updated
}

// outOfService says why a Pod is not in service, and since when.
func (s Situation) outOfService(m *rollout.Member, wait time.Duration) Reason {
	w := rollout.Workload{Lifecycle: s.Lifecycle, MinReadySeconds: s.MinReadySeconds, Now: s.Now}
	r := Reason{Pod: m.Pod.Name}
	r.Code, r.Why = w.WhyOutOfService(m)
	if ready := pod.Condition(m.Pod, corev1.PodReady); ready != nil && !ready.LastTransitionTime.IsZero() {
		r.Since = &ready.LastTransitionTime.Time
	}
	switch r.Code {
	case reason.WaitDeletion:
		leaving(&r, m.Pod)
	case reason.WaitSchedule, reason.WaitVolumeClaim:
		scheduled := pod.Condition(m.Pod, corev1.PodScheduled)
		r.Why, r.Since = "it has no node: "+cmp.Or(scheduled.Message, scheduled.Reason), &scheduled.LastTransitionTime.Time
	case reason.WaitImagePull, reason.ContainerBroken:
		if said := pod.Said(m.Pod); said != "" {
			r.Why += ": " + said
		}
	case reason.WaitMinReady:
		r.Why = fmt.Sprintf("ready, and in service in %s (minReadySeconds %d)", wait.Round(time.Second), s.MinReadySeconds)
	case reason.NodeNotReady:
		r.Free = fmt.Sprintf("bring node %s back, or remove it from the cluster so that its Pods go", m.Pod.Spec.NodeName)
	}
	return r
}

// leaving says since when a Pod is being deleted, and what would let it go. Its timestamp is when its containers are killed at the latest.
func leaving(r *Reason, p *corev1.Pod) {
	since := p.DeletionTimestamp.Time
	if grace := p.DeletionGracePeriodSeconds; grace != nil {
		since = since.Add(-pod.Seconds(*grace))
	}
	r.Since = &since
	if len(p.Finalizers) > 0 {
		r.Free = "have the owners of " + strings.Join(p.Finalizers, ", ") + " take them off Pod " + p.Name
	}
}

// outdated says why a Pod that is in service has not the newest template.
func (s Situation) outdated(p *corev1.Pod) Reason {
	r := Reason{Pod: p.Name}
	if a, is := s.next[p.Name]; is {
		r.Code, r.Why = reason.Updating, "the controller does this next: "+string(a.Verb)+" "+a.What
		return r
	}
	h, is := s.held[p.Name]
	if !is && p.Spec.NodeName != "" { // a plan for nodes
		h, is = s.held[p.Spec.NodeName]
	}
	if is {
		r.Code, r.Why = cmp.Or(h.Code, reason.Held), h.Why
		return r
	}
	switch {
	case s.Rollout != "":
		r.Code, r.Why = reason.HeldByRollout, "rollout/"+s.Rollout+" updates it in a later step"
	case s.Paused:
		r.Code, r.Why = reason.HeldByPause, "the update is paused"
	case s.Progress.Reason == progress.OnDelete:
		r.Code, r.Why = reason.OnDelete, "it is updated when somebody deletes it"
	case s.Progress.Updated >= s.Progress.Wanted:
		r.Code, r.Why = reason.HeldByPartition, "the partition keeps it at its template"
	case s.Progress.Budget != "":
		r.Code, r.Why = reason.WaitPUB, s.Progress.Budget
	default:
		r.Code, r.Why = reason.WaitBudget, "others go first, as many at a time as maxUnavailable lets"
		all := func(h plan.Hold) bool {
			return h.Code == reason.WaitBudget || h.Code == reason.WaitEarlierOrdinal && h.Name == ""
		}
		if i := slices.IndexFunc(s.Plan.Holds, all); i >= 0 {
			r.Code, r.Why = s.Plan.Holds[i].Code, s.Plan.Holds[i].Why // it names the first that waits, or none for all
		}
	}
	return r
}
