package advancedcronjob

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// kind is that of the owner in references.
func kind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("AdvancedCronJob") }

// Kind is the controller of AdvancedCronJobs.
func Kind() loop.Kind[*v1beta1.AdvancedCronJob, State, v1beta1.AdvancedCronJobStatus] {
	m := &memory{}
	return loop.Kind[*v1beta1.AdvancedCronJob, State, v1beta1.AdvancedCronJobStatus]{
		Name: "advancedcronjob",
		Owns: []client.Object{&batchv1.Job{}, &v1beta1.BroadcastJob{}, &v1beta1.ImageListPullJob{}},
		Indexes: func(ctx context.Context, indexer client.FieldIndexer) error {
			return observe.AddControllerIndex(ctx, indexer, &batchv1.Job{}, &v1beta1.BroadcastJob{}, &v1beta1.ImageListPullJob{})
		},
		Read:     m.read,
		Plan:     Plan,
		Status:   Status,
		StatusOf: func(o *v1beta1.AdvancedCronJob) *v1beta1.AdvancedCronJobStatus { return &o.Status },
		Remember: m.remember,
		Forget:   m.forget,
		Exact:    true, // the last slot must not go back
	}
}
