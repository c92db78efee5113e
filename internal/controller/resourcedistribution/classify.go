package resourcedistribution

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/distribution"
)

// standing is how a namespace stands to what it is to have.
type standing string

const (
	// current: it has the copy.
	current standing = "current"
	// held: it has an older copy, which the rollout does not reach yet.
	held standing = "held"
	// missing: it has none.
	missing standing = "missing"
	// outdated: it has one that is to be changed, or an object that is to be taken over.
	outdated standing = "outdated"
	// frozen: it has one that says that it is immutable, and is to stay.
	frozen standing = "frozen"
	// replaced: it has one that can only be brought to another content by deleting it.
	replaced standing = "replaced"
	// taken: an object of others has the name.
	taken standing = "taken"
	// absent: the namespace does not exist, or is on its way out.
	absent standing = "absent"
	// unread: it could not be read.
	unread standing = "unread"
)

// place is a target namespace.
type place struct {
	namespace string
	standing  standing
	// uid and version are those of the copy.
	uid     types.UID
	version string
	// is is the object that is there, as it was looked at; nil mostly.
	is distribution.Object
}

// State is a Snapshot classified once, for the plan and the status.
type State struct {
	Snapshot
	places []place
	// unwanted are the namespaces with a copy that are to have none.
	unwanted []string
}

// Classify says of each namespace how it stands.
func Classify(s Snapshot) State {
	v := State{Snapshot: s}
	if s.Source == nil || s.Problem != nil {
		return v
	}
	reached := distribution.Reach(s.Targets, s.Owner.Spec.Rollout)
	targets := map[string]bool{}
	for _, name := range s.Targets {
		targets[name] = true
		v.places = append(v.places, v.place(name, reached[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Copies)) {
		namespace, exists := s.Namespaces[name]
		if !targets[name] && exists && !namespace.Deleting && s.Copies[name].GetDeletionTimestamp() == nil {
			v.unwanted = append(v.unwanted, name)
		}
	}
	return v
}

func (v *State) place(name string, reached bool) place {
	p := place{namespace: name}
	namespace, exists := v.Namespaces[name]
	is, looked := v.Found[name]
	known, copied := v.Copies[name]
	switch {
	case !exists || namespace.Deleting:
		p.standing = absent
	case v.Failed[name] != nil:
		p.standing = unread
	case !looked && copied:
		p.uid, p.version, p.standing = known.GetUID(), known.GetResourceVersion(), current
		if known.GetAnnotations()[keys.DistributedHash] != v.Source.Hash {
			p.standing = held
		}
	case is == nil:
		p.standing = missing
	default:
		p.is, p.uid, p.version = is, is.GetUID(), is.GetResourceVersion()
		p.standing = v.judge(is, reached)
	}
	return p
}

// judge says how an object stands that has the name of the copy.
func (v *State) judge(is distribution.Object, reached bool) standing {
	wanted := v.wanted(is)
	ours := isOurs(is, v.Owner)
	switch {
	case is.GetDeletionTimestamp() != nil && ours:
		return current // it is made anew once it is gone
	case !ours && !v.mayTake(is):
		return taken
	case distribution.IsSame(is, wanted):
		return current
	case ours && !reached && is.GetAnnotations()[keys.DistributedHash] != v.Source.Hash:
		return held
	case !distribution.NeedsNew(is, wanted):
		return outdated
	case v.Owner.Spec.ImmutablePolicy == v1beta1.ReplaceImmutable && ours:
		return replaced
	case ours:
		return frozen
	}
	return taken
}

// mayTake reports whether an object that the owner has not made may be taken over.
func (v *State) mayTake(is distribution.Object) bool {
	if metav1.GetControllerOfNoCopy(is) != nil || len(is.GetOwnerReferences()) > 0 || is.GetDeletionTimestamp() != nil ||
		v.Others[types.UID(is.GetLabels()[keys.DistributedBy])] { // of two that make the same, the first one has it
		return false
	}
	switch v.Owner.Spec.ConflictPolicy {
	case v1beta1.OverwriteOnConflict:
		return true
	case v1beta1.AdoptOnConflict:
		return distribution.SameContent(is, v.Source.Copy(v.Owner, is.GetNamespace(), nil))
	}
	return false
}

// wanted returns what the copy is to be in the place of an object.
func (v *State) wanted(is distribution.Object) distribution.Object {
	return v.Source.Copy(v.Owner, is.GetNamespace(), is)
}
