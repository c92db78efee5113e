package sidecar

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func TestPatchMetadata(t *testing.T) {
	const retain, overwrite, mergeJSON = v1beta1.SidecarSetRetainPatchPolicy, v1beta1.SidecarSetOverwritePatchPolicy, v1beta1.SidecarSetMergePatchJSONPatchPolicy
	for name, tc := range map[string]struct {
		policy     v1beta1.SidecarSetPatchPolicy
		was, patch string // was "-" for a key that the Pod lacks
		want       string
		problem    string
	}{
		"retain writes what is missing":              {retain, "-", "new", "new", ""},
		"retain keeps what is there":                 {retain, "old", "new", "old", ""},
		"retain keeps what is there and empty":       {retain, "", "new", "", ""},
		"no policy is retain":                        {"", "old", "new", "old", ""},
		"overwrite writes over":                      {overwrite, "old", "new", "new", ""},
		"merge writes what is missing":               {mergeJSON, "-", `{"log-agent":1}`, `{"log-agent":1}`, ""},
		"merge writes what is empty":                 {mergeJSON, "", `{"log-agent":1}`, `{"log-agent":1}`, ""},
		"merge puts both together":                   {mergeJSON, `{"main":2}`, `{"log-agent":1}`, `{"log-agent":1,"main":2}`, ""},
		"merge goes deep and takes away":             {mergeJSON, `{"a":{"b":1,"c":2},"d":3}`, `{"a":{"b":null,"e":5}}`, `{"a":{"c":2,"e":5},"d":3}`, ""},
		"merge keeps large numbers":                  {mergeJSON, `{"a":12345678901234567890}`, `{"b":1}`, `{"a":12345678901234567890,"b":1}`, ""},
		"merge of what is not an object replaces it": {mergeJSON, `{"a":1}`, `[1]`, `[1]`, ""},
		"the Pod's value is no JSON":                 {mergeJSON, `plain`, `{"b":1}`, `plain`, "[annotation key keeps its value: reading the value: invalid character 'p' looking for beginning of value]"},
		"the patch is no JSON":                       {mergeJSON, `{}`, `{} {}`, `{}`, "[annotation key keeps its value: reading the patch: there is more than one JSON value]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{}
			if tc.was != "-" {
				p.Annotations = map[string]string{"key": tc.was}
			}
			patches := []v1beta1.SidecarSetPatchPodMetadata{{PatchPolicy: tc.policy, Annotations: map[string]string{"key": tc.patch}}}
			got := PatchMetadata(p, patches)
			if text := fmt.Sprint(got); (len(got) > 0 || tc.problem != "") && text != tc.problem {
				t.Errorf("problems %s, want %s", text, tc.problem)
			}
			if diff := cmp.Diff(metav1.ObjectMeta{Annotations: map[string]string{"key": tc.want}}, p.ObjectMeta); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
