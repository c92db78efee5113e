package uniteddeployment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// Event reasons. Wire: users' alerts and tools match them.
const (
	eventSuccessfulUpdate = "SuccessfulUpdateSubset"
	eventFailedUpdate     = "FailedUpdateSubset"
	eventFailedDuplicates = "FailedDeleteDuplicatedSubsets"
	eventFailedRevision   = "FailedRevisionProvision"
	eventFailedSpecified  = "FailedSpecifySubsetReplicas"
)

// historyLimit is how many revisions are kept where the user does not say.
const historyLimit = 10

// Plan decides the next step from the state alone.
func Plan(v State) plan.Plan {
	b := plan.For(v.summary())
	if v.kind == nil || v.Set.DeletionTimestamp != nil {
		// The garbage collector takes the workloads along that are in the same cluster.
		v.cleanUp(b)
		return b.Plan()
	}
	if v.problem != nil {
		return b.Stop(v.problem)
	}
	v.storeRevision(b)
	v.guard(b)
	for _, one := range v.subsets {
		if !v.mayWrite(one.place()) {
			continue
		}
		if err := v.provide(b, one); err != nil {
			b.Hold(plan.Hold{Code: reason.InvalidSpec, Name: one.Name, Why: err.Error(), Event: eventFailedUpdate, Failure: plan.Rollout})
		}
		v.retire(b, one)
		v.mark(b, one)
		v.unblock(b, one)
	}
	for _, m := range sortedByName(v.surplus) {
		if v.mayWrite(m.Cluster) {
			b.Do(v.remove(m, "no subset needs it", eventFailedDuplicates))
		}
	}
	v.tidyRevisions(b)
	if v.adjusted != "" {
		b.Hold(plan.Hold{Code: reason.InvalidSpec, Why: v.adjusted, Event: eventFailedSpecified})
	}
	v.tellClusters(b)
	b.Recheck(v.wait, "a Pod may have waited for a node for too long, or a subset may be tried again")
	return b.Plan()
}

func (v *State) summary() string {
	var subsets []string
	for _, one := range v.subsets {
		ready := int32(0)
		if one.now != nil {
			ready = one.now.ready
		}
		subsets = append(subsets, fmt.Sprintf("%s %d/%d", one.Name, ready, one.replicas))
	}
	return fmt.Sprintf("UnitedDeployment %s/%s   replicas %d, subsets %s",
		v.Set.Namespace, v.Set.Name, v.total, strings.Join(subsets, ", "))
}

// storeRevision stores the revision of the template, which all workloads refer to.
func (v *State) storeRevision(b *plan.Builder) {
	stored, wanted := v.history.Stored, v.history.Update
	action := plan.Action{Concern: plan.Tidy, After: wanted, FailedEvent: eventFailedRevision}
	switch {
	case stored == nil:
		action.Verb, action.What, action.Why = plan.Create, "create a revision", "the template is new"
	case !equality.Semantic.DeepEqual(stored, wanted):
		action.Verb, action.Before, action.What, action.Why = plan.Update, stored, "raise its number", "its template is wanted again"
	default:
		return
	}
	b.First(action)
}

// provide creates the workload of a subset, or changes it.
func (v *State) provide(b *plan.Builder, one *subset) error {
	if one.keeps.why != "" {
		b.Hold(plan.Hold{Code: codeOf(one.keeps.reason), Name: one.Name, Why: one.keeps.why})
	}
	if one.now == nil && one.keeps.former {
		return nil
	}
	wanted, hash, err := v.workload(one)
	if err != nil {
		return err
	}
	message := func(verb string) string { return fmt.Sprintf("%s 1 Subset (%s)", verb, v.kind.name) }
	if one.now == nil {
		wanted.SetName(v.nameFor(one))
		wanted.SetAnnotations(with(wanted.GetAnnotations(), v.notes(one, applied{hash, 1})))
		b.Do(plan.Action{
			Verb: plan.Create, Concern: plan.Scale, After: wanted, Cluster: one.place(),
			What: fmt.Sprintf("create the %s of subset %s with %d replicas", v.kind.name, one.Name, one.replicas), Why: "it has none",
			Event: eventSuccessfulUpdate, EventMessage: message("Create"), FailedEvent: eventFailedUpdate,
		})
		return nil
	}
	if after, why, differs := v.update(one, wanted, hash); differs {
		b.Do(plan.Action{
			// What is late by then must not bring back a former template. Numbers may: the next pass sees it, and no Pod is replaced for
			// it.
			Verb: plan.Update, Concern: plan.Rollout, Before: one.now.Object, After: after, AnyVersion: why == whyNumbers,
			Cluster: one.place(),
			What:    fmt.Sprintf("write the %s of subset %s with %d replicas", v.kind.name, one.Name, one.replicas), Why: why,
			Event: eventSuccessfulUpdate, EventMessage: message("Update"), FailedEvent: eventFailedUpdate,
		})
	}
	return nil
}

// retire deletes the workloads of other kinds of a subset, once the present one serves as much.
func (v *State) retire(b *plan.Builder, one *subset) {
	for _, m := range sortedByName(one.former) {
		switch enough := min(m.ready, one.replicas); {
		case v.Set.Annotations[keys.TemplateSwitch] == keys.TemplateSwitchRecreate:
			why := "the template is of another kind, and " + keys.TemplateSwitch + " is " + keys.TemplateSwitchRecreate
			b.Do(v.remove(m, why, eventFailedUpdate))
		case one.now != nil && one.now.observed && one.now.ready >= enough:
			b.Do(v.remove(m, fmt.Sprintf("%s has %d ready Pods, too", one.now.Object.GetName(), one.now.ready), eventFailedUpdate))
		default:
			b.Hold(plan.Hold{Code: reason.WaitReplacement, Name: m.Object.GetName(),
				Why: fmt.Sprintf("kept until the %s of subset %s has %d ready Pods",
					v.kind.name, one.Name, enough)})
		}
	}
}

func (v *State) remove(m *member, why, failed string) plan.Action {
	return plan.Action{
		Verb: plan.Delete, Concern: plan.Scale, Before: m.Object, AnyVersion: true, Cluster: m.Cluster, What: "delete", Why: why,
		Event: eventSuccessfulUpdate, EventMessage: fmt.Sprintf("Delete 1 Subset (%s)", m.kind.name), FailedEvent: failed,
	}
}

// mark says on Pods whether they are reserved.
func (v *State) mark(b *plan.Builder, one *subset) {
	for _, m := range one.marks {
		after := m.pod.DeepCopy()
		after.Labels = with(after.Labels, map[string]string{keys.ReservedPod: fmt.Sprint(m.reserved)})
		b.Do(plan.Action{
			Verb: plan.Update, Concern: plan.Settle, Before: m.pod, After: after, AnyVersion: true, Cluster: one.place(),
			What: fmt.Sprintf("label it reserved: %t", m.reserved), Why: "others stand in for Pods that wait for a node",
		})
	}
}

// unblock deletes Pods that keep a StatefulSet of Kubernetes from its update: it waits for a Pod that is not ready, also if only the update
// can make it so. Not for one that the user updates.
func (v *State) unblock(b *plan.Builder, one *subset) {
	native := statefulSets()
	if one.now == nil || one.now.kind.gvk != native.gvk || !one.now.observed || one.now.revision == "" {
		return
	}
	if native.fields(one.now.Object).partition == nil || one.now.Object.GetLabels()[keys.SubsetRevision] != v.history.Update.Name {
		return
	}
	for _, p := range one.now.Pods {
		number, ok := numberOf(p.Name)
		isOld := p.Labels[appsv1.ControllerRevisionHashLabelKey] != one.now.revision
		if ok && one.elsewhere == nil && number >= one.partition && isOld && pod.IsActive(p) && !pod.IsReady(p) {
			b.Do(plan.Action{
				Verb: plan.Delete, Concern: plan.Rollout, Before: p, AnyVersion: true, What: "delete",
				Why: "it is not ready, and its StatefulSet waits for it before it gives it the new template",
			})
		}
	}
}

// tidyRevisions deletes the oldest revisions beyond those that are to be kept. Those that workloads or Pods are at stay.
func (v *State) tidyRevisions(b *plan.Builder) {
	live := map[string]bool{v.history.Update.Name: true, v.history.Current.Name: true, v.Set.Status.CurrentRevision: true}
	for _, w := range v.Workloads {
		live[w.Object.GetLabels()[keys.SubsetRevision]] = true
		for _, p := range w.Pods {
			live[p.Labels[keys.SubsetRevision]] = true
		}
	}
	limit := valueOr(v.Set.Spec.RevisionHistoryLimit, historyLimit)
	stale := revision.Stale(v.Revisions, func(rev *appsv1.ControllerRevision) bool { return live[rev.Name] }, limit)
	slices.SortFunc(stale, func(a, b *appsv1.ControllerRevision) int { return cmp.Compare(a.Name, b.Name) })
	for _, rev := range stale {
		b.Last(plan.Action{
			Verb: plan.Delete, Concern: plan.Tidy, Before: rev, AnyVersion: true, What: "delete",
			Why: fmt.Sprintf("%d newer ones are kept that are not in use", limit),
		})
	}
}
