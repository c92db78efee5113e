package webhookconfig

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWhatIsRepaired: others write to the same objects, and only what concerns the managers is put back.
func TestWhatIsRepaired(t *testing.T) {
	w := newWorld(t)
	issue, err := w.leader.Issuer.Current(t.Context())
	w.must(err)
	other := earlierSecret(t, w.now, w.now.Add(day)).Data["ca-cert.pem"]
	in := Input{Manifests: w.leader.Manifests, CA: issue.CA}
	leading := in
	leading.Leads, leading.OnlyCA = true, true
	crd := func() *apiextensionsv1.CustomResourceDefinition {
		live := &apiextensionsv1.CustomResourceDefinition{}
		w.must(w.client.Get(t.Context(), types.NamespacedName{Name: crdName}, live))
		return live
	}
	// changed returns the live configuration after somebody has changed it, to which one more webhook of ours was added.
	changed := func(change func(live *admissionv1.MutatingWebhookConfiguration, more *admissionv1.MutatingWebhook)) client.Object {
		live := w.configuration()
		more := live.Webhooks[0].DeepCopy()
		more.Name = "mpod-more.kb.io"
		live.Webhooks = append(live.Webhooks, *more)
		change(live, &live.Webhooks[len(live.Webhooks)-1])
		return live
	}
	cases := map[string]struct {
		live client.Object
		in   Input
		want bool
	}{
		"a configuration as it is": {w.configuration(), leading, false},
		"one with a further webhook of ours that trusts the CA": {
			changed(func(*admissionv1.MutatingWebhookConfiguration, *admissionv1.MutatingWebhook) {}), in, false},
		"one with a webhook that leads elsewhere, and a note": {changed(func(live *admissionv1.MutatingWebhookConfiguration,
			more *admissionv1.MutatingWebhook) {
			live.Annotations = map[string]string{"note": "anything"}
			more.ClientConfig = admissionv1.WebhookClientConfig{URL: new("https://elsewhere.example.com/")}
		}), leading, false},
		"one with a further webhook of ours that trusts nothing": {changed(func(_ *admissionv1.MutatingWebhookConfiguration,
			more *admissionv1.MutatingWebhook) {
			more.ClientConfig.CABundle = nil
		}), in, true},
		"one that trusts another CA": {changed(func(_ *admissionv1.MutatingWebhookConfiguration, more *admissionv1.MutatingWebhook) {
			more.ClientConfig.CABundle = other
		}), in, true},
		"one that trusts another CA too": {changed(func(_ *admissionv1.MutatingWebhookConfiguration, more *admissionv1.MutatingWebhook) {
			more.ClientConfig.CABundle = append(append([]byte{}, issue.CA...), other...)
		}), in, false},
		"one that trusts another CA too, for the leader": {changed(func(_ *admissionv1.MutatingWebhookConfiguration,
			more *admissionv1.MutatingWebhook) {
			more.ClientConfig.CABundle = append(append([]byte{}, issue.CA...), other...)
		}), leading, true},
		"one that lacks a webhook of ours": {changed(func(live *admissionv1.MutatingWebhookConfiguration, _ *admissionv1.MutatingWebhook) {
			live.Webhooks = live.Webhooks[1:]
		}), leading, true},
		"one that lacks a webhook of ours, for another than the leader": {changed(func(live *admissionv1.MutatingWebhookConfiguration,
			_ *admissionv1.MutatingWebhook) {
			live.Webhooks = live.Webhooks[1:]
		}), in, false},
		"one that was reset to the manifest": {manifests(t).Mutating, in, true},
		"a CRD as it is":                     {crd(), leading, false},
		"a CRD with another status": {func() client.Object {
			live := crd()
			live.Status.StoredVersions = []string{"v1alpha1", "v1beta1"}
			return live
		}(), leading, false},
		"a CRD whose conversion was reset": {func() client.Object {
			live := crd()
			live.Spec.Conversion = nil
			return live
		}(), in, true},
		"a CRD of one version": {func() client.Object {
			live := crd()
			live.Spec.Conversion, live.Spec.Versions = nil, live.Spec.Versions[:1]
			return live
		}(), in, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			next := Desired(tc.live, tc.in)
			if got := !equality.Semantic.DeepEqual(tc.live, next); got != tc.want {
				t.Errorf("changed: %t, want %t", got, tc.want)
			}
			if again := Desired(next, tc.in); !equality.Semantic.DeepEqual(next, again) {
				t.Error("it is changed again")
			}
		})
	}
}

// TestOnlyTheLeaderRemovesWebhooksThatNobodyServes: another version may be running, which serves them.
func TestOnlyTheLeaderRemovesWebhooksThatNobodyServes(t *testing.T) {
	known := manifests(t)
	known.Endpoint = Endpoint{HostPort: "localhost:9876"}
	in := Input{Manifests: known}
	in.Serves = func(path string) bool { return path != "/mutate-pod" }
	named := func(all []admissionv1.MutatingWebhook) bool {
		for _, w := range all {
			if w.Name == LaunchOrderWebhook {
				return true
			}
		}
		return false
	}
	leading := in
	leading.Leads = true
	if live := leading.mutating(&admissionv1.MutatingWebhookConfiguration{}); named(live.Webhooks) {
		t.Error("a webhook that nobody serves is added")
	}
	all := Input{Manifests: known, Leads: true}
	all.Serves = func(string) bool { return true }
	live := all.mutating(&admissionv1.MutatingWebhookConfiguration{})
	if next := in.mutating(live.DeepCopy()); !named(next.Webhooks) {
		t.Error("a manager that does not lead removes it")
	}
	in.Leads = true
	if next := in.mutating(live.DeepCopy()); named(next.Webhooks) {
		t.Error("the leader leaves it")
	}
	in.Endpoint.HostPort = "localhost:9877" // a process that was started anew
	if next := in.mutating(live.DeepCopy()); named(next.Webhooks) {
		t.Error("a leader that is reached at another port leaves it")
	}
	elsewhere := live.DeepCopy()
	for i := range elsewhere.Webhooks {
		elsewhere.Webhooks[i].ClientConfig = admissionv1.WebhookClientConfig{URL: new("https://elsewhere.example.com/")}
	}
	if next := in.mutating(elsewhere); !named(next.Webhooks) {
		t.Error("the leader removes one of the same name that leads to another path")
	}
}
