package rollout

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// DefaultHistoryLimit is how many unused revisions are kept where the workload does not say.
const DefaultHistoryLimit = 10

// WriteHistory writes the update revision if it is new, came back from an older place, or has no owner. All other writes wait for it.
func WriteHistory(h revision.History, b *plan.Builder) {
	what := fmt.Sprintf("revision %d", h.Update.Revision)
	switch {
	case h.Stored == nil:
		b.First(plan.Action{Verb: plan.Create, Concern: plan.Rollout, After: h.Update, What: what, Why: "the template is new"})
	case isWritten(h) && !maps.Equal(h.Stored.Labels, h.Update.Labels):
		b.First(plan.Action{Verb: plan.Update, Concern: plan.Rollout, Before: h.Stored, After: h.Update, What: what, Why: "its labels have changed"})
	case !isWritten(h):
		b.First(plan.Action{
			Verb: plan.Update, Concern: plan.Rollout, Before: h.Stored, After: h.Update,
			What: what, Why: "the template is that of an earlier revision again",
		})
	}
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
