package daemonset

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/rules/nodeupdate"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// defaultBurst is the most Pods that one pass creates where the DaemonSet does not say.
const defaultBurst = 250

// Survey is a Snapshot sorted once into what the plan and the status both speak of.
type Survey struct {
	Snapshot
	selector labels.Selector
	// canary selects the nodes to update; nil for all.
	canary   labels.Selector
	strategy v1beta1.RollingUpdateDaemonSet
	limits   nodeupdate.Limits
	burst    int
	history  revision.History
	// places are the nodes that should run a Pod or have one, by name; those that are gone among them.
	places []*place
	byName map[string]*place
	// desired is the number of nodes that should run a Pod.
	desired int
	// kept are the nodes that the update may touch.
	kept map[string]bool
	// release are Pods that the DaemonSet controls and whose labels it no longer selects.
	release []*corev1.Pod
	// awaited is the Pod that becomes available first by time alone.
	awaited rollout.Awaited
	// problem is what can't be read in the spec; nothing is planned then.
	problem error
}

// Take sorts a snapshot.
func Take(s Snapshot) Survey {
	v := Survey{Snapshot: s}
	if v.problem = v.readSpec(); v.problem != nil || s.Set.DeletionTimestamp != nil {
		return v
	}
	if v.history, v.problem = readHistory(s); v.problem != nil {
		return v
	}
	split := pod.OwnershipOf(s.Set.UID, v.selector, s.Pods)
	v.release = split.Release
	v.sortNodes()
	v.sortPods(split.Owned)
	if v.problem = v.readLimits(); v.problem != nil {
		return v
	}
	v.kept = map[string]bool{}
	if !v.onDelete() {
		for _, n := range nodeupdate.Kept(v.nodes(), v.limits) {
			v.kept[n.Name] = true
		}
	}
	return v
}

func (v *Survey) readSpec() error {
	spec := &v.Set.Spec
	var err error
	if v.selector, err = pod.Selector(spec.Selector); err != nil {
		if errors.Is(err, pod.ErrSelectsAll) {
			return errSelectsAll
		}
		return err
	}
	if spec.UpdateStrategy.RollingUpdate != nil && !v.onDelete() {
		v.strategy = *spec.UpdateStrategy.RollingUpdate
	}
	if v.strategy.Selector == nil {
		return nil
	}
	if v.canary, err = metav1.LabelSelectorAsSelector(v.strategy.Selector); err != nil {
		return fmt.Errorf("reading updateStrategy.rollingUpdate.selector: %w", err)
	}
	return nil
}

// readLimits turns percentages into numbers of the nodes that were just seen: those of the status may be from before the nodes came.
func (v *Survey) readLimits() error {
	var err error
	number := func(field string, value *intstr.IntOrString, r budget.Rounding) int {
		n, problem := budget.Scaled(value, v.desired, r)
		if problem != nil && err == nil {
			err = fmt.Errorf("%s: %w", field, problem)
		}
		return n
	}
	v.limits = nodeupdate.Limits{
		BySelector:     v.canary != nil,
		Partition:      number("updateStrategy.rollingUpdate.partition", v.strategy.Partition, budget.Down),
		MaxUnavailable: number("updateStrategy.rollingUpdate.maxUnavailable", v.strategy.MaxUnavailable, budget.Up),
		MaxSurge:       number("updateStrategy.rollingUpdate.maxSurge", v.strategy.MaxSurge, budget.Up),
	}
	if v.inPlace() || v.onDelete() {
		v.limits.MaxSurge = 0
	}
	if v.limits.MaxSurge == 0 {
		v.limits.MaxUnavailable = max(v.limits.MaxUnavailable, 1)
	}
	v.burst = defaultBurst
	if value := v.Set.Spec.BurstReplicas; value != nil {
		// A small percentage of few nodes must create them all the same.
		v.burst = max(number("burstReplicas", value, budget.Down), 1)
	}
	return err
}

func (v *Survey) onDelete() bool {
	return v.Set.Spec.UpdateStrategy.Type == v1beta1.OnDeleteDaemonSetStrategyType
}

func (v *Survey) inPlace() bool { return v.strategy.Type == v1beta1.InPlaceRollingUpdateType }

func (v *Survey) surges() bool { return v.limits.MaxSurge > 0 }

func (v *Survey) paused() bool { return v.strategy.Paused != nil && *v.strategy.Paused }

// sortNodes judges each node once.
func (v *Survey) sortNodes() {
	v.byName = map[string]*place{}
	fit := nodefit.Of(&v.Set.Spec.Template.Spec)
	for _, node := range v.Nodes {
		p := &place{name: node.Name, node: node, verdict: fit.On(node)}
		p.selected = v.canary != nil && v.canary.Matches(labels.Set(node.Labels))
		v.byName[node.Name] = p
		if p.verdict.Run {
			v.places = append(v.places, p)
			v.desired++
		}
	}
}

// sortPods puts each Pod in its place. A Pod that has ended and is being deleted is gone already: what keeps it, such as a finalizer, must not keep
// its node without a daemon. One that belongs to no node is nobody's.
func (v *Survey) sortPods(pods []*corev1.Pod) {
	updated := updates{history: v.history, generation: v.Set.Annotations[keys.TemplateGeneration], known: map[string]bool{}}
	for _, p := range pods {
		name := nodefit.NodeOf(p)
		m := &member{pod: p, state: pod.State(p), leaving: p.DeletionTimestamp != nil, ended: pod.IsFinished(p)}
		if name == "" || m.leaving && m.ended {
			continue
		}
		m.updated, m.ready = updated.has(p), pod.IsReady(p)
		var wait time.Duration
		m.available, wait = pod.Available(p, v.Set.Spec.MinReadySeconds, v.Now)
		if !m.leaving {
			v.awaited.Note(p, wait)
		}
		at := v.byName[name]
		if at == nil {
			at = &place{name: name}
			v.byName[name] = at
		}
		if len(at.members) == 0 && !at.verdict.Run {
			v.places = append(v.places, at)
		}
		at.members = append(at.members, m)
	}
	slices.SortFunc(v.places, func(a, b *place) int { return cmp.Compare(a.name, b.name) })
	for _, p := range v.places {
		p.sort()
	}
}

// nodes returns the nodes that should run a Pod in the order of updates: by name, the last one first.
func (v *Survey) nodes() []nodeupdate.Node {
	out := make([]nodeupdate.Node, 0, v.desired)
	for i := len(v.places) - 1; i >= 0; i-- {
		if v.places[i].verdict.Run {
			out = append(out, v.places[i].asNode())
		}
	}
	return out
}

// pods returns all Pods that belong to a node.
func (v *Survey) pods() []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range v.places {
		for _, m := range p.members {
			out = append(out, m.pod)
		}
	}
	return out
}

// workload is what the steps shared by all workloads need to know.
func (v *Survey) workload() rollout.Workload {
	return rollout.Workload{Lifecycle: v.Set.Spec.Lifecycle, InPlace: v.Options.InPlace, ShortHash: true, Bare: true, Now: v.Now}
}
