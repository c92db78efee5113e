package rolloutmanager

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	manifests "github.com/seed-69ecc383/kruise/config/rollouts/webhook"
	"github.com/seed-69ecc383/kruise/internal/admission/certs"
	"github.com/seed-69ecc383/kruise/internal/admission/releasing"
	"github.com/seed-69ecc383/kruise/internal/admission/validating"
	"github.com/seed-69ecc383/kruise/internal/admission/webhookconfig"
	"github.com/seed-69ecc383/kruise/internal/convert"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/process"
)

// The names of the webhook configurations.
const (
	mutatingConfiguration   = "kruise-rollout-mutating-webhook-configuration"
	validatingConfiguration = "kruise-rollout-validating-webhook-configuration"
)

// propagation is how long API servers may take to go by a changed webhook configuration; mostly it is milliseconds.
const propagation = time.Second

// crds are the kinds of several versions, which the manager converts.
func crds() []string {
	return []string{"rollouts.rollouts.kruise.io", "batchreleases.rollouts.kruise.io"}
}

// handlers are the webhooks by their paths.
func (s settings) handlers() map[string]http.Handler {
	out := map[string]http.Handler{
		convert.Path: convert.Handler(),
		"/validate-rollouts-kruise-io-rollout": &webhook.Admission{Handler: validating.Rollout(validating.RolloutOptions{
			Live: s.live, PartitionPercentLimit: s.PartitionPercentLimit, AnyKind: !s.FilterWorkloadType,
		})},
	}
	out["/validate-rollouts-kruise-io-trafficrouting"] = &webhook.Admission{Handler: validating.TrafficRouting()}
	steering := &webhook.Admission{Handler: releasing.Handler(releasing.Options{
		Live: s.live, Cached: observe.Reader{Reader: s.mgr.GetCache(), Indexed: true}, Now: s.clock.Now, AnyKind: !s.FilterWorkloadType,
	})}
	for _, path := range releasing.Paths() {
		out[path] = steering
	}
	return out
}

// addWebhooks serves admission and conversion on every replica, and keeps the webhook configurations.
func (s settings) addWebhooks(serving *certs.Serving) error {
	handlers := s.handlers()
	for path, handler := range handlers {
		s.mgr.GetWebhookServer().Register(path, handler)
	}
	configurations, err := s.configurations(serving, func(path string) bool { return handlers[path] != nil })
	if err != nil {
		return err
	}
	ready := func(r *http.Request) error { return errors.Join(s.server.StartedChecker()(r), serving.Check(r)) }
	if err := errors.Join(
		s.mgr.AddReadyzCheck("webhook-ready", ready), s.mgr.AddHealthzCheck("webhooks-answer", s.server.HungChecker()),
	); err != nil {
		return err
	}
	return configurations.Add(s.mgr)
}

// configurations returns what keeps the webhook configurations.
func (s settings) configurations(serving *certs.Serving, serves func(path string) bool) (*webhookconfig.Reconciler, error) {
	mutating, validating, err := process.Configurations(manifests.Manifests, mutatingConfiguration, validatingConfiguration)
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
			Mutating: mutating, Validating: validating, Endpoint: endpoint, Namespace: s.Webhook.PodNamespace, Serves: serves,
		},
		Client: s.live, CRDs: crds(),
		Issuer: certs.Issuer{
			Store: s.Webhook.Store(s.live), Hosts: endpoint.Hosts(), RenewBefore: renewBefore,
			Log: log.Log.WithName("certificates"), Now: s.clock.Now,
		},
		Serving: serving, Elected: s.mgr.Elected(), Workloads: s.namedResources,
		Propagation: propagation, RetryDelay: 10 * time.Millisecond, Now: s.clock.Now,
	}), nil
}
