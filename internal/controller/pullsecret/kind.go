package pullsecret

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

// Options are the choices made for the whole controller at start-up.
type Options struct {
	// Sources reads the Secrets that copies are of.
	Sources *observe.Sources
	// Namespace is where the copies are. The cache of Secrets holds those of it alone.
	Namespace string
}

// Kind is the controller of copied Secrets.
func Kind(o Options) loop.Kind[*corev1.Secret, Snapshot, any] {
	return loop.Kind[*corev1.Secret, Snapshot, any]{
		Name: "pullsecret",
		Watches: func(cached observe.Reader) []loop.Watch {
			return []loop.Watch{loop.Affected(&v1beta1.ImagePullJob{}, copies{cached, o.Namespace}.ofJob)}
		},
		Read: o.read,
		Plan: Plan,
	}
}

// copies finds the copies that a change concerns.
type copies struct {
	observe.Reader
	namespace string
}

// ofJob returns the copies that were made for a job, when the job has completed or is gone.
func (c copies) ofJob(ctx context.Context, before, after *v1beta1.ImagePullJob) ([]types.NamespacedName, error) {
	job := cmp.Or(after, before)
	running := after != nil && after.DeletionTimestamp == nil && after.Status.CompletionTime == nil
	if running || len(job.Spec.PullSecrets) == 0 {
		return nil, nil
	}
	secrets, err := c.Secrets(ctx, c.namespace)
	return observe.Keys(secrets, func(s *corev1.Secret) bool {
		return slices.Contains(pull.ReferencesOf(s), client.ObjectKeyFromObject(job))
	}), err
}
