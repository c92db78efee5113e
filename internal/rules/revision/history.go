package revision

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// History is a workload's revisions: all of them, the one wanted, and the one that all Pods were last at.
type History struct {
	All             []*appsv1.ControllerRevision
	Update, Current *appsv1.ControllerRevision
	// CollisionCount is the one that Update's name was made with.
	CollisionCount int32
	same           Same
	// foreign are revisions that others control.
	foreign []*appsv1.ControllerRevision
	// Stored is the object behind Update as it is in the API server; nil when it has to be created. Update differs from it when its number
	// has to be raised or it has no owner yet.
	Stored *appsv1.ControllerRevision
}

// Wanted says which revision a workload wants.
type Wanted struct {
	// Make returns the revision of the present template, whose name depends on the collision count.
	Make func(collisionCount int32) (*appsv1.ControllerRevision, error)
	// Renew, which may be nil, brings up to date what the workload notes on a revision that is wanted again.
	Renew func(*appsv1.ControllerRevision) error
	// Same, which may be nil, finds templates equal that are written differently.
	Same Same
	// Owner is the reference that a revision without an owner is adopted by.
	Owner metav1.OwnerReference
	// CollisionCount is that of the workload's status; nil means 0.
	CollisionCount *int32
	// Current is the name of the current revision in the workload's status.
	Current string
}

// Read finds the wanted revision among all that are stored, which stay as they are.
//
// One that another workload controls is none of the history. It only tells what a Pod with its name in the labels runs, which that workload
// has let go of already.
func Read(stored []*appsv1.ControllerRevision, w Wanted) (History, error) {
	all, foreign := split(stored, w.Owner.UID)
	h := History{All: all, same: w.Same, foreign: foreign}
	if w.CollisionCount != nil {
		h.CollisionCount = *w.CollisionCount
	}
	candidate, err := w.Make(h.CollisionCount)
	if err != nil {
		return History{}, err
	}
	found := resolve(all, candidate, w.Same)
	for found.Verb == Create && Collides(all, candidate) {
		h.CollisionCount++
		if candidate, err = w.Make(h.CollisionCount); err != nil {
			return History{}, err
		}
		found = resolve(all, candidate, w.Same)
	}
	h.Update = found.Update
	if found.Verb != Create {
		h.Stored = byName(all, found.Update.Name)
		h.Update = h.Update.DeepCopy()
		if metav1.GetControllerOf(h.Update) == nil {
			h.Update.OwnerReferences = append(h.Update.OwnerReferences, w.Owner)
		}
	}
	if found.Verb == Raise && w.Renew != nil {
		if err := w.Renew(h.Update); err != nil {
			return History{}, err
		}
	}
	h.Current = byName(all, w.Current)
	if h.Current == nil {
		h.Current = h.Update
	}
	return h, nil
}

// split returns the revisions that belong to an owner or to nobody, and those that others control.
func split(all []*appsv1.ControllerRevision, owner types.UID) (ours, foreign []*appsv1.ControllerRevision) {
	for _, rev := range all {
		if controller := metav1.GetControllerOfNoCopy(rev); controller != nil && controller.UID != owner {
			foreign = append(foreign, rev)
		} else {
			ours = append(ours, rev)
		}
	}
	return ours, foreign
}

// Template returns the Pod template of a revision; present is that of the workload's spec, which the update revision holds. It must not be
// changed.
func (h History) Template(rev *appsv1.ControllerRevision, present *corev1.PodTemplateSpec) (*corev1.PodTemplateSpec, error) {
	if rev.Name == h.Update.Name {
		return present, nil
	}
	return Template(rev)
}

// IsUpdate reports whether the Pod is at the update revision.
func (h History) IsUpdate(p *corev1.Pod) bool { return isAt(p, h.Update) }

// MeansUpdate reports whether a revision holds the template of the update revision, perhaps under another name.
func (h History) MeansUpdate(rev *appsv1.ControllerRevision) bool {
	return rev.Name == h.Update.Name || equal(rev, h.Update, h.same)
}

// IsCurrent reports whether the Pod is at the current revision.
func (h History) IsCurrent(p *corev1.Pod) bool { return isAt(p, h.Current) }

// Of returns the revision that the Pod carries the label of, or nil when it is not stored any more.
func (h History) Of(p *corev1.Pod) *appsv1.ControllerRevision {
	if isAt(p, h.Update) {
		return h.Update
	}
	for _, revisions := range [...][]*appsv1.ControllerRevision{h.All, h.foreign} {
		for _, rev := range revisions {
			if isAt(p, rev) {
				return rev
			}
		}
	}
	return nil
}

// Unused returns the revisions beyond the limit that are neither wanted nor current nor carried by one of the Pods, the oldest first.
func (h History) Unused(limit int32, pods ...*corev1.Pod) []*appsv1.ControllerRevision {
	if len(h.All) <= int(limit) {
		return nil
	}
	live := map[string]bool{h.Update.Name: true, h.Current.Name: true}
	for _, p := range pods {
		if rev := h.Of(p); rev != nil {
			live[rev.Name] = true
		}
	}
	return Stale(h.All, func(rev *appsv1.ControllerRevision) bool { return live[rev.Name] }, limit)
}

func isAt(p *corev1.Pod, rev *appsv1.ControllerRevision) bool {
	return IsOf(p.Labels[appsv1.ControllerRevisionHashLabelKey], rev.Name)
}

func byName(all []*appsv1.ControllerRevision, name string) *appsv1.ControllerRevision {
	for _, rev := range all {
		if rev.Name == name {
			return rev
		}
	}
	return nil
}
