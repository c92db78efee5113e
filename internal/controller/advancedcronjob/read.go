package advancedcronjob

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Snapshot is all that one pass reads.
type Snapshot struct {
	Cron *v1beta1.AdvancedCronJob
	// Jobs are those that it controls, of the kind of its template.
	Jobs []client.Object
	// Made is the slot, in seconds since 1970, that this process last made a job for; 0 when it has made none.
	Made int64
	Now  time.Time
}

// memory holds, by the UID of an AdvancedCronJob, the slot of the last job that was created. It is all that is known of a job that is
// deleted before the cache has shown it.
type memory struct{ slots sync.Map }

// read makes every read of a pass.
func (m *memory) read(ctx context.Context, r loop.Reads, job *v1beta1.AdvancedCronJob) (_ State, err error) {
	s := Snapshot{Cron: job, Now: r.Now}
	if made, ok := m.slots.Load(job.UID); ok {
		s.Made = made.(int64)
	}
	if kind := kindOf(&job.Spec.Template); kind != nil && job.DeletionTimestamp == nil {
		s.Jobs, err = r.Controlled(ctx, kind.list(), job.Namespace, job.UID)
	}
	return Classify(s), err
}

func (m *memory) remember(v State, done apply.Outcome) {
	for _, result := range done.Results {
		if result.Action.Verb != plan.Create || result.Err != nil {
			continue
		}
		if slot, ok := slotOf(result.Action.After); ok {
			m.slots.Store(v.Cron.UID, slot.Unix())
		}
	}
}

func (m *memory) forget(owner types.UID) { m.slots.Delete(owner) }
