package nodeimage

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// eventPullImageFailed is the reason of events about rounds that did not end well. Wire: users' alerts match it.
const eventPullImageFailed = "PullImageFailed"

// Plan decides the next step. It reads only the snapshot and changes nothing.
func Plan(s Snapshot) plan.Plan {
	b := plan.For("NodeImage " + s.Image.Name)
	if s.Image.DeletionTimestamp != nil {
		return b.Plan()
	}
	_, fake := s.Image.Labels[keys.FakeNodeImage]
	if s.Node == nil && !fake {
		b.Do(plan.Action{
			Verb: plan.Delete, Concern: plan.Scale, Before: s.Image, AnyVersion: true,
			What: "delete the NodeImage", Why: "the node is gone",
		})
		return b.Plan()
	}
	after, next := pull.CleanUp(s.Image, pull.References{
		Owner:      func(r corev1.ObjectReference) pull.OwnerState { return s.Owners[r.UID] },
		SecretGone: func(r v1beta1.ReferenceObject) bool { return s.Lost[keyOf(r)] },
	}, s.Now)
	secretOf := func(r v1beta1.ReferenceObject) *corev1.Secret { return s.Secrets[keyOf(r)] }
	if sealed := pull.SealForUsers(cmp.Or(after, s.Image), secretOf, s.Seal); sealed != nil {
		after = sealed
	}
	if len(s.Secrets) > 0 {
		b.Recheck(observe.SourceTTL, "a Secret may have changed")
	}
	if s.Node != nil && !maps.Equal(s.Node.Labels, s.Image.Labels) {
		if after == nil {
			after = s.Image.DeepCopy()
		}
		after.Labels = maps.Clone(s.Node.Labels)
	}
	if after != nil {
		b.Do(plan.Action{
			Verb: plan.Update, Concern: plan.Tidy, Before: s.Image, After: after,
			What: "clean up", Why: "a tag is not wanted any more, or credentials, or the labels of the node have changed",
		})
	}
	s.failUnanswered(b)
	recheck(b, next.Sub(s.Now), "a tag has been kept for long enough")
	return b.Plan()
}

// minRecheck is the least time between two passes that only the clock asks for.
const minRecheck = 3 * time.Second

// recheck asks for another pass; one pass answers moments that lie close together.
func recheck(b *plan.Builder, wait time.Duration, why string) {
	if wait > 0 {
		b.Recheck(max(wait, minRecheck), why)
	}
}

// failUnanswered fails the rounds that the node did not answer in time.
func (s Snapshot) failUnanswered(b *plan.Builder) {
	silent, next := pull.FindTimedOut(s.Image, s.Now)
	recheck(b, next.Sub(s.Now), "the node has had its time to answer")
	if len(silent) == 0 {
		return
	}
	b.Do(plan.Action{
		Verb: plan.UpdateStatus, Concern: plan.Settle, Before: s.Image, After: pull.Fail(s.Image, silent, s.Now),
		What: "fail pulls", Why: silent[0].Message,
	})
	for _, round := range silent {
		why := fmt.Sprintf("%s:%s: %s", round.Repository, round.Tag.Tag, round.Message)
		b.Hold(plan.Hold{Code: reason.NodeNotReady, Name: s.Image.Name, Why: why, Event: eventPullImageFailed})
	}
}

// PlanCreation makes the NodeImage of a node once it has been Ready for long enough.
func PlanCreation(n NodeSnapshot) plan.Plan {
	b := plan.For("Node " + n.Node.Name)
	if n.Has || n.Node.DeletionTimestamp != nil || isVirtual(n.Node) {
		return b.Plan()
	}
	since, ready := pull.ReadySince(n.Node)
	if !ready {
		return b.Plan()
	}
	if wait := since.Add(n.Delay).Sub(n.Now); wait > 0 {
		b.Recheck(wait, "the node gets its NodeImage")
		return b.Plan()
	}
	b.Do(plan.Action{
		Verb: plan.Create, Concern: plan.Scale, After: newNodeImage(n.Node),
		What: "create the NodeImage", Why: fmt.Sprintf("the node has been ready for %s", n.Delay),
	})
	return b.Plan()
}

// newNodeImage returns an empty NodeImage. It goes with its node.
func newNodeImage(node *corev1.Node) *v1beta1.NodeImage {
	isController := true
	return &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{
		Name: node.Name, Labels: node.Labels,
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: &isController},
		},
	}}
}

// isVirtual reports whether there is no machine behind the node.
func isVirtual(n *corev1.Node) bool { return n.Labels[keys.NodeType] == keys.NodeTypeVirtual }
