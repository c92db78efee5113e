package uniteddeployment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
	memberrules "github.com/seed-69ecc383/kruise/internal/rules/member"
	"github.com/seed-69ecc383/kruise/internal/rules/placement"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// toleratedSeconds is how long the Pods of a cluster that does not answer count as ready, where the user does not say.
const toleratedSeconds = 300

const (
	eventCleanupBlocked = "MemberCleanupBlocked"
	reasonRemotePods    = "RemotePodsNotVisible"
)

// elsewhere says how it stands with the other cluster that a subset is in.
type elsewhere struct {
	*Cluster
	// verdict says whether the cluster can be used for the subset. away means that its workload can't be read now, whether for that or
	// because the cache of the cluster is older than what was written.
	verdict memberrules.Verdict
	away    bool
	// condition is ClusterReady as it is to be.
	condition v1beta1.UnitedDeploymentSubsetCondition
}

// cluster returns another cluster by its key; nil if no subset is or was there.
func (v *State) cluster(key string) *Cluster {
	for i := range v.Clusters {
		if v.Clusters[i].Key() == key {
			return &v.Clusters[i]
		}
	}
	return nil
}

// place returns the key of the cluster that the subset is in; empty for that of the UnitedDeployment.
func (s *subset) place() string {
	if s.elsewhere == nil {
		return ""
	}
	return s.elsewhere.Key()
}

// isAway reports whether nothing can be known of the workload of a subset but what the status says.
func (s *subset) isAway() bool { return s.elsewhere != nil && s.elsewhere.away }

// locate finds out how it stands with the cluster of a subset.
func (v *State) locate(one *subset) {
	if one.TargetCluster == nil {
		return
	}
	c := v.cluster(placeOf(v.Set, one.TargetCluster).Key())
	e := &elsewhere{Cluster: c}
	e.verdict = memberrules.Judge(c.Place, memberrules.Find(v.Set.Status.MemberClusters, c.Place), c.Seen)
	lacks := slices.Contains(c.Lacks, v.kind.gvk)
	e.away = !c.Readable || lacks
	switch {
	case !e.verdict.Ready():
	case lacks:
		e.verdict = memberrules.Verdict{
			Reason: connection.KindMissing, Message: fmt.Sprintf("cluster %s does not serve %s", c.Place, v.kind.gvk.GroupKind()),
		}
	case c.Refused.Reason != "":
		e.verdict = c.Refused
	}
	e.condition = one.told(v1beta1.UnitedDeploymentSubsetClusterReady)
	before := e.condition.Status
	one.elsewhere = e
	v.recheck(c.Wait)
	if before != "" && e.verdict.Reason == connection.Connecting {
		return // of a manager that has started: what was told before stands until more is known
	}
	if e.verdict.Reason != connection.Unreachable || e.condition.Reason != string(connection.Unreachable) { // else only words may differ
		e.condition.Message = e.verdict.Message
	}
	e.condition.Reason = string(e.verdict.Reason)
	switch e.verdict.Reason {
	case connection.Connected:
		e.condition.Status = corev1.ConditionTrue
	case connection.Unreachable, connection.Connecting:
		e.condition.Status = corev1.ConditionUnknown
	default:
		e.condition.Status = corev1.ConditionFalse
	}
	if e.condition.Status != before {
		e.condition.LastTransitionTime = metav1.NewTime(v.Now.Truncate(time.Second))
	}
}

// tolerated returns for how long the Pods of a subset still count as ready although its cluster does not answer. That begins when it is
// known that it does not: not while a manager that has started connects to it.
func (v *State) tolerated(one *subset) time.Duration {
	limit := toleratedSeconds * time.Second
	if r := v.Set.Spec.Topology.ClusterRegistry; r != nil {
		limit = seconds(r.UnreachableTolerationSeconds, toleratedSeconds)
	}
	if one.isLost() && one.elsewhere.condition.Status == corev1.ConditionTrue {
		return limit
	}
	return max(one.elsewhere.condition.LastTransitionTime.Add(limit).Sub(v.Now), 0)
}

// isLost reports whether the cluster of a subset can't be used, and not only its cache is late.
func (s *subset) isLost() bool { return s.isAway() && !s.elsewhere.verdict.Ready() }

// isReallocated reports whether other subsets run substitutes for the Pods of a subset whose cluster does not answer.
func (v *State) isReallocated(one *subset) bool {
	r := v.Set.Spec.Topology.ClusterRegistry
	if !one.isLost() || r == nil || r.UnreachablePolicy != v1beta1.ReallocateUnreachable || !v.adaptive {
		return false
	}
	left := v.tolerated(one)
	v.recheck(left)
	return left == 0
}

// demandOfAway returns what the division has to know of a subset of which only the status tells. In a cluster that can't be used it keeps
// what was last written there, unless others run substitutes: then it counts for nothing.
func (v *State) demandOfAway(one *subset, out placement.Subset) placement.Subset {
	out.Current, out.Ready = one.before.Replicas, one.before.ReadyReplicas
	out.Marked, out.Reserved = v.adaptive && one.isMarked(), one.before.ReservedPods
	switch {
	case v.isReallocated(one):
		out.Unschedulable, out.Marked, out.Reserved = true, true, out.Current
	case one.isLost():
		out.Pinned = true
	}
	return out
}

// keepShares keeps other subsets from taking over the share of one that is being connected to: it is not known yet whether it can be
// used. None gets more than its share meanwhile, and none less than it has.
func (v *State) keepShares(d placement.Demand, out *placement.Division) {
	connects := false
	for i, one := range v.subsets {
		if one.isConnectedTo() {
			d.Subsets[i].Pinned, connects = false, true
		}
	}
	if !connects {
		return
	}
	shares, err := placement.Divide(d)
	if err != nil {
		return // which the first division has found, too
	}
	for i, one := range v.subsets {
		if !one.isLost() {
			out.Replicas[i] = min(out.Replicas[i], max(shares.Replicas[i], d.Subsets[i].Current))
		}
	}
	out.Unplaced, out.Adjusted = shares.Unplaced, shares.Adjusted
}

// isConnectedTo reports whether it is not known yet whether the cluster of a subset answers, and it was not known that it does not.
func (s *subset) isConnectedTo() bool {
	if !s.isLost() || s.elsewhere.verdict.Reason != connection.Connecting {
		return false
	}
	told := s.elsewhere.condition
	return told.Status == corev1.ConditionTrue || told.Reason == string(connection.Connecting)
}

// keepSurplus has subsets keep Pods until those that take over for them are ready, for as long after a cluster has come back as its Pods
// may count although it does not answer.
func (v *State) keepSurplus() {
	if !v.isSettling() {
		return
	}
	missing := int32(0)
	for _, one := range v.subsets {
		missing += max(one.replicas-v.settled(one), 0)
	}
	for _, one := range slices.Backward(v.subsets) {
		if one.now == nil || one.isAway() {
			continue
		}
		kept := min(max(one.now.specified-one.replicas, 0), missing)
		one.replicas += kept
		missing -= kept
	}
}

// isSettling reports whether a cluster has come back lately.
func (v *State) isSettling() (settling bool) {
	for _, one := range v.subsets {
		if one.elsewhere == nil || !one.elsewhere.verdict.Ready() {
			continue
		}
		if left := v.tolerated(one); left > 0 {
			v.recheck(left)
			settling = true
		}
	}
	return settling
}

// settled returns how many Pods of a subset serve for good: those that are ready, and where others run substitutes, have been for a while.
func (v *State) settled(one *subset) (n int32) {
	r := v.Set.Spec.Topology.ClusterRegistry
	switch {
	case one.isAway():
		return one.before.ReadyReplicas
	case one.now == nil:
		return 0
	case one.elsewhere == nil || r == nil || r.UnreachablePolicy != v1beta1.ReallocateUnreachable:
		return one.now.ready
	}
	for _, p := range one.now.Pods {
		if !pod.IsActive(p) || !pod.IsReady(p) {
			continue
		}
		if left := pod.ReadySince(p).Add(v.duration()).Sub(v.Now); left > 0 {
			v.recheck(left)
		} else {
			n++
		}
	}
	return n
}

// leave finds what is left in other clusters of a UnitedDeployment that is being deleted.
func (v *State) leave() {
	for _, w := range v.Workloads {
		if m := v.memberOf(w); m != nil {
			v.surplus = append(v.surplus, m)
		}
	}
	for i := range v.Clusters { // one that could not be read is asked again
		v.recheck(v.Clusters[i].Wait)
	}
	v.records = v.recorded()
}

// recorded returns the clusters that hold, or may hold, workloads.
func (v *State) recorded() []v1beta1.MemberCluster {
	return memberrules.Records(v.Set.Status.MemberClusters, wantedPlaces(v.Set),
		func(p memberrules.Place) memberrules.Seen { return v.cluster(p.Key()).Seen },
		func(p memberrules.Place) memberrules.Left {
			switch c := v.cluster(p.Key()); {
			case c.Buried && !c.Readable:
				return memberrules.Abandoned
			case !c.Readable:
				return memberrules.Unknown
			case slices.ContainsFunc(v.Workloads, func(w Workload) bool { return w.Cluster == c.Key() }):
				return memberrules.Something
			default:
				return memberrules.Nothing
			}
		})
}

// isAbandoned reports whether the user wants to leave behind what is in a cluster that does not answer.
func (v *State) isAbandoned(r *v1beta1.MemberCluster) bool {
	if r.Phase != v1beta1.MemberClusterLost {
		return false
	}
	registry := v.Set.Spec.Topology.ClusterRegistry
	return registry != nil && registry.DeletionPolicy == v1beta1.AbandonInCluster ||
		slices.Contains(strings.Split(v.Set.Annotations[keys.AbandonClusters], ","), r.Namespace+"/"+r.Name)
}

// mayWrite reports whether workloads in a cluster may be written: it can be read, and it is stored in the hub that something may be there,
// so that it is found again whatever becomes of the manager.
func (v *State) mayWrite(key string) bool {
	if key == "" {
		return true
	}
	c := v.cluster(key)
	return c.Readable && isElsewhere(v.Set) && (c.Refused.Reason == "" || c.Wait == 0) &&
		memberrules.MayWrite(c.Place, memberrules.Find(v.Set.Status.MemberClusters, c.Place), c.Seen)
}

// guard adds the finalizer before the first write in another cluster, and removes it when nothing is left in any.
func (v *State) guard(b *plan.Builder) {
	needed := len(wantedPlaces(v.Set)) > 0 || len(v.Set.Status.MemberClusters) > 0
	if needed == isElsewhere(v.Set) || needed && v.Set.DeletionTimestamp != nil {
		return
	}
	after := v.Set.DeepCopy()
	action := plan.Action{Verb: plan.Update, Concern: plan.Tidy, Before: v.Set, After: after}
	if needed {
		after.Finalizers = append(after.Finalizers, keys.MulticlusterCleanup)
		action.What, action.Why = "add the finalizer", "subsets are in other clusters"
	} else {
		after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == keys.MulticlusterCleanup })
		action.What, action.Why = "remove the finalizer", "nothing is left in other clusters"
	}
	b.Last(action)
}

// cleanUp deletes what a UnitedDeployment that is being deleted has in other clusters, and has in its own while it waits for them.
func (v *State) cleanUp(b *plan.Builder) {
	if v.Set.DeletionTimestamp == nil || !isElsewhere(v.Set) {
		return
	}
	orphans := slices.Contains(v.Set.Finalizers, metav1.FinalizerOrphanDependents)
	for _, m := range sortedByName(v.surplus) {
		if v.mayWrite(m.Cluster) && (m.Cluster != "" || !orphans) {
			b.Do(v.remove(m, "the UnitedDeployment is being deleted", eventFailedUpdate))
		}
	}
	v.guard(b)
	v.tellClusters(b)
	b.Recheck(v.wait, "a cluster may be tried again")
}

// tellClusters tells which clusters hold up what.
func (v *State) tellClusters(b *plan.Builder) {
	for _, one := range v.subsets {
		if one.elsewhere != nil && !one.elsewhere.verdict.Ready() {
			b.Hold(plan.Hold{Code: reason.ClusterUnreachable, Name: one.Name, Why: "its cluster can't be used: " +
				one.elsewhere.verdict.Message})
		}
	}
	for i := range v.records {
		if r := &v.records[i]; r.Phase == v1beta1.MemberClusterLost {
			b.Hold(plan.Hold{
				Code: reason.ClusterUnreachable, Name: r.Namespace + "/" + r.Name, Event: eventCleanupBlocked,
				Why: fmt.Sprintf("workloads can't be deleted in cluster %s/%s: %s", r.Namespace, r.Name, r.Message),
			})
		}
	}
}

// identity says whose the workload of a subset in another cluster is.
func (v *State) identity(one *subset) memberrules.Identity {
	return memberrules.Identity{HubID: v.HubID, Namespace: v.Set.Namespace, Name: v.Set.Name, UID: v.Set.UID, Subset: one.Name}
}

// notes returns the annotations that say what was last written.
func (v *State) notes(one *subset, a applied) map[string]string {
	out := map[string]string{keys.SubsetApplied: a.String()}
	if one.elsewhere != nil {
		out[keys.HubOwner] = v.Set.Namespace + "/" + v.Set.Name
		out[keys.AppliedHash], out[keys.HubGeneration] = a.hash, strconv.FormatInt(v.Set.Generation, 10)
	}
	return out
}
