package invariant

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// RuleLate is the rule of CheckProgress.
const RuleLate = "a rollout that was late stays so until it is complete, rests, or has another template"

// CheckProgress finds the statuses that take back that the rollout of a CloneSet or a StatefulSet has exceeded its deadline, although their
// controller has seen that, and it is still the same rollout and still under way.
func CheckProgress(history []simulate.Change) []Violation {
	var out []Violation
	sets := map[types.UID][]dated[client.Object]{}
	for _, c := range history {
		if after, _ := progressIn(c.After); c.Pass != nil && !c.Late && after == c.Key.Kind.Kind+"Updated" {
			before, revision := progressIn(at(sets[c.After.GetUID()], c.Pass.Seen[c.Key.Kind]))
			if _, now := progressIn(c.After); before == "ProgressDeadlineExceeded" && revision == now {
				out = append(out, Violation{Rule: RuleLate, Revision: c.Revision, Text: c.Key.Name + " is " + after + " again"})
			}
		}
		uid := eitherOf(c).GetUID()
		sets[uid] = append(sets[uid], dated[client.Object]{c.Revision, c.Time, c.Pass, c.Late, c.After})
	}
	return out
}

// progressIn returns the reason of the condition Progressing, and the update revision that it speaks of.
func progressIn(object client.Object) (reason, revision string) {
	switch set := object.(type) {
	case *v1beta1.CloneSet:
		revision = set.Status.UpdateRevision
		for _, c := range set.Status.Conditions {
			if c.Type == v1beta1.CloneSetConditionProgressing {
				reason = c.Reason
			}
		}
	case *v1beta1.StatefulSet:
		revision = set.Status.UpdateRevision
		for _, c := range set.Status.Conditions {
			if c.Type == v1beta1.StatefulSetConditionProgressing {
				reason = c.Reason
			}
		}
	}
	return reason, revision
}
