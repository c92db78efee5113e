package traffic

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// canarySubset is the subset of the new version where both versions share a Service.
const canarySubset = "canary"

// VirtualService returns the spec of a VirtualService of Istio that leads traffic as the split says. Original is the spec that the user
// wrote; it is not changed. Routes with matches of their own stay as they are.
func VirtualService(original map[string]any, s Split) (map[string]any, error) {
	spec := copied(original)
	if len(s.Matches) > 0 {
		port := stablePort(list(spec, "http"), s)
		var first []map[string]any
		for i := range s.Matches {
			first = append(first, matchingRoute(&s.Matches[i], s, port))
		}
		setList(spec, "http", append(first, list(spec, "http")...))
		return spec, nil
	}
	found := false
	for _, protocol := range []string{"http", "tcp", "tls"} {
		routes := list(spec, protocol)
		for _, route := range routes {
			if len(list(route, "match")) == 0 && splitRoute(route, s) {
				found = true
			}
		}
		if len(routes) > 0 {
			setList(spec, protocol, routes)
		}
	}
	if !found {
		return nil, fmt.Errorf("no route without a match leads to Service %s", s.Stable)
	}
	return spec, nil
}

// RestoredVirtualService returns the spec of a VirtualService without what a release has added: the original, with what somebody has
// changed since.
func RestoredVirtualService(original, current map[string]any, s Split) map[string]any {
	return shape{
		lists: []string{"http", "tcp", "tls"}, refs: "route",
		ours: func(to map[string]any) bool {
			if s.Stable == s.Canary {
				return isHost(to, s.Stable) && subsetOf(to) == canarySubset
			}
			return isHost(to, s.Canary)
		},
		stable: func(to map[string]any) bool { return isHost(to, s.Stable) },
		name:   func(to map[string]any) any { return hostOf(to) },
	}.restored(original, current)
}

// splitRoute divides the share of the stable Service in a route; false if the route does not lead there. Each existing weight is scaled to
// what is left for the old version, rounded down; routes without weights share it.
func splitRoute(route map[string]any, s Split) bool {
	destinations := list(route, "route")
	at, weighted := -1, false
	for i, d := range destinations {
		if isHost(d, s.Stable) && at < 0 {
			at = i
		}
		weighted = weighted || d["weight"] != nil
	}
	if at < 0 {
		return false
	}
	canary := copied(destinations[at])
	lead(canary, s)
	left, sum := int64(100-s.Weight), int64(0)
	for _, d := range destinations {
		if weighted {
			d["weight"] = number(d["weight"], 0) * left / 100
		} else {
			d["weight"] = left / int64(len(destinations))
		}
		sum += number(d["weight"], 0)
	}
	if weighted { // what rounding has taken goes to the new version, so that they add up
		canary["weight"] = max(100-sum, int64(s.Weight))
	} else {
		canary["weight"] = 100 - sum
	}
	if s.Modifier != nil {
		canary["headers"] = map[string]any{"request": requestHeaders(s.Modifier)}
	}
	setList(route, "route", append(destinations, canary))
	return true
}

// isHost tells whether a destination is a Service: its host up to the first dot.
func isHost(destination map[string]any, service string) bool {
	name, _, _ := strings.Cut(hostOf(destination), ".")
	return name == service
}

func hostOf(destination map[string]any) string {
	to, _ := destination["destination"].(map[string]any)
	host, _ := to["host"].(string)
	return host
}

func subsetOf(destination map[string]any) string {
	to, _ := destination["destination"].(map[string]any)
	subset, _ := to["subset"].(string)
	return subset
}

// lead makes a destination that of the new version.
func lead(route map[string]any, s Split) {
	to, _ := route["destination"].(map[string]any)
	host, _ := to["host"].(string)
	if s.Stable == s.Canary {
		to["subset"] = canarySubset
		return
	}
	_, domain, qualified := strings.Cut(host, ".")
	if to["host"] = s.Canary; qualified {
		to["host"] = s.Canary + "." + domain
	}
	delete(to, "subset") // it is one of the other Service
}

// stablePort returns the destination of the first route to the stable Service.
func stablePort(routes []map[string]any, s Split) map[string]any {
	for _, route := range routes {
		for _, d := range list(route, "route") {
			if isHost(d, s.Stable) {
				d = copied(d)
				delete(d, "weight")
				return d
			}
		}
	}
	return map[string]any{"destination": map[string]any{"host": s.Stable}}
}

// matchingRoute returns the route of one match to the new version.
func matchingRoute(m *v1beta1.HTTPRouteMatch, s Split, stable map[string]any) map[string]any {
	match := map[string]any{}
	if len(m.Headers) > 0 {
		headers := map[string]any{}
		for _, h := range m.Headers {
			headers[h.Name] = stringMatch(typeOf(h.Type), h.Value)
		}
		match["headers"] = headers
	}
	if len(m.QueryParams) > 0 {
		params := map[string]any{}
		for _, q := range m.QueryParams {
			params[q.Name] = stringMatch(typeOf(q.Type), q.Value)
		}
		match["queryParams"] = params
	}
	if m.Path != nil {
		path := pathMatch(m.Path)
		match["uri"] = stringMatch(fmt.Sprint(path["type"]), fmt.Sprint(path["value"]))
	}
	to := copied(stable)
	lead(to, s)
	route := map[string]any{"match": []any{match}, "route": []any{to}}
	if s.Modifier != nil {
		route["headers"] = map[string]any{"request": requestHeaders(s.Modifier)}
	}
	return route
}

func stringMatch(how, value string) map[string]any {
	switch how {
	case string(v1beta1.PathMatchRegularExpression):
		return map[string]any{"regex": value}
	case string(v1beta1.PathMatchPrefix):
		return map[string]any{"prefix": value}
	}
	return map[string]any{"exact": value}
}

func requestHeaders(m *v1beta1.HTTPHeaderFilter) map[string]any {
	out := map[string]any{}
	if len(m.Set) > 0 {
		out["set"] = headerMap(m.Set)
	}
	if len(m.Add) > 0 {
		out["add"] = headerMap(m.Add)
	}
	if len(m.Remove) > 0 {
		out["remove"] = texts(m.Remove)
	}
	return out
}

// DestinationRule returns the spec of a DestinationRule of Istio with the subset of the new version.
func DestinationRule(original map[string]any) map[string]any {
	spec := copied(original)
	subsets := list(spec, "subsets")
	if slices.ContainsFunc(subsets, isCanarySubset) {
		return spec // the user's own
	}
	subset := map[string]any{"name": canarySubset, "labels": map[string]any{"istio.service.tag": "gray"}}
	setList(spec, "subsets", append(subsets, subset))
	return spec
}

// RestoredDestinationRule returns the spec of a DestinationRule without the subset that a release has added.
func RestoredDestinationRule(original, current map[string]any) map[string]any {
	spec := copied(current)
	before := list(original, "subsets")
	if slices.ContainsFunc(before, isCanarySubset) {
		return spec
	}
	subsets := slices.DeleteFunc(list(spec, "subsets"), isCanarySubset)
	putList(spec, "subsets", subsets, original)
	return spec
}

func isCanarySubset(subset map[string]any) bool { return subset["name"] == canarySubset }
