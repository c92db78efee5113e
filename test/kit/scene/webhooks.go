package scene

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// HeedsWebhooks waits until the API server goes by the mutating webhooks that are stored: it hears of changes in their order, so that one
// more, which refuses an object of the namespace that only this function tries to create, is heeded after all others.
func (t *Test) HeedsWebhooks(c client.Client, namespace string) {
	t.Helper()
	labels := map[string]string{"test-heeds-webhooks": "yes"}
	url, none, fail := "https://127.0.0.1:1/", admissionv1.SideEffectClassNone, admissionv1.Fail
	last := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{GenerateName: "heeds-"}}
	last.Webhooks = []admissionv1.MutatingWebhook{{
		Name: "heeds.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: &url}, SideEffects: &none, FailurePolicy: &fail,
		AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: new(int32(1)),
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		ObjectSelector:    &metav1.LabelSelector{MatchLabels: labels},
		Rules: []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}},
	}}
	t.Must(c.Create(t.Ctx, last))
	defer func() { t.Must(c.Delete(t.Afterwards(), last)) }()
	t.Eventually("the API server goes by the webhooks", func() error {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "heeds-", Labels: labels}}
		if err := c.Create(t.Ctx, probe, client.DryRunAll); !IsUnanswered(err) {
			return fmt.Errorf("the last one is not asked: %v", err) //nolint:errorlint // there may be no error
		}
		return nil
	})
}
