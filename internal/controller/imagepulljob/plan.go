package imagepulljob

import (
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// eventPullImageFailed is the reason of events about nodes that did not pull. Wire: users' alerts match it.
const eventPullImageFailed = "PullImageFailed"

// Plan decides the next step from the state alone.
//
// Nodes are asked, as many as may pull at the same time, and those that are not Ready besides: they can't pull, and if they do not come
// back in time they have failed, but they delay no other. What a node is asked for comes with the credentials, sealed for its daemon.
func Plan(v State) plan.Plan {
	b := plan.For(summary(&v))
	switch {
	case v.Job.DeletionTimestamp != nil:
		v.release(b)
		return b.Plan()
	case v.Job.Status.CompletionTime != nil:
		if !v.release(b) { // it changes the job that Expire deletes
			ttl := v.Job.Spec.CompletionPolicy.TTLSecondsAfterFinished
			b.Expire(v.Job, plan.TTL{Seconds: ttl, Finished: v.Job.Status.CompletionTime, Now: v.Now})
		}
		return b.Plan()
	case v.problem != nil:
		return b.Stop(v.problem)
	}
	for _, why := range v.unread {
		b.Hold(plan.Hold{Code: reason.Held, Why: why})
	}
	v.reportSilent(b)
	if v.isOver() {
		// The status says so; the pass after it tidies up.
		return b.Plan()
	}
	v.askNodes(b)
	v.recheck(b)
	return b.Plan()
}

// summary describes the job in a line.
func summary(v *State) string {
	var out strings.Builder
	fmt.Fprintf(&out, "ImagePullJob %s/%s   %s", v.Job.Namespace, v.Job.Name, v.Job.Spec.Image)
	switch {
	case v.Job.DeletionTimestamp != nil:
	case v.Job.Status.CompletionTime != nil:
		out.WriteString(", completed")
	case v.problem == nil:
		c := v.count()
		fmt.Fprintf(&out, ", nodes %d, pulling %d of %d, succeeded %d, failed %d",
			len(v.nodes), c.active, v.parallelism, c.succeeded, c.failed)
	}
	return out.String()
}

// release removes the finalizer of older installations, and reports whether there was one. Nothing has to happen before a job may go.
func (v *State) release(b *plan.Builder) bool {
	after := v.Job.DeepCopy()
	if !controllerutil.RemoveFinalizer(after, keys.ImagePullJobFinalizer) {
		return false
	}
	b.Do(plan.Action{
		Verb: plan.Update, Concern: plan.Tidy, Before: v.Job, After: after,
		What: "remove the finalizer", Why: "no Secret depends on the job any more",
	})
	return true
}

// askNodes asks as many nodes as there are places, and takes the job off what it does not want any more.
func (v *State) askNodes(b *plan.Builder) {
	free, waiting := v.parallelism, 0
	for _, n := range v.nodes {
		if n.pulls() {
			free--
		}
	}
	for _, n := range v.nodes {
		asks := n.State == pull.NotRequested && !n.Full && v.parallelism > 0 && !v.awaitsKey(n)
		switch {
		case asks && !n.ready:
			v.ask(n, b)
		case asks && free > 0:
			free--
			v.ask(n, b)
		case asks:
			waiting++
			if n.Stale {
				v.drop(n, b)
			}
		case n.LacksCredentials:
			b.Do(plan.Action{
				Verb: plan.Update, Concern: plan.Rollout, Before: n.image, After: v.want.Reseal(n.image),
				What: "seal credentials", Why: "the Secrets of the job or the key of the daemon have changed",
			})
		case n.Stale:
			v.drop(n, b)
		}
	}
	for _, image := range v.elsewhere {
		v.drop(&node{image: image}, b)
	}
	if waiting > 0 {
		b.Hold(plan.Hold{Code: reason.WaitBudget, Why: fmt.Sprintf("%d nodes wait for others: parallelism is %d", waiting, v.parallelism)})
	}
}

func (v *State) ask(n *node, b *plan.Builder) {
	after, err := v.want.Request(n.image)
	if err != nil {
		b.Hold(plan.Hold{Code: reason.InvalidSpec, Name: n.name, Why: err.Error()})
		return
	}
	why := "the job selects the node"
	if !n.ready {
		why = "the job selects the node, which is not ready and so takes no place of parallelism"
	}
	b.Do(plan.Action{
		Verb: plan.Update, Concern: plan.Rollout, Before: n.image, After: after,
		What: "pull " + v.want.Image.String(), Why: why,
	})
}

func (v *State) drop(n *node, b *plan.Builder) {
	b.Do(plan.Action{
		Verb: plan.Update, Concern: plan.Tidy, Before: n.image, After: v.want.Disown(n.image),
		What: "pull another image no more", Why: "the job was changed",
	})
}

// reportSilent emits events for nodes that did not answer in time. Their daemons emit those of all other failures.
func (v *State) reportSilent(b *plan.Builder) {
	for _, n := range v.nodes {
		silent := n.Status != nil && (n.Status.Message == pull.MessageNoResponse || n.Status.Message == pull.MessageDeadline)
		if n.State == pull.Failed && silent {
			why := fmt.Sprintf("node %s: %s", n.name, n.Status.Message)
			b.Hold(plan.Hold{Code: reason.NodeNotReady, Name: n.name, Why: why, Event: eventPullImageFailed})
		}
	}
}

// recheck asks for the next look that no event brings about.
func (v *State) recheck(b *plan.Builder) {
	if left, limited := v.untilDeadline(); limited {
		b.Recheck(left, fmt.Sprintf("activeDeadlineSeconds is %d", *v.Job.Spec.CompletionPolicy.ActiveDeadlineSeconds))
	}
	unfinished := false
	for _, n := range v.nodes {
		if begun := v.Job.Status.StartTime; begun != nil && n.State == pull.NotRequested && v.awaitsKey(n) {
			b.Recheck(begun.Add(pull.ResponseTimeout).Sub(v.Now), "a node is asked without a key of its daemon")
		}
		unfinished = unfinished || n.State == pull.Pulling || n.State == pull.NotRequested
		if !n.RepeatAt.IsZero() {
			b.Recheck(n.RepeatAt.Sub(v.Now), "a node pulls again, as the job never completes")
		}
	}
	if unfinished && len(v.Sources) > 0 {
		b.Recheck(observe.SourceTTL, "a Secret may have changed")
	}
}
