package inject

import "slices"

// Match returns those of the candidates, which are in the order of their names, that apply to a Pod with these labels. A canary takes the place of
// its base. namespace returns the labels of the Pod's namespace; it is only asked where they matter.
//
// A selector that can't be read selects nothing: its SidecarSet can't have been accepted as it is.
func Match(candidates []*Candidate, labels map[string]string, namespace func() (map[string]string, error)) ([]*Candidate, error) {
	var matching []*Candidate
	var canaryOf []string
	for _, c := range candidates {
		if c.Set.Spec.InjectionStrategy.Paused || c.Set.DeletionTimestamp != nil || !c.selection.MatchesLabels(labels) {
			continue
		}
		if c.selection.NeedsNamespace() {
			theirs, err := namespace()
			if err != nil {
				return nil, err
			}
			if !c.selection.MatchesNamespace(theirs) {
				continue
			}
		}
		matching = append(matching, c)
		if base := c.base(); base != "" {
			canaryOf = append(canaryOf, base)
		}
	}
	return slices.DeleteFunc(matching, func(c *Candidate) bool { return slices.Contains(canaryOf, c.Set.Name) }), nil
}
