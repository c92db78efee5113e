package pods

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestNames: a Pod whose name is to be made gets it here if it asks for a launch order. One that lacks any name is for the API server to refuse.
func TestNames(t *testing.T) {
	for name, tc := range map[string]struct{ metadata, want string }{
		"it has one":                      {"name: web", "web"},
		"it is to be made":                {"generateName: web-", "web-00001"},
		"it is not known how to make one": {"labels: {app: other}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			raw := jsonOf(t, `{apiVersion: v1, kind: Pod, metadata: {`+tc.metadata+`}, spec: {containers: [{name: app}, {name: proxy, env: [{name: KRUISE_CONTAINER_PRIORITY, value: "1"}]}]}}`)
			response, out := create(t, chainOf(known{}), raw)
			var p corev1.Pod
			if err := json.Unmarshal(out, &p); err != nil || !response.Allowed {
				t.Fatal(response.Result, err)
			}
			if p.Name != tc.want {
				t.Errorf("the Pod is called %q, want %q", p.Name, tc.want)
			}
		})
	}
}
