// Package traffic computes what the objects that lead traffic say at a step of a release: routes of Gateway API, Ingresses, and
// VirtualServices and DestinationRules of Istio.
//
// Every result is computed from what the user wrote, never from the result before it, and what was there before the release can be restored
// exactly. Routes are edited as JSON, field by field: through Go types the fields would be lost that those types do not know.
package traffic

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// Split says which requests go to the new version.
type Split struct {
	// Stable and Canary are the names of the Services. They are the same where subsets tell the versions apart.
	Stable, Canary string
	// Weight is the share of the new version, in percent. It counts where there are no matches.
	Weight int32
	// Matches are the requests that go to the new version.
	Matches []v1beta1.HTTPRouteMatch
	// Modifier changes the headers of requests to the new version; nil changes none.
	Modifier *v1beta1.HTTPHeaderFilter
}

// SplitOf returns which requests a step leads to the new version; the Services are not set.
func SplitOf(step *v1beta1.Step) (Split, error) {
	s := Split{Matches: step.Matches, Modifier: step.RequestHeaderModifier}
	if step.Traffic == nil || len(step.Matches) > 0 {
		return s, nil
	}
	weight, err := strconv.ParseInt(strings.TrimSuffix(*step.Traffic, "%"), 10, 32)
	if err != nil || weight < 0 || weight > all {
		return s, fmt.Errorf("traffic %q is not a percentage from 0%% to 100%%", *step.Traffic)
	}
	s.Weight = int32(weight)
	return s, nil
}

// all is the weight of all requests.
const all = 100

// Original is what an object was before a release, as far as a release changes it: the annotation keys.OriginalSpecConfiguration.
//
// Wire: it is stored in users' clusters.
type Original struct {
	Spec        map[string]any    `json:"spec,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// By names the kind and name of the object whose release it is, such as Rollout web.
	By string `json:"by,omitempty"`
	// Leads is what the release has the object lead to the new version, as it was last written.
	Leads string `json:"leads,omitempty"`
}

// ParseOriginal reads what Text has written.
func ParseOriginal(text string) (Original, error) {
	var o Original
	if err := utiljson.Unmarshal([]byte(text), &o); err != nil {
		return Original{}, fmt.Errorf("reading the annotation with what was there before the release: %w", err)
	}
	return o, nil
}

// Text returns the original as the annotation keeps it. Whole numbers stay whole.
func (o Original) Text() string {
	text, _ := json.Marshal(o) // JSON that was read
	return string(text)
}

// Holds reports whether an object has all that is wanted of it. It may have more: fields that an API server fills in.
func Holds(is, wanted any) bool {
	switch w := wanted.(type) {
	case map[string]any:
		m, ok := is.(map[string]any)
		for key, value := range w {
			ok = ok && Holds(m[key], value)
		}
		return ok
	case []any:
		items, ok := is.([]any)
		ok = ok && len(items) == len(w)
		for i := 0; ok && i < len(w); i++ {
			ok = Holds(items[i], w[i])
		}
		return ok
	}
	return equality.Semantic.DeepEqual(is, wanted)
}

// list returns a list of objects; nil if it is none.
func list(of map[string]any, field string) []map[string]any {
	items, _ := of[field].([]any)
	out := make([]map[string]any, 0, len(items))
	for _, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			return nil
		}
		out = append(out, m)
	}
	return out
}

// setList replaces a list of objects.
func setList(of map[string]any, field string, items []map[string]any) {
	out := make([]any, len(items))
	for i := range items {
		out[i] = items[i]
	}
	of[field] = out
}

func copied(m map[string]any) map[string]any { return runtime.DeepCopyJSON(m) }

// number reads a number of JSON; fallback where none is given.
func number(v any, fallback int64) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	case int:
		return int64(n)
	}
	return fallback
}

// headerFields returns headers as a list of JSON.
func headerFields(headers []v1beta1.HTTPHeader) []any {
	out := make([]any, len(headers))
	for i, h := range headers {
		out[i] = map[string]any{"name": h.Name, "value": h.Value}
	}
	return out
}

// headerMap returns headers as a map of JSON.
func headerMap(headers []v1beta1.HTTPHeader) map[string]any {
	out := map[string]any{}
	for _, h := range headers {
		out[h.Name] = h.Value
	}
	return out
}

// texts returns a list of JSON.
func texts(values []string) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

// typeOf returns how a match compares, Exact unless it says.
func typeOf(t *v1beta1.MatchType) string {
	if t == nil {
		return string(v1beta1.MatchExact)
	}
	return string(*t)
}

// sortedKeys returns the keys of a map in a fixed order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
