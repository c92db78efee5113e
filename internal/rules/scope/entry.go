// Package scope turns the selectors of SidecarSets and PodProbeMarkers into those of webhooks: namespace selectors, and match conditions in
// CEL, which the API server evaluates by itself. A Pod that none of them selects is never sent to a manager, and so is created even while
// none runs.
//
// The inequality it keeps, whatever the number of SidecarSets:
//
//	Pods that are sent  ⊇  Pods that a SidecarSet selects
//
// Both sides are equal as long as the expression is of a reasonable size. Beyond that the expression is made coarser in steps: only the
// keys of the labels, then only the namespaces, then every Pod.
//
// It builds on rules/sidecar, which knows what a SidecarSet selects.
package scope

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
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
		selection.In: metav1.LabelSelectorOpIn, selection.Equals: metav1.LabelSelectorOpIn,
		selection.DoubleEquals: metav1.LabelSelectorOpIn,
		selection.NotIn:        metav1.LabelSelectorOpNotIn, selection.NotEquals: metav1.LabelSelectorOpNotIn,
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

// Interest is in the Pods whose labels meet all of some requirements, in the namespaces whose labels meet all of others.
type Interest struct {
	pods labels.Requirements
	// names are the requirements on the name of the namespace, labels those on its other labels.
	names, labels labels.Requirements
}

// OfSidecarSet returns the interest of a SidecarSet; ok is false if it has none, because nothing is injected by it now.
func OfSidecarSet(set *v1beta1.SidecarSet) (interest Interest, ok bool) {
	if set.Spec.InjectionStrategy.Paused || set.DeletionTimestamp != nil {
		return Interest{}, false
	}
	return OfSelectors(set.Spec.Selector, set.Spec.NamespaceSelector)
}

// OfPodProbeMarker returns the interest of a PodProbeMarker; ok is false if it has none, because it is on its way out or selects nothing.
func OfPodProbeMarker(m *v1alpha1.PodProbeMarker) (interest Interest, ok bool) {
	selector := m.Spec.Selector
	if m.DeletionTimestamp != nil || selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return Interest{}, false
	}
	return OfSelectors(selector, &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: m.Namespace}})
}

// OfSelectors returns the interest in what the two selectors of a SidecarSet select; ok is false if they can't be read and so select
// nothing.
func OfSelectors(pods, namespaces *metav1.LabelSelector) (interest Interest, ok bool) {
	selected, err := sidecar.Select(pods, namespaces)
	if err != nil {
		return Interest{}, false
	}
	all, ofNamespaces := selected.Requirements()
	interest.pods = all
	for _, r := range ofNamespaces {
		if r.Key() != corev1.LabelMetadataName {
			interest.labels = append(interest.labels, r)
			continue
		}
		switch r.Operator() {
		case selection.Exists: // every namespace has it
		case selection.DoesNotExist:
			interest.labels = append(interest.labels, r)
		default:
			interest.names = append(interest.names, r)
		}
	}
	return interest, true
}

// Equal reports whether both are in the same Pods as far as their words tell: false may be said of two ways to say the same.
func (i Interest) Equal(other Interest) bool {
	return text(i.pods) == text(other.pods) && text(i.names) == text(other.names) && text(i.labels) == text(other.labels)
}

// text is the same for the same requirements in any order.
func text(requirements labels.Requirements) string {
	words := make([]string, 0, len(requirements))
	for i := range requirements {
		words = append(words, requirements[i].String())
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ",")
}
