package waves

// Load is what the budget has to know of a subset.
type Load struct {
	// Wanted is the number of its Pods, Available how many of them are, and Outdated how many are to be replaced by the template that its
	// workload has.
	Wanted, Available, Outdated int32
	// Observed means that Available and Outdated speak of the spec that the workload has now.
	Observed bool
	// Limit is the most Pods that the workload takes out of service by the spec that it has.
	Limit int32
	// Pending is what waits to be written, nil for nothing.
	Pending *Change
	// Fixed limits can't be set. It does not matter for a limit of 0: nothing is then taken out of service.
	Fixed bool
	// Own is the most that the user lets the workload take out of service.
	Own int32
}

// Change is a new template, or a lower partition.
type Change struct {
	// Outdated is the number of Pods that it replaces.
	Outdated int32
}

// Verdict is what becomes of a subset.
type Verdict struct {
	// Limit is the most Pods that its workload may take out of service.
	Limit int32
	// Held means that its change has to wait.
	Held bool
}

// Share divides a budget among subsets, in their order, and returns what becomes of each.
//
// What a subset can have out of service is bounded by its limit, and by the Pods that are out of service together with those that are still
// to be replaced: as an update goes on, a Pod moves from the second number to the first, and both only become less. So a bound that was
// read from an old status is never too low, in whatever order the statuses of the subsets arrive; unless the status speaks of an earlier
// spec, when all Pods of the subset count. A limit is given only as far as the sum of the bounds stays within the budget. It grows by what
// others give back, but only to what the subset can use or to twice as much, so that a rollout writes a few limits, not one for each Pod.
//
// A budget of 5 gives two subsets of 10 Pods, with limits of 3 of their own, 3 and 2. Where Pods go out of service for other reasons,
// limits are lowered, but not below 1 and what is out of service anyway.
func Share(budget int32, subsets []Load) []Verdict {
	out := make([]Verdict, len(subsets))
	free, likely := int64(budget), int64(0)
	for i, l := range subsets {
		out[i] = Verdict{Limit: l.Limit, Held: l.Pending != nil}
		free -= int64(l.worst())
		likely += int64(l.likely())
	}
	for i := range subsets {
		if l := &subsets[i]; l.Pending != nil {
			grant(l, &out[i], &free)
		}
	}
	for i := range subsets {
		if l := &subsets[i]; l.Pending == nil {
			grow(l, &out[i], &free)
		}
	}
	for i, over := len(subsets)-1, likely-int64(budget); i >= 0 && over > 0; i-- {
		if l := &subsets[i]; l.Pending == nil || out[i].Held {
			lower(l, &out[i], &over)
		}
	}
	return out
}

func (l *Load) unavailable() int32 { return max(l.Wanted-l.Available, 0) }

// bound is the most Pods that can be out of service at a limit, if outdated ones are still to be replaced.
func (l *Load) bound(limit, outdated int32) int32 {
	return max(l.unavailable(), min(limit, l.unavailable()+outdated, l.Wanted))
}

// worst is the most Pods that can be out of service by the spec that the workload has.
func (l *Load) worst() int32 {
	if !l.Observed {
		return l.Wanted
	}
	return l.bound(l.Limit, l.Outdated)
}

// likely is worst where it is known, else what the limit allows.
func (l *Load) likely() int32 {
	if !l.Observed {
		return l.bound(l.Limit, l.Wanted)
	}
	return l.worst()
}

// grant lets a change be written if there is room for one Pod of it, or if it takes none out of service.
func grant(l *Load, v *Verdict, free *int64) {
	needs := l.bound(l.Own, l.Pending.Outdated)
	if l.Pending.Outdated == 0 || l.Own == 0 {
		v.Held, v.Limit = false, l.Own
		return
	}
	if !l.Observed {
		return
	}
	held := l.worst()
	limit := min(int64(l.Own), int64(needs), int64(held)+max(*free, 0))
	if limit < 1 || l.Fixed && int64(needs) > int64(held)+max(*free, 0) {
		return
	}
	if l.Fixed {
		limit = int64(l.Own)
	}
	v.Held, v.Limit = false, int32(limit)
	*free -= int64(max(l.bound(v.Limit, l.Pending.Outdated), held) - held)
}

// grow raises the limit of an update that is under way.
func grow(l *Load, v *Verdict, free *int64) {
	use := min(l.Own, l.unavailable()+l.Outdated)
	if !l.Observed || l.Fixed || l.Outdated == 0 || l.Limit >= use || *free <= 0 {
		return
	}
	limit := int32(min(int64(use), int64(l.Limit)+*free))
	if limit < use && limit < 2*l.Limit {
		return
	}
	v.Limit = limit
	*free -= int64(l.bound(limit, l.Outdated) - l.worst())
}

// lower takes back what is out of service elsewhere.
func lower(l *Load, v *Verdict, over *int64) {
	if !l.Observed || l.Fixed || l.Outdated == 0 {
		return
	}
	before := l.worst()
	limit := max(1, l.unavailable(), int32(int64(before)-*over))
	if limit < l.Limit && limit < before {
		v.Limit = limit
		*over -= int64(before - limit)
	}
}
