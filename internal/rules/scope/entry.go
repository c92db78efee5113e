package scope

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

const (
	// maxExpression is how many bytes an expression may have. The API server takes up to 100,000 characters, but compiles them whenever the
	// configuration changes, which takes it a good second for each 20,000 that are all alternatives.
	maxExpression = 16 << 10
	// maxGroups is how many different requirements on the labels of namespaces get a webhook of their own.
	maxGroups = 8
)

// Entry is what one webhook of a configuration selects.
type Entry struct {
	// Name tells it from other entries, and stays the same while Namespaces do. Empty for the one that selects Pods of all namespaces.
	Name string
	// Namespaces are requirements on the labels of namespaces, which only a namespace selector can see.
	Namespaces []metav1.LabelSelectorRequirement
	// Expression is a CEL expression on the Pod and the name of its namespace.
	Expression string
}

// Entries returns the webhooks that together select all Pods that the interests are in; none if there are no interests. There is one for
// each different requirement on the labels of namespaces; beyond maxGroups of these, in the order of their names, the requirements on the
// labels of namespaces are left out.
func Entries(interests []Interest) []Entry {
	groups := map[string][]Interest{}
	for _, i := range interests {
		groups[text(i.labels)] = append(groups[text(i.labels)], i)
	}
	ranked := slices.Sorted(maps.Keys(groups))
	if i := slices.Index(ranked, ""); i >= 0 {
		ranked = slices.Delete(ranked, i, i+1)
	}
	if len(ranked) > maxGroups {
		for _, beyond := range ranked[maxGroups:] {
			groups[""] = append(groups[""], groups[beyond]...)
		}
		ranked = ranked[:maxGroups]
	}
	var entries []Entry
	if all := groups[""]; len(all) > 0 {
		entries = append(entries, Entry{Expression: Expression(all, maxExpression)})
	}
	for _, group := range ranked {
		hash := fnv.New32a()
		hash.Write([]byte(group))
		entries = append(entries, Entry{
			Name:       fmt.Sprintf("%08x", hash.Sum32()),
			Namespaces: asSelector(groups[group][0].labels),
			Expression: Expression(groups[group], maxExpression),
		})
	}
	return entries
}

// asSelector writes requirements as they stand in a selector of the API.
func asSelector(requirements labels.Requirements) []metav1.LabelSelectorRequirement {
	operators := map[selection.Operator]metav1.LabelSelectorOperator{
		selection.In: metav1.LabelSelectorOpIn, selection.Equals: metav1.LabelSelectorOpIn, selection.DoubleEquals: metav1.LabelSelectorOpIn,
		selection.NotIn: metav1.LabelSelectorOpNotIn, selection.NotEquals: metav1.LabelSelectorOpNotIn,
		selection.Exists: metav1.LabelSelectorOpExists, selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
	}
	out := make([]metav1.LabelSelectorRequirement, 0, len(requirements))
	for i := range requirements {
		r := &requirements[i]
		out = append(out, metav1.LabelSelectorRequirement{
			Key: r.Key(), Operator: operators[r.Operator()], Values: slices.Sorted(maps.Keys(r.Values())),
		})
	}
	slices.SortFunc(out, func(a, b metav1.LabelSelectorRequirement) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator), slices.Compare(a.Values, b.Values))
	})
	return slices.CompactFunc(out, func(a, b metav1.LabelSelectorRequirement) bool {
		return a.Key == b.Key && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
	})
}
