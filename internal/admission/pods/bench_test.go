package pods

import (
	"encoding/json"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/internal/rules/inject"
)

// BenchmarkAdmission measures the handler alone, and the writing of its answer, for a Pod of ten containers: with 600 SidecarSets of which none selects it, one does, or 100 do.
func BenchmarkAdmission(b *testing.B) {
	for name, app := range map[string]string{"none of 600 applies": "other", "one of 600 applies": "web-7", "100 of 600 apply": "all"} {
		b.Run(name, func(b *testing.B) {
			var candidates []*inject.Candidate
			for i := range 600 {
				selected := fmt.Sprintf("web-%d", i)
				if i >= 500 {
					selected = "all"
				}
				candidates = append(candidates, inject.NewCandidate(setOf(b, fmt.Sprintf("set-%03d", i), fmt.Sprintf(
					`{selector: {matchLabels: {app: %s}}, containers: [{name: log-%d, image: busybox, volumeMounts: [{name: v-%d, mountPath: /v}]}], volumes: [{name: v-%d, emptyDir: {}}]}`, selected, i, i, i))))
			}
			chain := chainOf(known{candidates: candidates})
			p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": app}}}
			for i := range 10 {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
					Name: fmt.Sprint(i), Image: "nginx", Env: []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", Value: "b"}},
					Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
					VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}, TerminationMessagePath: "/dev/termination-log",
				})
			}
			raw, err := json.Marshal(p)
			if err != nil {
				b.Fatal(err)
			}
			from := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: "default", Object: runtime.RawExtension{Raw: raw}}}
			b.ReportAllocs()
			for b.Loop() {
				response := chain.Handle(b.Context(), from)
				if err := response.Complete(from); err != nil || !response.Allowed {
					b.Fatal(err, response.Result)
				}
				if _, err := json.Marshal(response.AdmissionResponse); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
