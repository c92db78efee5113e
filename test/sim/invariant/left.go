package invariant

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// RuleLeft is the rule of CheckLeft.
const RuleLeft = "no Pod for an owner that has left its Pods behind"

// CheckLeft finds the Pods that were created for an owner that was being deleted or gone, although the controller could see Pods of the
// same sort that nobody controlled any more: those were not missing.
func CheckLeft(history []simulate.Change) []Violation {
	var out []Violation
	gone := map[types.UID]bool{}
	pods := map[types.UID][]dated[*corev1.Pod]{}
	for _, c := range history {
		object := eitherOf(c)
		p, isPod := object.(*corev1.Pod)
		if !isPod {
			gone[object.GetUID()] = c.After == nil || c.After.GetDeletionTimestamp() != nil
			continue
		}
		owner := metav1.GetControllerOfNoCopy(p)
		if c.Before == nil && c.Pass != nil && !c.Late && owner != nil && gone[owner.UID] {
			for _, versions := range pods {
				if seen := at(versions, c.Pass.Seen[c.Key.Kind]); isLeft(seen) && seen.Labels["app"] == p.Labels["app"] {
					out = append(out, Violation{Rule: RuleLeft, Revision: c.Revision, Text: p.Name + " is created beside " + seen.Name})
					break
				}
			}
		}
		after, _ := c.After.(*corev1.Pod)
		pods[p.UID] = append(pods[p.UID], dated[*corev1.Pod]{c.Revision, c.Time, c.Pass, c.Late, after})
	}
	return out
}

// isLeft reports whether nobody controls the Pod, and nobody has asked for its deletion.
func isLeft(p *corev1.Pod) bool {
	return p != nil && p.DeletionTimestamp == nil && metav1.GetControllerOfNoCopy(p) == nil
}
