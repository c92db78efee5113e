package invariant

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// Violation is a promise that was broken.
type Violation struct {
	// Rule names the promise.
	Rule string
	// Revision is the write that broke it.
	Revision int64
	Text     string
}

func (v Violation) String() string {
	return fmt.Sprintf("revision %d: %s: %s", v.Revision, v.Rule, v.Text)
}

// dated is an object as it was from a revision on; nil once it was gone.
type dated[T any] struct {
	revision int64
	time     time.Time
	pass     *simulate.Pass
	late     bool
	object   T
}

// at returns what was there at a revision; the zero value before the first.
func at[T any](versions []dated[T], revision int64) T {
	var found T
	for _, v := range versions {
		if v.revision > revision {
			break
		}
		found = v.object
	}
	return found
}

// life is everything that happened to one Pod.
type life struct {
	versions []dated[*corev1.Pod]
	// harm are the controller's own writes that took the Pod out of service.
	harm []simulate.Change
	// late means that it was created by a write that its controller had given up on.
	late bool
}

func (l *life) now() *corev1.Pod { return l.versions[len(l.versions)-1].object }

// storedRevision is whose revision it is, since when it is stored, and whether by a write that its controller had given up on.
type storedRevision struct {
	owner types.UID
	since int64
	late  bool
}

// ledger is the history up to a change.
type ledger struct {
	sets map[types.UID][]dated[*v1beta1.CloneSet]
	pods map[types.UID]*life
	// of lists the Pods of each CloneSet in the order of their creation.
	of map[types.UID][]*life
	// revisions are those that are stored, by name.
	revisions  map[string]storedRevision
	violations []Violation
}

// Check returns the promises that a CloneSet controller has broken in a history.
func Check(history []simulate.Change) []Violation {
	l := &ledger{
		sets: map[types.UID][]dated[*v1beta1.CloneSet]{}, pods: map[types.UID]*life{}, of: map[types.UID][]*life{},
		revisions: map[string]storedRevision{},
	}
	for _, change := range history {
		l.record(change)
		if change.Pass != nil && !change.Late {
			l.judge(change)
		}
	}
	return l.violations
}

func (l *ledger) record(c simulate.Change) {
	switch c.Key.Kind.Kind {
	case "ControllerRevision":
		delete(l.revisions, c.Key.Name)
		if owner := metav1.GetControllerOfNoCopy(eitherOf(c)); owner != nil && c.After != nil {
			l.revisions[c.Key.Name] = storedRevision{owner.UID, c.Revision, c.Late}
		}
	case "CloneSet":
		after, _ := c.After.(*v1beta1.CloneSet)
		uid := eitherOf(c).GetUID()
		l.sets[uid] = append(l.sets[uid], dated[*v1beta1.CloneSet]{c.Revision, c.Time, c.Pass, c.Late, after})
	case "Pod":
		after, _ := c.After.(*corev1.Pod)
		object := eitherOf(c)
		known := l.pods[object.GetUID()]
		if known == nil {
			known = &life{late: c.Late}
			l.pods[object.GetUID()] = known
			if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
				l.of[owner.UID] = append(l.of[owner.UID], known)
			}
		}
		known.versions = append(known.versions, dated[*corev1.Pod]{c.Revision, c.Time, c.Pass, c.Late, after})
		if c.Pass != nil && !c.Late && c.Before != nil && harms(c.Before.(*corev1.Pod), after) {
			known.harm = append(known.harm, c)
		}
	}
}

func eitherOf(c simulate.Change) metav1.Object {
	if c.After != nil {
		return c.After
	}
	return c.Before
}

// harms reports whether a write takes a Pod out of service that was in it, whatever minReadySeconds says.
func harms(before, after *corev1.Pod) bool {
	const ever = 0
	forever := time.Unix(1<<40, 0)
	return serves(before, ever, forever) && (!serves(after, ever, forever) || !sameImages(before, after))
}

func (l *ledger) breaks(rule string, c simulate.Change, format string, args ...any) {
	l.violations = append(l.violations, Violation{Rule: rule, Revision: c.Revision, Text: fmt.Sprintf(format, args...)})
}

// window is what a controller had seen of a CloneSet, and all that it became until the write: a user's change that is on its way excuses
// it.
type window struct {
	seen *v1beta1.CloneSet
	all  []*v1beta1.CloneSet
}

func (l *ledger) windowOf(uid types.UID, c simulate.Change) (window, bool) {
	seen := c.Pass.Seen[v1beta1.GroupVersion.WithKind("CloneSet")]
	w := window{seen: at(l.sets[uid], seen)}
	if w.seen == nil {
		return w, false
	}
	w.all = append(w.all, w.seen)
	for _, version := range l.sets[uid] {
		if version.revision > seen && version.object != nil {
			w.all = append(w.all, version.object)
		}
	}
	return w, true
}

// has reports whether the Pod counts for the CloneSet: one whose labels were changed is on its own.
func (w window) has(p *corev1.Pod) bool {
	if !isActive(p) || !metav1.IsControlledBy(p, w.seen) {
		return false
	}
	for key, value := range w.seen.Spec.Selector.MatchLabels {
		if p.Labels[key] != value {
			return false
		}
	}
	return true
}

// every reports whether something held in all of the window.
func (w window) every(holds func(*v1beta1.CloneSet) bool) bool {
	for _, set := range w.all {
		if !holds(set) {
			return false
		}
	}
	return true
}

// most returns the largest number in the window.
func (w window) most(number func(bounds) int) int {
	most := number(boundsOf(w.all[0]))
	for _, set := range w.all[1:] {
		most = max(most, number(boundsOf(set)))
	}
	return most
}

// isAt reports whether the Pod's label names the revision, by its name or by the hash at the end of it.
func isAt(p *corev1.Pod, revision string) bool {
	label := revisionOf(p)
	return label != "" && (label == revision || strings.HasSuffix(revision, "-"+label))
}

func revisionOf(p *corev1.Pod) string { return p.Labels[appsv1.ControllerRevisionHashLabelKey] }
