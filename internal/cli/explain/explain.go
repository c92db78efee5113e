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
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// Situation is what an explanation goes by.
type Situation struct {
	// Arg names the workload as an argument of a command.
	Arg      string
	Progress kinds.Progress
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
	Pod  string `json:"pod,omitempty"`
	Code Code   `json:"code"`
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
		case UpToDate:
			e.UpToDate++
		case InService:
			e.InService++
		default:
			e.Pods = append(e.Pods, r)
		}
	}
	slices.SortStableFunc(e.Pods, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(rank(a.Code), rank(b.Code)), cmp.Compare(a.Pod, b.Pod))
	})
	e.Cause = s.cause(e.Pods)
	e.Cause.Free = cmp.Or(e.Cause.Free, s.free(e.Cause), s.Progress.Next)
	return e
}

// OfPod says why one Pod stands as it does; false if the workload has no Pod of that name.
func OfPod(s Situation, name string) (Reason, bool) {
	i := slices.IndexFunc(s.Pods, func(p *corev1.Pod) bool { return p.Name == name })
	if i < 0 {
		return Reason{}, false
	}
	return s.indexed().podReason(s.Pods[i]), true
}

// rank is the order in which reasons matter: what a person has to mend, what waits for others, what ends by itself, what is wanted so.
func rank(c Code) int {
	return slices.Index([]Code{
		NodeNotReady, WaitImagePull, ContainerBroken, WaitSchedule, InPlaceRefused, WaitLifecycleHook, WaitReady, WaitDeletion, WaitGrace,
		WaitMinReady, Updating, WaitPUB, Held, WaitBudget, HeldByRollout, HeldByPause, OnDelete, HeldByPartition,
	}, c)
}

// cause returns the one thing that matters. The first that holds counts.
func (s Situation) cause(pods []Reason) Reason {
	p := s.Progress
	broken := slices.IndexFunc(pods, func(r Reason) bool { return isOutOfService(r.Code) || r.Code == InPlaceRefused })
	switch {
	case s.Plan.Problem != nil:
		return Reason{Code: InvalidSpec, Why: s.Plan.Problem.Error()}
	case !p.Seen:
		return Reason{Code: ControllerLag, Why: "the controller has not seen the present spec"}
	case p.Failure != "":
		return Reason{Code: WriteFailed, Why: p.Failure}
	case s.Rollout != "" && broken < 0:
		return Reason{Code: HeldByRollout, Why: "rollout/" + s.Rollout + " releases it in steps"}
	case p.Phase == kinds.Done && broken < 0:
		if len(pods) > 0 && pods[0].Code == HeldByPartition {
			return Reason{Code: HeldByPartition, Why: p.Message}
		}
		return Reason{Code: Nothing, Why: p.Message}
	}
	if r, is := wanted(p); is && s.Rollout == "" {
		return r
	}
	switch {
	case broken >= 0:
		return pods[broken]
	case p.Budget != "":
		return Reason{Code: WaitPUB, Why: p.Budget}
	case p.Phase == kinds.Failed:
		return Reason{Code: DeadlineExceeded, Why: p.Message}
	case len(pods) > 0:
		return pods[0]
	}
	return Reason{Code: Updating, Why: p.Message}
}

// wanted returns the cause where a rollout stands as a person wanted it, or until a person acts; false where it does not.
func wanted(p kinds.Progress) (Reason, bool) {
	r := Reason{Why: p.Message}
	switch p.Reason {
	case kinds.Paused:
		r.Code = HeldByPause
	case kinds.OnDelete:
		r.Code = OnDelete
	case kinds.NeedsApproval:
		r.Code, r.Free = WaitApproval, p.Next
	case kinds.NeedsRecreation:
		r.Code, r.Free = InPlaceRefused, p.Next
	case kinds.InvalidSpec:
		r.Code = InvalidSpec
	case kinds.GivenUp:
		r.Code, r.Free = Stopped, cmp.Or(p.Next, "mend what it names, and create it anew: it is not tried again")
	}
	return r, r.Code != ""
}

// isOutOfService reports whether a reason is that of a Pod that is not in service.
func isOutOfService(c Code) bool {
	at := rank(c)
	return at >= 0 && at <= rank(WaitMinReady) && c != InPlaceRefused
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
	case !available || m.Leaving:
		r = s.outOfService(&m, wait)
	case s.Updated == "":
		r = Reason{Pod: p.Name, Code: InService, Why: "it is in service"}
	case s.isUpdated(p):
		r = Reason{Pod: p.Name, Code: UpToDate, Why: "it has the newest template and is in service"}
	default:
		r = s.outdated(p)
	}
	if r.Code == WaitLifecycleHook {
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
	reason, why := w.WhyOutOfService(m)
	r := Reason{Pod: m.Pod.Name, Code: WaitReady, Why: why}
	if ready := pod.Condition(m.Pod, corev1.PodReady); ready != nil && !ready.LastTransitionTime.IsZero() {
		r.Since = &ready.LastTransitionTime.Time
	}
	scheduled := pod.Condition(m.Pod, corev1.PodScheduled)
	switch {
	case reason == rollout.WaitsForDeletion:
		leaving(&r, m.Pod)
	case scheduled != nil && scheduled.Status == corev1.ConditionFalse && reason != rollout.WaitsForHook:
		r.Code, r.Why = WaitSchedule, "it has no node: "+cmp.Or(scheduled.Message, scheduled.Reason)
		r.Since = &scheduled.LastTransitionTime.Time
	case reason == rollout.WaitsForHook:
		r.Code = WaitLifecycleHook
	case reason == rollout.WaitsForAvailable:
		r.Code = WaitMinReady
		r.Why = fmt.Sprintf("ready, and in service in %s (minReadySeconds %d)", wait.Round(time.Second), s.MinReadySeconds)
	case reason == rollout.WaitsForBroken:
		r.Code = ContainerBroken
		if strings.Contains(why, "Image") {
			r.Code = WaitImagePull
		}
	case inplace.Pending(m.Pod):
		r.Code = WaitGrace
	case isNodeLost(m.Pod):
		r.Code, r.Why = NodeNotReady, "its node "+m.Pod.Spec.NodeName+" does not answer"
		r.Free = fmt.Sprintf("bring node %s back, or remove it from the cluster so that its Pods go", m.Pod.Spec.NodeName)
	}
	return r
}

// leaving says what keeps a Pod that is being deleted. Its timestamp is when its containers are killed at the latest.
func leaving(r *Reason, p *corev1.Pod) {
	r.Code = WaitDeletion
	since := p.DeletionTimestamp.Time
	if grace := p.DeletionGracePeriodSeconds; grace != nil {
		since = since.Add(-pod.Seconds(*grace))
	}
	r.Since = &since
	if len(p.Finalizers) > 0 {
		names := strings.Join(p.Finalizers, ", ")
		r.Why += ", and has finalizers: " + names
		r.Free = "have the owners of " + names + " take them off Pod " + p.Name
	}
}

// isNodeLost reports whether the readiness of a Pod was taken back because its node does not answer: Kubernetes then writes the condition
// Ready alone, while all that makes a Pod ready stays True.
func isNodeLost(p *corev1.Pod) bool {
	isTrue := func(t corev1.PodConditionType) bool {
		c := pod.Condition(p, t)
		return c != nil && c.Status == corev1.ConditionTrue
	}
	return p.Status.Phase == corev1.PodRunning && !pod.IsReady(p) && isTrue(corev1.ContainersReady) &&
		!slices.ContainsFunc(p.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return !isTrue(g.ConditionType) })
}

// outdated says why a Pod that is in service has not the newest template.
func (s Situation) outdated(p *corev1.Pod) Reason {
	r := Reason{Pod: p.Name}
	if a, is := s.next[p.Name]; is {
		r.Code, r.Why = Updating, "the controller does this next: "+string(a.Verb)+" "+a.What
		return r
	}
	h, is := s.held[p.Name]
	if !is && p.Spec.NodeName != "" { // a plan for nodes
		h, is = s.held[p.Spec.NodeName]
	}
	if is {
		r.Code, r.Why = codeOf(h), h.Why
		return r
	}
	switch {
	case s.Rollout != "":
		r.Code, r.Why = HeldByRollout, "rollout/"+s.Rollout+" updates it in a later step"
	case s.Paused:
		r.Code, r.Why = HeldByPause, "the update is paused"
	case s.Progress.Reason == kinds.OnDelete:
		r.Code, r.Why = OnDelete, "it is updated when somebody deletes it"
	case s.Progress.Updated >= s.Progress.Wanted:
		r.Code, r.Why = HeldByPartition, "the partition keeps it at its template"
	case s.Progress.Budget != "":
		r.Code, r.Why = WaitPUB, s.Progress.Budget
	default:
		r.Code, r.Why = WaitBudget, "others go first, as many at a time as maxUnavailable lets"
		if i := slices.IndexFunc(s.Plan.Holds, func(h plan.Hold) bool { return codeOf(h) == WaitBudget }); i >= 0 {
			r.Why = s.Plan.Holds[i].Why // it names the first that waits
		}
	}
	return r
}

// codeOf returns the code of what a plan holds back.
func codeOf(h plan.Hold) Code {
	switch {
	case h.Failure != "" && strings.HasPrefix(h.Why, "InPlaceOnly"):
		return InPlaceRefused
	case strings.Contains(h.Why, "maxUnavailable") || strings.Contains(h.Why, "maxSurge"):
		return WaitBudget
	case strings.Contains(h.Why, "hook"):
		return WaitLifecycleHook
	}
	return Held
}
