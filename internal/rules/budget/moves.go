// Package budget is the arithmetic of staged rollouts: how many Pods may be created, deleted and updated now.
//
// It is the only place where percentages become numbers. With R replicas, U maxUnavailable, S maxSurge, P partition and N active Pods, a
// plan that follows it keeps:
//
//	N                  <= R + S          while nothing was scaled in
//	newly unavailable  <= U + (N - R)    surplus Pods may go without costing availability
//	updated            <= R - P          unless Pods of older revisions are missing
//
// Worked example: R 5, P 3, S 20% (1), U 0. All five Pods are old, the new revision is wanted on two. Scale asks for one more Pod, of the
// new revision (N 6). Once it is available, Update allows U + N - R = 1 old Pod to go. N is 5 again, one new Pod is still missing, so one
// more is created; when it is available, nothing is missing and the surplus old Pod goes: 3 old, 2 new.
package budget

// Side counts the active Pods on one side of a rollout: those of the update revision, or all others.
type Side struct {
	// Total is the number of Pods.
	Total int
	// PreparingDelete of them are held by their preDelete hook.
	PreparingDelete int
	// Specified of the others were named for deletion by the user.
	Specified int
	// SpecifiedUnavailable of the specified ones are not available.
	SpecifiedUnavailable int
	// Unavailable of the remaining ones are not available.
	Unavailable int
}

// staying counts the Pods that are not on their way out by a hook.
func (s Side) staying() int { return s.Total - s.PreparingDelete }

// Counts is where all active Pods of a workload are.
type Counts struct {
	Old, New Side
}

// Total returns the number of active Pods.
func (c Counts) Total() int { return c.Old.Total + c.New.Total }

func (c Counts) specified() int { return c.Old.Specified + c.New.Specified }

// Unavailable returns the Pods that cost availability and are not named for deletion.
func (c Counts) Unavailable() int {
	return c.Old.PreparingDelete + c.New.PreparingDelete + c.Old.Unavailable + c.New.Unavailable
}

// Rules are the choices that change the arithmetic.
type Rules struct {
	// Rollback lets a raised partition take updated Pods back to the current revision.
	Rollback bool
	// ExcludePreparingDelete leaves Pods held by a preDelete hook out of the number of replicas.
	ExcludePreparingDelete bool
	// Beside has Pods of both revisions stay, as minReadySeconds BesideSeconds says. Same says that there is no older revision.
	Beside, Same bool
}

// Moves is what may be done now.
type Moves struct {
	// Create is the number of Pods missing, CreateOld how many of them at the current revision, and CreateNow how many of them at once:
	// the rest waits for scaleStrategy.maxUnavailable.
	Create, CreateOld, CreateNow int
	// Delete is the number of surplus Pods beyond the specified ones, DeleteOld how many of them at older revisions.
	Delete, DeleteOld int
	// DeleteReady is the number of ready Pods that may be deleted, specified or surplus. Pods that are not ready cost nothing.
	DeleteReady int
	// Surge is the number of Pods wanted above replicas.
	Surge int
	// Update is the number of Pods to bring to the update revision; negative, to bring back to the current one.
	Update int
	// UpdateLimit is the number of Pods that may be unavailable while updating.
	UpdateLimit int
}

// Plan returns what may be done at these limits and counts.
func Plan(l Limits, c Counts, r Rules) Moves {
	if r.Beside {
		return beside(l, c, r.Same)
	}
	old, new := c.Old.staying()-l.Partition, c.New.staying()-l.Expected()
	if !r.Rollback {
		// A surplus of updated Pods is left alone, and so is a lack of old ones.
		old, new = max(old, 0), min(new, 0)
	}
	surge, surgeOld := surge(l, c, old, new)
	counted, countedOld := c.Total(), c.Old.Total
	if r.ExcludePreparingDelete {
		counted, countedOld = c.Old.staying()+c.New.staying(), c.Old.staying()
	}
	spare := l.MaxUnavailable + c.Total() - l.Replicas
	m := Moves{
		Create:      max(l.Replicas+surge-counted, 0),
		CreateOld:   max(l.Partition+surgeOld-countedOld, 0),
		Delete:      max(counted-c.specified()-l.Replicas-surge, 0),
		DeleteOld:   max(countedOld-c.Old.Specified-l.Partition-surgeOld, 0),
		Surge:       surge,
		UpdateLimit: spare,
		Update:      -new,
	}
	m.CreateOld = min(m.CreateOld, m.Create)
	m.DeleteOld = min(m.DeleteOld, m.Delete)
	m.CreateNow = min(m.Create, max(l.ScaleMaxUnavailable-c.Unavailable(), 0))
	if m.Delete > 0 || c.specified() > 0 {
		// A specified Pod that is unavailable goes at once: it costs nothing more, but it has cost its place already.
		m.DeleteReady = max(spare-c.Unavailable()-c.Old.SpecifiedUnavailable-c.New.SpecifiedUnavailable, 0)
	}
	if abs(old) <= abs(new) {
		m.Update = old
	}
	// Surge Pods that stand in for specified ones of their side are no surplus there: they would only be created again on the same side.
	m.Update = max(min(m.Update, max(old-surgeOld, 0)), -max(new-(surge-surgeOld), 0))
	if old*new > 0 {
		// Both sides lack Pods, or both have too many: that is for scaling, and a Pod moved to one side would be missing on the other.
		m.Update = 0
	}
	return m
}

// surge returns how many Pods above replicas are worth having now, and how many of them at the current revision: for Pods that can't be
// deleted within maxUnavailable, or for Pods that wait to be updated, whichever needs more.
func surge(l Limits, c Counts, old, new int) (total, ofOld int) {
	if l.MaxSurge == 0 {
		return 0, 0
	}
	specified := c.specified()
	forScale := min(max(c.Unavailable()+specified-l.MaxUnavailable, 0), specified)
	forScaleOld := max(forScale-c.New.Specified, 0)
	forUpdate, forUpdateOld := 0, 0
	if old*new < 0 {
		forUpdate = min(abs(old), abs(new))
		if (abs(old) <= abs(new) && old < 0) || (abs(new) < abs(old) && new > 0) {
			forUpdateOld = forUpdate
		}
	}
	if forScale >= forUpdate {
		total = min(l.MaxSurge, forScale)
		return total, min(total, forScaleOld)
	}
	total = min(l.MaxSurge, forUpdate)
	return total, min(total, forUpdateOld)
}

func abs(n int) int { return max(n, -n) }

// Candidates is a sorted list of Pods to update, and what is unavailable already.
type Candidates struct {
	// Available says, for each candidate in order, whether it is available now.
	Available []bool
	// Unavailable is the number of all active Pods that are not available.
	Unavailable int
	// UnavailableAtTarget is how many of those are at the revision that the candidates go to.
	UnavailableAtTarget int
}

// Take returns how many of the first candidates may be updated now: at most number, and never so many that more than limit Pods would be
// unavailable. A candidate that is unavailable already costs nothing but its place among those under way. The order is kept: a candidate
// that has to wait makes all behind it wait.
func Take(c Candidates, number, limit int) int {
	unavailable := c.Unavailable
	taken := 0
	for _, available := range c.Available[:min(number, len(c.Available))] {
		if c.UnavailableAtTarget+taken >= limit || (available && unavailable >= limit) {
			break
		}
		if available {
			unavailable++
		}
		taken++
	}
	return taken
}
