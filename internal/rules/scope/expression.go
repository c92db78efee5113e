package scope

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// everyPod is the expression that is true of every Pod.
const everyPod = "true"

// Expression returns a CEL expression that is true of every Pod that one of the interests is in, as far as its labels and the name of its
// namespace tell; false of all others, unless that takes more than limit bytes.
//
// Selectors app=web and app=db,tier in (a,b), the latter in namespace shop, become
//
//	[has(object.metadata.labels) ? object.metadata.labels : {}].exists(labels,
//	"app" in labels && labels["app"] == "web" ||
//	request.namespace == "shop" && "tier" in labels && labels["tier"] in ["a","b"] && "app" in labels && labels["app"] == "db")
func Expression(interests []Interest, limit int) string {
	for _, coarse := range []func(Interest) Interest{asItIs, byKeys, byNamespace} {
		if out := disjunction(interests, coarse); len(out) <= limit {
			return out
		}
	}
	return everyPod
}

func asItIs(i Interest) Interest { return i }

// byKeys keeps of the requirements only which labels have to be there.
func byKeys(i Interest) Interest {
	var present labels.Requirements
	for _, r := range i.pods {
		switch r.Operator() {
		case selection.NotIn, selection.DoesNotExist, selection.NotEquals: // labels that need not be there
		default:
			if exists, err := labels.NewRequirement(r.Key(), selection.Exists, nil); err == nil {
				present = append(present, *exists)
			}
		}
	}
	return Interest{pods: present, names: i.names}
}

// byNamespace keeps nothing of what is said of Pods.
func byNamespace(i Interest) Interest { return Interest{names: i.names} }

// disjunction returns the expression for interests that are first made coarser. Interests that differ only in the values of one label, of
// which there are mostly many, are taken together: the API server takes long to compile alternatives, and hardly any time for values.
func disjunction(interests []Interest, coarse func(Interest) Interest) string {
	values := map[string]map[string]bool{} // of each label
	for _, full := range interests {
		for _, r := range coarse(full).pods {
			if sidecar.NamesValues(&r) {
				add(values, r.Key(), r.ValuesUnsorted())
			}
		}
	}
	terms := map[string]bool{}
	together := map[group]map[string]bool{}
	for _, full := range interests {
		i := coarse(full)
		at := mostVaried(i.pods, values)
		if at < 0 {
			terms[both(conjunction(i.names, nameMeets), conjunction(i.pods, labelMeets))] = true
			continue
		}
		others := slices.Delete(slices.Clone(i.pods), at, at+1)
		in := group{conjunction(i.names, nameMeets), conjunction(others, labelMeets), i.pods[at].Key()}
		add(together, in, i.pods[at].ValuesUnsorted())
	}
	for g, values := range together {
		terms[both(g.names, both(labelIn(g.key, slices.Sorted(maps.Keys(values))), g.others))] = true
	}
	switch {
	case len(terms) == 0:
		return "false"
	case terms[""]:
		return everyPod
	}
	alternatives := strings.Join(slices.Sorted(maps.Keys(terms)), " ||\n")
	return "[has(object.metadata.labels) ? object.metadata.labels : {}].exists(labels,\n" + alternatives + ")"
}

// group is interests that are the same but for the values of one label.
type group struct{ names, others, key string }

func add[K comparable](to map[K]map[string]bool, key K, values []string) {
	if to[key] == nil {
		to[key] = map[string]bool{}
	}
	for _, value := range values {
		to[key][value] = true
	}
}

// mostVaried returns the position of the requirement on the value of a label that has the most values in all; -1 if there is none.
func mostVaried(requirements labels.Requirements, values map[string]map[string]bool) int {
	best := -1
	for i := range requirements {
		if !sidecar.NamesValues(&requirements[i]) {
			continue
		}
		if best < 0 {
			best = i
			continue
		}
		more := cmp.Compare(len(values[requirements[i].Key()]), len(values[requirements[best].Key()]))
		// The same one in whatever order they come: the configuration must not change by itself.
		if cmp.Or(more, -cmp.Compare(requirements[i].String(), requirements[best].String())) > 0 {
			best = i
		}
	}
	return best
}

// both joins two conditions, of which an empty one is always met.
func both(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " && " + b
}

// conjunction returns the condition that all requirements are met, and empty if there are none.
func conjunction(requirements labels.Requirements, meets func(*labels.Requirement) string) string {
	all := make([]string, 0, len(requirements))
	for i := range requirements {
		all = append(all, meets(&requirements[i]))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " && ")
}

// labelMeets returns the condition that a label of the Pod meets a requirement. One that needs another value is met where there is none.
func labelMeets(r *labels.Requirement) string {
	values := slices.Sorted(maps.Keys(r.Values()))
	switch o := r.Operator(); {
	case sidecar.NamesValues(r):
		return labelIn(r.Key(), values)
	case o == selection.Exists:
		return quote(r.Key()) + " in labels"
	case o == selection.DoesNotExist:
		return "!(" + quote(r.Key()) + " in labels)"
	default:
		return "!(" + labelIn(r.Key(), values) + ")"
	}
}

func labelIn(key string, values []string) string {
	return quote(key) + " in labels && " + isOneOf("labels["+quote(key)+"]", values)
}

// nameMeets returns the condition that the name of the namespace meets a requirement.
func nameMeets(r *labels.Requirement) string {
	oneOf := isOneOf("request.namespace", slices.Sorted(maps.Keys(r.Values())))
	if sidecar.NamesValues(r) {
		return oneOf
	}
	return "!(" + oneOf + ")"
}

func isOneOf(what string, values []string) string {
	if len(values) == 1 {
		return what + " == " + quote(values[0])
	}
	quoted := make([]string, 0, len(values))
	for _, value := range values {
		quoted = append(quoted, quote(value))
	}
	return what + " in [" + strings.Join(quoted, ",") + "]"
}

// quote returns a string of CEL, whose escapes are those of Go where the text is ASCII; selectors can't hold anything else.
func quote(value string) string { return strconv.QuoteToASCII(value) }
