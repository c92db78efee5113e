// Package distribution says which namespaces get a copy of a resource, what a copy is to be like, and whether an object is as it is to be.
package distribution

import (
	"hash/fnv"
	"maps"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// Namespace is what has to be known of a namespace.
type Namespace struct {
	Labels map[string]string
	// Deleting means that nothing can be created in it any more.
	Deleting bool
}

// Targets returns the namespaces that are to have a copy, sorted, whether they exist or not. With the namespaces a, b with label x=1, c and
// kube-system, those included by name [a, d], the selector x=1 and b excluded these are a and d. It fails on a selector that can't be read.
func Targets(spec *v1beta1.ResourceDistributionSpec, there map[string]Namespace) ([]string, error) {
	selector, err := selectorOf(spec)
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for name, namespace := range there {
		if spec.Targets.AllNamespaces || selector.Matches(labels.Set(namespace.Labels)) ||
			fits(name, spec.Targets.IncludedNamespaces.Patterns) {
			all[name] = true
		}
	}
	for _, included := range spec.Targets.IncludedNamespaces.List {
		all[included.Name] = true
	}
	for _, excluded := range spec.Targets.ExcludedNamespaces.List {
		delete(all, excluded.Name)
	}
	maps.DeleteFunc(all, func(name string, _ bool) bool { return fits(name, spec.Targets.ExcludedNamespaces.Patterns) })
	delete(all, metav1.NamespaceSystem)
	delete(all, metav1.NamespacePublic)
	if from := spec.ResourceFrom; from != nil {
		delete(all, from.Namespace) // where the original is
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// fits reports whether a name fits any of the patterns. A pattern that can't be read fits none.
func fits(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// selectorOf returns the selector of namespaces; an empty one selects none.
func selectorOf(spec *v1beta1.ResourceDistributionSpec) (labels.Selector, error) {
	selector := &spec.Targets.NamespaceSelector
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return labels.Nothing(), nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}

// Concerns reports whether a namespace may get a copy, or have one, by its name and by any of the labels that it has or had. One whose
// selector can't be read is concerned by its names alone.
func Concerns(spec *v1beta1.ResourceDistributionSpec, name string, versions ...map[string]string) bool {
	listed := func(names v1beta1.ResourceDistributionNamespaces) bool {
		return fits(name, names.Patterns) || slices.ContainsFunc(names.List, func(n v1beta1.ResourceDistributionNamespace) bool {
			return n.Name == name
		})
	}
	if spec.Targets.AllNamespaces || listed(spec.Targets.IncludedNamespaces) || listed(spec.Targets.ExcludedNamespaces) {
		return true
	}
	selector, err := selectorOf(spec)
	return err == nil && slices.ContainsFunc(versions, func(of map[string]string) bool { return selector.Matches(labels.Set(of)) })
}

// Reach returns those of the namespaces whose copies follow a change of the resource: a share of them, rounded up, always the same ones
// first, in an order that has nothing to do with their names. Of 5 namespaces 30 percent are 2.
func Reach(namespaces []string, rollout *v1beta1.ResourceDistributionRollout) map[string]bool {
	percent := 100
	switch {
	case rollout == nil:
	case rollout.Paused:
		percent = 0
	case rollout.Percent != nil:
		percent = int(min(max(*rollout.Percent, 0), 100))
	}
	ordered := slices.Clone(namespaces)
	rank := func(name string) uint32 {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(name)) // it never fails
		return hash.Sum32()
	}
	slices.SortFunc(ordered, func(a, b string) int {
		if ra, rb := rank(a), rank(b); ra != rb {
			if ra < rb {
				return -1
			}
			return 1
		}
		if a < b {
			return -1
		}
		return 1
	})
	reached := map[string]bool{}
	for _, name := range ordered[:(len(ordered)*percent+99)/100] {
		reached[name] = true
	}
	return reached
}

// IsTerminating reports whether a namespace is on its way out.
func IsTerminating(n *corev1.Namespace) bool {
	return n.DeletionTimestamp != nil || n.Status.Phase == corev1.NamespaceTerminating
}
