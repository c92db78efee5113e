package pods

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/internal/rules/inject"
)

// BenchmarkAdmission measures what the manager does for one Pod, from the API server's request to the bytes of the answer.
func BenchmarkAdmission(b *testing.B) {
	for _, c := range []struct{ sets, matching, containers int }{
		{100, 0, 1}, {100, 1, 1}, {100, 9, 1}, {100, 100, 1}, {600, 0, 10}, {600, 1, 10}, {600, 100, 10},
	} {
		b.Run(fmt.Sprintf("%d of %d match, containers=%d", c.matching, c.sets, c.containers), func(b *testing.B) {
			var candidates []*inject.Candidate
			for i := range c.sets {
				app := "other"
				if i < c.matching {
					app = "web"
				}
				candidates = append(candidates, inject.NewCandidate(setOf(b, fmt.Sprintf("set-%03d", i), fmt.Sprintf(
					`{selector: {matchLabels: {app: %[1]s}}, containers: [{name: log-%[2]d, image: busybox, imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File,
					podInjectPolicy: BeforeAppContainer, volumeMounts: [{name: v-%[2]d, mountPath: /v}]}], volumes: [{name: v-%[2]d, emptyDir: {}}]}`, app, i))))
			}
			hook := &admission.Webhook{Handler: chainOf(known{candidates: candidates})}
			body := review(b, c.containers)
			b.ReportAllocs()
			for b.Loop() {
				request := httptest.NewRequestWithContext(b.Context(), "POST", Path, strings.NewReader(body))
				request.Header.Set("Content-Type", "application/json")
				answer := httptest.NewRecorder()
				hook.ServeHTTP(answer, request)
				if has := bytes.Contains(answer.Body.Bytes(), []byte(`"patch":`)); has != (c.matching > 0) || !bytes.Contains(answer.Body.Bytes(), []byte(`"allowed":true`)) {
					b.Fatal(answer.Body)
				}
			}
		})
	}
}

// review returns what the API server asks about a new Pod of a workload, to which it has put the volume of its service account already.
func review(b *testing.B, containers int) string {
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{
		GenerateName: "web-", Namespace: "default", Labels: map[string]string{"app": "web"},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"0\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{}}},"f:dnsPolicy":{}}}`),
		}},
	}}
	token, grace, bits := "kube-api-access-x7x9s", int64(30), int32(420)
	p.Spec = corev1.PodSpec{
		ServiceAccountName: "default", DeprecatedServiceAccount: "default", RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst,
		SchedulerName: "default-scheduler", TerminationGracePeriodSeconds: &grace, SecurityContext: &corev1.PodSecurityContext{},
		Volumes: []corev1.Volume{{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: &bits, Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &grace, Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
		}}}}},
	}
	for i := range containers {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: fmt.Sprint(i), Image: "nginx", Env: []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", Value: "b"}},
			Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
			VolumeMounts: []corev1.VolumeMount{{Name: token, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
			// The API server has set the defaults, too.
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile, ImagePullPolicy: corev1.PullAlways,
		})
	}
	object, err := json.Marshal(p)
	if err != nil {
		b.Fatal(err)
	}
	return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","kind":{"group":"","version":"v1","kind":"Pod"},` +
		`"resource":{"group":"","version":"v1","resource":"pods"},"requestKind":{"group":"","version":"v1","kind":"Pod"},"requestResource":{"group":"","version":"v1","resource":"pods"},` +
		`"namespace":"default","operation":"CREATE","userInfo":{"username":"system:serviceaccount:kube-system:replicaset-controller","groups":["system:serviceaccounts","system:authenticated"]},` +
		`"object":` + string(object) + `,"oldObject":null,"dryRun":false,"options":{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}}}`
}
