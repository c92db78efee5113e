package compat

import (
	"strings"
	"testing"
)

func TestWhatSchemasSayOfAnalyses(t *testing.T) {
	const http = "http: {url: 'http://web/health'}"
	const query = "prometheus: {address: 'http://prometheus:9090', query: up, success: '>= 1'}"
	schema := newRolloutSchema(t, "v1beta1")
	for name, tc := range map[string]struct{ checks, want string }{
		"one of each": {"[{name: a, " + query + "}, {name: b, " + http + "}, {name: c, job: {template: {spec: {template: {spec: {containers: []}}}}}}, " +
			"{name: d, http: {service: {name: web, port: 8080}, json: {field: a.b, equals: ok}}}]", ""},
		"nothing to measure":             {"[{name: a}]", "exactly one of prometheus, http and job is needed"},
		"two in one":                     {"[{name: a, " + http + ", " + query + "}]", "exactly one of prometheus, http and job is needed"},
		"no checks":                      {"[]", "should have at least 1 items"},
		"a check that can't fail":        {"[{name: a, count: 2, failureLimit: 2, " + http + "}]", "the check could not fail"},
		"a limit without a count":        {"[{name: a, failureLimit: 1, " + http + "}]", "the check could not fail"},
		"a name that is no label":        {"[{name: A_b, " + http + "}]", "name in body should match"},
		"a rule of words":                {"[{name: a, prometheus: {address: 'http://p', query: up, success: small}}]", "success in body should match"},
		"an address with a user":         {"[{name: a, prometheus: {address: 'http://u:p@p', query: up, success: '> 1'}}]", "address in body should match"},
		"an address of a file":           {"[{name: a, http: {url: 'file:///etc/passwd'}}]", "url in body should match"},
		"an address of two lines":        {"[{name: a, http: {url: \"http://a/\\nb\"}}]", "url in body should match"},
		"neither url nor service":        {"[{name: a, http: {}}]", "exactly one of url and service is needed"},
		"a body of HEAD":                 {"[{name: a, http: {url: 'http://a', method: HEAD, json: {field: a, equals: b}}}]", "the answer to HEAD has no body"},
		"another method":                 {"[{name: a, http: {url: 'http://a', method: DELETE}}]", "Unsupported value"},
		"a token in a header":            {"[{name: a, http: {url: 'http://a', headers: [{name: Authorization, value: x}]}}]", "can't be set"},
		"another host in a header":       {"[{name: a, http: {url: 'http://a', headers: [{name: HOST, value: x}]}}]", "can't be set"},
		"a header of two lines":          {"[{name: a, http: {url: 'http://a', headers: [{name: X, value: \"a\\r\\nb\"}]}}]", "value in body should match"},
		"a value without a rule":         {"[{name: a, http: {url: 'http://a', json: {field: a}}}]", "exactly one of success and equals is needed"},
		"a failure without a success":    {"[{name: a, http: {url: 'http://a', json: {field: a, equals: b, failure: '> 1'}}}]", "is for numbers, beside success"},
		"a Service of another namespace": {"[{name: a, http: {service: {name: web.other}}}]", "name in body should match"},
	} {
		t.Run(name, func(t *testing.T) {
			got := schema.judge("{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, metadata: {name: web}, spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}, "+
				"strategy: {guard: {onFailure: Rollback}, canary: {steps: [{replicas: 1, analysis: {checks: "+tc.checks+"}}]}}}}", "")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("answered %q, want %q", got, tc.want)
			}
		})
	}
}
