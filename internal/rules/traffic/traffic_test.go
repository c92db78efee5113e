package traffic

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

func fields(t testing.TB, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func split(weight int32, matches ...v1beta1.HTTPRouteMatch) Split {
	return Split{Stable: "web", Canary: "web-canary", Weight: weight, Matches: matches}
}

func header(name, value string) v1beta1.HTTPRouteMatch {
	return v1beta1.HTTPRouteMatch{Headers: []v1beta1.HTTPHeaderMatch{{Name: name, Value: value}}}
}

func withPath(m v1beta1.HTTPRouteMatch, path string) v1beta1.HTTPRouteMatch {
	m.Path = &v1beta1.HTTPPathMatch{Value: &path}
	return m
}

// threeRules is the route of acceptance scenario 17. It has a field that no Go type knows.
const threeRules = `
parentRefs: [{name: gateway}]
unknown: {kept: 1}
rules:
- matches: [{path: {type: PathPrefix, value: /a}}]
  backendRefs: [{name: web, port: 80, weight: 7}, {name: other, port: 80, weight: 3}]
- filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]
- backendRefs: [{name: unrelated, port: 80}]
`

func TestRoutesOfGatewayAPI(t *testing.T) {
	modified := split(100)
	modified.Modifier = &v1beta1.HTTPHeaderFilter{Set: []v1beta1.HTTPHeader{{Name: "version", Value: "new"}}, Remove: []string{"old"}}
	cases := map[string]struct {
		original, want string
		split          Split
	}{
		"a weight beside another backend": {threeRules, `
parentRefs: [{name: gateway}]
unknown: {kept: 1}
rules:
- matches: [{path: {type: PathPrefix, value: /a}}]
  backendRefs: [{name: web, port: 80, weight: 560}, {name: web-canary, port: 80, weight: 140}, {name: other, port: 80, weight: 300}]
- filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]
- backendRefs: [{name: unrelated, port: 80}]
`, split(20)},
		"a weight of the only backend": {"rules: [{backendRefs: [{name: web, port: 80, weight: 5}]}]",
			"rules: [{backendRefs: [{name: web, port: 80, weight: 80}, {name: web-canary, port: 80, weight: 20}]}]", split(20)},
		"the largest weights": {"rules: [{backendRefs: [{name: web, weight: 1000000}, {name: other}]}]",
			"rules: [{backendRefs: [{name: web, weight: 800000}, {name: web-canary, weight: 200000}, {name: other, weight: 1}]}]", split(20)},
		"a modifier": {"rules: [{backendRefs: [{name: web, port: 80}]}]", `
rules: [{backendRefs: [{name: web, port: 80, weight: 0}, {name: web-canary, port: 80, weight: 100, filters: [
  {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: version, value: new}], remove: [old]}}]}]}]`, modified},
		"headers, with and without a path, trap T10": {threeRules, `
parentRefs: [{name: gateway}]
unknown: {kept: 1}
rules:
- matches: [{path: {type: PathPrefix, value: /a}}]
  backendRefs: [{name: web, port: 80, weight: 7}, {name: other, port: 80, weight: 3}]
- filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]
- backendRefs: [{name: unrelated, port: 80}]
- matches:
  - {path: {type: PathPrefix, value: /b}, headers: [{type: Exact, name: user, value: x}]}
  - {path: {type: PathPrefix, value: /a}, headers: [{type: Exact, name: user, value: z}]}
  backendRefs: [{name: web-canary, port: 80, weight: 1}]
`, split(0, withPath(header("user", "x"), "/b"), header("user", "z"))},
		"a path is added once for two rules": {"rules: [{backendRefs: [{name: web}]}, {matches: [{method: GET}], backendRefs: [{name: web}]}]", `
rules:
- backendRefs: [{name: web}]
- {matches: [{method: GET}], backendRefs: [{name: web}]}
- {matches: [{path: {type: PathPrefix, value: /b}, headers: [{type: Exact, name: user, value: x}]}], backendRefs: [{name: web-canary, weight: 1}]}
`, split(0, withPath(header("user", "x"), "/b"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			original := fields(t, tc.original)
			got, err := GatewayRoute(HTTPRoute, original, tc.split)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fields(t, tc.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(fields(t, tc.original), original); diff != "" {
				t.Errorf("the original was changed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(original, RestoredRoute(original, got, tc.split)); diff != "" {
				t.Errorf("restored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRoutesThatCannotBeSplit(t *testing.T) {
	for name, tc := range map[string]struct {
		kind  RouteKind
		text  string
		split Split
		want  string
	}{
		"no such Service":         {HTTPRoute, "rules: [{backendRefs: [{name: other}]}]", split(20), "no rule leads to Service web"},
		"a Service elsewhere":     {HTTPRoute, "rules: [{backendRefs: [{name: web, namespace: other}]}]", split(20), "no rule leads"},
		"a backend of a kind":     {HTTPRoute, "rules: [{backendRefs: [{name: web, kind: Bucket, group: x}]}]", split(20), "no rule leads"},
		"no rules":                {HTTPRoute, "{}", split(20), "no rule leads"},
		"a path of a GRPCRoute":   {GRPCRoute, "rules: [{backendRefs: [{name: web}]}]", split(0, withPath(header("a", "b"), "/")), "can match headers only"},
		"a weight of a GRPCRoute": {GRPCRoute, "rules: [{backendRefs: [{name: web}]}]", split(20), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := GatewayRoute(tc.kind, fields(t, tc.text), tc.split)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("answered %v, want %s", err, tc.want)
			}
		})
	}
}

// TestARouteThatSomebodyChangesMeanwhile keeps the change.
func TestARouteThatSomebodyChangesMeanwhile(t *testing.T) {
	original := fields(t, threeRules)
	current, err := GatewayRoute(HTTPRoute, original, split(20))
	if err != nil {
		t.Fatal(err)
	}
	rules := list(current, "rules")
	rules[2]["backendRefs"] = []any{map[string]any{"name": "unrelated", "port": int64(81)}}
	setList(current, "rules", append(rules, map[string]any{"backendRefs": []any{map[string]any{"name": "new"}}}))
	want := fields(t, strings.Replace(threeRules, "{name: unrelated, port: 80}", "{name: unrelated, port: 81}", 1)+"- backendRefs: [{name: new}]\n")
	if diff := cmp.Diff(want, RestoredRoute(original, current, split(20))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEveryRouteIsRestored: whatever the step says, what comes after it is what the user wrote.
func TestEveryRouteIsRestored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := []any{map[string]any{"backendRefs": []any{map[string]any{"name": "web"}}}}
		for range rapid.IntRange(0, 4).Draw(t, "rules") {
			rule := map[string]any{}
			if rapid.Bool().Draw(t, "matches") {
				rule["matches"] = []any{map[string]any{"path": map[string]any{"value": rapid.SampledFrom([]string{"/a", "/b"}).Draw(t, "path")}}}
			}
			var refs []any
			for range rapid.IntRange(0, 3).Draw(t, "backends") {
				ref := map[string]any{"name": rapid.SampledFrom([]string{"web", "other", "third"}).Draw(t, "name"), "port": int64(len(refs))}
				if rapid.Bool().Draw(t, "weighted") {
					ref["weight"] = int64(rapid.IntRange(0, maxWeight).Draw(t, "weight"))
				}
				refs = append(refs, ref)
			}
			if refs != nil {
				rule["backendRefs"] = refs
			}
			rules = append(rules, rule)
		}
		original := map[string]any{"rules": rules}
		s := split(rapid.Int32Range(0, 100).Draw(t, "share"))
		if rapid.Bool().Draw(t, "by header") {
			s.Matches = []v1beta1.HTTPRouteMatch{header("a", "b"), withPath(header("c", "d"), "/c")}
		}
		got, err := GatewayRoute(HTTPRoute, original, s)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(original, RestoredRoute(original, got, s)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestIngresses(t *testing.T) {
	const nginx = "nginx.ingress.kubernetes.io/"
	pattern := header("user", "a.*")
	pattern.Headers[0].Type = ptr.To(v1beta1.MatchRegularExpression)
	parameter := v1beta1.HTTPRouteMatch{QueryParams: []v1beta1.HTTPQueryParamMatch{{Name: "q", Value: "1"}}}
	for name, tc := range map[string]struct {
		class string
		split Split
		want  map[string]string
		err   string
	}{
		"a weight":           {"nginx", split(20), map[string]string{nginx + "canary": "true", nginx + "canary-weight": "20"}, ""},
		"no traffic":         {"", split(0), map[string]string{nginx + "canary": "true", nginx + "canary-weight": "0"}, ""},
		"a header":           {"nginx", split(20, header("user", "a")), map[string]string{nginx + "canary": "true", nginx + "canary-by-header": "user", nginx + "canary-by-header-value": "a"}, ""},
		"a pattern":          {"higress", split(0, pattern), map[string]string{nginx + "canary": "true", nginx + "canary-by-header": "user", nginx + "canary-by-header-pattern": "a.*"}, ""},
		"a cookie":           {"nginx", split(0, header("canary-by-cookie", "beta")), map[string]string{nginx + "canary": "true", nginx + "canary-by-cookie": "beta"}, ""},
		"another prefix":     {"aliyun-alb", split(5), map[string]string{"alb.ingress.kubernetes.io/canary": "true", "alb.ingress.kubernetes.io/canary-weight": "5", "alb.ingress.kubernetes.io/order": "1"}, ""},
		"a parameter":        {"mse", split(0, parameter), map[string]string{nginx + "canary": "true", nginx + "canary-by-query": "q", nginx + "canary-by-query-value": "1"}, ""},
		"no parameter there": {"nginx", split(0, parameter), nil, "can match one header only"},
		"two matches":        {"nginx", split(0, header("a", "b"), header("c", "d")), nil, "can match one header only"},
		"an unknown class":   {"other", split(5), nil, "class other is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := IngressAnnotations(map[string]string{nginx + "canary-weight": "99", "kubectl.kubernetes.io/last-applied-configuration": "{}"}, tc.class, tc.split)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("answered %v, want %s", err, tc.err)
				}
				return
			}
			delete(got, map[bool]string{true: nginx + "canary-weight"}[tc.class == "aliyun-alb"]) // another controller's
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestACanaryIngress has rules without http and a resource as backend: trap T24.
func TestACanaryIngress(t *testing.T) {
	const text = `
metadata: {name: web, namespace: ns, uid: u, labels: {app: web}, annotations: {kept: x}}
spec:
  ingressClassName: nginx
  defaultBackend: {service: {name: web, port: {number: 80}}}
  tls: [{secretName: cert}]
  rules:
  - host: none.example.com
  - host: a.example.com
    http: {paths: [{path: /a, backend: {service: {name: web, port: {number: 80}}}}, {path: /r, backend: {resource: {kind: Bucket, name: web}}},
      {path: /o, backend: {service: {name: other, port: {number: 80}}}}]}
`
	const want = `
metadata: {name: web-canary, namespace: ns, labels: {app: web}, annotations: {kept: x, nginx.ingress.kubernetes.io/canary: "true", nginx.ingress.kubernetes.io/canary-weight: "20"}}
spec:
  ingressClassName: nginx
  tls: [{secretName: cert}]
  rules:
  - host: a.example.com
    http: {paths: [{path: /a, backend: {service: {name: web-canary, port: {number: 80}}}}]}
`
	read := func(text string) *networkingv1.Ingress {
		out := &networkingv1.Ingress{}
		if err := yaml.Unmarshal([]byte(text), out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	stable := read(text)
	got, err := CanaryIngress(stable, "nginx", split(20))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(read(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(read(text), stable); diff != "" {
		t.Errorf("the user's Ingress was changed (-want +got):\n%s", diff)
	}
	if _, err := CanaryIngress(stable, "nginx", Split{Stable: "nobody", Canary: "x"}); err == nil {
		t.Error("an Ingress that does not lead to the Service was split")
	}
}

func TestVirtualServices(t *testing.T) {
	subset := split(20)
	subset.Canary = subset.Stable
	regex := header("user", "a.*")
	regex.Headers[0].Type = ptr.To(v1beta1.MatchRegularExpression)
	modified := split(0, regex)
	modified.Modifier = &v1beta1.HTTPHeaderFilter{Set: []v1beta1.HTTPHeader{{Name: "version", Value: "new"}}}
	for name, tc := range map[string]struct {
		original, want string
		split          Split
	}{
		"a weight of the only destination": {
			"http: [{route: [{destination: {host: web.ns.svc}}]}]",
			"http: [{route: [{destination: {host: web.ns.svc}, weight: 80}, {destination: {host: web-canary.ns.svc}, weight: 20}]}]", split(20)},
		"weights that were there": {
			"http: [{route: [{destination: {host: web}, weight: 55}, {destination: {host: other}, weight: 45}]}]",
			"http: [{route: [{destination: {host: web}, weight: 44}, {destination: {host: other}, weight: 36}, {destination: {host: web-canary}, weight: 20}]}]", split(20)},
		"weights that rounding changes add up all the same": {
			"tcp: [{route: [{destination: {host: web}, weight: 33}, {destination: {host: other}, weight: 67}]}]",
			"tcp: [{route: [{destination: {host: web}, weight: 26}, {destination: {host: other}, weight: 53}, {destination: {host: web-canary}, weight: 21}]}]", split(20)},
		"a subset of the same Service, beside a route with a match": {
			"http: [{match: [{uri: {prefix: /a}}], route: [{destination: {host: web}}]}, {route: [{destination: {host: web, port: {number: 80}}}]}]",
			`http: [{match: [{uri: {prefix: /a}}], route: [{destination: {host: web}}]}, {route: [{destination: {host: web, port: {number: 80}}, weight: 80},
				{destination: {host: web, port: {number: 80}, subset: canary}, weight: 20}]}]`, subset},
		"a header, with a modifier": {
			"http: [{route: [{destination: {host: web}}]}]",
			`http: [{match: [{headers: {user: {regex: a.*}}}], route: [{destination: {host: web-canary}}], headers: {request: {set: {version: new}}}},
				{route: [{destination: {host: web}}]}]`, modified},
		"a path": {
			"http: [{route: [{destination: {host: web}}]}]",
			"http: [{match: [{uri: {prefix: /b}, headers: {a: {exact: b}}}], route: [{destination: {host: web-canary}}]}, {route: [{destination: {host: web}}]}]",
			split(0, withPath(header("a", "b"), "/b"))},
	} {
		t.Run(name, func(t *testing.T) {
			original := fields(t, tc.original)
			got, err := VirtualService(original, tc.split)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fields(t, tc.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(fields(t, tc.original), original); diff != "" {
				t.Errorf("the original was changed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(original, RestoredVirtualService(original, got, tc.split)); diff != "" {
				t.Errorf("restored (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := VirtualService(fields(t, "http: [{route: [{destination: {host: other}}]}]"), split(20)); err == nil {
		t.Error("a VirtualService that does not lead to the Service was split")
	}
}

func TestDestinationRules(t *testing.T) {
	original := fields(t, "{host: web, subsets: [{name: v1, labels: {v: a}}]}")
	want := fields(t, "{host: web, subsets: [{name: v1, labels: {v: a}}, {name: canary, labels: {istio.service.tag: gray}}]}")
	if diff := cmp.Diff(want, DestinationRule(original)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, text := range map[string]string{
		"with a subset": "{host: web, subsets: [{name: v1, labels: {v: a}}]}", "without subsets": "{host: web}",
		"with one of the user of that name": "{host: web, subsets: [{name: canary, labels: {v: a}}]}",
	} {
		before := fields(t, text)
		if diff := cmp.Diff(before, RestoredDestinationRule(before, DestinationRule(before))); diff != "" {
			t.Errorf("%s, restored (-want +got):\n%s", name, diff)
		}
	}
}

func TestOriginalsSurviveTheirAnnotation(t *testing.T) {
	before := Original{Spec: fields(t, threeRules), Labels: map[string]string{"a": "b"}}
	after, err := ParseOriginal(before.Text())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Text(), after.Text()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, after); diff != "" { // a number that becomes another type would make every rule look changed
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	if _, err := ParseOriginal("{"); err == nil {
		t.Error("an annotation that can't be read was read")
	}
}

func TestHolds(t *testing.T) {
	for name, tc := range map[string]struct {
		is, wanted string
		want       bool
	}{
		"the same":              {"{a: 1, b: [{c: x}]}", "{a: 1, b: [{c: x}]}", true},
		"a field more":          {"{a: 1, b: [{c: x, d: y}], e: z}", "{a: 1, b: [{c: x}]}", true},
		"another value":         {"{a: 2}", "{a: 1}", false},
		"a field less":          {"{a: 1}", "{a: 1, b: 2}", false},
		"an item more":          {"{b: [1, 2]}", "{b: [1]}", false},
		"an item less":          {"{b: [1]}", "{b: [1, 2]}", false},
		"another kind of value": {"{b: {c: 1}}", "{b: [1]}", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Holds(fields(t, tc.is), fields(t, tc.wanted)); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
