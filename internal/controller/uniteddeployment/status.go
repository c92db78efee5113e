package uniteddeployment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Reasons of conditions. Wire: users' tools match those of the first three.
const (
	reasonError    = "Error"
	reasonUpdated  = "UnitedDeploymentRevisionUpdated"
	reasonUpdating = "UnitedDeploymentRevisionUpdating"
	reasonWaiting  = "Waiting"
	reasonAdjusted = "SubsetsAddUpToAnotherNumber"
	reasonUnplaced = "NoRoomInSubsets"
)

// Status returns the status of the UnitedDeployment.
func Status(v State, p plan.Plan, done apply.Outcome) v1beta1.UnitedDeploymentStatus {
	s := *v.Set.Status.DeepCopy()
	if v.kind == nil || v.Set.DeletionTimestamp != nil {
		s.MemberClusters = v.records
		return s
	}
	s.ObservedGeneration = v.Set.Generation
	failures := v.failures(p, done)
	set := conditions{&s.Conditions, v.Now}
	set.failure(failures)
	if v.problem != nil {
		return s
	}
	s.UpdatedRevision = v.history.Update.Name
	if n := v.history.CollisionCount; n > 0 || s.CollisionCount != nil {
		s.CollisionCount = &n
	}
	v.sum(&s)
	s.MemberClusters = v.records
	v.tellOfClusters(set)
	s.LabelSelector = metav1.FormatLabelSelector(v.Set.Spec.Selector)
	if v.reserving {
		s.LabelSelector += "," + keys.ReservedPod + "=false"
	}
	set.done(v1beta1.UnitedDeploymentSubsetProvisioned, v.unprovided(), failures)
	if held, ok := v.held(); ok && failures == "" {
		set.put(held)
	} else {
		set.done(v1beta1.UnitedDeploymentSubsetUpdated, unwritten(p, done), failures)
	}
	s.Wave = v.stage.Wave
	rolledOut := v.isRolledOut(&s, unwritten(p, done))
	if s.CurrentRevision == "" || rolledOut {
		s.CurrentRevision = v.history.Update.Name
	}
	updated := v1beta1.UnitedDeploymentCondition{
		Type: v1beta1.UnitedDeploymentUpdated, Status: corev1.ConditionFalse, Reason: reasonUpdating,
		Message: "updating to revision " + s.UpdatedRevision,
	}
	if rolledOut {
		updated.Status, updated.Reason, updated.Message = corev1.ConditionTrue, reasonUpdated, "updated to revision "+s.UpdatedRevision
	}
	set.put(updated)
	v.tellDivision(set)
	return s
}

// sum adds up what the workloads tell.
func (v *State) sum(s *v1beta1.UnitedDeploymentStatus) {
	s.Replicas, s.ReadyReplicas, s.UpdatedReplicas, s.UpdatedReadyReplicas, s.ReservedPods = 0, 0, 0, 0, 0
	s.SubsetStatuses = nil
	for _, one := range v.subsets {
		if one.isAway() {
			s.SubsetStatuses = append(s.SubsetStatuses, v.sumAway(s, one))
			continue
		}
		told := v1beta1.UnitedDeploymentSubsetStatus{
			Name: one.Name, Replicas: one.replicas, Partition: one.partition, ReservedPods: one.reserved,
		}
		if one.condition.Status != "" {
			told.Conditions = []v1beta1.UnitedDeploymentSubsetCondition{one.condition}
		}
		for _, m := range one.former {
			s.Replicas, s.ReadyReplicas, told.ReadyReplicas = s.Replicas+m.replicas, s.ReadyReplicas+m.ready, told.ReadyReplicas+m.ready
		}
		if m := one.now; m != nil {
			told.ReadyReplicas += m.ready
			s.Replicas += m.replicas - min(one.reserved, m.replicas)
			s.ReadyReplicas += m.ready
			s.UpdatedReplicas += m.counts.updated
			s.UpdatedReadyReplicas += m.updatedReady
			if m.kind.fields(m.Object).partition == nil && m.kind.gvk != deployments().gvk {
				told.Partition = max(m.active-m.counts.updated, 0) // what the user has not updated yet
			}
		}
		s.ReservedPods += one.reserved
		v.tellObserved(one, &told)
		s.SubsetStatuses = append(s.SubsetStatuses, told)
	}
}

// isRolledOut reports whether all Pods are of the newest revision and ready, in workloads that are as they are wanted.
func (v *State) isRolledOut(s *v1beta1.UnitedDeploymentStatus, unwritten string) bool {
	if unwritten != "" || v.unprovided() != "" || s.UpdatedReadyReplicas < s.Replicas {
		return false
	}
	return !slices.ContainsFunc(v.subsets, func(one *subset) bool {
		if one.isAway() {
			return !v.isRolledOutAway(one)
		}
		return one.keeps.why != "" || !one.now.observed || one.now.Object.GetLabels()[keys.SubsetRevision] != v.history.Update.Name ||
			one.now.replicas < one.replicas-one.reserved
	})
}

// unprovided says which subsets lack their workload, and which workloads are still there that should not be; empty where all is well.
func (v *State) unprovided() string {
	var lacking, left []string
	for _, one := range v.subsets {
		if one.now == nil && (!one.isAway() || one.before.Observed == nil) {
			lacking = append(lacking, one.Name)
		}
		for _, m := range one.former {
			left = append(left, m.Object.GetName())
		}
	}
	for _, m := range v.surplus {
		left = append(left, m.Object.GetName())
	}
	slices.Sort(left)
	var out []string
	if len(lacking) > 0 {
		out = append(out, "these subsets have no workload yet: "+strings.Join(lacking, ", "))
	}
	if len(left) > 0 {
		out = append(out, "these workloads are still to be deleted: "+strings.Join(left, ", "))
	}
	return strings.Join(out, "; ")
}

// unwritten says which workloads are not yet as they are wanted; empty where all are.
func unwritten(p plan.Plan, done apply.Outcome) string {
	var names []string
	for _, a := range p.Actions() {
		isWorkload := a.Concern == plan.Rollout && a.Verb == plan.Update || a.Concern == plan.Scale && a.Verb == plan.Create
		if isWorkload && !isDone(a, done) {
			names = append(names, a.Object().GetName())
		}
	}
	for _, h := range p.Holds {
		if h.Failure != "" {
			names = append(names, h.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "not written yet: " + strings.Join(names, ", ")
}

func isDone(a plan.Action, done apply.Outcome) bool {
	return slices.ContainsFunc(done.Results, func(r apply.Result) bool {
		return r.Err == nil && r.Action.Verb == a.Verb && r.Action.Object() == a.Object()
	})
}

// failures returns what workloads say that they have failed in, and what could not be written, in words; empty where nothing has failed.
func (v *State) failures(p plan.Plan, done apply.Outcome) string {
	var out []error
	if v.problem != nil {
		out = append(out, v.problem)
	}
	for _, r := range done.Results {
		if apply.IsFailure(r.Err) {
			out = append(out, r.Err)
		}
	}
	for _, h := range p.Holds {
		if h.Failure != "" {
			out = append(out, errors.New(h.Why))
		}
	}
	for _, one := range v.subsets {
		if one.now != nil && one.now.failure != "" {
			out = append(out, fmt.Errorf("subset %s: %s", one.Name, one.now.failure))
		}
	}
	const most = 3
	if len(out) == 0 {
		return ""
	}
	return errors.Join(out[:min(len(out), most)]...).Error()
}

// tellDivision tells where subsets get other numbers of Pods than the user has written.
func (v *State) tellDivision(set conditions) {
	c := v1beta1.UnitedDeploymentCondition{Type: v1beta1.UnitedDeploymentReplicasAdjusted, Status: corev1.ConditionFalse}
	switch {
	case v.adjusted != "":
		c.Status, c.Reason = corev1.ConditionTrue, reasonAdjusted
		c.Message = v.adjusted + "; change spec.replicas, or replicas of the subsets"
	case v.unplaced > 0:
		c.Status, c.Reason = corev1.ConditionTrue, reasonUnplaced
		c.Message = fmt.Sprintf("%d Pods are not created: "+
			"no subset may have more, by maxReplicas or because no node takes them", v.unplaced)
	}
	if c.Status == corev1.ConditionTrue || set.has(c.Type) {
		set.put(c)
	}
}

// conditions are the conditions of a status.
type conditions struct {
	list *[]v1beta1.UnitedDeploymentCondition
	now  time.Time
}

func (c conditions) has(t v1beta1.UnitedDeploymentConditionType) bool {
	return slices.ContainsFunc(*c.list, func(have v1beta1.UnitedDeploymentCondition) bool { return have.Type == t })
}

// put puts a condition in place. Its time changes with its status alone, its words always.
func (c conditions) put(want v1beta1.UnitedDeploymentCondition) {
	at := slices.IndexFunc(*c.list, func(have v1beta1.UnitedDeploymentCondition) bool { return have.Type == want.Type })
	want.LastTransitionTime = metav1.NewTime(c.now.Truncate(time.Second))
	if at < 0 {
		*c.list = append(*c.list, want)
		return
	}
	if (*c.list)[at].Status == want.Status {
		want.LastTransitionTime = (*c.list)[at].LastTransitionTime
	}
	(*c.list)[at] = want
}

// failure puts the condition that is True while anything fails.
func (c conditions) failure(failures string) {
	condition := v1beta1.UnitedDeploymentCondition{Type: v1beta1.UnitedDeploymentSubsetFailure, Status: corev1.ConditionFalse}
	if failures != "" {
		condition.Status, condition.Reason, condition.Message = corev1.ConditionTrue, reasonError, failures
	}
	if failures != "" || c.has(condition.Type) {
		c.put(condition)
	}
}

// done puts a condition that is True when nothing is missing.
func (c conditions) done(t v1beta1.UnitedDeploymentConditionType, missing, failures string) {
	condition := v1beta1.UnitedDeploymentCondition{Type: t, Status: corev1.ConditionTrue}
	if missing != "" {
		condition.Status, condition.Reason, condition.Message = corev1.ConditionFalse, reasonWaiting, cmp.Or(failures, missing)
		if failures != "" {
			condition.Reason = reasonError
		}
	}
	c.put(condition)
}
