package advancedcronjob

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// Snapshot is all that one pass may look at. It is read once and never changed, so it can be saved as a test case.
type Snapshot struct {
	Cron *v1beta1.AdvancedCronJob
	// Jobs are those that it controls, of the kind of its template.
	Jobs []client.Object
	// Made is the slot, in seconds since 1970, that this process last made a job for; 0 when it has made none.
	Made int64
	Now  time.Time
}

// Observe makes every read of a pass.
func Observe(ctx context.Context, r observe.Reader, job *v1beta1.AdvancedCronJob) (Snapshot, error) {
	s := Snapshot{Cron: job}
	kind := kindOf(&job.Spec.Template)
	if kind == nil || job.DeletionTimestamp != nil {
		return s, nil
	}
	var err error
	s.Jobs, err = r.Controlled(ctx, kind.list(), job.Namespace, job.UID)
	return s, err
}
