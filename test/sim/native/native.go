// Package native plays the controllers of Kubernetes for Deployments and ReplicaSets in simulated clusters.
package native

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	nativeActor = "deployment controller"
	setActor    = "replicaset controller"
	desired     = "deployment.kubernetes.io/desired-replicas"
	maximum     = "deployment.kubernetes.io/max-replicas"
)

// Controllers are those of one Deployment, default/web if Name says nothing else, and of its ReplicaSets, by the rules of Kubernetes 1.36.
// Each step is one write at most. What the first of them writes follows from what it read in the step before, so that others write in
// between.
//
// One rule is stricter: a rolling update takes no Pod while the status of a ReplicaSet is not of its present spec. Kubernetes 1.36
// (reconcileOldReplicaSets) does not look at that. A ReplicaSet that was made smaller and larger again may then count a Pod as available
// that is being deleted, and Kubernetes takes one too many, which is no mistake of ours.
type Controllers struct {
	promises.User
	Name string
	// Lawless has the API server do without the policy for ReplicaSets that are held.
	Lawless bool
	next    func() bool
	pods    int
}

// Deployment returns the Deployment; nil if there is none.
func (n *Controllers) Deployment() *appsv1.Deployment {
	key := simulate.Key{Kind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Namespace: "default", Name: cmp.Or(n.Name, "web")}
	d, _ := n.Cluster.Get(key).(*appsv1.Deployment)
	return d
}

// Sets returns the ReplicaSets of the Deployment, the oldest first.
func (n *Controllers) Sets() []*appsv1.ReplicaSet {
	var out []*appsv1.ReplicaSet
	for _, object := range n.Cluster.Of(appsv1.SchemeGroupVersion.WithKind("ReplicaSet")) {
		if d := n.Deployment(); d != nil && metav1.IsControlledBy(object, d) {
			out = append(out, object.(*appsv1.ReplicaSet))
		}
	}
	slices.SortFunc(out, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return out
}

// podsOf returns the active Pods of a ReplicaSet, those first that are not ready.
func (n *Controllers) podsOf(rs *appsv1.ReplicaSet) []*corev1.Pod {
	pods := slices.DeleteFunc(n.Pods(), func(p *corev1.Pod) bool { return !metav1.IsControlledBy(p, rs) || !pod.IsActive(p) })
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return readiness(a) - readiness(b) })
	return pods
}

func readiness(p *corev1.Pod) int {
	if pod.IsReady(p) {
		return 1
	}
	return 0
}

// StepSets is one act of the controller of ReplicaSets.
func (n *Controllers) StepSets() bool {
	for _, rs := range n.Sets() {
		pods := n.podsOf(rs)
		if int(sizeOf(rs)) > len(pods) {
			n.pods++
			owner := metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
			_, err := n.Cluster.Create(setActor, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: rs.Namespace, Name: fmt.Sprintf("%s-%d", rs.Name, n.pods), Labels: rs.Spec.Template.Labels,
					OwnerReferences: []metav1.OwnerReference{*owner},
				},
				Spec: *rs.Spec.Template.Spec.DeepCopy(),
			})
			return err == nil
		}
		if int(sizeOf(rs)) < len(pods) {
			n.Cluster.Delete(setActor, pods[0])
			return true
		}
		ready := int32(0)
		for _, p := range pods {
			ready += int32(readiness(p))
		}
		status := appsv1.ReplicaSetStatus{
			Replicas: int32(len(pods)), ReadyReplicas: ready, AvailableReplicas: ready, ObservedGeneration: rs.Generation,
		}
		if rs.Spec.MinReadySeconds >= budget.BesideSeconds { // no Pod is ready for 68 years
			status.AvailableReplicas = 0
		}
		if was := rs.Status; was.Replicas != status.Replicas || was.ReadyReplicas != ready ||
			was.AvailableReplicas != status.AvailableReplicas || was.ObservedGeneration != rs.Generation {
			simulate.Update(n.Cluster, setActor, rs, func(rs *appsv1.ReplicaSet) { rs.Status = status })
			return true
		}
	}
	return false
}

// StepDeployment is one act of the controller of Deployments: to write what it decided in the call before, or to decide.
func (n *Controllers) StepDeployment() bool {
	if next := n.next; next != nil {
		n.next = nil
		return next()
	}
	d := n.Deployment()
	if d == nil {
		return false
	}
	sets := n.Sets()
	fresh := replicasets.New(d, sets)
	if n.next = n.syncRevision(d, fresh, sets); n.next == nil {
		if d.Spec.Paused || n.isScaled(d, sets) {
			n.next = n.scale(d, fresh, sets)
		} else {
			n.next = n.roll(d, fresh, sets)
		}
	}
	return n.next != nil && (n.Chance(50) || n.StepDeployment()) || n.report(d, fresh, sets)
}

// syncRevision returns the write that gives the new ReplicaSet the highest revision and the Deployment's annotations.
func (n *Controllers) syncRevision(d *appsv1.Deployment, fresh *appsv1.ReplicaSet, sets []*appsv1.ReplicaSet) func() bool {
	if fresh == nil {
		return nil
	}
	after, highest := fresh.DeepCopy(), int64(0)
	for _, rs := range sets {
		if rs != fresh {
			highest = max(highest, replicasets.Revision(rs))
		}
	}
	changed := false
	if replicasets.Revision(fresh) <= highest {
		after.Annotations[replicasets.RevisionAnnotation], changed = strconv.FormatInt(highest+1, 10), true
	}
	for key, value := range d.Annotations {
		if key != replicasets.RevisionAnnotation && after.Annotations[key] != value {
			after.Annotations[key], changed = value, true
		}
	}
	if after.Spec.MinReadySeconds != d.Spec.MinReadySeconds {
		after.Spec.MinReadySeconds, changed = d.Spec.MinReadySeconds, true
	}
	if !changed {
		return nil
	}
	return func() bool { return n.put(fresh, after) }
}

// put writes a ReplicaSet, as long as it is the one that was read and the policy allows it.
func (n *Controllers) put(before, after *appsv1.ReplicaSet) bool {
	stored, _ := n.Cluster.Get(n.Cluster.KeyOf(before)).(*appsv1.ReplicaSet)
	if stored == nil || stored.ResourceVersion != before.ResourceVersion {
		return true // a conflict: it looks again
	}
	held, is := after.Annotations[keys.HeldReplicas]
	if is && !n.Lawless && sizeOf(stored) != sizeOf(after) && held != strconv.Itoa(int(sizeOf(after))) {
		return false
	}
	simulate.Update(n.Cluster, nativeActor, stored, func(rs *appsv1.ReplicaSet) { rs.Annotations, rs.Spec = after.Annotations, after.Spec })
	return true
}

// LimitsOf returns what a Deployment allows that updates all Pods.
func LimitsOf(d *appsv1.Deployment) replicasets.Limits {
	all := intstr.FromString("100%")
	l, err := replicasets.LimitsOf(&d.Spec, &all)
	if err != nil {
		panic(err)
	}
	return l
}

func (n *Controllers) resize(d *appsv1.Deployment, rs *appsv1.ReplicaSet, size int32) func() bool {
	l := LimitsOf(d)
	after := replicasets.ScaledFor(rs.DeepCopy(), l)
	after.Spec.Replicas = &size
	return func() bool { return n.put(rs, after) }
}

// isScaled tells whether the Deployment has been scaled since an active ReplicaSet was.
func (n *Controllers) isScaled(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) bool {
	return slices.ContainsFunc(sets, func(rs *appsv1.ReplicaSet) bool {
		was := replicasets.DesiredOf(rs)
		return sizeOf(rs) > 0 && was >= 0 && was != *d.Spec.Replicas
	})
}

// Unstick is a user who sees that Kubernetes will never roll the Deployment out, and takes off what keeps it from that. Kubernetes 1.36
// only scales, and rolls nothing out, as long as an active ReplicaSet was scaled for another number of replicas (isScalingEvent). If it is
// the only one and has the right size all the same, it is not written (scale), and goes on saying so. That takes a user who scales the
// Deployment down and up again, or to what is left of the old Pods in the middle of a rolling update. Where nobody scales, nobody helps.
func (n *Controllers) Unstick() bool {
	d, sets := n.Deployment(), n.Sets()
	if d == nil || d.Spec.Paused || !n.isScaled(d, sets) {
		return false
	}
	fresh := replicasets.New(d, sets)
	active := slices.DeleteFunc(sets, func(rs *appsv1.ReplicaSet) bool { return sizeOf(rs) == 0 })
	if len(active) > 1 || active[0] == fresh || sizeOf(active[0]) != *d.Spec.Replicas {
		return false
	}
	simulate.Update(n.Cluster, promises.UserActor, active[0], func(rs *appsv1.ReplicaSet) { delete(rs.Annotations, desired) })
	return true
}

// scale returns the next write that scales ReplicaSets in proportion.
func (n *Controllers) scale(d *appsv1.Deployment, fresh *appsv1.ReplicaSet, sets []*appsv1.ReplicaSet) func() bool {
	active := slices.DeleteFunc(slices.Clone(sets), func(rs *appsv1.ReplicaSet) bool { return sizeOf(rs) == 0 })
	replicas, l := *d.Spec.Replicas, LimitsOf(d)
	if len(active) <= 1 {
		if len(active) == 0 {
			if active = sets; fresh != nil {
				active = []*appsv1.ReplicaSet{fresh}
			}
		}
		if len(active) == 0 || sizeOf(active[len(active)-1]) == replicas {
			return nil // see Unstick
		}
		return n.resize(d, active[len(active)-1], replicas)
	}
	if fresh != nil && sizeOf(fresh) == replicas && replicasets.DesiredOf(fresh) == replicas && fresh.Status.AvailableReplicas == replicas {
		for _, rs := range active {
			if rs != fresh {
				return n.resize(d, rs, 0)
			}
		}
	}
	return n.proportion(d, active, l)
}

// proportion spreads what is missing or too much over active ReplicaSets.
func (n *Controllers) proportion(d *appsv1.Deployment, active []*appsv1.ReplicaSet, l replicasets.Limits) func() bool {
	replicas, total := *d.Spec.Replicas, int32(0)
	for _, rs := range active {
		total += sizeOf(rs)
	}
	allowed := int32(0)
	if replicas > 0 {
		allowed = replicas + l.Surge
	}
	add, added := allowed-total, int32(0)
	slices.SortStableFunc(active, func(a, b *appsv1.ReplicaSet) int {
		newer := cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(b.Name, a.Name))
		if add < 0 {
			newer = -newer
		}
		return cmp.Or(cmp.Compare(sizeOf(b), sizeOf(a)), newer)
	})
	sizes := map[*appsv1.ReplicaSet]int32{}
	for _, rs := range active {
		share := int32(0)
		if add != 0 && add != added {
			share = fraction(rs, d, l)
			if add > 0 {
				share = min(share, add-added)
			} else {
				share = max(share, add-added)
			}
		}
		sizes[rs], added = sizeOf(rs)+share, added+share
	}
	if add != 0 {
		sizes[active[0]] = max(sizes[active[0]]+add-added, 0)
	}
	for _, rs := range active {
		if sizes[rs] != sizeOf(rs) || rs.Annotations[desired] != strconv.Itoa(int(replicas)) ||
			rs.Annotations[maximum] != strconv.Itoa(int(replicas+l.Surge)) {
			return n.resize(d, rs, sizes[rs])
		}
	}
	return nil
}

func fraction(rs *appsv1.ReplicaSet, d *appsv1.Deployment, l replicasets.Limits) int32 {
	if *d.Spec.Replicas == 0 {
		return -sizeOf(rs)
	}
	before, err := strconv.Atoi(rs.Annotations[maximum])
	if err != nil || before == 0 {
		if before = int(d.Status.Replicas); before == 0 {
			return 0
		}
	}
	return int32(math.Round(float64(sizeOf(rs)*(*d.Spec.Replicas+l.Surge))/float64(before))) - sizeOf(rs)
}

// roll returns the next write of a rolling update.
func (n *Controllers) roll(d *appsv1.Deployment, fresh *appsv1.ReplicaSet, sets []*appsv1.ReplicaSet) func() bool {
	l := LimitsOf(d)
	if fresh == nil {
		made := replicasets.Make(d, sets, l)
		return func() bool {
			if d := n.Deployment(); d == nil || replicasets.New(d, n.Sets()) != nil {
				return true
			}
			if _, err := n.Cluster.Create(nativeActor, made); err != nil { // its name is taken
				simulate.Update(n.Cluster, nativeActor, d, func(d *appsv1.Deployment) {
					count := int32(1)
					if d.Status.CollisionCount != nil {
						count += *d.Status.CollisionCount
					}
					d.Status.CollisionCount = &count
				})
			}
			return true
		}
	}
	total, available := int32(0), int32(0)
	for _, rs := range sets {
		total += sizeOf(rs)
		available += min(rs.Status.AvailableReplicas, sizeOf(rs))
	}
	size := sizeOf(fresh)
	if wanted := min(size+max(l.Replicas+l.Surge-total, 0), l.Replicas); wanted != size {
		return n.resize(d, fresh, wanted)
	}
	if slices.ContainsFunc(sets, isBehind) {
		return nil
	}
	least := l.Replicas - l.Unavailable
	spare := total - least - (size - fresh.Status.AvailableReplicas)
	for _, rs := range sets {
		bad := sizeOf(rs) - min(rs.Status.AvailableReplicas, sizeOf(rs))
		if rs != fresh && bad > 0 && spare > 0 {
			return n.resize(d, rs, sizeOf(rs)-min(bad, spare))
		}
	}
	for _, rs := range sets {
		if k := min(available-least, spare, sizeOf(rs)); rs != fresh && k > 0 {
			return n.resize(d, rs, sizeOf(rs)-k)
		}
	}
	return nil
}

// isBehind tells whether the status of a ReplicaSet with Pods is not of its present spec.
func isBehind(rs *appsv1.ReplicaSet) bool {
	return sizeOf(rs) > 0 && rs.Status.ObservedGeneration != rs.Generation
}

// report writes the status.
func (n *Controllers) report(d *appsv1.Deployment, fresh *appsv1.ReplicaSet, sets []*appsv1.ReplicaSet) bool {
	status := appsv1.DeploymentStatus{ObservedGeneration: d.Generation, CollisionCount: d.Status.CollisionCount}
	for _, rs := range sets {
		status.Replicas += rs.Status.Replicas
		status.ReadyReplicas += rs.Status.ReadyReplicas
		status.AvailableReplicas += rs.Status.AvailableReplicas
		if rs == fresh {
			status.UpdatedReplicas = rs.Status.Replicas
		}
	}
	before := n.Cluster.Revision()
	simulate.Update(n.Cluster, nativeActor, d, func(d *appsv1.Deployment) {
		status.CollisionCount = d.Status.CollisionCount
		d.Status = status
	})
	return n.Cluster.Revision() != before
}

func sizeOf(rs *appsv1.ReplicaSet) int32 {
	if rs.Spec.Replicas == nil {
		return 1
	}
	return *rs.Spec.Replicas
}
