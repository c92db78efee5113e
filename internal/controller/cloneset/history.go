package cloneset

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// history is the CloneSet's revisions: all of them, the one wanted, and the one that all Pods were last at.
type history struct {
	all             []*appsv1.ControllerRevision
	update, current *appsv1.ControllerRevision
	collisionCount  int32
	// stored is the object behind update as it is in the API server; nil when it has to be created. update differs from it when its
	// number has to be raised or it has no owner yet.
	stored *appsv1.ControllerRevision
}

func readHistory(s Snapshot) (history, error) {
	h := history{all: s.Revisions}
	if s.Set.Status.CollisionCount != nil {
		h.collisionCount = *s.Set.Status.CollisionCount
	}
	candidate, err := newRevision(s.Set, h.collisionCount)
	if err != nil {
		return history{}, err
	}
	found := revision.Resolve(h.all, candidate)
	for found.Verb == revision.Create && revision.Collides(h.all, candidate) {
		h.collisionCount++
		if candidate, err = newRevision(s.Set, h.collisionCount); err != nil {
			return history{}, err
		}
		found = revision.Resolve(h.all, candidate)
	}
	h.update = found.Update
	if found.Verb != revision.Create {
		h.stored = byName(h.all, found.Update.Name)
		h.update = h.update.DeepCopy()
		if metav1.GetControllerOf(h.update) == nil {
			h.update.OwnerReferences = append(h.update.OwnerReferences, ownerReference(s.Set))
		}
	}
	if found.Verb == revision.Raise {
		if err := rememberClaimTemplates(h.update, s.Set); err != nil {
			return history{}, err
		}
	}
	h.current = byName(h.all, s.Set.Status.CurrentRevision)
	if h.current == nil {
		h.current = h.update
	}
	return h, nil
}

// newRevision makes the revision of the present template.
func newRevision(set *v1beta1.CloneSet, collisionCount int32) (*appsv1.ControllerRevision, error) {
	rev, err := revision.New(revision.Owner{
		Name:        set.Name,
		Namespace:   set.Namespace,
		Reference:   ownerReference(set),
		Annotations: set.Annotations,
	}, &set.Spec.Template, collisionCount)
	if err != nil {
		return nil, fmt.Errorf("making the revision of the template: %w", err)
	}
	return rev, rememberClaimTemplates(rev, set)
}

// rememberClaimTemplates notes the present claim templates on a revision, because its data holds the Pod template alone: Pods that are
// created at this revision later on must get the claims that their template mounts.
func rememberClaimTemplates(rev *appsv1.ControllerRevision, set *v1beta1.CloneSet) error {
	if rev.Annotations == nil {
		rev.Annotations = map[string]string{}
	}
	rev.Annotations[keys.RevisionClaimTemplatesHash] = claim.TemplatesHash(set.Spec.VolumeClaimTemplates)
	delete(rev.Annotations, keys.RevisionClaimTemplates)
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	encoded, err := claim.EncodeTemplates(set.Spec.VolumeClaimTemplates)
	if err != nil {
		return fmt.Errorf("noting the claim templates: %w", err)
	}
	rev.Annotations[keys.RevisionClaimTemplates] = encoded
	return nil
}

// isUpdate reports whether the Pod is at the update revision.
func (h history) isUpdate(p *corev1.Pod) bool {
	return revision.IsOf(p.Labels[appsv1.ControllerRevisionHashLabelKey], h.update.Name)
}

// isCurrent reports whether the Pod is at the current revision.
func (h history) isCurrent(p *corev1.Pod) bool {
	return revision.IsOf(p.Labels[appsv1.ControllerRevisionHashLabelKey], h.current.Name)
}

// find returns the revision that the Pod is at, or nil when it is not stored any more.
func (h history) find(p *corev1.Pod) *appsv1.ControllerRevision {
	label := p.Labels[appsv1.ControllerRevisionHashLabelKey]
	if revision.IsOf(label, h.update.Name) {
		return h.update
	}
	for _, rev := range h.all {
		if revision.IsOf(label, rev.Name) {
			return rev
		}
	}
	return nil
}

func byName(all []*appsv1.ControllerRevision, name string) *appsv1.ControllerRevision {
	for _, rev := range all {
		if rev.Name == name {
			return rev
		}
	}
	return nil
}

func ownerReference(set *v1beta1.CloneSet) metav1.OwnerReference {
	return *metav1.NewControllerRef(set, v1beta1.GroupVersion.WithKind("CloneSet"))
}

// planHistory writes the update revision if it is new, came back from an older place, or has no owner.
func planHistory(v *Survey, b *plan.Builder) {
	h := v.history
	switch {
	case h.stored == nil:
		b.First(plan.Action{
			Verb: plan.Create, Concern: plan.Rollout, After: h.update,
			What: fmt.Sprintf("revision %d", h.update.Revision), Why: "the template is new",
		})
	case h.stored.Revision != h.update.Revision || len(h.stored.OwnerReferences) != len(h.update.OwnerReferences):
		b.First(plan.Action{
			Verb: plan.Update, Concern: plan.Rollout, Before: h.stored, After: h.update,
			What: fmt.Sprintf("revision %d", h.update.Revision), Why: "the template is that of an earlier revision again",
		})
	}
}
