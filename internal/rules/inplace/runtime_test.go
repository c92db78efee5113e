package inplace

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The hashes are those that a node daemon and a kubelet 1.36 put on real Pods.
func TestRecordedHashes(t *testing.T) {
	p := &corev1.Pod{}
	nginx := func(image string) *corev1.Container { return &corev1.Container{Name: "nginx", Image: image} }
	withEnv := nginx("nginx:alpine")
	withEnv.Env = []corev1.EnvVar{{Name: "CONF", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['conf']"},
	}}}
	cases := map[string]struct{ got, want uint64 }{
		"a container of nginx:alpine":                {plainHash(nginx("nginx:alpine")), 1281589684},
		"a container of nginx:mainline":              {plainHash(nginx("nginx:mainline")), 3307281722},
		"a container that takes no metadata":         {environmentHash(p, nginx("nginx:alpine")), 86995377},
		"a container that takes an empty annotation": {environmentHash(p, withEnv), 2360310482},
	}
	for name, tc := range cases {
		if tc.got != tc.want {
			t.Errorf("%s: hash %d, want %d", name, tc.got, tc.want)
		}
	}
}
