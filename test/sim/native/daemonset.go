package native

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seed-69ecc383/kruise/internal/rules/ondelete"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const daemonActor = "daemonset controller"

// Daemons is the controller of the DaemonSet default/web, by the rules of Kubernetes 1.36, in a cluster of so many nodes. Each step is one
// write at most. Pods are bound when they are made.
type Daemons struct {
	promises.User
	Nodes int
	made  int
}

// DaemonSet returns the DaemonSet; nil if there is none.
func (n *Daemons) DaemonSet() *appsv1.DaemonSet {
	key := simulate.Key{Kind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"), Namespace: "default", Name: "web"}
	set, _ := n.Cluster.Get(key).(*appsv1.DaemonSet)
	return set
}

// Revisions returns the revisions of the DaemonSet.
func (n *Daemons) Revisions() []*appsv1.ControllerRevision {
	var out []*appsv1.ControllerRevision
	for _, object := range n.Cluster.Of(appsv1.SchemeGroupVersion.WithKind("ControllerRevision")) {
		out = append(out, object.(*appsv1.ControllerRevision))
	}
	return out
}

// Step is one act of the controller; false if there is nothing to do.
func (n *Daemons) Step() bool {
	set := n.DaemonSet()
	if set == nil || set.DeletionTimestamp != nil {
		return false
	}
	update, wrote := n.history(set)
	return wrote || n.manage(set, update) || n.roll(set, update) || n.report(set, update)
}

// history stores the present template as the newest revision.
func (n *Daemons) history(set *appsv1.DaemonSet) (update *appsv1.ControllerRevision, wrote bool) {
	newest := int64(0)
	for _, r := range n.Revisions() {
		newest = max(newest, r.Revision)
		if template, err := revision.Template(r); err == nil && steer.SameTemplate(template, &set.Spec.Template) {
			update = r
		}
	}
	if update != nil && update.Revision == newest {
		return update, false
	}
	if update != nil {
		simulate.Update(n.Cluster, daemonActor, update, func(r *appsv1.ControllerRevision) { r.Revision = newest + 1 })
		return nil, true
	}
	data, err := revision.Data(&set.Spec.Template)
	if err != nil {
		panic(err)
	}
	hash := revision.Hash(data, 0)
	labels := maps.Clone(set.Spec.Template.Labels)
	labels[appsv1.ControllerRevisionHashLabelKey] = hash
	_, err = n.Cluster.Create(daemonActor, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: set.Name + "-" + hash, Labels: labels, OwnerReferences: owned(set),
		},
		Data: runtime.RawExtension{Raw: data}, Revision: newest + 1,
	})
	return nil, err == nil
}

func owned(set *appsv1.DaemonSet) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// byNode returns the Pods of each node, also those that are on their way out.
func (n *Daemons) byNode() map[string][]*corev1.Pod {
	out := map[string][]*corev1.Pod{}
	for _, p := range n.Pods() {
		out[p.Spec.NodeName] = append(out[p.Spec.NodeName], p)
	}
	return out
}

// manage makes Pods on nodes that have none, and deletes those that have failed, or have lost their node.
func (n *Daemons) manage(set *appsv1.DaemonSet, update *appsv1.ControllerRevision) bool {
	pods := n.byNode()
	for i := range n.Nodes {
		name := nodeName(i)
		if len(pods[name]) == 0 {
			n.make(set, update, name)
			return true
		}
	}
	for _, p := range n.Pods() {
		var at int
		_, err := fmt.Sscanf(p.Spec.NodeName, "node-%d", &at)
		if p.DeletionTimestamp == nil && (err != nil || at >= n.Nodes || pod.IsFinished(p)) {
			n.Cluster.Delete(daemonActor, p)
			return true
		}
	}
	return false
}

func (n *Daemons) make(set *appsv1.DaemonSet, update *appsv1.ControllerRevision, node string) {
	n.made++
	labels := maps.Clone(set.Spec.Template.Labels)
	labels[appsv1.ControllerRevisionHashLabelKey] = update.Labels[appsv1.ControllerRevisionHashLabelKey]
	spec := *set.Spec.Template.Spec.DeepCopy()
	spec.NodeName = node
	_, _ = n.Cluster.Create(daemonActor, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: fmt.Sprintf("%s-%d", set.Name, n.made), Labels: labels, OwnerReferences: owned(set),
		},
		Spec: spec,
	}) // its name is new
}

// roll deletes the next old Pod of a rolling update.
func (n *Daemons) roll(set *appsv1.DaemonSet, update *appsv1.ControllerRevision) bool {
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return false
	}
	most, unavailable, free, candidates := n.unavailable(set), 0, []*corev1.Pod(nil), []*corev1.Pod(nil)
	pods := n.byNode()
	for i := range n.Nodes {
		active := slices.DeleteFunc(pods[nodeName(i)], func(p *corev1.Pod) bool { return !pod.IsActive(p) })
		switch {
		case len(active) == 0:
			unavailable++
		case isOf(active[0], update) && !pod.IsReady(active[0]):
			unavailable++
		case isOf(active[0], update):
		case !pod.IsReady(active[0]):
			free = append(free, active[0])
		default:
			candidates = append(candidates, active[0])
		}
	}
	if len(free) == 0 && unavailable < most {
		free = candidates
	}
	if len(free) == 0 {
		return false
	}
	first := slices.MinFunc(free, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	n.Cluster.Delete(daemonActor, first)
	return true
}

func (n *Daemons) unavailable(set *appsv1.DaemonSet) int {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil {
		return 1
	}
	most, err := ondelete.MaxUnavailable(rolling.MaxUnavailable, int32(n.Nodes))
	if err != nil {
		panic(err)
	}
	return int(most)
}

func isOf(p *corev1.Pod, r *appsv1.ControllerRevision) bool {
	return p.Labels[appsv1.ControllerRevisionHashLabelKey] == r.Labels[appsv1.ControllerRevisionHashLabelKey]
}

// report writes the status.
func (n *Daemons) report(set *appsv1.DaemonSet, update *appsv1.ControllerRevision) bool {
	status := appsv1.DaemonSetStatus{ObservedGeneration: set.Generation, DesiredNumberScheduled: int32(n.Nodes)}
	for _, p := range n.Pods() {
		if !pod.IsActive(p) {
			continue
		}
		status.CurrentNumberScheduled++
		if isOf(p, update) {
			status.UpdatedNumberScheduled++
		}
		if pod.IsReady(p) {
			status.NumberReady++
			status.NumberAvailable++
		}
	}
	before := n.Cluster.Revision()
	simulate.Update(n.Cluster, daemonActor, set, func(set *appsv1.DaemonSet) { set.Status = status })
	return n.Cluster.Revision() != before
}
