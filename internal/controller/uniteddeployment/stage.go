package uniteddeployment

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
	"github.com/seed-69ecc383/kruise/internal/rules/waves"
)

// Reasons of the condition SubsetUpdated. Wire: users' tools match them.
const (
	reasonWaveUnderWay = "WaitingForWave"
	reasonWavePaused   = "WavePaused"
	reasonBudgetUsed   = "WaitingForBudget"
)

// kept is what a subset keeps of its present workload while it waits for its wave or for the budget.
type kept struct {
	// why says what it waits for, in words, and reason in one; empty where it waits for nothing.
	why, reason string
	// template and revision are those that its workload was made from; nil for the newest.
	template *v1beta1.SubsetTemplate
	revision string
	// spec means that only numbers of Pods are written, and former that a workload of another kind gets no successor yet.
	spec, former bool
}

// limit is maxUnavailable of a workload, nil where it is not set.
type limit struct{ value *intstr.IntOrString }

// stageRollout finds out which subsets get what is new now. Without waves and a budget, all do.
func (v *State) stageRollout() {
	strategy := &v.Set.Spec.UpdateStrategy
	if v.problem != nil {
		return
	}
	if len(strategy.Waves) > 0 {
		v.order(strategy.Waves)
	}
	if strategy.MaxUnavailable != nil {
		v.budget = max(scaled(strategy.MaxUnavailable, v.total, budget.Down), 1)
		if strategy.MaxUnavailable.Type == intstr.Int { // more than there are Pods now may be less than there are soon
			v.budget = max(strategy.MaxUnavailable.IntVal, 1)
		}
		v.shareBudget()
	}
}

// order has subsets whose wave has not come keep the template that they have.
func (v *State) order(given []v1beta1.UpdateWave) {
	var order []waves.Wave
	for _, w := range given {
		order = append(order, waves.Wave{Name: w.Name, Subsets: w.Subsets, Pause: w.Pause})
	}
	var progress []waves.Progress
	for _, one := range v.subsets {
		progress = append(progress, v.progressOf(one))
	}
	continued := ""
	if revision, wave, ok := strings.Cut(v.Set.Annotations[keys.ContinuedWave], "/"); ok && revision == v.history.Update.Name {
		continued = wave
	}
	v.stage = waves.Order(order, progress, continued)
	for _, one := range v.subsets {
		if !v.stage.Open[one.Name] {
			v.keepTemplate(one)
		}
	}
}

// progressOf returns how far a subset has come. Nobody waits for a cluster that can't be used. One whose cache is late, as after a write,
// or to which a manager that has just started connects, is waited for, unless it was seen to be done.
func (v *State) progressOf(one *subset) waves.Progress {
	if !one.isAway() {
		return waves.Progress{Name: one.Name, Done: v.isDone(one)}
	}
	isLost := one.isLost() && one.elsewhere.verdict.Reason != connection.Connecting
	// With a partition it is done although not all of its Pods are updated, which the status tells by naming no wave.
	wasDone := v.Set.Status.Wave == "" && v.Set.Status.UpdatedRevision == v.history.Update.Name
	return waves.Progress{Name: one.Name, Done: wasDone || v.isRolledOutAway(one), Away: isLost}
}

// isDone reports whether all Pods of a subset that are to be updated are, and all are available. While a workload has more Pods than it
// wants, as a surge is, some that are available may be old ones.
func (v *State) isDone(one *subset) bool {
	m, wanted := one.now, one.replicas-one.reserved
	return m != nil && len(one.former) == 0 && m.observed && m.Object.GetLabels()[keys.SubsetRevision] == v.history.Update.Name &&
		m.counts.updated >= wanted-one.partition && m.available >= wanted && m.progress.replicas <= one.replicas
}

// keepTemplate has a subset keep the template that it has, if it has another than the newest. A subset without a workload has none.
func (v *State) keepTemplate(one *subset) {
	if one.now == nil {
		if len(one.former) > 0 {
			one.keeps.former = true
			one.keeps.why, one.keeps.reason = v.whyOfWave()
		}
		return
	}
	name := one.now.Object.GetLabels()[keys.SubsetRevision]
	if name == v.history.Update.Name {
		return
	}
	one.keeps.why, one.keeps.reason = v.whyOfWave()
	v.keepPartition(one)
	for _, rev := range v.Revisions {
		if rev.Name != name {
			continue
		}
		if template, err := revision.SubsetTemplate(rev); err == nil && v.kind.make(template) != nil {
			one.keeps.template, one.keeps.revision = template, name
			return
		}
	}
	one.keeps.spec = true // what it was made from is not known any more
}

func (v *State) keepPartition(one *subset) {
	if f := v.kind.fields(one.now.Object); f.partition != nil {
		one.partition = min(valueOr(f.partition(), 0), one.replicas)
	}
}

func (v *State) whyOfWave() (why, reason string) {
	if v.stage.Paused {
		return fmt.Sprintf("wave %s is done, and the rollout pauses: to go on, set the annotation %s: %s/%s",
			v.stage.Wave, keys.ContinuedWave, v.history.Update.Name, v.stage.Wave), reasonWavePaused
	}
	return fmt.Sprintf("wave %s goes on until all Pods of %s are updated and available",
		v.stage.Wave, strings.Join(v.stage.Waiting, ", ")), reasonWaveUnderWay
}

// shareBudget divides the budget among the subsets that have a workload.
func (v *State) shareBudget() {
	var sharing []*subset
	var loads []waves.Load
	for _, one := range v.subsets {
		if one.isAway() {
			sharing, loads = append(sharing, one), append(loads, one.loadAway())
			continue
		}
		if one.now == nil {
			continue
		}
		if load, ok := v.loadOf(one); ok {
			sharing, loads = append(sharing, one), append(loads, load)
		}
	}
	for i, verdict := range waves.Share(v.budget, loads) {
		if one := sharing[i]; !one.isAway() {
			v.heed(one, loads[i], verdict)
			one.share = one.shareOf(loads[i], verdict)
		}
	}
}

// loadAway returns what the budget has to know of a subset whose cluster can't be read: its workload goes on as it was last written, so
// that it keeps its part. Right after a write even that is not known.
func (s *subset) loadAway() waves.Load {
	l := waves.Load{
		Wanted: s.before.Replicas, Available: s.before.ReadyReplicas, Outdated: s.before.Replicas, Fixed: true, Observed: s.isLost(),
	}
	if seen := s.before.Observed; seen != nil {
		l.Limit = seen.MaxUnavailable
	}
	l.Own = l.Limit
	return l
}

// shareOf returns the part of the budget that a subset may use from now on, whether or not what is written next arrives.
func (s *subset) shareOf(l waves.Load, verdict waves.Verdict) int32 {
	share := int32(0)
	if l.Outdated > 0 || !l.Observed {
		share = l.Limit
	}
	if seen := s.before.Observed; seen != nil && !l.Observed {
		share = max(share, seen.MaxUnavailable)
	}
	if l.Pending != nil && !verdict.Held || l.Outdated > 0 {
		share = max(share, verdict.Limit)
	}
	return min(share, l.Wanted)
}

// loadOf returns what the budget has to know of a subset; false where its workload can't be made.
func (v *State) loadOf(one *subset) (waves.Load, bool) {
	wanted, hash, err := v.workload(one)
	if err != nil {
		return waves.Load{}, false
	}
	now, own := v.kind.fields(one.now.Object), v.kind.fields(wanted)
	stays := int32(0)
	if now.partition != nil {
		stays = min(valueOr(now.partition(), 0), one.replicas)
	}
	l := waves.Load{
		Wanted: one.replicas, Available: one.now.available, Outdated: max(one.replicas-stays-one.now.progress.updated, 0),
		Observed: one.now.observed, Limit: now.limit(), Own: own.limit(), Fixed: own.maxUnavailable == nil,
	}
	differs := withoutSuffix(hash) != withoutSuffix(appliedTo(one.now.Object).hash)
	if !one.keeps.spec && (differs || now.partition != nil && one.partition < stays) {
		l.Pending = &waves.Change{Outdated: one.replicas - one.partition}
	}
	return l, true
}

// withoutSuffix returns the part of a hash that stands for what the user gives.
func withoutSuffix(hash string) string {
	before, _, _ := strings.Cut(hash, "-")
	return before
}

// heed has a subset do as the budget says.
func (v *State) heed(one *subset, l waves.Load, verdict waves.Verdict) {
	now := v.kind.fields(one.now.Object)
	if verdict.Held {
		one.keeps.spec = true
		v.keepPartition(one)
		if one.keeps.why == "" {
			one.keeps.why, one.keeps.reason = v.whyOfBudget(l), reasonBudgetUsed
		}
	}
	switch {
	case now.maxUnavailable == nil:
	case l.Pending != nil && !verdict.Held && verdict.Limit == l.Own: // as the template says it
	case verdict.Limit == l.Limit && (l.Pending == nil || verdict.Held):
		one.limit = &limit{*now.maxUnavailable()}
	default:
		value := intstr.FromInt32(verdict.Limit)
		one.limit = &limit{&value}
	}
}

// codeOf returns the code for a reason of the condition SubsetUpdated.
func codeOf(held string) reason.Code {
	return map[string]reason.Code{
		reasonWavePaused: reason.WaitApproval, reasonWaveUnderWay: reason.WaitEarlierWave, reasonBudgetUsed: reason.WaitBudget,
	}[held]
}

func (v *State) whyOfBudget(l waves.Load) string {
	if l.Fixed && l.Own > v.budget {
		return fmt.Sprintf("its strategy takes %d Pods out of service at once, and updateStrategy.maxUnavailable is %d: "+
			"raise that, or use another strategy", l.Own, v.budget)
	}
	return fmt.Sprintf("updateStrategy.maxUnavailable of %d is used up by Pods of all subsets that are unavailable or being updated",
		v.budget)
}

// held returns the condition that tells which subsets wait, and for what; false if none does.
func (v *State) held() (v1beta1.UnitedDeploymentCondition, bool) {
	c := v1beta1.UnitedDeploymentCondition{Type: v1beta1.UnitedDeploymentSubsetUpdated, Status: corev1.ConditionFalse}
	names := map[string][]string{}
	var reasons []string
	for _, one := range v.subsets {
		if why := one.keeps.why; why != "" {
			if names[why] == nil {
				reasons = append(reasons, why)
			}
			names[why] = append(names[why], one.Name)
			c.Reason = cmp.Or(c.Reason, one.keeps.reason)
		}
	}
	for i, why := range reasons {
		reasons[i] = strings.Join(names[why], ", ") + ": " + why
	}
	c.Message = "these subsets wait. " + strings.Join(reasons, "; ")
	return c, len(reasons) > 0
}
