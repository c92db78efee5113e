package podbudget

import (
	"bytes"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/config/webhook"
	rules "github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/kit/dispatch"
)

// shipped returns the webhook for Pods with a budget as the manifests have it.
func shipped(t *testing.T) dispatch.Webhook {
	t.Helper()
	_, validating, _ := bytes.Cut(webhook.Manifests, []byte("\n---\n"))
	var configuration admissionv1.ValidatingWebhookConfiguration
	if err := yaml.Unmarshal(validating, &configuration); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(configuration.Webhooks, func(w admissionv1.ValidatingWebhook) bool { return w.Name == "vpod.kb.io" })
	if i < 0 {
		t.Fatal("there is no webhook for Pods with a budget")
	}
	return dispatch.ReadValidating(&configuration.Webhooks[i])
}

func drawPod(t *rapid.T) *corev1.Pod {
	p := webPod()
	one := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	if chance := rapid.IntRange(0, 9); chance.Draw(t, "deleted") == 0 {
		p.DeletionTimestamp = &metav1.Time{Time: p.CreationTimestamp.Add(1)}
	}
	p.Status.Phase = corev1.PodPhase(one("phase", "Running", "Running", "Running", "Pending", "Succeeded", "Failed", "Unknown", ""))
	for _, condition := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, pub.InPlaceUpdateReady} {
		if status := one(string(condition), "True", "True", "True", "False", "Unknown", ""); status != "" {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionStatus(status)})
		}
	}
	for _, key := range []string{"app", keys.UnavailablePrefix + "x", "x/" + keys.UnavailablePrefix} {
		if rapid.IntRange(0, 5).Draw(t, key) == 0 {
			metav1.SetMetaDataLabel(&p.ObjectMeta, key, "")
		}
	}
	p.Annotations = nil
	for _, key := range []string{keys.RelatedBudget, keys.RelatedBudgetOld} {
		if rapid.Bool().Draw(t, key) {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, "web")
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "protection") == 0 {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, keys.NoProtect, one("value", "true", "True", "TRUE", "t", "T", "1", "tRUE", "yes", "false", "0", ""))
	}
	return p
}

// TestOnlyWhatABudgetCountsIsSent: while no manager is there, everything else goes on. A Pod that is not what its spec says is sent all the
// same: the API server does not see that.
func TestOnlyWhatABudgetCountsIsSent(t *testing.T) {
	hook := shipped(t)
	rapid.Check(t, func(t *rapid.T) {
		p := drawPod(t)
		counts := rules.Related(p.Annotations) != "" && !rules.IsFree(p) && pod.IsActive(p) && pod.IsReady(p) && !rules.IsMarked(p)
		after := p.DeepCopy()
		after.Spec.Containers[0].Image = "nginx:2"
		annotated := p.DeepCopy()
		metav1.SetMetaDataAnnotation(&annotated.ObjectMeta, "more", "x")
		marked := p.DeepCopy()
		metav1.SetMetaDataLabel(&marked.ObjectMeta, keys.UnavailablePrefix+"y", "")
		deletes, deleteErr := hook.CallsForDeletion(p)
		updates, updateErr := hook.CallsForUpdate(p, after)
		annotates, annotateErr := hook.CallsForUpdate(p, annotated)
		marks, markErr := hook.CallsForUpdate(p, marked)
		for _, err := range []error{deleteErr, updateErr, annotateErr, markErr} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if deletes != counts || updates != counts || marks != counts || annotates {
			t.Errorf("counts: %t; sent are deletion: %t, update: %t, mark: %t, annotation: %t", counts, deletes, updates, marks, annotates)
		}
	})
}
