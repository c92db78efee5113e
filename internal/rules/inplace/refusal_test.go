package inplace

import "testing"

func TestFieldsOfRefusals(t *testing.T) {
	for path, want := range map[string]string{
		"/spec/containers/0/env":                   "containers.env",
		"/spec/containers/12/resources/limits/cpu": "containers.resources",
		"/spec/containers":                         "containers",
		"/spec/initContainers":                     "initContainers",
		"/spec/volumes":                            "volumes",
		"/spec/securityContext/runAsUser":          "securityContext",
		"/volumeClaimTemplates":                    "volumeClaimTemplates",
		"/":                                        "template",
	} {
		if got := (&Refusal{Path: path}).Field(); got != want {
			t.Errorf("%s is field %s, want %s", path, got, want)
		}
	}
}
