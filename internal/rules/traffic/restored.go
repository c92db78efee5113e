package traffic

import (
	"reflect"
	"slices"
)

// shape says where the spec of a kind of routes has its rules, and which of their backends are what.
type shape struct {
	// lists are the fields with rules, refs is the field of a rule with its backends.
	lists []string
	refs  string
	// ours tells the backends that a release adds, stable those of the old version.
	ours, stable func(ref map[string]any) bool
	// name returns what tells the backends of a rule apart.
	name func(ref map[string]any) any
}

// restored returns a spec without what a release has added: the original, with what somebody has changed since. Only the weights of a rule
// that the release has split are those of before, as those that it has now were computed.
func (s shape) restored(original, current map[string]any) map[string]any {
	spec := copied(current)
	for _, field := range s.lists {
		if spec[field] != nil {
			putList(spec, field, s.rules(list(original, field), list(spec, field)), original)
		}
	}
	return spec
}

// putList replaces a list of objects; one that is empty and was not there before is taken out.
func putList(of map[string]any, field string, items []map[string]any, original map[string]any) {
	if _, was := original[field]; len(items) == 0 && !was {
		delete(of, field)
		return
	}
	setList(of, field, items)
}

func (s shape) rules(before, now []map[string]any) []map[string]any {
	used := make([]bool, len(before))
	var out []map[string]any
	for _, rule := range now {
		refs := list(rule, s.refs)
		kept := slices.DeleteFunc(slices.Clone(refs), s.ours)
		switch {
		case take(used, func(i int) bool { return reflect.DeepEqual(before[i], rule) }) >= 0, len(kept) == len(refs):
			// as the user has written it, such as a redirect
		case len(kept) == 0:
			continue // the release has added it
		default:
			s.restoreWeights(refs, kept, s.counterpart(before, used, rule, kept))
			setList(rule, s.refs, kept)
		}
		out = append(out, rule)
	}
	return out
}

// take returns the first of those that are not used yet and fit, and marks it as used; -1 if there is none.
func take(used []bool, fits func(i int) bool) int {
	for i := range used {
		if !used[i] && fits(i) {
			used[i] = true
			return i
		}
	}
	return -1
}

// counterpart returns the backends that a split rule had before; nil if that can't be told. Somebody may have changed the rule since: one
// that is equal but for weights comes first, then one with the same backends, then one that is equal but for its backends.
func (s shape) counterpart(before []map[string]any, used []bool, rule map[string]any, kept []map[string]any) []map[string]any {
	same := func(i int) bool { return reflect.DeepEqual(without(before[i], s.refs), without(rule, s.refs)) }
	sameRefs := func(i int) bool { return reflect.DeepEqual(unweighted(list(before[i], s.refs)), unweighted(kept)) }
	leads := func(i int) bool { return slices.ContainsFunc(list(before[i], s.refs), s.stable) }
	for _, fits := range []func(int) bool{
		func(i int) bool { return same(i) && sameRefs(i) }, sameRefs, func(i int) bool { return same(i) && leads(i) },
	} {
		if i := take(used, fits); i >= 0 {
			return list(before[i], s.refs)
		}
	}
	return nil
}

// restoreWeights gives backends the weights that they had; one that is new keeps the one that somebody has given it. Where nothing is known
// of the rule before the release, the old version gets what was taken from it.
func (s shape) restoreWeights(refs, kept, before []map[string]any) {
	if before == nil {
		s.giveBack(refs, kept)
		return
	}
	used := make([]bool, len(before))
	for _, ref := range kept {
		plain := without(ref, "weight")
		i := take(used, func(i int) bool { return reflect.DeepEqual(without(before[i], "weight"), plain) })
		if i < 0 {
			i = take(used, func(i int) bool { return s.name(before[i]) == s.name(ref) })
		}
		if i < 0 {
			continue
		}
		if weight, given := before[i]["weight"]; given {
			ref["weight"] = weight
		} else {
			delete(ref, "weight")
		}
	}
}

// giveBack gives the old version the weight of the new one; a backend that is alone needs none.
func (s shape) giveBack(refs, kept []map[string]any) {
	if len(kept) == 1 {
		delete(kept[0], "weight")
		return
	}
	taken := int64(0)
	for _, ref := range refs {
		if s.ours(ref) {
			taken += number(ref["weight"], 0)
		}
	}
	if i := slices.IndexFunc(kept, s.stable); i >= 0 && taken > 0 {
		kept[i]["weight"] = number(kept[i]["weight"], 0) + taken
	}
}

func without(m map[string]any, field string) map[string]any {
	m = copied(m)
	delete(m, field)
	return m
}

func unweighted(refs []map[string]any) []map[string]any {
	out := make([]map[string]any, len(refs))
	for i := range refs {
		out[i] = without(refs[i], "weight")
	}
	return out
}
