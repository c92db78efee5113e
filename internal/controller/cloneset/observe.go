package cloneset

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Observe makes every read of a pass. Names and labels of everything found are those of the moment now.
func Observe(ctx context.Context, r observe.Reader, set *v1beta1.CloneSet, now time.Time) (Snapshot, error) {
	s := Snapshot{Set: set, Now: now}
	selector, err := pod.Selector(set.Spec.Selector)
	if err != nil {
		// Nothing can be found with it; the plan says so.
		return s, nil
	}
	if s.Pods, err = r.Pods(ctx, set.Namespace, set.UID); err != nil {
		return Snapshot{}, err
	}
	if s.Claims, err = r.Claims(ctx, set.Namespace, selector, set.UID, s.Pods); err != nil {
		return Snapshot{}, err
	}
	if s.Revisions, err = r.Revisions(ctx, set.Namespace, selector, set.UID); err != nil {
		return Snapshot{}, err
	}
	if len(set.Spec.Template.Spec.TopologySpreadConstraints) > 0 {
		if s.NodeLabels, err = r.NodeLabels(ctx, s.Pods); err != nil {
			return Snapshot{}, fmt.Errorf("for topology spread: %w", err)
		}
	}
	return s, nil
}

// confirm makes sure that the CloneSet is still there before Pods are added while others have its labels and no controller. A CloneSet never takes
// those over, but they may be what its deletion has left behind, of which the cache of Pods can tell sooner than that of CloneSets.
func confirm(ctx context.Context, r observe.Reader, live client.Reader, v Survey) error {
	if v.problem != nil || v.scaleMoves().Create <= 0 {
		return nil
	}
	_, err := r.Adoptable(ctx, live, v.Set, v.selector)
	return err
}
