package process

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seed-69ecc383/kruise/internal/admission/certs"
	"github.com/seed-69ecc383/kruise/internal/admission/server"
	"github.com/seed-69ecc383/kruise/internal/admission/webhookconfig"
)

// WebhookOptions are read from the environment, which says where the process runs.
type WebhookOptions struct {
	// Host is the name by which the API server reaches a manager that runs beside it as a process; empty in a cluster, where it is reached
	// through the Service.
	Host string
	Port string
	// CertDir holds the certificates of a manager that runs as a process.
	CertDir string
	// PodNamespace, SecretName and ServiceName are where a manager in a cluster keeps its certificates and is reached.
	PodNamespace, SecretName, ServiceName string
	// RenewBefore is how long before its end a certificate is replaced, such as 45d; empty for the default.
	RenewBefore string
}

// Endpoint is where the API server reaches the webhooks.
func (o WebhookOptions) Endpoint() webhookconfig.Endpoint {
	if o.Host != "" {
		return webhookconfig.Endpoint{HostPort: net.JoinHostPort(o.Host, o.Port)}
	}
	return webhookconfig.Endpoint{Service: types.NamespacedName{Namespace: o.PodNamespace, Name: o.ServiceName}}
}

// Store is where the CA is kept.
func (o WebhookOptions) Store(live client.Client) certs.Store {
	if o.Host != "" {
		return certs.FileStore{Dir: o.CertDir}
	}
	return certs.SecretStore{Client: live, Name: types.NamespacedName{Namespace: o.PodNamespace, Name: o.SecretName}}
}

// Serving are the certificates that the webhooks are served under.
func (o WebhookOptions) Serving() *certs.Serving {
	return certs.NewServing(certs.ServingOptions{
		Hosts: o.Endpoint().Hosts(), Parts: webhookconfig.Parts(), Log: log.Log.WithName("certificates"), Now: time.Now,
	})
}

// Server returns the server of the webhooks.
func (o WebhookOptions) Server(clients server.Clients, serving *certs.Serving) (*server.Server, error) {
	port, err := o.port()
	if err != nil {
		return nil, fmt.Errorf("reading WEBHOOK_PORT: %w", err)
	}
	if err := metrics.Registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kruise_webhook_certificate_expiry_timestamp_seconds",
		Help: "When the certificate ends that the webhooks are served under, in seconds since 1970; 0 while there is none.",
	}, func() float64 { return float64(serving.Expiry()) })); err != nil {
		return nil, fmt.Errorf("registering the metric of the certificate: %w", err)
	}
	return server.New(server.Options{
		Host: o.Host, // outside the cluster it listens on the one name by which the API server reaches it
		Port: port, GetCertificate: serving.GetCertificate, Clients: clients,
		Registry: metrics.Registry, Log: log.Log.WithName("webhooks"), Now: time.Now,
	})
}

func (o WebhookOptions) port() (int, error) { return net.LookupPort("tcp", o.Port) }

// Configurations returns the mutating and the validating webhook configuration of a manifest, which have these names.
func Configurations(
	manifest []byte, mutatingName, validatingName string,
) (*admissionv1.MutatingWebhookConfiguration, *admissionv1.ValidatingWebhookConfiguration, error) {
	mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	if err := errors.Join(documents.Decode(mutating), documents.Decode(validating)); err != nil {
		return nil, nil, fmt.Errorf("reading the webhook configurations: %w", err)
	}
	if mutating.Name != mutatingName || validating.Name != validatingName {
		return nil, nil, fmt.Errorf("the webhook configurations are named %s and %s", mutating.Name, validating.Name)
	}
	return mutating, validating, nil
}
