package defaults

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestPodTemplate(t *testing.T) {
	for name, tc := range map[string]struct {
		o        Options
		in, want string // the spec, as JSON; want without what every spec gets
	}{
		"init containers follow the tag, containers do not": {
			in: `{"initContainers":[{"image":"a:1"},{"image":"a"},{"image":"a:latest"},{"image":"reg:5000/a"},{"image":"a@sha256:` + digest + `"},{"image":"NOT AN IMAGE"}],"containers":[{"image":"a:1"}]}`,
			want: `{"initContainers":[` + withDefaults("a:1", "IfNotPresent") + `,` + withDefaults("a", "Always") + `,` + withDefaults("a:latest", "Always") + `,` +
				withDefaults("reg:5000/a", "Always") + `,` + withDefaults("a@sha256:"+digest, "IfNotPresent") + `,` + withDefaults("NOT AN IMAGE", "IfNotPresent") +
				`],"containers":[` + withDefaults("a:1", "Always") + `]}`,
		},
		"a policy that was given stays": {
			in:   `{"containers":[{"image":"a","imagePullPolicy":"Never"}]}`,
			want: `{"containers":[` + withDefaults("a", "Never") + `]}`,
		},
		"host ports are left to the Pod": {
			in:   `{"hostNetwork":true,"containers":[{"image":"a","ports":[{"containerPort":80}]}]}`,
			want: `{"hostNetwork":true,"containers":[` + withDefaults("a", "Always", `"ports":[{"containerPort":80,"protocol":"TCP"}]`) + `]}`,
		},
		"host ports where they are wanted": {
			o:    Options{HostNetworkHostPorts: true},
			in:   `{"hostNetwork":true,"containers":[{"image":"a","ports":[{"containerPort":80}]}]}`,
			want: `{"hostNetwork":true,"containers":[` + withDefaults("a", "Always", `"ports":[{"containerPort":80,"hostPort":80,"protocol":"TCP"}]`) + `]}`,
		},
		"no requests from limits": {
			in:   `{"containers":[{"image":"a","resources":{"limits":{"cpu":"500u"}}}]}`,
			want: `{"containers":[` + withDefaults("a", "Always", `"resources":{"limits":{"cpu":"1m"}}`) + `]}`,
		},
		"probes, hooks and the environment": {
			in: `{"containers":[{"image":"a","env":[{"name":"e","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],
				"livenessProbe":{"httpGet":{"port":80}},"readinessProbe":{"grpc":{"port":1}},"lifecycle":{"preStop":{"httpGet":{"port":80}}}}]}`,
			want: `{"containers":[` + withDefaults("a", "Always", `"env":[{"name":"e","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],
				"livenessProbe":{"httpGet":{"path":"/","port":80,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},
				"readinessProbe":{"grpc":{"port":1,"service":""},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},
				"lifecycle":{"preStop":{"httpGet":{"path":"/","port":80,"scheme":"HTTP"}}}`) + `]}`,
		},
		"volumes": {
			in: `{"volumes":[{"name":"none"},{"name":"s","secret":{}},{"name":"h","hostPath":{"path":"/x"}},
				{"name":"p","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}},{"name":"e","ephemeral":{"volumeClaimTemplate":{"spec":{}}}}],"containers":null}`,
			want: `{"volumes":[{"name":"none","emptyDir":{}},{"name":"s","secret":{"defaultMode":420}},{"name":"h","hostPath":{"path":"/x","type":""}},
				{"name":"p","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"path":"t","expirationSeconds":3600}}]}},
				{"name":"e","ephemeral":{"volumeClaimTemplate":{"spec":{"volumeMode":"Filesystem"}}}}],"containers":null}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got, want corev1.PodTemplateSpec
			decode(t, []byte(tc.in), &got.Spec)
			decode(t, []byte(tc.want), &want.Spec)
			decode(t, []byte(`{"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}`), &want.Spec)
			PodTemplate(&got, tc.o)
			if diff := cmp.Diff(toJSON(t, want), toJSON(t, got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// withDefaults returns a container with the defaults of every one.
func withDefaults(image, policy string, more ...string) string {
	out := `{"image":"` + image + `","imagePullPolicy":"` + policy + `","terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"`
	for _, field := range more {
		out += "," + field
	}
	return out + "}"
}

func toJSON(t *testing.T, value any) any {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	decode(t, encoded, &out)
	return out
}
