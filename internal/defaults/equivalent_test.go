package defaults

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestEquivalent(t *testing.T) {
	const written = `
metadata: {labels: {app: a}}
spec:
  serviceAccountName: agent
  volumes: [{name: v, hostPath: {path: /a}}, {name: c, configMap: {name: c}}]
  containers: [{name: a, image: "nginx:1", ports: [{containerPort: 80}], livenessProbe: {httpGet: {port: 80}}}]`
	// stored is the same template as Kubernetes 1.36 stores it in a DaemonSet.
	const stored = `
metadata: {creationTimestamp: null, labels: {app: a}}
spec:
  serviceAccountName: agent
  serviceAccount: agent
  dnsPolicy: ClusterFirst
  restartPolicy: Always
  schedulerName: default-scheduler
  securityContext: {}
  terminationGracePeriodSeconds: 30
  volumes: [{name: v, hostPath: {path: /a, type: ""}}, {name: c, configMap: {name: c, defaultMode: 420}}]
  containers:
  - {name: a, image: "nginx:1", imagePullPolicy: IfNotPresent, resources: {}, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File,
     ports: [{containerPort: 80, protocol: TCP}],
     livenessProbe: {httpGet: {port: 80, path: /, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}}`
	for name, tc := range map[string]struct {
		other string
		want  bool
	}{
		"the defaults spelled out": {stored, true},
		"another image":            {`{metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: "nginx:2"}]}}`, false},
		"a default changed":        {stored + "\n  hostNetwork: true", false},
	} {
		t.Run(name, func(t *testing.T) {
			var a, b corev1.PodTemplateSpec
			for text, into := range map[string]*corev1.PodTemplateSpec{written: &a, tc.other: &b} {
				if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			if got := Equivalent(&a, &b); got != tc.want {
				t.Errorf("Equivalent() = %t, want %t", got, tc.want)
			}
		})
	}
}
