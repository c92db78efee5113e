package pullsecret

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
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

// read makes every read of a pass.
func (o Options) read(ctx context.Context, r loop.Reads, secret *corev1.Secret) (Snapshot, error) {
	s := Snapshot{Copy: secret}
	key, isCopy := pull.SourceOf(secret)
	if !isCopy || secret.DeletionTimestamp != nil {
		return s, nil
	}
	for _, reference := range pull.ReferencesOf(secret) {
		job, err := observe.Find(ctx, r, reference, &v1beta1.ImagePullJob{})
		if err == nil && job == nil {
			// The cache of a manager that has just taken over may not have it yet.
			job, err = observe.Find(ctx, r.Live, reference, &v1beta1.ImagePullJob{})
		}
		if err != nil {
			return Snapshot{}, err
		}
		if job != nil && needs(job, key) {
			s.Jobs = append(s.Jobs, reference)
			s.Busy = s.Busy || !pull.Repeats(job) || job.Status.Active > 0 || job.Status.Desired == 0 || job.Status.Succeeded+job.Status.Failed < job.Status.Desired
		}
	}
	if len(s.Jobs) > 0 {
		// One that can't be read just now may be read later: the copy stays as it is.
		s.Source, _ = o.Sources.Get(ctx, key)
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
