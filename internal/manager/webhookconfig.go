package manager

import (
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	webhookmanifests "github.com/seed-69ecc383/kruise/config/webhook"
	"github.com/seed-69ecc383/kruise/internal/admission/certs"
	"github.com/seed-69ecc383/kruise/internal/admission/webhookconfig"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/process"
)

// The names of the webhook configurations.
const (
	mutatingConfiguration   = "kruise-mutating-webhook-configuration"
	validatingConfiguration = "kruise-validating-webhook-configuration"
)

// propagation is how long API servers may take to go by a changed webhook configuration; mostly it is milliseconds.
const propagation = time.Second

// newWebhookReconciler returns what keeps the webhook configurations.
func newWebhookReconciler(
	mgr ctrlmanager.Manager, live client.WithWatch, serving *certs.Serving, s settings,
) (*webhookconfig.Reconciler, error) {
	mutating, validating, err := configurations()
	if err != nil {
		return nil, err
	}
	renewBefore, err := certs.ParseRenewBefore(s.Webhook.RenewBefore)
	if err != nil {
		return nil, fmt.Errorf("reading CERTS_RENEW_BEFORE: %w", err)
	}
	endpoint := s.Webhook.Endpoint()
	return webhookconfig.New(webhookconfig.Options{
		Manifests: webhookconfig.Manifests{
			Mutating: mutating, Validating: validating, Endpoint: endpoint, Namespace: s.Webhook.PodNamespace,
			Serves: func(path string) bool { return s.served[path] },
		},
		Client: live,
		CRDs:   crds(),
		Issuer: certs.Issuer{
			Store: s.Webhook.Store(live), Hosts: endpoint.Hosts(), RenewBefore: renewBefore,
			External: s.gates.Enabled(features.EnableExternalCerts), Log: log.Log.WithName("certificates"), Now: s.clock.Now,
		},
		Serving:     serving,
		Elected:     mgr.Elected(),
		Pods:        s.gates.Enabled(features.PodWebhook),
		Markers:     s.asksProviders(),
		Spreads:     s.spreadsOff() == "",
		PodStates:   s.bindsPods(),
		Evictions:   s.budgetsOff() == "" && s.gates.Enabled(features.PodUnavailableBudgetDeleteGate),
		Propagation: propagation,
		RetryDelay:  10 * time.Millisecond,
		Now:         s.clock.Now,
	}), nil
}

// configurations returns the webhook configurations of the manifests.
func configurations() (*admissionv1.MutatingWebhookConfiguration, *admissionv1.ValidatingWebhookConfiguration, error) {
	return process.Configurations(webhookmanifests.Manifests, mutatingConfiguration, validatingConfiguration)
}
