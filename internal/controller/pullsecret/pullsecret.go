// Package pullsecret looks after the Secrets that were copied for ImagePullJobs.
//
// Its promise: a copy holds what its source holds, as long as a job needs it, and is gone soon after the last one does not: when the job has completed
// or been deleted, or has been taken from the cluster in any other way.
package pullsecret

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

// How often the source of a copy is looked at: while nodes may be pulling with it, and otherwise, which is for jobs that never complete.
const (
	lookOften = observe.SourceTTL
	lookAtAll = time.Minute
)

// Snapshot is all that one pass may look at.
type Snapshot struct {
	Copy *corev1.Secret
	// Source is what the copy is of; nil where it can't be read.
	Source *corev1.Secret
	// Jobs are those that still need it.
	Jobs []types.NamespacedName
	// Busy means that nodes may be pulling for one of them.
	Busy bool
}

// Observe makes every read of a pass.
func (c Config) Observe(ctx context.Context, r observe.Reader, secret *corev1.Secret) (Snapshot, error) {
	s := Snapshot{Copy: secret}
	key, isCopy := pull.SourceOf(secret)
	if !isCopy || secret.DeletionTimestamp != nil {
		return s, nil
	}
	for _, reference := range pull.ReferencesOf(secret) {
		var job v1beta1.ImagePullJob
		err := r.Get(ctx, reference, &job)
		if apierrors.IsNotFound(err) {
			// The cache of a manager that has just taken over may not have it yet.
			err = c.Live.Get(ctx, reference, &job)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return Snapshot{}, fmt.Errorf("reading ImagePullJob %s: %w", reference, err)
		}
		if err == nil && needs(&job, key) {
			s.Jobs = append(s.Jobs, reference)
			s.Busy = s.Busy || !pull.Repeats(&job) || job.Status.Active > 0 || job.Status.Desired == 0 || job.Status.Succeeded+job.Status.Failed < job.Status.Desired
		}
	}
	if len(s.Jobs) > 0 {
		// One that can't be read just now may be read later: the copy stays as it is.
		s.Source, _ = c.Sources.Get(ctx, key)
	}
	return s, nil
}

// needs reports whether a job still pulls with a Secret.
func needs(job *v1beta1.ImagePullJob, source types.NamespacedName) bool {
	return job.DeletionTimestamp == nil && job.Status.CompletionTime == nil && job.Namespace == source.Namespace &&
		slices.Contains(job.Spec.PullSecrets, source.Name)
}

// Plan decides the next step. It reads only the snapshot and changes nothing.
func Plan(s Snapshot) plan.Plan {
	b := plan.For(fmt.Sprintf("Secret %s/%s", s.Copy.Namespace, s.Copy.Name))
	if _, isCopy := pull.SourceOf(s.Copy); !isCopy || s.Copy.DeletionTimestamp != nil {
		return b.Plan()
	}
	if len(s.Jobs) == 0 {
		// Exactly this version: a job may just have noted that it needs the copy.
		b.Do(plan.Action{Verb: plan.Delete, Concern: plan.Tidy, Before: s.Copy, What: "delete the copy", Why: "no job pulls with it any more"})
		return b.Plan()
	}
	after := pull.WithReferences(s.Copy, s.Jobs)
	if s.Source != nil {
		after = pull.Refresh(after, s.Source)
	}
	wait := lookAtAll
	if s.Busy {
		wait = lookOften
	}
	b.Recheck(wait, "the source may change")
	switch {
	case isFixed(s.Copy) && !equality.Semantic.DeepEqual(s.Copy.Data, after.Data), s.Source != nil && s.Source.Type != s.Copy.Type:
		b.Do(plan.Action{
			Verb: plan.Delete, Concern: plan.Tidy, Before: s.Copy,
			What: "delete the copy", Why: "its source was replaced, and it can't be changed itself",
		})
	case !same(s.Copy, after):
		b.Do(plan.Action{
			Verb: plan.Update, Concern: plan.Tidy, Before: s.Copy, After: after,
			What: "update the copy", Why: "its source has changed, or a job needs it no more",
		})
	}
	return b.Plan()
}

func isFixed(s *corev1.Secret) bool { return s.Immutable != nil && *s.Immutable }

func same(a, b *corev1.Secret) bool {
	return maps.Equal(a.Annotations, b.Annotations) && equality.Semantic.DeepEqual(a.Data, b.Data) && isFixed(a) == isFixed(b)
}

// Copies finds the copies that something concerns that does not say so itself.
type Copies struct {
	// Reader is a cache.
	client.Reader
	// Namespace is where the copies are.
	Namespace string
}

// OfJob returns the copies that were made for a job, when the job has completed or is gone.
func (c Copies) OfJob(ctx context.Context, before, after *v1beta1.ImagePullJob) ([]types.NamespacedName, error) {
	of := after
	if of == nil {
		of = before
	}
	running := after != nil && after.DeletionTimestamp == nil && after.Status.CompletionTime == nil
	if running || len(of.Spec.PullSecrets) == 0 {
		return nil, nil
	}
	secrets, err := observe.Reader{Reader: c.Reader, Indexed: true}.Secrets(ctx, c.Namespace)
	if err != nil {
		return nil, err
	}
	var out []types.NamespacedName
	for _, s := range secrets {
		if slices.Contains(pull.ReferencesOf(s), client.ObjectKeyFromObject(of)) {
			out = append(out, client.ObjectKeyFromObject(s))
		}
	}
	return out, nil
}
