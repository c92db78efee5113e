package cloneset

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// State is a Snapshot classified once: what the plan and the status both speak of.
type State struct {
	Snapshot
	selector labels.Selector
	strategy v1beta1.RollingUpdateCloneSetStrategy
	limits   budget.Limits
	workload rollout.Workload
	// members are the Pods that count as replicas.
	members []*rollout.Member
	// leaving are Pods that are being deleted or have ended; they do not count, but their names and claims are in use.
	leaving []*corev1.Pod
	// release are Pods that the CloneSet controls and whose labels it no longer selects.
	release []*corev1.Pod
	// problem is what can't be read in the spec; nothing is planned then.
	problem error
}

// Classify classifies a snapshot.
func Classify(s Snapshot) State {
	v := State{Snapshot: s}
	spec := &s.Set.Spec
	v.workload = rollout.Workload{
		Object: s.Set, Kind: kind(), Selector: spec.Selector, Lifecycle: spec.Lifecycle,
		MinReadySeconds: minReadySeconds(spec), DeadlineSeconds: spec.ProgressDeadlineSeconds,
		OnDelete: spec.UpdateStrategy.Type == v1beta1.OnDeleteCloneSetStrategyType, InPlace: s.Options.InPlace,
		TemplateHash: true, ShortHash: s.Options.ShortHash, PullJobs: s.PullJobs, Taken: s.Taken, Now: s.Now,
	}
	if v.problem = v.readSpec(); v.problem != nil {
		return v
	}
	if v.inPlace() {
		v.workload.Template = &spec.Template
	}
	pods := pod.OwnershipOf(s.Set.UID, v.selector, s.Pods)
	v.release = pods.Release
	if v.workload.History, v.problem = readHistory(s, v.workload.Owner()); v.problem != nil {
		return v
	}
	v.classifyPods(pods.Owned)
	return v
}

func (v *State) readSpec() error {
	spec := &v.Set.Spec
	var err error
	if v.selector, err = pod.Selector(spec.Selector); err != nil {
		return err
	}
	if spec.UpdateStrategy.RollingUpdate != nil && !v.workload.OnDelete {
		v.strategy = *spec.UpdateStrategy.RollingUpdate
	}
	v.workload.Paused = v.strategy.Paused
	v.limits, err = budget.Resolve(budget.Strategy{
		Partition:           v.strategy.Partition,
		MaxUnavailable:      v.strategy.MaxUnavailable,
		MaxSurge:            v.strategy.MaxSurge,
		ScaleMaxUnavailable: spec.ScaleStrategy.MaxUnavailable,
		Paused:              v.strategy.Paused,
		OnDelete:            v.workload.OnDelete,
	}, v.replicas())
	return err
}

func (v *State) replicas() int32 {
	if v.Set.Spec.Replicas == nil {
		return 1
	}
	return *v.Set.Spec.Replicas
}

func (v *State) inPlaceOnly() bool {
	return v.strategy.PodUpdatePolicy == v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType
}

func (v *State) inPlace() bool {
	return v.inPlaceOnly() || v.strategy.PodUpdatePolicy == v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType
}

func (v *State) classifyPods(pods []*corev1.Pod) {
	named := sets.New(v.Set.Spec.ScaleStrategy.PodsToDelete...)
	for _, p := range pods {
		if !pod.IsActive(p) {
			v.leaving = append(v.leaving, p)
			continue
		}
		m := v.workload.Classify(p)
		m.Specified = m.Specified || named.Has(p.Name)
		v.members = append(v.members, &m)
	}
}

// counts counts the members for the budget. Where Pods are added, asUpdated may count further Pods as updated.
func (v *State) counts(asUpdated func(*rollout.Member) bool) budget.Counts {
	var c budget.Counts
	for _, m := range v.members {
		side := &c.Old
		if asUpdated(m) {
			side = &c.New
		}
		side.Total++
		switch {
		case m.IsHeld():
			side.PreparingDelete++
		case m.Specified:
			side.Specified++
			if !m.Available {
				side.SpecifiedUnavailable++
			}
		case !m.Available:
			side.Unavailable++
		}
	}
	return c
}

func isUpdated(m *rollout.Member) bool { return m.Updated }

// moves asks the budget what may be done. asUpdated says which Pods count as updated.
func (v *State) moves(asUpdated func(*rollout.Member) bool) budget.Moves {
	return budget.Plan(v.limits, v.counts(asUpdated), budget.Rules{
		Rollback:               v.Options.PartitionRollback && v.workload.History.Current.Name != v.workload.History.Update.Name,
		ExcludePreparingDelete: v.excludePreparingDelete(),
		Beside:                 isBeside(&v.Set.Spec),
		Same:                   v.workload.History.Current.Name == v.workload.History.Update.Name,
	})
}

// isBeside tells whether a release has Pods of both revisions stay beside each other.
func isBeside(spec *v1beta1.CloneSetSpec) bool { return spec.MinReadySeconds >= budget.BesideSeconds }

// minReadySeconds returns how long a Pod has to be ready until it is available. What has both revisions stay is no such time: their Pods
// serve once they are ready.
func minReadySeconds(spec *v1beta1.CloneSetSpec) int32 {
	if isBeside(spec) {
		return 0
	}
	return spec.MinReadySeconds
}

func (v *State) excludePreparingDelete() bool {
	return v.Options.ExcludePreparingDelete || v.Set.Spec.ScaleStrategy.ExcludePreparingDelete
}

// pods returns the members' Pods.
func (v *State) pods() []*corev1.Pod { return podsOf(v.members) }

func podsOf(members []*rollout.Member) []*corev1.Pod {
	out := make([]*corev1.Pod, 0, len(members))
	for _, m := range members {
		out = append(out, m.Pod)
	}
	return out
}

// inOrder returns members in the order of their Pods.
func inOrder(members []*rollout.Member, pods []*corev1.Pod) []*rollout.Member {
	of := make(map[*corev1.Pod]*rollout.Member, len(members))
	for _, m := range members {
		of[m.Pod] = m
	}
	for at, p := range pods {
		members[at] = of[p]
	}
	return members
}

func readHistory(s Snapshot, owner metav1.OwnerReference) (revision.History, error) {
	return revision.Read(s.Revisions, revision.Wanted{
		Make: func(collisionCount int32) (*appsv1.ControllerRevision, error) {
			rev, err := revision.New(revision.OwnerOf(s.Set, kind()), &s.Set.Spec.Template, collisionCount)
			if err != nil {
				return nil, err
			}
			return rev, rememberClaimTemplates(rev, s.Set)
		},
		Renew:          func(rev *appsv1.ControllerRevision) error { return rememberClaimTemplates(rev, s.Set) },
		Owner:          owner,
		CollisionCount: s.Set.Status.CollisionCount,
		Current:        s.Set.Status.CurrentRevision,
	})
}

// rememberClaimTemplates notes the present claim templates on a revision, because its data holds the Pod template alone: Pods that are
// created at this revision later on must get the claims that their template mounts.
func rememberClaimTemplates(rev *appsv1.ControllerRevision, set *v1beta1.CloneSet) error {
	if rev.Annotations == nil {
		rev.Annotations = map[string]string{}
	}
	rev.Annotations[keys.RevisionClaimTemplatesHash] = claim.TemplatesHash(set.Spec.VolumeClaimTemplates)
	delete(rev.Annotations, keys.RevisionClaimTemplates)
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	encoded, err := claim.EncodeTemplates(set.Spec.VolumeClaimTemplates)
	if err != nil {
		return fmt.Errorf("noting the claim templates: %w", err)
	}
	rev.Annotations[keys.RevisionClaimTemplates] = encoded
	return nil
}
