package certs

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// TestOnlyWhatConcernsCertificatesWakesTheLoop: others write to the same objects, and each pass reads all of them.
func TestOnlyWhatConcernsCertificatesWakesTheLoop(t *testing.T) {
	w := newWorld(t, 1)
	ctx := context.Background()
	mutatingNow := func() *admissionv1.MutatingWebhookConfiguration {
		live := &admissionv1.MutatingWebhookConfiguration{}
		w.must(w.client.Get(ctx, types.NamespacedName{Name: "kruise-mutating-webhook-configuration"}, live))
		return live
	}
	crdNow := func() *apiextensionsv1.CustomResourceDefinition {
		live := &apiextensionsv1.CustomResourceDefinition{}
		w.must(w.client.Get(ctx, types.NamespacedName{Name: crdName}, live))
		return live
	}
	if w.managers[0].isAsLeft(mutatingNow()) {
		t.Error("before the first pass nothing is as it was left")
	}
	w.pass(0)
	if w.managers[0].isAsLeft(mutatingNow()) {
		t.Error("while a certificate waits to be presented any change counts")
	}
	w.settle()
	otherCA, err := newCA(life{from: w.now, to: w.now.Add(day)})
	w.must(err)
	cases := map[string]struct {
		object func() runtime.Object
		want   bool
	}{
		"a configuration as it is": {object: func() runtime.Object { return mutatingNow() }, want: true},
		"one with a further webhook of ours that trusts the CA": {want: true, object: func() runtime.Object {
			live := mutatingNow()
			more := *live.Webhooks[0].DeepCopy()
			more.Name = "mpod-more.kb.io"
			live.Webhooks = append(live.Webhooks, more)
			return live
		}},
		"one with a webhook that leads elsewhere, and a note": {want: true, object: func() runtime.Object {
			live := mutatingNow()
			live.Annotations = map[string]string{"note": "anything"}
			live.Webhooks = append(live.Webhooks, admissionv1.MutatingWebhook{
				Name: "theirs.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: new("https://elsewhere.example.com/")},
			})
			return live
		}},
		"one with a further webhook of ours that trusts nothing": {object: func() runtime.Object {
			live := mutatingNow()
			more := *live.Webhooks[0].DeepCopy()
			more.Name, more.ClientConfig.CABundle = "mpod-more.kb.io", nil
			live.Webhooks = append(live.Webhooks, more)
			return live
		}},
		"one that trusts another CA": {object: func() runtime.Object {
			live := mutatingNow()
			live.Webhooks[0].ClientConfig.CABundle = otherCA.cert
			return live
		}},
		"one that lacks a webhook of ours": {object: func() runtime.Object {
			live := mutatingNow()
			live.Webhooks = nil
			return live
		}},
		"one that was reset to how it is shipped": {object: func() runtime.Object { return validating(w.endpoint) }},
		"a CRD with another status": {want: true, object: func() runtime.Object {
			live := crdNow()
			live.Status.StoredVersions = []string{"v1alpha1", "v1beta1"}
			return live
		}},
		"a CRD whose conversion was reset": {object: func() runtime.Object {
			live := crdNow()
			live.Spec.Conversion = nil
			return live
		}},
		"the Secret": {object: func() runtime.Object {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-webhook-certs"}}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := w.managers[0].isAsLeft(tc.object()); got != tc.want {
				t.Errorf("as it was left: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestExternalCAsThatNoLongerTrustWakeTheLoop: they are only compared, and whoever fills them in may do so at any time.
func TestExternalCAsThatNoLongerTrustWakeTheLoop(t *testing.T) {
	w := newWorld(t, 1)
	w.settle()
	ctx := context.Background()
	data, _, err := w.managers[0].Store.Load(ctx)
	w.must(err)
	name := types.NamespacedName{Namespace: "kruise-system", Name: "from-elsewhere"}
	w.must(w.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Data:       map[string][]byte{keyExternalCA: data[keyCACert], keyTLSCert: data[keyTLSCert], keyTLSKey: data[keyTLSKey]},
	}))
	external := w.manager()
	external.External, external.Store = true, SecretStore{Client: w.client, Name: name}
	for range 2 {
		_, err := external.pass(ctx)
		w.must(err)
		w.now = w.now.Add(settle)
	}
	live := &admissionv1.MutatingWebhookConfiguration{}
	w.must(w.client.Get(ctx, types.NamespacedName{Name: "kruise-mutating-webhook-configuration"}, live))
	if !external.isAsLeft(live) {
		t.Error("a configuration that trusts the certificate is not as it was left")
	}
	live.Webhooks[0].ClientConfig.CABundle = nil
	if external.isAsLeft(live) {
		t.Error("a configuration that trusts nothing is as it was left")
	}
}
