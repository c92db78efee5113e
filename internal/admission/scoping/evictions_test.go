package scoping

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

// guardedHook is the webhook for deletions, as a user may have tuned it.
func guardedHook() admissionv1.ValidatingWebhook {
	return admissionv1.ValidatingWebhook{
		Name: Guarded, TimeoutSeconds: new(int32(3)), ClientConfig: admissionv1.WebhookClientConfig{CABundle: []byte("ca")},
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
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admissionv1.AddToScheme, policyv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	other := admissionv1.ValidatingWebhook{Name: "others"}
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "ours"}, Webhooks: []admissionv1.ValidatingWebhook{guardedHook(), other},
	}).Build()
	now := time.Unix(1_800_000_000, 0)
	k := &Evictions{Client: live, Configuration: "ours", Settle: time.Second, Pause: time.Millisecond, Now: func() time.Time { return now }}
	keep := func(want ...string) {
		t.Helper()
		if _, err := k.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
		var stored admissionv1.ValidatingWebhookConfiguration
		if err := live.Get(t.Context(), client.ObjectKey{Name: "ours"}, &stored); err != nil {
			t.Fatal(err)
		}
		if len(want) == 0 {
			if len(stored.Webhooks) != 2 {
				t.Errorf("%d webhooks, want the two that were there", len(stored.Webhooks))
			}
			return
		}
		hook := stored.Webhooks[2]
		if hook.Name != Evicted || *hook.TimeoutSeconds != 3 || string(hook.ClientConfig.CABundle) != "ca" || len(hook.MatchConditions) > 0 ||
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
	if wait := k.InForce("shop"); wait != time.Second {
		t.Errorf("before the API server is told: %s", wait)
	}
	keep("bank", "shop")
	now = now.Add(400 * time.Millisecond)
	keep("bank", "shop") // which does not begin the wait anew
	if wait := k.InForce("shop"); wait != 600*time.Millisecond {
		t.Errorf("while API servers learn of it: %s", wait)
	}
	now = now.Add(time.Second)
	if wait := k.InForce("shop"); wait != 0 {
		t.Errorf("after that: %s", wait)
	}
	if err := live.Delete(t.Context(), budgetIn("bank", "a")); err != nil {
		t.Fatal(err)
	}
	keep("shop")
	if wait := k.InForce("bank"); wait != time.Second {
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
	names := make([]string, mostNamespaces+1)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i)
	}
	for count, want := range map[int]int{mostNamespaces: 2, mostNamespaces + 1: 1} {
		hooks := evictionHooks(nil, guardedHook(), names[:count])
		if got := len(hooks[0].NamespaceSelector.MatchExpressions); len(hooks) != 1 || got != want {
			t.Errorf("%d namespaces: %d requirements in %d webhooks, want %d", count, got, len(hooks), want)
		}
	}
}
