// Package rollout holds what the controllers of workloads have in common: how a Pod is classified, the steps of a plan that know one
// Pod (settle what is in flight, update in place, wait for a hook, adopt, release), revisions, images pulled ahead, progress and
// conditions.
//
// A workload's own planner decides which Pods take a step and when. Everything is pure: a step adds writes and holds to the plan's
// builder, and changes nothing but the notes of this pass.
package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// Workload is what the steps need to know of the workload whose Pods they move.
type Workload struct {
	// Object is the workload, an object of Kind.
	Object metav1.Object
	Kind   schema.GroupVersionKind
	// Selector, Lifecycle, MinReadySeconds and DeadlineSeconds are those of its spec.
	Selector        *metav1.LabelSelector
	Lifecycle       *pub.Lifecycle
	MinReadySeconds int32
	// DeadlineSeconds is how long there may be no progress; nil, like the largest number, means for ever.
	DeadlineSeconds *int32
	// OnDelete means that the user updates Pods, by deleting them; Paused that the user has stopped the update.
	OnDelete, Paused bool

	InPlace inplace.Options
	// Template is that of the update revision, if the controller updates Pods in place to it; else nil.
	Template *corev1.PodTemplateSpec
	// TemplateHash also labels Pods with pod-template-hash, the short hash of their revision.
	TemplateHash bool
	// ShortHash labels Pods with the hash of their revision alone, instead of its full name.
	ShortHash bool
	// Bare Pods carry no lifecycle state unless a hook plays a part, and their records name a revision by its hash alone.
	Bare bool

	History revision.History
	// PullJobs are the ImagePullJobs that the workload controls.
	PullJobs []*v1beta1.ImagePullJob
	// Taken are names that new objects can't have, because objects that are not seen here have them.
	Taken []string
	Now   time.Time

	// next is the Pod that becomes available first by time alone, after wait.
	next struct {
		pod  string
		wait time.Duration
	}
}

// Member is a Pod of a workload, and the facts that the rules ask for.
type Member struct {
	Pod   *corev1.Pod
	State pub.LifecycleStateType
	// Leaving means that the Pod is being deleted, and Ended that it has run to its end, well or badly.
	Leaving, Ended bool
	// Updated means that the Pod is at the update revision, and its containers run with what that gives to their environment.
	Updated, Ready, Available bool
	// Specified means that the user named the Pod for deletion.
	Specified bool
	// Settled means that this pass has already planned what becomes of the Pod.
	Settled bool
}

// Classify reads the facts off a Pod.
func (w *Workload) Classify(p *corev1.Pod) Member {
	m := Member{
		Pod: p, State: pod.State(p), Leaving: p.DeletionTimestamp != nil, Ended: pod.IsFinished(p),
		Updated: w.History.IsUpdate(p) && !w.IsStale(p), Ready: pod.IsReady(p), Specified: pod.IsSpecifiedDelete(p),
	}
	var wait time.Duration
	m.Available, wait = pod.Available(p, w.MinReadySeconds, w.Now)
	if wait > 0 && !m.Leaving && (w.next.wait == 0 || wait < w.next.wait) {
		w.next.pod, w.next.wait = p.Name, wait
	}
	return m
}

// IsStale reports whether a container of a Pod at the update revision runs with older labels or annotations in its environment.
func (w *Workload) IsStale(p *corev1.Pod) bool { return w.stale(p).TouchesContainers() }

func (w *Workload) stale(p *corev1.Pod) inplace.Change {
	if w.Template == nil {
		return inplace.Change{}
	}
	return inplace.Stale(p, w.Template, w.InPlace)
}

// IsHeld reports whether the Pod waits for its preDelete hook, or did until now.
func (m *Member) IsHeld() bool { return m.State == pub.LifecycleStatePreparingDelete }

// IsFree reports whether a step may still be planned for the Pod: one that waits for its preDelete hook is on its way.
func (m *Member) IsFree() bool { return !m.Settled && !m.Leaving && !m.IsHeld() }

// Runs reports whether the Pod is there to stay: neither deleted nor ended nor held by its preDelete hook.
func (m *Member) Runs() bool { return !m.Leaving && !m.Ended && !m.IsHeld() }

// Counts are the numbers of a workload's status.
type Counts struct {
	// Revision is the name of the update revision.
	Revision                                                            string
	Replicas, Ready, Available, Updated, UpdatedReady, UpdatedAvailable int32
}

// Add counts a Pod. One that is being deleted is not counted as updated: its place is to be filled anew.
func (c *Counts) Add(m *Member) {
	count := func(holds bool, all, updated *int32) {
		if holds {
			*all++
			if m.Updated {
				*updated++
			}
		}
	}
	c.Replicas++
	if m.Updated && !m.Leaving {
		c.Updated++
	}
	count(m.Ready, &c.Ready, &c.UpdatedReady)
	count(m.Available, &c.Available, &c.UpdatedAvailable)
}

// Owner returns the reference by which the workload controls objects.
func (w *Workload) Owner() metav1.OwnerReference { return *metav1.NewControllerRef(w.Object, w.Kind) }

// Summary describes the workload in a line.
func (w *Workload) Summary(parts ...string) string {
	name := fmt.Sprintf("%s %s/%s", w.Kind.Kind, w.Object.GetNamespace(), w.Object.GetName())
	if len(parts) == 0 {
		return name
	}
	return name + "   " + strings.Join(parts, ", ")
}

// Limit describes a limit for the summary: its number, and of which percentage that was made, if of one.
func Limit(name string, number int, of *intstr.IntOrString) string {
	return name + " " + budget.Words(number, of)
}

// WhyNotUpdating says why the controller updates no Pod; empty where it does.
func (w *Workload) WhyNotUpdating() (code reason.Code, why string) {
	switch {
	case w.OnDelete:
		return reason.OnDelete, "type OnDelete updates a Pod when the user deletes it"
	case w.Paused:
		return reason.HeldByPause, "the update is paused"
	}
	return "", ""
}

// Recheck has the plan look again when a Pod becomes available by time alone, and after deadline, when there may have been no progress
// for too long.
func (w *Workload) Recheck(deadline time.Duration, b *plan.Builder) {
	b.Recheck(w.next.wait, fmt.Sprintf("%s becomes available (minReadySeconds %d)", w.next.pod, w.MinReadySeconds))
	if deadline > 0 {
		b.Recheck(deadline, fmt.Sprintf("progressDeadlineSeconds %d are over", *w.DeadlineSeconds))
	}
}

// NewPod returns a Pod of a template with the labels of its revision. It has no name yet.
func (w *Workload) NewPod(template *corev1.PodTemplateSpec, rev *appsv1.ControllerRevision) *corev1.Pod {
	p := pod.New(template, w.Object, w.Kind)
	maps.Copy(p.Labels, w.RevisionLabels(rev))
	return p
}

// CreatePod returns the write that creates a Pod at a revision; message is that of its event.
func CreatePod(p *corev1.Pod, rev *appsv1.ControllerRevision, message string) plan.Action {
	return plan.Action{
		Verb: plan.Create, Concern: plan.Scale, After: p, What: "at revision " + rev.Name,
		Event: EventSuccessfulCreate, EventMessage: message, FailedEvent: EventFailedCreate,
	}
}

// RevisionLabels are the labels by which a Pod says which revision it is at.
func (w *Workload) RevisionLabels(rev *appsv1.ControllerRevision) map[string]string {
	hash := revision.ShortHash(rev.Name)
	labels := map[string]string{appsv1.ControllerRevisionHashLabelKey: rev.Name}
	if w.ShortHash {
		labels[appsv1.ControllerRevisionHashLabelKey] = hash
	}
	if w.TemplateHash {
		labels[keys.PodTemplateHash] = hash
	}
	return labels
}

// Adopt returns the write by which the workload becomes the controller of a Pod that has none, such as one that a workload of
// Kubernetes has left behind. If it is at a revision with the wanted template and another name, it gets that of the wanted one: the other
// may not have been let go of yet, and so be neither the history's nor going to be.
func (w *Workload) Adopt(p *corev1.Pod) plan.Action {
	after, what := p.DeepCopy(), "adopt"
	if rev := w.History.Of(p); rev != nil && rev.Name != w.History.Update.Name && w.History.MeansUpdate(rev) {
		maps.Copy(after.Labels, w.RevisionLabels(w.History.Update))
		what = "adopt, at revision " + w.History.Update.Name
	}
	after.OwnerReferences = append(after.OwnerReferences, w.Owner())
	return plan.Action{
		Verb: plan.Update, Concern: plan.Scale, Before: p, After: after,
		What: what, Why: fmt.Sprintf("it has the labels of a Pod of this %s, and no controller", w.Kind.Kind),
	}
}

// Release returns the write that takes the workload's reference off a Pod.
func (w *Workload) Release(p *corev1.Pod, why string) plan.Action {
	after := p.DeepCopy()
	after.OwnerReferences = slices.DeleteFunc(after.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.UID == w.Object.GetUID()
	})
	return plan.Action{Verb: plan.Update, Concern: plan.Tidy, Before: p, After: after, What: "release", Why: why}
}

// DefaultHistoryLimit is how many unused revisions are kept where the workload does not say.
const DefaultHistoryLimit = 10

// WriteHistory writes the update revision if it is new, came back from an older place, or has no owner. All other writes wait for it.
func WriteHistory(h revision.History, b *plan.Builder) {
	a := plan.Action{
		Verb: plan.Update, Concern: plan.Rollout, Before: h.Stored, After: h.Update, What: fmt.Sprintf("revision %d", h.Update.Revision),
	}
	switch {
	case h.Stored == nil:
		a.Verb, a.Before, a.Why = plan.Create, nil, "the template is new"
	case !isWritten(h):
		a.Why = "the template is that of an earlier revision again"
	case !maps.Equal(h.Stored.Labels, h.Update.Labels):
		a.Why = "its labels have changed"
	default:
		return
	}
	b.First(a)
}

// isWritten reports whether the update revision is stored as it is wanted.
func isWritten(h revision.History) bool {
	return h.Stored != nil && h.Stored.Revision == h.Update.Revision && len(h.Stored.OwnerReferences) == len(h.Update.OwnerReferences)
}

// TrimHistory deletes the oldest revisions beyond the limit that none of the Pods is at. A nil limit means DefaultHistoryLimit.
func TrimHistory(h revision.History, limit *int32, pods []*corev1.Pod, b *plan.Builder) {
	most := int32(DefaultHistoryLimit)
	if limit != nil {
		most = *limit
	}
	for _, rev := range h.Unused(most, pods...) {
		b.Do(plan.Action{
			Verb: plan.Delete, Concern: plan.Tidy, Before: rev,
			What: "delete revision", Why: fmt.Sprintf("revisionHistoryLimit is %d", most),
		})
	}
}

// CollisionCount returns the count for the workload's status: one more than the history's where the update revision could not be created
// because another object has its name, so that the next pass tries another name.
func CollisionCount(h revision.History, done apply.Outcome) *int32 {
	count := h.CollisionCount
	for _, result := range done.Results {
		if result.Action.Object() == plan.Object(h.Update) && result.Action.Verb == plan.Create && apierrors.IsAlreadyExists(result.Err) {
			count++
		}
	}
	return &count
}
