package inject

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// Candidates are SidecarSets, kept such that those which may select a Pod are found by the Pod's labels: of hundreds, mostly very few. They
// are made once for each change of a SidecarSet and not changed after.
type Candidates struct {
	// byName has them in the order of their names; the others hold places in it.
	byName []*Candidate
	// asking are those that select only Pods with this label.
	asking map[label][]int
	// open are all others, which any Pod may have to be held against.
	open []int
}

// label is a label of a Pod.
type label struct{ key, value string }

// NewCandidates takes SidecarSets together.
func NewCandidates(all ...*Candidate) *Candidates {
	c := &Candidates{byName: slices.Clone(all), asking: map[label][]int{}}
	slices.SortFunc(c.byName, func(a, b *Candidate) int { return strings.Compare(a.Set.Name, b.Set.Name) })
	for place, one := range c.byName {
		asked := one.asked()
		for _, l := range asked {
			c.asking[l] = append(c.asking[l], place)
		}
		if len(asked) == 0 {
			c.open = append(c.open, place)
		}
	}
	return c
}

// Named returns the SidecarSet of a name, nil if there is none.
func (c *Candidates) Named(name string) *Candidate {
	place, found := slices.BinarySearchFunc(c.byName, name, func(one *Candidate, name string) int { return strings.Compare(one.Set.Name, name) })
	if !found {
		return nil
	}
	return c.byName[place]
}

// asked returns labels of which a Pod needs one to be selected, at most one of which it can have: the values that the selector allows for
// one key. There are none where the selector names no value.
func (c *Candidate) asked() []label {
	requirements, _ := c.selection.Requirements()
	for i := range requirements {
		r := &requirements[i]
		if !sidecar.NamesValues(r) {
			continue
		}
		var asked []label
		for _, value := range r.ValuesUnsorted() {
			asked = append(asked, label{r.Key(), value})
		}
		return asked
	}
	return nil
}

// Match returns those that apply to a Pod with these labels, in the order of their names. A canary takes the place of its base. namespace
// returns the labels of the Pod's namespace; it is only asked where they matter.
//
// A selector that can't be read selects nothing: its SidecarSet can't have been accepted as it is.
func (c *Candidates) Match(of labels.Set, namespace func() (map[string]string, error)) ([]*Candidate, error) {
	places := slices.Clone(c.open)
	for key, value := range of {
		places = append(places, c.asking[label{key, value}]...)
	}
	slices.Sort(places)
	places = slices.Compact(places) // selectors may name a value twice
	var matching []*Candidate
	var canaryOf []string
	for _, place := range places {
		one := c.byName[place]
		if applies, err := one.appliesTo(of, namespace); err != nil {
			return nil, err
		} else if !applies {
			continue
		}
		matching = append(matching, one)
		if base := one.base(); base != "" {
			canaryOf = append(canaryOf, base)
		}
	}
	return slices.DeleteFunc(matching, func(c *Candidate) bool { return slices.Contains(canaryOf, c.Set.Name) }), nil
}

// appliesTo reports whether a Pod with these labels is selected and gets sidecars now.
func (c *Candidate) appliesTo(of labels.Set, namespace func() (map[string]string, error)) (bool, error) {
	if c.Set.Spec.InjectionStrategy.Paused || c.Set.DeletionTimestamp != nil || !c.selection.MatchesLabels(of) {
		return false, nil
	}
	if !c.selection.NeedsNamespace() {
		return true, nil
	}
	theirs, err := namespace()
	return err == nil && c.selection.MatchesNamespace(theirs), err
}
