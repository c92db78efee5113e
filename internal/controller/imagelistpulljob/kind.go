package imagelistpulljob

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
)

// Kind is the controller of ImageListPullJobs. The cache has the index of package observe for ImagePullJobs.
func Kind() loop.Kind[*v1beta1.ImageListPullJob, State, v1beta1.ImageListPullJobStatus] {
	return loop.Kind[*v1beta1.ImageListPullJob, State, v1beta1.ImageListPullJobStatus]{
		Name:     "imagelistpulljob",
		Owns:     []client.Object{&v1beta1.ImagePullJob{}},
		Read:     read,
		Plan:     Plan,
		Status:   Status,
		StatusOf: func(o *v1beta1.ImageListPullJob) *v1beta1.ImageListPullJobStatus { return &o.Status },
		Exact:    true, // a list that is over must not make jobs again
	}
}

func read(ctx context.Context, r loop.Reads, list *v1beta1.ImageListPullJob) (State, error) {
	jobs, err := r.ImagePullJobs(ctx, list.Namespace, list.UID)
	if err != nil {
		return State{}, err
	}
	return Classify(Snapshot{List: list, Jobs: jobs, Now: r.Now}), nil
}
