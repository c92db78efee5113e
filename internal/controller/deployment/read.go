package deployment

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// Snapshot is all that one pass reads.
type Snapshot struct {
	Deployment *appsv1.Deployment
	// Sets are the ReplicaSets that it controls.
	Sets []*appsv1.ReplicaSet
	// Taken are names that its ReplicaSets can't have, because others have them.
	Taken []string
	// Orphaned says that a release has the Deployment in hand, and that no Rollout and no BatchRelease names it. Autoscalers are those that
	// it has turned away, then.
	Orphaned    bool
	Autoscalers []*autoscalingv2.HorizontalPodAutoscaler
}

// read makes every read of a pass.
func read(ctx context.Context, r loop.Reads, d *appsv1.Deployment) (State, error) {
	s := Snapshot{Deployment: d, Taken: slices.Clone(r.Taken)}
	found, err := r.Controlled(ctx, &appsv1.ReplicaSetList{}, d.Namespace, d.UID)
	if err != nil {
		return State{}, err
	}
	for _, object := range found {
		s.Sets = append(s.Sets, object.(*appsv1.ReplicaSet))
	}
	if s.Orphaned, err = releases.IsOrphaned(ctx, r, d, ofDeployment()); err != nil {
		return State{}, err
	}
	if s.Orphaned && steer.StyleOfDeployment(d) == v1beta1.RollingStyleBlueGreen {
		var o steer.Objects
		ref := v1beta1.WorkloadReference{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: ofDeployment().Kind, Name: d.Name}
		err = releases.ReadAutoscalers(ctx, r.Reader, d.Namespace, ref, &o)
		s.Autoscalers = o.Autoscalers
	}
	return Classify(s), err
}

func ofDeployment() schema.GroupKind {
	return schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}
}
