package steer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
)

// deployments steers Deployments in batches. During a release a Deployment is paused and has a label and an annotation, by which the
// controller of Deployments moves its Pods; nothing else of it is changed. The label comes and goes together with the pause: a write that
// unpauses the Deployment and leaves the label is not ours.
type deployments struct{}

// Type is the value of the label workload-type.
func (deployments) Type() string { return "deployment" }

// Refuses says why a change of a Deployment is not a release in steps.
func (k deployments) Refuses(o Objects) string {
	d := o.Workload.(*appsv1.Deployment)
	isActive := func(rs *appsv1.ReplicaSet) bool { return sizeOf(rs) > 0 }
	switch {
	case replicasOf(d.Spec.Replicas) == 0:
		return "it has no Pods"
	case d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType && !isInBatches(d):
		return "its strategy is Recreate"
	case !slices.ContainsFunc(k.sets(o), isActive):
		return "it has no ReplicaSet with Pods"
	}
	return ""
}

// Freeze pauses a Deployment, and notes which of its ReplicaSets is the stable one.
func (k deployments) Freeze(o Objects) Object {
	d := copyOf(o.Workload).(*appsv1.Deployment)
	d.Spec.Paused = true
	labels := maps.Clone(d.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	if stable := k.stable(o); stable != nil {
		labels[keys.StableRevision] = stable.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	}
	labels[keys.AdvancedDeployment] = "true"
	d.Labels = labels
	setStrategy(d, replicasets.Strategy{
		RollingStyle: replicasets.RollingStyle, Partition: intstr.FromInt32(0), Revision: replicasets.Hash(&d.Spec.Template, nil),
	})
	return d
}

// Guard keeps a Deployment paused that somebody unpauses or makes delete all its Pods at once. Where somebody has replaced the whole
// object, that shows in the label of its kind, which is gone.
func (deployments) Guard(old Object, o Objects) Object {
	was, is := old.(*appsv1.Deployment), o.Workload.(*appsv1.Deployment)
	isReplaced := is.Labels[keys.WorkloadType] == ""
	if !isInBatches(was) || !isInBatches(is) && !isReplaced { // what ends a release takes the label away
		return o.Workload
	}
	return stillPaused(was, is)
}

// See returns what is known of a Deployment.
func (k deployments) See(o Objects) Facts {
	d := written(o.Workload.(*appsv1.Deployment))
	f := Facts{RevisionLabel: appsv1.DefaultDeploymentUniqueLabelKey}
	f.Generation, f.Settled = d.Generation, d.Status.ObservedGeneration == d.Generation
	_, f.Marked = MarkOf(d)
	f.Update = replicasets.Hash(&d.Spec.Template, nil)
	f.ReleaseID = cmp.Or(ReleaseID(d), f.Update)
	f.Replicas = replicasOf(d.Spec.Replicas)
	f.Updated, f.Ready = count(o, k.Updated(o))
	f.Stable = f.Update
	fresh, stable := replicasets.New(d, k.sets(o)), k.stable(o)
	if fresh != nil {
		f.PodHash = fresh.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		f.StableHash = f.PodHash
	}
	if stable != nil {
		f.Stable, f.StableHash = revisionOf(stable), stable.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	}
	f.RolledBack = fresh != nil && d.Labels[keys.StableRevision] != "" && d.Labels[keys.StableRevision] == f.PodHash
	active := 0
	for _, rs := range k.sets(o) {
		if sizeOf(rs) > 0 {
			active++
		}
	}
	f.Mixed = active > 1
	f.Frozen = IsReleased(d) && (d.Spec.Paused || isInBatches(d))
	return f
}

// Updated goes by the new ReplicaSet.
func (k deployments) Updated(o Objects) func(*corev1.Pod) bool {
	fresh := replicasets.New(written(o.Workload.(*appsv1.Deployment)), k.sets(o))
	return func(p *corev1.Pod) bool { return fresh != nil && metav1.IsControlledBy(p, fresh) }
}

// Planned returns how many Pods a step updates.
func (deployments) Planned(o Objects, step *intstr.IntOrString) (int32, error) {
	return release.DeploymentLimit(step, replicasOf(o.Workload.(*appsv1.Deployment).Spec.Replicas))
}

// Batch says in the annotation how many Pods are to be updated. The controller of Deployments never takes an update back.
func (deployments) Batch(o Objects, b Batch) (Writes, error) {
	d := o.Workload.(*appsv1.Deployment)
	strategy := replicasets.Strategy{
		RollingStyle: replicasets.RollingStyle, Paused: b.Paused, Revision: replicasets.Hash(&written(d).Spec.Template, nil),
	}
	if _, err := release.Planned(b.Step, 1); err != nil {
		return Writes{}, fmt.Errorf("steps: %w", err)
	}
	strategy.Partition = *b.Step
	if b.Kept != nil {
		replicas := replicasOf(d.Spec.Replicas)
		planned, err := release.RolledBack(b.Step, replicas, *b.Kept)
		if err != nil {
			return Writes{}, fmt.Errorf("steps: %w", err)
		}
		strategy.Partition = intstr.FromInt32(planned)
	}
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType { // the original has put the user's strategy away there
		if was, err := replicasets.Parse(d.Annotations[keys.DeploymentStrategy]); err == nil {
			strategy.RollingUpdate = was.RollingUpdate
		}
	}
	next := copyOf(d).(*appsv1.Deployment)
	next.Spec.Paused = true
	setStrategy(next, strategy)
	if !isInBatches(next) {
		next.Labels = maps.Clone(next.Labels)
		if next.Labels == nil {
			next.Labels = map[string]string{}
		}
		next.Labels[keys.AdvancedDeployment] = "true"
	}
	if equality.Semantic.DeepEqual(next, d) {
		return unchanged(o), nil
	}
	return Writes{Workload: next}, nil
}

// Promote has the native controller go on, with the strategy that the user wrote.
func (deployments) Promote(o Objects) Writes {
	d := o.Workload.(*appsv1.Deployment)
	if !isInBatches(d) && !(IsReleased(d) && d.Spec.Paused) {
		return unchanged(o)
	}
	next := withoutAnnotations(copyOf(d), keys.DeploymentStrategy, keys.DeploymentExtraStatus).(*appsv1.Deployment)
	next.Spec.Paused, next.Spec.Template = false, written(next).Spec.Template
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType && isInBatches(d) {
		strategy, _ := replicasets.Parse(d.Annotations[keys.DeploymentStrategy])
		next.Spec.Strategy = replicasets.Restored(strategy)
	}
	next.Labels = maps.Clone(next.Labels)
	delete(next.Labels, keys.AdvancedDeployment)
	return Writes{Workload: next}
}

// Remains says what a Deployment that is rolled out natively has still to do.
func (k deployments) Remains(o Objects) string {
	d := o.Workload.(*appsv1.Deployment)
	if d.Status.ObservedGeneration != d.Generation {
		return "its status is not up to date"
	}
	done, replicas := available(o, k.Updated(o), d.Spec.MinReadySeconds), replicasOf(d.Spec.Replicas)
	if done >= replicas {
		return ""
	}
	return fmt.Sprintf("%d of %d Pods are updated and available", done, replicas)
}

// sets returns the ReplicaSets of the Deployment itself.
func (deployments) sets(o Objects) []*appsv1.ReplicaSet {
	return setsOf(o, o.Workload.(*appsv1.Deployment))
}

// stable returns the ReplicaSet that a release came from: the one that the Deployment notes, or else of those with Pods the one with the
// lowest revision that is not the new one; nil if there is none.
func (k deployments) stable(o Objects) *appsv1.ReplicaSet {
	d := written(o.Workload.(*appsv1.Deployment))
	sets := k.sets(o)
	if rs := noted(d, sets); rs != nil && IsReleased(d) {
		return rs
	}
	fresh := replicasets.New(d, sets)
	var found *appsv1.ReplicaSet
	for _, rs := range sets {
		if rs == fresh || sizeOf(rs) == 0 {
			continue
		}
		if found == nil || cmp.Or(cmp.Compare(replicasets.Revision(rs), replicasets.Revision(found)),
			rs.CreationTimestamp.Compare(found.CreationTimestamp.Time), strings.Compare(rs.Name, found.Name)) < 0 {
			found = rs
		}
	}
	return found
}

// noted returns the ReplicaSet that a Deployment notes as the stable one; nil if it notes none that is there.
func noted(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	hash := d.Labels[keys.StableRevision]
	for _, rs := range sets {
		if hash != "" && rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == hash {
			return rs
		}
	}
	return nil
}

// revisionOf returns the revision of a ReplicaSet's template, without the label that it has added.
func revisionOf(rs *appsv1.ReplicaSet) string {
	template := rs.Spec.Template
	template.Labels = maps.Clone(template.Labels)
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	if len(template.Labels) == 0 {
		template.Labels = nil // none and no map are two different things to a hash
	}
	return replicasets.Hash(&template, nil)
}

func isInBatches(d *appsv1.Deployment) bool { return d.Labels[keys.AdvancedDeployment] == "true" }

func setStrategy(d *appsv1.Deployment, s replicasets.Strategy) {
	annotate(d, keys.DeploymentStrategy, s.String())
}

func sizeOf(rs *appsv1.ReplicaSet) int32 { return replicasOf(rs.Spec.Replicas) }
