package deployment

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
)

// State is a Snapshot, classified once.
type State struct {
	Snapshot
	// released means that a release has the Deployment in hand, by label and annotation.
	released bool
	strategy replicasets.Strategy
	limits   replicasets.Limits
	// problem is what can't be read in the annotation or the spec.
	problem error
	// fresh is the ReplicaSet of the present template, nil if there is none; old are all others, by name.
	fresh *appsv1.ReplicaSet
	old   []*appsv1.ReplicaSet
}

// Classify returns the state of a snapshot.
func Classify(s Snapshot) State {
	v := State{Snapshot: s}
	d := s.Deployment
	annotation, annotated := d.Annotations[keys.DeploymentStrategy]
	v.released = annotated && d.Labels[keys.AdvancedDeployment] == "true" && d.DeletionTimestamp == nil
	v.fresh = replicasets.New(d, s.Sets)
	for _, rs := range s.Sets {
		if rs != v.fresh {
			v.old = append(v.old, rs)
		}
	}
	slices.SortFunc(v.old, func(a, b *appsv1.ReplicaSet) int { return strings.Compare(a.Name, b.Name) })
	if !v.released {
		return v
	}
	if v.strategy, v.problem = replicasets.Parse(annotation); v.problem != nil {
		v.problem = fmt.Errorf("annotation %s: %w", keys.DeploymentStrategy, v.problem)
		return v
	}
	if v.limits, v.problem = replicasets.LimitsOf(&d.Spec, &v.strategy.Partition); v.problem != nil {
		v.problem = fmt.Errorf("annotation %s, or the strategy: %w", keys.DeploymentStrategy, v.problem)
	}
	return v
}

// isOfAnother tells whether the annotation is of another template: somebody has changed it while no webhook or no Rollout was there.
func (v *State) isOfAnother() bool {
	return v.strategy.Revision != "" && v.strategy.Revision != replicasets.Hash(&v.Deployment.Spec.Template, nil)
}

// setOf returns a ReplicaSet as the rules see it; that of nil has no Pods.
func setOf(rs *appsv1.ReplicaSet) replicasets.Set {
	if rs == nil {
		return replicasets.Set{Settled: true, Desired: -1}
	}
	return replicasets.Set{
		Name: rs.Name, Replicas: sizeOf(rs),
		Pods: rs.Status.Replicas, Ready: rs.Status.ReadyReplicas, Available: rs.Status.AvailableReplicas,
		Settled: rs.Status.ObservedGeneration >= rs.Generation, Desired: replicasets.DesiredOf(rs),
		Revision: replicasets.Revision(rs), Created: rs.CreationTimestamp.Time, Held: isHeld(rs),
	}
}

func sizeOf(rs *appsv1.ReplicaSet) int32 {
	if rs.Spec.Replicas == nil {
		return 1
	}
	return *rs.Spec.Replicas
}

func isHeld(rs *appsv1.ReplicaSet) bool {
	_, held := rs.Annotations[keys.HeldReplicas]
	return held
}

// all returns all ReplicaSets, the new one last.
func (v *State) all() []*appsv1.ReplicaSet {
	all := slices.Clone(v.old)
	if v.fresh != nil {
		all = append(all, v.fresh)
	}
	return all
}
