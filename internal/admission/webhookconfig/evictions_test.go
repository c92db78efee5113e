package webhookconfig

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

// tunedWebhook is the webhook for deletions, as a user may have tuned it.
func tunedWebhook() admissionv1.ValidatingWebhook {
	return admissionv1.ValidatingWebhook{
		Name: BudgetWebhook, TimeoutSeconds: new(int32(3)),
		ClientConfig:    admissionv1.WebhookClientConfig{Service: Endpoint{}.at("/validate-pod").Service},
		MatchConditions: []admissionv1.MatchCondition{{Name: "names-a-budget", Expression: "true"}},
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system"}},
		}},
	}
}

func budgetIn(namespace, name string) *policyv1beta1.PodUnavailableBudget {
	return &policyv1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// TestEvictionsAreAskedAboutWhereBudgetsAre, and nowhere else.
func TestEvictionsAreAskedAboutWhereBudgetsAre(t *testing.T) {
	w := newWorld(t)
	live, r := w.client, w.leader
	r.Propagation = time.Second
	stored := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: r.Validating.Name}}
	w.must(live.Get(t.Context(), client.ObjectKeyFromObject(stored), stored))
	r.Validating.Webhooks = []admissionv1.ValidatingWebhook{tunedWebhook()}
	stored.Webhooks = []admissionv1.ValidatingWebhook{tunedWebhook(), {Name: "others"}}
	w.must(live.Update(t.Context(), stored))
	keep := func(want ...string) {
		t.Helper()
		w.reconcile(r, validatingPart)
		stored := &admissionv1.ValidatingWebhookConfiguration{}
		w.must(live.Get(t.Context(), client.ObjectKey{Name: r.Validating.Name}, stored))
		if len(want) == 0 {
			if len(stored.Webhooks) != 2 {
				t.Errorf("%d webhooks, want the two that were there", len(stored.Webhooks))
			}
			return
		}
		hook := stored.Webhooks[2]
		if hook.Name != evictionWebhook || *hook.TimeoutSeconds != 3 ||
			!bytes.Equal(hook.ClientConfig.CABundle, stored.Webhooks[0].ClientConfig.CABundle) || hook.ClientConfig.CABundle == nil ||
			len(hook.MatchConditions) > 0 ||
			len(hook.Rules) != 1 || hook.Rules[0].Resources[0] != "pods/eviction" || hook.Rules[0].Operations[0] != admissionv1.Create {
			t.Errorf("webhook %+v", hook)
		}
		if diff := cmp.Diff(want, hook.NamespaceSelector.MatchExpressions[1].Values); diff != "" {
			t.Errorf("namespaces (-want +got):\n%s", diff)
		}
	}
	keep()
	for _, b := range []*policyv1beta1.PodUnavailableBudget{budgetIn("shop", "a"), budgetIn("shop", "b"), budgetIn("bank", "a")} {
		if err := live.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if wait := r.EvictionsSentIn("shop"); wait != time.Second {
		t.Errorf("before the API server is told: %s", wait)
	}
	keep("bank", "shop")
	w.now = w.now.Add(400 * time.Millisecond)
	keep("bank", "shop") // which does not begin the wait anew
	if wait := r.EvictionsSentIn("shop"); wait != 600*time.Millisecond {
		t.Errorf("while API servers learn of it: %s", wait)
	}
	w.now = w.now.Add(time.Second)
	if wait := r.EvictionsSentIn("shop"); wait != 0 {
		t.Errorf("after that: %s", wait)
	}
	if err := live.Delete(t.Context(), budgetIn("bank", "a")); err != nil {
		t.Fatal(err)
	}
	keep("shop")
	if wait := r.EvictionsSentIn("bank"); wait != time.Second {
		t.Errorf("where none is left: %s", wait)
	}
	for _, name := range []string{"a", "b"} {
		if err := live.Delete(t.Context(), budgetIn("shop", name)); err != nil {
			t.Fatal(err)
		}
	}
	keep()
}

// TestTooManyNamespacesAreAll: nothing is left unjudged because a list would be too long.
func TestTooManyNamespacesAreAll(t *testing.T) {
	names := make([]string, maxNamespaces+1)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i)
	}
	for count, want := range map[int]int{maxNamespaces: 2, maxNamespaces + 1: 1} {
		all := EvictionScope{Namespaces: names[:count]}.webhooks([]admissionv1.ValidatingWebhook{tunedWebhook()})
		if got := len(all[1].NamespaceSelector.MatchExpressions); len(all) != 2 || got != want {
			t.Errorf("%d namespaces: %d requirements in %d webhooks, want %d", count, got, len(all), want)
		}
	}
}
