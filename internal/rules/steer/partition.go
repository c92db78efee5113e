package steer

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// partitioned steers workloads by a partition: how many Pods stay old. During a release nothing but the partition is changed.
type partitioned struct {
	// kind is the value of the label workload-type, label the label of Pods with their revision.
	kind, label string
	// freeze is the partition that keeps all Pods old.
	freeze intstr.IntOrString
	// down says that a percentage of the partition rounds down.
	down bool
	// value returns the partition of a batch.
	value func(step *intstr.IntOrString, replicas int32) (intstr.IntOrString, error)
	read  func(workload Object) reading
	// write sets the partition of a workload, which is changed; nil takes it away.
	write func(workload Object, partition *intstr.IntOrString)
	// runs tells whether a Pod runs the revision that its label names; nil for a kind whose Pods are not ready until they do.
	runs func(*corev1.Pod) bool
}

// reading is what is read of a workload with a partition.
type reading struct {
	replicas, minReadySeconds int32
	onDelete                  bool
	partition                 *intstr.IntOrString
	generation, observed      int64
	// current is empty for a kind whose status does not tell it.
	current, update string
}

func (k partitioned) Type() string { return k.kind }

func (k partitioned) Refuses(o Objects) string {
	switch r := k.read(o.Workload); {
	case r.replicas == 0:
		return "it has no Pods"
	case r.onDelete:
		return "its updateStrategy is OnDelete"
	}
	return ""
}

func (k partitioned) Freeze(o Objects) Object {
	next := copyOf(o.Workload)
	k.write(next, &k.freeze)
	return next
}

// Guard keeps the partition where somebody has replaced the whole object, which shows in the label that is gone, too: without a partition
// the workload would go on by itself.
func (k partitioned) Guard(old Object, o Objects) Object {
	was := k.read(old).partition
	if o.Workload.GetLabels()[keys.WorkloadType] != "" || !isLeftOut(k.read(o.Workload).partition) || was == nil {
		return o.Workload
	}
	next := copyOf(o.Workload)
	k.write(next, was)
	return next
}

func (k partitioned) See(o Objects) Facts {
	r := k.read(o.Workload)
	f := Facts{RevisionLabel: k.label}
	f.Generation, f.Settled = r.generation, r.observed == r.generation && r.update != ""
	_, f.Marked = MarkOf(o.Workload)
	f.ReleaseID = cmp.Or(ReleaseID(o.Workload), r.update)
	f.Replicas, f.Update, f.Stable = r.replicas, r.update, r.current
	f.Updated, f.Ready = count(o, func(p *corev1.Pod) bool { return k.isUpdated(p, r.update) })
	if f.Stable == "" {
		f.Stable = k.oldest(o, r)
	}
	f.PodHash, f.StableHash = k.labelOf(o, f.Update), k.labelOf(o, f.Stable)
	f.Mixed = f.Updated > 0 && int(f.Updated) < live(o)
	f.Frozen = IsReleased(o.Workload) && k.kept(r) > 0
	return f
}

// oldest returns the revision of a Pod that is not updated, of the one that is there longest; the new one if there is none.
func (k partitioned) oldest(o Objects, r reading) string {
	var oldest *corev1.Pod
	for _, p := range o.Pods {
		if p.DeletionTimestamp == nil && !isAt(p, r.update) && p.Labels[appsv1.ControllerRevisionHashLabelKey] != "" &&
			(oldest == nil || p.CreationTimestamp.Before(&oldest.CreationTimestamp)) {
			oldest = p
		}
	}
	if oldest == nil {
		return r.update
	}
	return oldest.Labels[appsv1.ControllerRevisionHashLabelKey]
}

// labelOf returns the value of the revision label of Pods of a revision: the name of the revision, or only its hash.
func (k partitioned) labelOf(o Objects, name string) string {
	for _, p := range o.Pods {
		if isAt(p, name) && p.Labels[k.label] != "" {
			return p.Labels[k.label]
		}
	}
	if k.label == appsv1.ControllerRevisionHashLabelKey || name == "" {
		return name
	}
	return revision.ShortHash(name)
}

func (k partitioned) Updated(o Objects) func(*corev1.Pod) bool {
	update := k.read(o.Workload).update
	return func(p *corev1.Pod) bool { return k.isUpdated(p, update) }
}

func (k partitioned) isUpdated(p *corev1.Pod, update string) bool {
	return isAt(p, update) && (k.runs == nil || k.runs(p))
}

func (k partitioned) Planned(o Objects, step *intstr.IntOrString) (int32, error) {
	return release.Planned(step, k.read(o.Workload).replicas)
}

// Batch sets the partition such that the planned Pods are updated, and none of those that are is taken back. A batch that is paused keeps
// all Pods old that are old.
func (k partitioned) Batch(o Objects, b Batch) (Writes, error) {
	r := k.read(o.Workload)
	planned, err := release.Planned(b.Step, r.replicas)
	if err == nil && b.Kept != nil {
		planned, err = release.RolledBack(b.Step, r.replicas, *b.Kept)
	}
	if err != nil {
		return Writes{}, fmt.Errorf("steps: %w", err)
	}
	updated, _ := count(o, func(p *corev1.Pod) bool { return k.isUpdated(p, r.update) })
	if b.Paused {
		planned = 0
	}
	keep := max(r.replicas-max(planned, updated), 0)
	partition := intstr.FromInt32(keep)
	if b.Kept == nil && planned >= updated {
		if partition, err = k.value(b.Step, r.replicas); err != nil {
			return Writes{}, fmt.Errorf("steps: %w", err)
		}
	}
	if b.Kept != nil && k.label == appsv1.ControllerRevisionHashLabelKey { // Pods are updated from the highest ordinal down
		partition = intstr.FromInt32(keep + *b.Kept)
	}
	if r.partition != nil && (*r.partition == partition || k.kept(r) == keep && partition.Type == intstr.Int && b.Kept == nil) {
		return unchanged(o), nil
	}
	next := copyOf(o.Workload)
	k.write(next, &partition)
	return Writes{Workload: next}, nil
}

func (k partitioned) Promote(o Objects) Writes {
	if isLeftOut(k.read(o.Workload).partition) {
		return unchanged(o)
	}
	next := copyOf(o.Workload)
	k.write(next, nil)
	if equality.Semantic.DeepEqual(next, o.Workload) {
		return unchanged(o)
	}
	return Writes{Workload: next}
}

// isLeftOut reports whether no partition is given: defaulting writes 0 then.
func isLeftOut(partition *intstr.IntOrString) bool {
	return partition == nil || *partition == intstr.FromInt32(0)
}

func (k partitioned) Remains(o Objects) string {
	r := k.read(o.Workload)
	if r.observed != r.generation {
		return "its status is not up to date"
	}
	done := available(o, func(p *corev1.Pod) bool { return k.isUpdated(p, r.update) }, r.minReadySeconds)
	if done >= r.replicas {
		return ""
	}
	return fmt.Sprintf("%d of %d Pods are updated and available", done, r.replicas)
}

// kept returns how many Pods the partition keeps old.
func (k partitioned) kept(r reading) int32 {
	if r.partition == nil {
		return 0
	}
	n, err := budget.Partition(r.partition, int(r.replicas))
	if k.down && err == nil {
		n, err = budget.Scaled(r.partition, int(r.replicas), budget.Down)
	}
	if err != nil { // it can't be read, so nothing is updated
		return r.replicas
	}
	return min(int32(n), r.replicas)
}

// keepNumber is the partition of a batch of a kind whose partition is a number.
func keepNumber(step *intstr.IntOrString, replicas int32) (intstr.IntOrString, error) {
	n, err := release.Planned(step, replicas)
	return intstr.FromInt32(replicas - n), err
}

// live returns how many Pods count.
func live(o Objects) int {
	all, _ := count(o, func(*corev1.Pod) bool { return true })
	return int(all)
}

// isAt tells whether a Pod's label says that it is of a revision.
func isAt(p *corev1.Pod, name string) bool {
	return name != "" && revision.IsOf(p.Labels[appsv1.ControllerRevisionHashLabelKey], name)
}

// replicasOf returns how many Pods a workload asks for: 1 if it does not say.
func replicasOf(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
