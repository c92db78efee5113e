package cloneset

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// Survey is a Snapshot sorted once into what the plan and the status both speak of.
type Survey struct {
	Snapshot
	selector labels.Selector
	strategy v1beta1.RollingUpdateCloneSetStrategy
	limits   budget.Limits
	history  revision.History
	fleet    fleet
	// release are Pods that the CloneSet controls and whose labels it no longer selects.
	release []*corev1.Pod
	// problem is what can't be read in the spec; nothing is planned then.
	problem error
}

// member is a Pod that counts as a replica, and the facts that the rules ask for.
type member struct {
	pod       *corev1.Pod
	state     pub.LifecycleStateType
	instance  string
	updated   bool
	available bool
	// specified means that the user named the Pod for deletion.
	specified bool
	// settled means that this pass has already planned a write to the Pod.
	settled bool
}

// fleet is all Pods of the CloneSet.
type fleet struct {
	members []*member
	// leaving are Pods that are being deleted or have ended; they do not count, but their names and claims are in use.
	leaving []*corev1.Pod
	// usedIDs are the instance ids of all Pods.
	usedIDs sets.Set[string]
	// awaited is the Pod that becomes available first by time alone.
	awaited rollout.Awaited
}

// Take sorts a snapshot.
func Take(s Snapshot) Survey {
	v := Survey{Snapshot: s}
	if v.problem = v.readSpec(); v.problem != nil {
		return v
	}
	split := pod.OwnershipOf(s.Set.UID, v.selector, s.Pods)
	v.release = split.Release
	if v.history, v.problem = readHistory(s); v.problem != nil {
		return v
	}
	v.fleet = v.sortFleet(split.Owned)
	return v
}

func (v *Survey) readSpec() error {
	spec := &v.Set.Spec
	var err error
	if v.selector, err = pod.Selector(spec.Selector); err != nil {
		return err
	}
	if spec.UpdateStrategy.RollingUpdate != nil && !v.onDelete() {
		v.strategy = *spec.UpdateStrategy.RollingUpdate
	}
	v.limits, err = budget.Resolve(budget.Strategy{
		Partition:           v.strategy.Partition,
		MaxUnavailable:      v.strategy.MaxUnavailable,
		MaxSurge:            v.strategy.MaxSurge,
		ScaleMaxUnavailable: spec.ScaleStrategy.MaxUnavailable,
		Paused:              v.strategy.Paused,
		OnDelete:            v.onDelete(),
	}, v.replicas())
	return err
}

func (v *Survey) replicas() int32 {
	if v.Set.Spec.Replicas == nil {
		return 1
	}
	return *v.Set.Spec.Replicas
}

func (v *Survey) onDelete() bool {
	return v.Set.Spec.UpdateStrategy.Type == v1beta1.OnDeleteCloneSetStrategyType
}

func (v *Survey) inPlaceOnly() bool {
	return v.strategy.PodUpdatePolicy == v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType
}

func (v *Survey) inPlace() bool {
	return v.inPlaceOnly() || v.strategy.PodUpdatePolicy == v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType
}

func (v *Survey) sortFleet(pods []*corev1.Pod) fleet {
	f := fleet{usedIDs: sets.New[string]()}
	named := sets.New(v.Set.Spec.ScaleStrategy.PodsToDelete...)
	for _, p := range pods {
		instance := claim.InstanceID(p, v.Set.Name)
		f.usedIDs.Insert(instance)
		if !pod.IsActive(p) {
			f.leaving = append(f.leaving, p)
			continue
		}
		m := &member{
			pod:       p,
			state:     pod.State(p),
			instance:  instance,
			updated:   v.history.IsUpdate(p),
			specified: pod.IsSpecifiedDelete(p) || named.Has(p.Name),
		}
		var wait time.Duration
		m.available, wait = pod.Available(p, v.Set.Spec.MinReadySeconds, v.Now)
		f.awaited.Note(p, wait)
		f.members = append(f.members, m)
	}
	return f
}

// counts sorts the members for the budget. Where Pods are added, asUpdated may count further Pods as updated.
func (f fleet) counts(asUpdated func(*member) bool) budget.Counts {
	var c budget.Counts
	for _, m := range f.members {
		side := &c.Old
		if asUpdated(m) {
			side = &c.New
		}
		side.Total++
		switch {
		case m.state == pub.LifecycleStatePreparingDelete:
			side.PreparingDelete++
		case m.specified:
			side.Specified++
			if !m.available {
				side.SpecifiedUnavailable++
			}
		case !m.available:
			side.Unavailable++
		}
	}
	return c
}

func isUpdated(m *member) bool { return m.updated }

// pods returns the members' Pods.
func (f fleet) pods() []*corev1.Pod {
	out := make([]*corev1.Pod, 0, len(f.members))
	for _, m := range f.members {
		out = append(out, m.pod)
	}
	return out
}

// workload is what the steps shared by all workloads need to know.
func (v *Survey) workload() rollout.Workload {
	return rollout.Workload{Lifecycle: v.Set.Spec.Lifecycle, InPlace: v.Options.InPlace, TemplateHash: true, ShortHash: v.Options.ShortHash, Now: v.Now}
}
