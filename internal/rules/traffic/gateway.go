package traffic

import (
	"fmt"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// RouteKind is a kind of routes of Gateway API.
type RouteKind string

const (
	// HTTPRoute matches requests by path, headers and query.
	HTTPRoute RouteKind = "HTTPRoute"
	// GRPCRoute matches requests by method and headers.
	GRPCRoute RouteKind = "GRPCRoute"
)

// maxWeight is the largest weight that Gateway API takes.
const maxWeight = 1000000

// GatewayRoute returns the spec of a route that leads traffic as the split says. Original is the spec that the user wrote; it is not
// changed.
//
// With a weight, every rule that leads to the stable Service leads to both, and its other backends keep their share: stable 7 and other 3
// are, at 20%, stable 560, canary 140 and other 300. With matches, those rules stay, and each is followed at the end of the list by one for
// the new version.
func GatewayRoute(kind RouteKind, original map[string]any, s Split) (map[string]any, error) {
	if s.Stable == s.Canary && len(s.Matches) == 0 {
		return nil, fmt.Errorf("a weight leads nowhere else where both versions have Service %s: use matches", s.Stable)
	}
	spec := copied(original)
	rules := list(spec, "rules")
	var more []map[string]any
	standsAlone := map[int]bool{} // matches with a path are added once
	found := false
	for i, rule := range rules {
		refs := list(rule, "backendRefs")
		at := stableRef(refs, s.Stable)
		if at < 0 {
			continue
		}
		found = true
		if len(s.Matches) == 0 {
			setList(rules[i], "backendRefs", weighted(refs, at, s))
			continue
		}
		added, err := matching(kind, rule, refs[at], s, standsAlone)
		if err != nil {
			return nil, err
		}
		more = append(more, added...)
	}
	if !found {
		return nil, fmt.Errorf("no rule leads to Service %s", s.Stable)
	}
	setList(spec, "rules", append(rules, more...))
	return spec, nil
}

// RestoredRoute returns the spec of a route without what a release has added: the original, with what somebody has changed since.
func RestoredRoute(original, current map[string]any, s Split) map[string]any {
	return shape{
		lists: []string{"rules"}, refs: "backendRefs",
		ours:   func(ref map[string]any) bool { return isService(ref, s.Canary) },
		stable: func(ref map[string]any) bool { return isService(ref, s.Stable) },
		name:   func(ref map[string]any) any { return ref["name"] },
	}.restored(original, current)
}

// stableRef returns which backend is the Service; -1 if none is.
func stableRef(refs []map[string]any, service string) int {
	for i, ref := range refs {
		if isService(ref, service) {
			return i
		}
	}
	return -1
}

// isService tells whether a backend is a Service of the route's namespace. A backend that names no kind is a Service.
func isService(ref map[string]any, name string) bool {
	kind, group := ref["kind"], ref["group"]
	return ref["name"] == name && (kind == nil || kind == "Service") && (group == nil || group == "") && ref["namespace"] == nil
}

// weighted returns the backends of a rule with one for the new version after the stable one.
func weighted(refs []map[string]any, at int, s Split) []map[string]any {
	scale := func(of int64) int64 {
		if len(refs) == 1 {
			return 1
		}
		return of
	}
	largest := int64(1)
	for _, ref := range refs {
		largest = max(largest, scale(number(ref["weight"], 1)))
	}
	divisor := (largest*100 + maxWeight - 1) / maxWeight
	var out []map[string]any
	for i, ref := range refs {
		of := scale(number(ref["weight"], 1))
		if i != at {
			ref["weight"] = of * 100 / divisor
			out = append(out, ref)
			continue
		}
		canary := canaryRef(ref, s)
		ref["weight"], canary["weight"] = of*int64(100-s.Weight)/divisor, of*int64(s.Weight)/divisor
		out = append(out, ref, canary)
	}
	return out
}

// canaryRef returns a backend like the stable one for the new version.
func canaryRef(stable map[string]any, s Split) map[string]any {
	ref := copied(stable)
	ref["name"] = s.Canary
	if s.Modifier == nil {
		return ref
	}
	change := map[string]any{}
	if len(s.Modifier.Set) > 0 {
		change["set"] = headerFields(s.Modifier.Set)
	}
	if len(s.Modifier.Add) > 0 {
		change["add"] = headerFields(s.Modifier.Add)
	}
	if len(s.Modifier.Remove) > 0 {
		change["remove"] = texts(s.Modifier.Remove)
	}
	filter := map[string]any{"type": "RequestHeaderModifier", "requestHeaderModifier": change}
	setList(ref, "filters", append(list(ref, "filters"), filter))
	return ref
}

// matching returns the rules that lead the requests of the split, among those of a rule, to the new version.
func matching(kind RouteKind, rule, stable map[string]any, s Split, standsAlone map[int]bool) ([]map[string]any, error) {
	own := list(rule, "matches")
	if len(own) == 0 {
		own = []map[string]any{{}}
	}
	var matches []map[string]any
	for i := range s.Matches {
		m := &s.Matches[i]
		if kind == GRPCRoute && (m.Path != nil || len(m.QueryParams) > 0) {
			return nil, fmt.Errorf("a GRPCRoute can match headers only")
		}
		if m.Path != nil {
			if !standsAlone[i] {
				matches = append(matches, withMatch(map[string]any{"path": pathMatch(m.Path)}, m))
				standsAlone[i] = true
			}
			continue
		}
		for _, of := range own {
			matches = append(matches, withMatch(copied(of), m))
		}
	}
	if len(matches) == 0 {
		return nil, nil
	}
	added := copied(rule)
	delete(added, "name") // names of rules are unique
	setList(added, "matches", matches)
	ref := canaryRef(stable, s)
	ref["weight"] = int64(1) // as an API server would fill in
	setList(added, "backendRefs", []map[string]any{ref})
	return []map[string]any{added}, nil
}

func pathMatch(p *v1beta1.HTTPPathMatch) map[string]any {
	out := map[string]any{"type": string(v1beta1.PathMatchPrefix), "value": "/"}
	if p.Type != nil {
		out["type"] = string(*p.Type)
	}
	if p.Value != nil {
		out["value"] = *p.Value
	}
	return out
}

// withMatch adds headers and parameters to a match.
func withMatch(to map[string]any, m *v1beta1.HTTPRouteMatch) map[string]any {
	headers, params := list(to, "headers"), list(to, "queryParams")
	for _, h := range m.Headers {
		headers = append(headers, map[string]any{"type": typeOf(h.Type), "name": h.Name, "value": h.Value})
	}
	for _, q := range m.QueryParams {
		params = append(params, map[string]any{"type": typeOf(q.Type), "name": q.Name, "value": q.Value})
	}
	if len(headers) > 0 {
		setList(to, "headers", headers)
	}
	if len(params) > 0 {
		setList(to, "queryParams", params)
	}
	return to
}
