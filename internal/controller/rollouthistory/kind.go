package rollouthistory

import (
	"context"
	"errors"
	"time"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// +kubebuilder:rbac:groups=rollouts.kruise.io,resources=rollouthistories,verbs=get;list;watch
// +kubebuilder:rbac:groups=rollouts.kruise.io,resources=rollouthistories/status,verbs=patch

// Kind is the controller of RolloutHistories. Foreign has workloads be of kinds that are only like a StatefulSet; nil where none is.
func Kind(foreign releases.Foreign) loop.Kind[*v1alpha1.RolloutHistory, State, v1alpha1.RolloutHistoryStatus] {
	return loop.Kind[*v1alpha1.RolloutHistory, State, v1alpha1.RolloutHistoryStatus]{
		Name:     "rollouthistory",
		Concerns: func(_, after *v1alpha1.RolloutHistory) bool { return after.Status.Phase == "" },
		Read: func(ctx context.Context, r loop.Reads, history *v1alpha1.RolloutHistory) (State, error) {
			return read(ctx, r, foreign, history)
		},
		Plan:     Plan,
		Status:   Status,
		StatusOf: func(h *v1alpha1.RolloutHistory) *v1alpha1.RolloutHistoryStatus { return &h.Status },
	}
}

// Snapshot is all that one pass may look at.
type Snapshot struct {
	History *v1alpha1.RolloutHistory
	Objects steer.Objects
	Now     time.Time
}

// State is a Snapshot: there is nothing to classify.
type State = Snapshot

func read(ctx context.Context, r loop.Reads, foreign releases.Foreign, history *v1alpha1.RolloutHistory) (State, error) {
	s := Snapshot{History: history, Now: r.Now}
	if history.Status.Phase != "" {
		return s, nil
	}
	var err error
	from, of := releases.Source{Reader: r.Reader, Foreign: foreign}, history.Spec.Workload.WorkloadReference
	s.Objects, err = from.Read(ctx, history.Namespace, of, r.Now)
	var unusable *releases.UnusableError
	if errors.As(err, &unusable) { // what can't be read has no Pods to tell of
		err = nil
	}
	return s, err
}
