package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/analysis"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// Snapshot is all that one pass may look at.
type Snapshot struct {
	Rollout *v1beta1.Rollout
	// Objects are the workload and what belongs to it.
	Objects steer.Objects
	// Unusable says why its kind can't be used, of one that is only like a StatefulSet, or not yet; empty if it can.
	Unusable string
	// Batch is the BatchRelease of the Rollout; nil while there is none.
	Batch *v1beta1.BatchRelease
	// Routes is what leads traffic; nil for a Rollout that leads none.
	Routes Routes
	// Measured are results of measurements, Jobs those of the Rollout's checks.
	Measured []analysis.Result
	Jobs     []*batchv1.Job
	// Histories are the records of earlier releases, and of the one that is over. Traffic is what leads traffic, for that record. Both are
	// read at the end of a release only.
	Histories []*v1alpha1.RolloutHistory
	Traffic   RecordedTraffic
	// Options are those of the controller.
	Options Options
	Now     time.Time
}

func (o Options) read(ctx context.Context, r loop.Reads, rollout *v1beta1.Rollout) (State, error) {
	s := Snapshot{Rollout: rollout, Options: o, Now: r.Now}
	var err error
	if err = o.readWorkload(ctx, r, &s); err != nil {
		return State{}, err
	}
	if steer.StyleOf(rollout.Spec.Strategy) == v1beta1.RollingStyleBlueGreen {
		if err = releases.ReadAutoscalers(ctx, r.Reader, rollout.Namespace, rollout.Spec.WorkloadRef, &s.Objects); err != nil {
			return State{}, err
		}
	}
	name := types.NamespacedName{Namespace: rollout.Namespace, Name: rollout.Name}
	if s.Batch, err = observe.Find(ctx, r.Reader, name, &v1beta1.BatchRelease{}); err != nil {
		return State{}, err
	}
	if rollout.DeletionTimestamp != nil { // after the BatchRelease: one that is gone has written to the workload before
		if err := s.readLive(ctx, r); err != nil {
			return State{}, err
		}
	}
	if err := errors.Join(o.readAnalysis(ctx, r, &s), s.readHistories(ctx, r)); err != nil {
		return State{}, err
	}
	if o.Traffic == nil || !leadsTraffic(rollout) {
		return Classify(s), nil
	}
	var facts steer.Facts
	if kind, ok := o.kindOf(rollout); ok && s.Objects.Workload != nil {
		facts = kind.See(s.Objects)
	}
	if s.Routes, err = o.Traffic.Read(ctx, r, rollout, facts); err != nil {
		return State{}, err
	}
	v := Classify(s)
	if !v.ends() {
		return v, nil
	}
	// An older cache may show what leads traffic as it was before the release, and nobody looks again once that is over.
	r.Reader = observe.Reader{Reader: r.Live}
	if s.Routes, err = o.Traffic.Read(ctx, r, rollout, facts); err != nil {
		return State{}, err
	}
	return Classify(s), nil
}

// readWorkload reads the workload, or why that can't be.
func (o Options) readWorkload(ctx context.Context, r loop.Reads, s *Snapshot) error {
	ref := s.Rollout.Spec.WorkloadRef
	var err error
	s.Objects, err = releases.Source{Reader: r.Reader, Foreign: o.Foreign}.Read(ctx, s.Rollout.Namespace, ref, r.Now)
	var unusable *releases.UnusableError
	if errors.As(err, &unusable) {
		s.Unusable = unusable.Why
		return nil
	}
	begun := s.Rollout.Status.Phase != "" && s.Rollout.Status.Phase != v1beta1.RolloutPhaseInitial
	if err != nil || begun || o.Foreign == nil || releases.IsKnown(ref) {
		return err
	}
	sent, err := o.Foreign.Intercepts(ctx, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if err == nil && !sent {
		s.Unusable = fmt.Sprintf("API servers do not send the manager the changes of a %s yet", ref.Kind)
	}
	return err
}

// ends reports whether a pass takes a release for ended that the one before did not.
func (v *State) ends() bool {
	is := func(st *v1beta1.RolloutStatus) bool {
		at := commonOf(st)
		return at == nil || at.FinalisingStep == v1beta1.FinalisingStepEnd || st.Phase == v1beta1.RolloutPhaseHealthy
	}
	return !is(&v.Rollout.Status) && is(&v.decision.Status)
}

// readLive reads the workload around the cache. The webhook marks no workload any more of a Rollout that is being deleted, but may have
// done so in the last moment before: a Rollout that goes by an older cache would leave the workload frozen for ever.
func (s *Snapshot) readLive(ctx context.Context, r loop.Reads) error {
	ref := s.Rollout.Spec.WorkloadRef
	now := releases.Empty(ref)
	if now == nil || s.Unusable != "" && s.Objects.Workload == nil || s.Options.Foreign == nil && !releases.IsKnown(ref) {
		return nil
	}
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.Rollout.Namespace, Name: ref.Name}, now)
	if s.Objects.Workload = now; apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		s.Objects = steer.Objects{Now: s.Now}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the workload: %w", err)
	}
	return nil
}

func (o Options) kindOf(rollout *v1beta1.Rollout) (steer.Kind, bool) {
	return releases.KindOf(rollout.Spec.WorkloadRef, steer.StyleOf(rollout.Spec.Strategy), o.Foreign)
}
