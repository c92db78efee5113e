package containerrecreate

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/lifecycle"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/recreate"
)

// userAgent is the writer of the marks by which requests keep Pods out of service.
//
// Wire: it is in the message of a Pod condition.
const userAgent = "ContainerRecreateRequest"

// daemonLead is how long the daemon has to write first after a change of the Pod. One of this version sees the Pod itself and ends the
// request; a write of the manager at the same time would be refused, or have the daemon's refused. It is two seconds because the times in a
// Pod's status have whole seconds.
const daemonLead = 2 * time.Second

// snapshotWindow is how long after the end of a request the status of its Pod is awaited.
const snapshotWindow = time.Minute

// Plan decides the next step from the snapshot alone.
func Plan(v Snapshot) plan.Plan {
	r := v.Request
	b := plan.For(fmt.Sprintf("ContainerRecreateRequest %s/%s   Pod %s, %s", r.Namespace, r.Name, r.Spec.PodName, phase(r)))
	switch {
	case r.DeletionTimestamp != nil:
		v.release(b, "the request is deleted")
	case recreate.IsCompleted(r):
		v.addSnapshot(b)
		v.release(b, "the request has ended")
		v.expire(b)
	default:
		v.advance(b)
	}
	return b.Plan()
}

func phase(r *v1beta1.ContainerRecreateRequest) string {
	if r.Status.Phase == "" {
		return "not seen by its daemon"
	}
	return string(r.Status.Phase)
}

// advance takes a request that has not ended one step further.
func (v Snapshot) advance(b *plan.Builder) {
	message, wait := recreate.Overdue(v.Request, v.Pod, v.Now)
	if message != "" {
		after := v.Request.DeepCopy()
		if v.isItsPod() {
			after.Status.ContainerStatusSnapshot = recreate.Snapshot(v.Request, v.Pod)
		}
		recreate.Complete(&after.Status, message, v.Now)
		b.Do(v.status(after, "end", message))
		return
	}
	b.Recheck(wait, "it has to have come further, or ends")
	switch {
	case recreate.NeedsGrace(v.Request):
		b.Do(v.takeOutOfService()...)
	case v.Request.Status.Phase == v1beta1.ContainerRecreateRequestRecreating:
		after := v.Request.DeepCopy()
		after.Status.ContainerStatusSnapshot = recreate.Snapshot(v.Request, v.Pod)
		if equality.Semantic.DeepEqual(after.Status, v.Request.Status) {
			return
		}
		if lead := v.changed().Add(daemonLead).Sub(v.Now); lead > 0 {
			b.Recheck(lead, "its daemon has not seen the new container")
			return
		}
		b.Do(v.status(after, "", ""))
	}
}

// changed returns when the Pod's status last told something new of the containers of the request, as far as it says so.
func (v Snapshot) changed() time.Time {
	var last time.Time
	for _, c := range v.Request.Spec.Containers {
		if s := pod.LastingStatus(v.Pod, c.Name); s != nil && s.State.Running != nil && s.State.Running.StartedAt.After(last) {
			last = s.State.Running.StartedAt.Time
		}
	}
	if c := pod.Condition(v.Pod, corev1.ContainersReady); c != nil && c.LastTransitionTime.After(last) {
		last = c.LastTransitionTime.Time
	}
	return last
}

// addSnapshot tells of the new containers in a request that its daemon has ended without doing so, as those of older versions do when they
// see the Pod themselves. The request may have been released by then: the cache of Pods can be behind that of requests.
func (v Snapshot) addSnapshot(b *plan.Builder) {
	if !v.isActive() && !v.hasJustEnded() || !v.isItsPod() || len(v.Request.Status.ContainerStatusSnapshot) > 0 {
		return
	}
	after := v.Request.DeepCopy()
	after.Status.ContainerStatusSnapshot = recreate.Snapshot(v.Request, v.Pod)
	if len(after.Status.ContainerStatusSnapshot) > 0 {
		b.Do(v.status(after, "", ""))
	}
}

// takeOutOfService keeps the Pod out of service and says since when. The finalizer comes first: the mark must not stay when the request is
// deleted.
func (v Snapshot) takeOutOfService() plan.Chain {
	var chain plan.Chain
	before := v.Request
	if pod.HasReadinessGate(v.Pod, pub.KruisePodReady) {
		if after := before.DeepCopy(); controllerutil.AddFinalizer(after, keys.RecreateUnreadyAcquired) {
			chain = append(chain, plan.Action{Verb: plan.Update, Concern: plan.Settle, Before: before, After: after})
			before = after
		}
		if !lifecycle.IsHeld(v.Pod, v.mark()) {
			after := v.Pod.DeepCopy()
			lifecycle.Hold(after, v.mark(), v.Now)
			chain = append(chain, plan.Action{
				Verb: plan.UpdateStatus, Concern: plan.Settle, Before: v.Pod, After: after,
				What: "take out of service", Why: "unreadyGracePeriodSeconds gives its clients time before a container is stopped",
			})
		}
	}
	after := before.DeepCopy()
	recreate.BeginGrace(&after.Status, v.Now)
	return append(chain, plan.Action{Verb: plan.UpdateStatus, Concern: plan.Settle, Before: before, After: after})
}

func (v Snapshot) mark() lifecycle.Mark {
	return lifecycle.Mark{UserAgent: userAgent, Key: v.Request.Namespace + "/" + v.Request.Name}
}

func (v Snapshot) status(after *v1beta1.ContainerRecreateRequest, what, why string) plan.Action {
	return plan.Action{Verb: plan.UpdateStatus, Concern: plan.Settle, Before: v.Request, After: after, What: what, Why: why}
}

// release returns the Pod to service and removes from the request what marks it as active.
func (v Snapshot) release(b *plan.Builder, why string) {
	var chain plan.Chain
	if v.isItsPod() && lifecycle.IsHeld(v.Pod, v.mark()) {
		chain = append(chain, v.bringBack(why))
	}
	after := v.Request.DeepCopy()
	delete(after.Labels, keys.RecreateActive)
	if controllerutil.RemoveFinalizer(after, keys.RecreateUnreadyAcquired) || v.isActive() && v.Request.DeletionTimestamp == nil {
		chain = append(chain, plan.Action{Verb: plan.Update, Concern: plan.Tidy, Before: v.Request, After: after, What: "close", Why: why})
	}
	b.Do(chain...)
}

// bringBack returns the write that ends what keeps the Pod out of service.
func (v Snapshot) bringBack(why string) plan.Action {
	after := v.Pod.DeepCopy()
	lifecycle.Release(after, v.mark(), v.Now)
	return plan.Action{
		Verb: plan.UpdateStatus, Concern: plan.Settle, Before: v.Pod, After: after, What: "bring back into service", Why: why,
	}
}

// isItsPod reports whether the Pod is there that the request was made for.
func (v Snapshot) isItsPod() bool {
	return v.Pod != nil && string(v.Pod.UID) == v.Request.Labels[keys.RecreatePodUID]
}

// hasJustEnded reports whether what the Pod's containers are now still tells what the request did.
func (v Snapshot) hasJustEnded() bool {
	ended := v.Request.Status.CompletionTime
	return ended != nil && v.Now.Sub(ended.Time) < snapshotWindow
}

func (v Snapshot) isActive() bool {
	_, active := v.Request.Labels[keys.RecreateActive]
	return active
}

// expire deletes a completed request after its TTL. One that is still to be released waits for the pass after that.
func (v Snapshot) expire(b *plan.Builder) {
	if !v.isActive() && !controllerutil.ContainsFinalizer(v.Request, keys.RecreateUnreadyAcquired) {
		ttl := plan.TTL{Seconds: v.Request.Spec.TTLSecondsAfterFinished, Finished: v.Request.Status.CompletionTime, Now: v.Now}
		b.Expire(v.Request, ttl)
	}
}
