package cloneset

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// Observe makes every read of a pass. Names and labels of everything found are those of the moment now.
func Observe(ctx context.Context, r observe.Reader, set *v1beta1.CloneSet, now time.Time) (Snapshot, error) {
	s := Snapshot{Set: set, Now: now}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil || selector.Empty() {
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
