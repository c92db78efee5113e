package webhookconfig

import (
	"context"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/test/kit/dispatch"
)

// probed returns the webhook for Pods that PodProbeMarkers select; nil if there is none.
func (w *world) probed() *admissionv1.MutatingWebhook {
	w.t.Helper()
	all := w.configuration().Webhooks
	i := slices.IndexFunc(all, func(w admissionv1.MutatingWebhook) bool { return w.Name == probeMarkerWebhook })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// TestPodsOfMarkersAreSent: where that is on, exactly those that a marker of their namespace selects, and none has to wait for a manager.
func TestPodsOfMarkersAreSent(t *testing.T) {
	w := newWorld(t)
	m := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "m"}}
	m.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}
	w.must(w.client.Create(context.Background(), m))
	w.lead()
	if w.probed() != nil {
		t.Fatal("Pods of markers are sent though nobody wants that")
	}
	w.leader.Markers = true
	w.lead()
	webhook := w.probed()
	if webhook == nil {
		t.Fatal("there is no webhook for Pods of markers")
	}
	if webhook.FailurePolicy == nil || *webhook.FailurePolicy != admissionv1.Ignore {
		t.Errorf("while no manager is there, %v", webhook.FailurePolicy)
	}
	read := dispatch.Read(webhook)
	for name, tc := range map[string]struct {
		app, namespace string
		want           bool
	}{
		"selected":             {"game", "shop", true},
		"of another label":     {"web", "shop", false},
		"of another namespace": {"game", "default", false},
		"of the system":        {"game", "kube-system", false},
	} {
		called, err := read.Calls(podOf(tc.app), tc.namespace, map[string]string{corev1.LabelMetadataName: tc.namespace})
		w.must(err)
		if called != tc.want {
			t.Errorf("a Pod %s is sent: %t", name, called)
		}
	}
	writes := w.writes
	w.lead()
	if w.writes != writes {
		t.Error("at rest something is written")
	}
	w.must(w.client.Delete(context.Background(), m))
	w.lead()
	if w.probed() != nil {
		t.Error("the webhook stays though there is no marker")
	}
	w.isAsInstalled()
}
