package sidecarterminator

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/internal/rules/terminate"
)

const (
	// terminateEvent is the reason of the event that tells that sidecars are being stopped.
	terminateEvent = "SidecarTerminator"
	// stuckEvent is the reason of the event that tells that sidecars could not be stopped.
	stuckEvent = "SidecarTerminationStuck"
	// noMainEvent is the reason of the event that tells that a Pod has nothing but sidecars.
	noMainEvent = "SidecarTerminatorNoMainContainer"
	// terminated is the condition of a Pod that was ended although sidecars still ran.
	//
	// Wire: requests to recreate containers are let through in an ended Pod by it.
	terminated corev1.PodConditionType = "SidecarTerminated"
)

const (
	// minRuntime is how long a sidecar may run before it is stopped. A process that has only just started does not handle signals yet: it
	// would be killed when its grace period is over, and its exit code would make the Pod fail.
	minRuntime = 3 * time.Second
	// stuckAfter is how long a request may stay unanswered before an event reports it and another way is tried.
	stuckAfter = time.Minute
	// againAfter is how long after the end of a request a sidecar may still be seen to run.
	againAfter = 10 * time.Second
	// nodeWait is how long after a look it is looked again for a node that is not known: no event tells when it is.
	nodeWait = 10 * time.Second
	// mostRequests is how often it is tried to stop the sidecars of one Pod.
	mostRequests = 5
)

// isRelevant reports whether there may be anything to do for a Pod.
func isRelevant(p *corev1.Pod) bool {
	return terminate.Marked(p) && p.DeletionTimestamp == nil && p.Spec.NodeName != "" && p.Status.Phase == corev1.PodRunning
}

// Plan decides the next step. It reads only s and changes nothing.
func Plan(s Snapshot) plan.Plan {
	b := plan.For("Pod " + s.Pod.Namespace + "/" + s.Pod.Name)
	if !isRelevant(s.Pod) {
		return b.Plan()
	}
	if s.Node == nil {
		b.Recheck(nodeWait, "the cache may not have its node yet")
		return b.Plan()
	}
	if !terminate.HasMain(s.Pod) {
		b.Hold(plan.Hold{
			Code: reason.InvalidSpec, Event: noMainEvent, Why: "All containers are marked as sidecars: nothing says when the work is " +
				"done, so none is stopped",
		})
		return b.Plan()
	}
	done, well := terminate.IsDone(s.Pod)
	if !done {
		return b.Plan()
	}
	left := terminate.Left(s.Pod)
	switch replaced := onlyReplaced(left); {
	case s.Node.Labels[keys.NodeType] == keys.NodeTypeVirtual:
		replace(s, b, left.Replaced)
	case len(left.Stopped) > 0:
		stop(s, b, left)
	case len(replaced) > 0:
		replace(s, b, replaced)
	case len(left.Ignored) > 0:
		end(s, b, left.Ignored, well)
	}
	return b.Plan()
}

// onlyReplaced returns the sidecars that can only be given another image, although the node has a daemon.
func onlyReplaced(left terminate.Sidecars) map[string]string {
	images := maps.Clone(left.Replaced)
	for _, name := range slices.Concat(left.Stopped, left.Ignored) {
		delete(images, name)
	}
	return images
}

// stop asks the node's daemon to stop the sidecars that run.
func stop(s Snapshot, b *plan.Builder, left terminate.Sidecars) {
	var running []string
	var early time.Duration
	for _, name := range left.Stopped {
		since, runs := terminate.RunsSince(s.Pod, name)
		if !runs {
			b.Hold(plan.Hold{Code: reason.WaitReady, Name: name, Why: "it does not run yet: only what runs can be stopped"})
			continue
		}
		running = append(running, name)
		early = max(early, since.Add(minRuntime).Sub(s.Now))
	}
	replace(s, b, onlyReplaced(left))
	if len(running) == 0 {
		return
	}
	if early > 0 {
		b.Recheck(early, fmt.Sprintf("sidecars %v will be listening to signals", running))
		return
	}
	if n := len(s.Requests); n > 0 && !isOver(s, s.Requests[n-1], b) {
		unanswered(s, b, left)
		return
	}
	if len(s.Requests) == mostRequests {
		b.Hold(plan.Hold{
			Code: reason.Held, Event: stuckEvent, Why: fmt.Sprintf("Sidecars %v still run after %d requests to stop them", running,
				mostRequests),
		})
		return
	}
	b.Do(plan.Action{
		Verb: plan.Create, Concern: plan.Settle, After: request(s.Pod, requestName(s.Pod, len(s.Requests)), running),
		What: fmt.Sprintf("stop %v", running), Why: "all main containers have ended",
		Event: terminateEvent, EventMessage: fmt.Sprintf("Kruise SidecarTerminator is trying to terminate sidecar %v using crr", running),
		FailedEvent: stuckEvent,
	})
}

// isOver reports whether a request has ended, and so long ago that what it has stopped would be seen.
func isOver(s Snapshot, r *v1beta1.ContainerRecreateRequest, b *plan.Builder) bool {
	if r.Status.Phase != v1beta1.ContainerRecreateRequestCompleted || r.Status.CompletionTime == nil {
		return false
	}
	wait := r.Status.CompletionTime.Add(againAfter).Sub(s.Now)
	b.Recheck(wait, "what request "+r.Name+" has stopped would be seen")
	return wait <= 0
}

// unanswered deals with a request that nobody has taken up.
func unanswered(s Snapshot, b *plan.Builder, left terminate.Sidecars) {
	r := s.Requests[len(s.Requests)-1]
	if r.Status.Phase != "" && r.Status.Phase != v1beta1.ContainerRecreateRequestPending {
		return
	}
	if wait := r.CreationTimestamp.Add(stuckAfter).Sub(s.Now); wait > 0 {
		b.Recheck(wait, "request "+r.Name+" should be answered")
		return
	}
	images := map[string]string{}
	for _, name := range left.Stopped {
		if image, ok := left.Replaced[name]; ok {
			images[name] = image
		}
	}
	b.Hold(plan.Hold{Code: reason.NodeNotReady, Name: r.Name, Event: stuckEvent, Why: fmt.Sprintf(
		"Nobody answers request %s to stop sidecars %v: does kruise-daemon run on node %s?", r.Name, left.Stopped, s.Pod.Spec.NodeName)})
	replace(s, b, images)
}

func request(p *corev1.Pod, name string, containers []string) *v1beta1.ContainerRecreateRequest {
	yes := true
	r := &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.Namespace, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod", Name: p.Name, UID: p.UID, Controller: &yes,
		}}},
		Spec: v1beta1.ContainerRecreateRequestSpec{PodName: p.Name, Strategy: &v1beta1.ContainerRecreateRequestStrategy{
			FailurePolicy: v1beta1.ContainerRecreateRequestFailurePolicyIgnore, ForceRecreate: true,
		}},
	}
	for _, c := range containers {
		r.Spec.Containers = append(r.Spec.Containers, v1beta1.ContainerRecreateRequestContainer{Name: c})
	}
	return r
}

// replace gives sidecars the images that end by themselves.
func replace(s Snapshot, b *plan.Builder, images map[string]string) {
	after := s.Pod.DeepCopy()
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(images)) {
		if terminate.Replace(after, name, images[name]) {
			changed = append(changed, name)
		}
	}
	if len(changed) == 0 {
		return
	}
	b.Do(plan.Action{
		Verb: plan.Update, Concern: plan.Settle, Before: s.Pod, After: after,
		What: fmt.Sprintf("replace the images of %v", changed), Why: "all main containers have ended",
		Event:        terminateEvent,
		EventMessage: fmt.Sprintf("Kruise SidecarTerminator is trying to terminate sidecar %v using in-place update", changed),
	})
}

// end sets the phase of a Pod by its main containers alone, and has the kubelet look at that now: else it would write the phase back until
// it comes by.
func end(s Snapshot, b *plan.Builder, sidecars []string, well bool) {
	after := s.Pod.DeepCopy()
	after.Status.Phase = corev1.PodFailed
	if well {
		after.Status.Phase = corev1.PodSucceeded
	}
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, keys.SidecarsTerminated, s.Now.UTC().Format(time.RFC3339))
	condition := corev1.PodCondition{Type: terminated, Status: corev1.ConditionTrue, Message: "Terminated by Sidecar Terminator"}
	pod.SetCondition(after, condition, s.Now)
	b.Do(plan.Action{
		Verb: plan.UpdateStatus, Concern: plan.Settle, Before: s.Pod, After: after,
		What:  fmt.Sprintf("end %s as %s", s.Pod.Name, after.Status.Phase),
		Why:   fmt.Sprintf("all main containers have ended, and the exit codes of %v do not count", sidecars),
		Event: terminateEvent,
		EventMessage: fmt.Sprintf("Kruise SidecarTerminator is trying to terminate sidecar %v by ending the Pod as %s",
			sidecars, after.Status.Phase),
	})
}
