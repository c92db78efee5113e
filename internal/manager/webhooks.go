package manager

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	shipped "github.com/seed-69ecc383/kruise/config/webhook"
	"github.com/seed-69ecc383/kruise/internal/admission"
	"github.com/seed-69ecc383/kruise/internal/admission/certs"
	"github.com/seed-69ecc383/kruise/internal/admission/recreate"
	"github.com/seed-69ecc383/kruise/internal/admission/scoping"
	"github.com/seed-69ecc383/kruise/internal/admission/validating"
	"github.com/seed-69ecc383/kruise/internal/defaults"
	"github.com/seed-69ecc383/kruise/internal/disruption"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// settings are the options and the gates of one process.
type settings struct {
	Options
	gates features.Set
	// scales tells how many Pods workloads should have; nil where budgets are asked about nothing.
	scales *observe.Scales
	// judge decides what may be done to Pods that PodUnavailableBudgets guard; nil where they are asked about nothing.
	judge *disruption.Judge
	// evictions has the evictions in a namespace judged; nil where none are.
	evictions *scoping.Evictions
}

// off returns the first of the gates that is off; empty when all are on.
func (s settings) off(gates ...features.Gate) string {
	for _, gate := range gates {
		if !s.gates.Enabled(gate) {
			return string(gate)
		}
	}
	return ""
}

// presented hands the certificate of the moment to the webhook server, which is made before the part that keeps it.
type presented struct {
	rotator atomic.Pointer[certs.Rotator]
}

func (p *presented) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	rotator := p.rotator.Load()
	if rotator == nil {
		return nil, errors.New("there is no certificate yet")
	}
	return rotator.GetCertificate(hello)
}

// keep has the certificate kept by a rotator, without which the manager is not ready.
func (p *presented) keep(mgr ctrlmanager.Manager, rotator *certs.Rotator) error {
	p.rotator.Store(rotator)
	if err := mgr.AddReadyzCheck("webhook-ready", func(r *http.Request) error {
		return errors.Join(mgr.GetWebhookServer().StartedChecker()(r), rotator.Check(r))
	}); err != nil {
		return err
	}
	return mgr.Add(everywhere{rotator})
}

func webhookServer(o WebhookOptions, certificates *presented) webhook.Server {
	port, err := strconv.Atoi(o.Port)
	if err != nil {
		port = webhook.DefaultPort // Options.validate has looked at it
	}
	host := ""
	if o.Host != "" {
		// Beside the cluster nobody else needs to reach it.
		host = o.Host
	}
	return webhook.NewServer(webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.MinVersion = tls.VersionTLS12
		c.GetCertificate = certificates.get
	}}})
}

// addWebhooks serves admission and conversion on every replica, and keeps the certificates.
func addWebhooks(ctx context.Context, mgr ctrlmanager.Manager, live client.Client, certificates *presented, s settings) error {
	templates, err := validating.NewTemplateChecker(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("preparing the validation of templates: %w", err)
	}
	chain, err := podChain(ctx, mgr, live, s)
	if err != nil {
		return err
	}
	accepted, err := scoped(mgr, live, s)
	if err != nil {
		return err
	}
	guarded, err := guardOptions(mgr, live, s)
	if err != nil {
		return err
	}
	served := &paths{Server: mgr.GetWebhookServer()}
	admission.Register(served, admission.Options{
		Pods:      chain,
		Guard:     guarded,
		Revisions: live,
		Defaults:  s.defaults(),
		CloneSet: validating.CloneSetOptions{
			Pods:               live,
			Templates:          templates,
			InPlace:            inPlaceOptions(s.gates),
			DeletionProtection: s.gates.Enabled(features.ResourcesDeletionProtection),
			ShortHash:          s.gates.Enabled(features.CloneSetShortHash),
		},
		StatefulSet: validating.StatefulSetOptions{
			Templates:          templates,
			Live:               live,
			InPlace:            inPlaceOptions(s.gates),
			ClaimResize:        s.gates.Enabled(features.StatefulSetAutoResizePVCGate),
			DeletionProtection: s.gates.Enabled(features.ResourcesDeletionProtection),
		},
		AdvancedCronJob: validating.AdvancedCronJobOptions{Templates: templates},
		BroadcastJob:    validating.BroadcastJobOptions{Templates: templates},
		EphemeralJob:    validating.EphemeralJobOptions{Templates: templates},
		SidecarSet: validating.SidecarSetOptions{
			Live:          live,
			Namespace:     s.Webhook.PodNamespace,
			Templates:     templates,
			AnyAnnotation: s.gates.Enabled(features.SidecarSetPatchPodMetadataDefaultsAllowed),
			Accepted:      accepted,
		},
		ContainerRecreate:    recreate.Options{Live: live, Disabled: !s.gates.Enabled(features.KruiseDaemon)},
		PodProbeMarker:       validating.PodProbeMarkerOptions{DisabledBy: s.off(features.KruiseDaemon, features.PodProbeMarkerGate)},
		PodUnavailableBudget: validating.PodUnavailableBudgetOptions{Live: live, DisabledBy: s.budgetsOff()},
		DaemonSet: validating.DaemonSetOptions{
			Templates:          templates,
			DeletionProtection: s.gates.Enabled(features.ResourcesDeletionProtection),
		},
		Images: validating.ImageOptions{Daemon: s.gates.Enabled(features.KruiseDaemon), Jobs: s.gates.Enabled(features.ImagePullJobGate)},
		Now:    time.Now,
	})
	return addCertificates(mgr, live, certificates, s, served)
}

func (s settings) defaults() defaults.Options {
	return defaults.Options{
		TemplateNoDefaults:   s.gates.Enabled(features.TemplateNoDefaults),
		HostNetworkHostPorts: s.gates.Enabled(features.DefaultHostNetworkHostPortsInPodTemplates),
		ClaimRetention:       s.gates.Enabled(features.StatefulSetAutoDeletePVC),
		ClaimResize:          s.gates.Enabled(features.StatefulSetAutoResizePVCGate),
	}
}

// addCertificates keeps the certificates that the handlers are served with, and tells when they can be.
func addCertificates(mgr ctrlmanager.Manager, live client.Client, certificates *presented, s settings, served *paths) error {
	rotator, err := newRotator(live, s, served.has)
	if err != nil {
		return err
	}
	return certificates.keep(mgr, rotator)
}

// everywhere runs on every replica, because every replica serves.
type everywhere struct{ *certs.Rotator }

func (everywhere) NeedLeaderElection() bool { return false }

// Start runs until the context ends, as the manager wants it.
func (e everywhere) Start(ctx context.Context) error { return e.Run(ctx) }

// paths remembers where handlers are served.
type paths struct {
	webhook.Server
	known map[string]bool
}

func (p *paths) Register(path string, hook http.Handler) {
	if p.known == nil {
		p.known = map[string]bool{}
	}
	p.known[path] = true
	p.Server.Register(path, hook)
}

func (p *paths) has(path string) bool { return p.known[path] }

func newRotator(live client.Client, s settings, serves func(string) bool) (*certs.Rotator, error) {
	mutating, validating, err := configurations(s.Webhook.PodNamespace)
	if err != nil {
		return nil, err
	}
	renewBefore, err := certs.ParseRenewBefore(s.Webhook.RenewBefore)
	if err != nil {
		return nil, fmt.Errorf("reading CERTS_RENEW_BEFORE: %w", err)
	}
	c := certs.Config{
		Store: certs.SecretStore{Client: live, Name: types.NamespacedName{Namespace: s.Webhook.PodNamespace, Name: s.Webhook.SecretName}},
		Targets: certs.Targets{
			Client: live, Mutating: mutating, Validating: validating, CRDs: crds(),
		},
		Endpoint:    certs.Endpoint{Service: types.NamespacedName{Namespace: s.Webhook.PodNamespace, Name: s.Webhook.ServiceName}},
		Serves:      serves,
		RenewBefore: renewBefore,
		External:    s.gates.Enabled(features.EnableExternalCerts),
		Log:         log.Log.WithName("certificates"),
	}
	if s.Webhook.Host != "" {
		c.Store = certs.FileStore{Dir: s.Webhook.CertDir}
		c.Endpoint = certs.Endpoint{HostPort: net.JoinHostPort(s.Webhook.Host, s.Webhook.Port)}
	}
	return certs.New(c), nil
}

// configurations returns the webhook configurations as they are shipped, but that those of Pods leave the namespace of the managers alone: it could
// not be set up without a manager that runs.
func configurations(own string) (*admissionv1.MutatingWebhookConfiguration, *admissionv1.ValidatingWebhookConfiguration, error) {
	mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(shipped.Manifests), 4096)
	err := errors.Join(documents.Decode(mutating), documents.Decode(validating))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the webhook configurations: %w", err)
	}
	for i := range mutating.Webhooks {
		spare(mutating.Webhooks[i].NamespaceSelector, own)
	}
	for i := range validating.Webhooks {
		spare(validating.Webhooks[i].NamespaceSelector, own)
	}
	return mutating, validating, nil
}

// spare adds a namespace to those that a selector leaves out, if it leaves any out.
func spare(selector *metav1.LabelSelector, namespace string) {
	if selector == nil {
		return
	}
	for j := range selector.MatchExpressions {
		e := &selector.MatchExpressions[j]
		if e.Key == corev1.LabelMetadataName && e.Operator == metav1.LabelSelectorOpNotIn && !slices.Contains(e.Values, namespace) {
			e.Values = append(e.Values, namespace)
		}
	}
}
