package rollout

import (
	"fmt"
	"time"

	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// ReleaseOf returns the release that brings the update revision of a workload out. A revision that is wanted again has another number: it
// is another release. When that began no object tells.
func ReleaseOf(h revision.History) plan.Release {
	if h.Update == nil {
		return plan.Release{}
	}
	made := h.Update.CreationTimestamp.Time
	for _, other := range h.All {
		if other.CreationTimestamp.After(made) {
			made = time.Time{}
			break
		}
	}
	return plan.Release{Name: fmt.Sprintf("%s/%d", h.Update.Name, h.Update.Revision), Revision: h.Update.Name, Began: made}
}
