package uniteddeployment

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// sumAway adds what was last seen of a subset, and returns its status, in which only its cluster is told anew.
func (v *State) sumAway(s *v1beta1.UnitedDeploymentStatus, one *subset) v1beta1.UnitedDeploymentSubsetStatus {
	told := *one.before.DeepCopy()
	told.Name, told.Cluster = one.Name, one.elsewhere.Place.String()
	told.Conditions = one.conditions()
	tolerated := !one.isLost()
	if one.isLost() {
		left := v.tolerated(one)
		tolerated = left > 0
	}
	if seen := told.Observed; seen != nil {
		s.Replicas += seen.Replicas - min(told.ReservedPods, seen.Replicas)
		s.ReservedPods += told.ReservedPods
		isNewest := seen.Revision == v.history.Update.Name
		if isNewest {
			s.UpdatedReplicas += seen.UpdatedReplicas
		}
		if tolerated {
			s.ReadyReplicas += told.ReadyReplicas
		}
		if isNewest && tolerated {
			s.UpdatedReadyReplicas += seen.UpdatedReadyReplicas
		}
	}
	one.date(&told)
	return told
}

// tellObserved tells what was seen of a subset in another cluster.
func (v *State) tellObserved(one *subset, told *v1beta1.UnitedDeploymentSubsetStatus) {
	if one.elsewhere == nil {
		return
	}
	told.Cluster, told.Conditions = one.elsewhere.Place.String(), one.conditions()
	seen := &v1beta1.SubsetObservation{Revision: v.history.Update.Name, MaxUnavailable: one.share}
	written := int32(0)
	if m := one.now; m != nil {
		written = m.specified
		seen.Replicas, seen.UpdatedReplicas, seen.UpdatedReadyReplicas = m.replicas, m.counts.updated, m.updatedReady
	}
	for _, m := range one.former {
		seen.Replicas += m.replicas
	}
	told.Observed, told.Replicas = seen, min(told.Replicas, written)
	one.date(told)
}

// date says when the cluster was last read. That alone is no reason to write the status.
func (s *subset) date(told *v1beta1.UnitedDeploymentSubsetStatus) {
	told.LastObservedTime = s.before.LastObservedTime
	if at := s.elsewhere.LastContact; !at.IsZero() && !equality.Semantic.DeepEqual(*told, s.before) {
		told.LastObservedTime = &metav1.Time{Time: at}
	}
}

// conditions returns the conditions of a subset.
func (s *subset) conditions() (out []v1beta1.UnitedDeploymentSubsetCondition) {
	if s.condition.Status != "" {
		out = append(out, s.condition)
	}
	return append(out, s.elsewhere.condition)
}

// isRolledOutAway reports whether a subset was seen to be of the newest revision and ready, with as many Pods as it is to have.
func (v *State) isRolledOutAway(one *subset) bool {
	seen := one.before.Observed
	return seen != nil && seen.Revision == v.history.Update.Name && one.before.Replicas == one.replicas &&
		seen.UpdatedReadyReplicas >= seen.Replicas
}

// tellOfClusters tells whether the clusters of all subsets can be used.
func (v *State) tellOfClusters(set conditions) {
	var unready []string
	ready := v1beta1.UnitedDeploymentCondition{Type: v1beta1.UnitedDeploymentClustersReady, Status: corev1.ConditionTrue}
	partial := v1beta1.UnitedDeploymentCondition{Type: v1beta1.UnitedDeploymentScaleMetricsPartial, Status: corev1.ConditionFalse}
	for _, one := range v.subsets {
		if one.elsewhere == nil {
			continue
		}
		partial.Status, partial.Reason = corev1.ConditionTrue, reasonRemotePods
		partial.Message = "a HorizontalPodAutoscaler of this cluster doesn't see the Pods in other clusters: use metrics of all clusters"
		if is := one.elsewhere.condition; is.Status != corev1.ConditionTrue {
			ready.Status, ready.Reason = corev1.ConditionFalse, is.Reason
			unready = append(unready, one.Name+": "+is.Message)
		}
	}
	ready.Message = strings.Join(unready, "; ")
	for _, c := range []v1beta1.UnitedDeploymentCondition{ready, partial} {
		if partial.Status == corev1.ConditionTrue || set.has(c.Type) {
			set.put(c)
		}
	}
}
