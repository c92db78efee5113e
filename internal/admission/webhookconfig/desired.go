package webhookconfig

import (
	"net"
	"net/url"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/admission/certs"
)

// conversionPath is where conversion between versions of a kind is served.
const conversionPath = "/convert"

// Manifests are the configurations as they are installed.
type Manifests struct {
	Mutating   *admissionv1.MutatingWebhookConfiguration
	Validating *admissionv1.ValidatingWebhookConfiguration
	Endpoint   Endpoint
	// Namespace is that of the managers. Webhooks that leave namespaces out by name leave it out, too: it could not be set up without a
	// manager that runs.
	Namespace string
	// Serves reports whether the managers answer on a path, which depends on the feature gates.
	Serves func(path string) bool
}

// Input is what the webhook configurations and CRDs follow from.
type Input struct {
	Manifests
	// CA is the CA to be trusted; nil leaves the CAs as they are.
	CA []byte
	// OnlyCA removes all other CAs.
	OnlyCA bool
	// Leads adds webhooks of the manifest that are missing, and removes those that lead to the managers on a path that none serves: they
	// are of another version, and could only fail. Two managers of different versions would undo each other's work if both did so.
	Leads bool
	// Pods says which new Pods are sent; nil leaves their webhooks as they are.
	Pods *PodScope
	// Workloads says which further kinds of workloads are sent; nil leaves their webhook as it is.
	Workloads *WorkloadScope
	// Evictions says whose evictions are sent; nil leaves their webhook as it is.
	Evictions *EvictionScope
}

// Desired returns a webhook configuration, or a CRD, as it is to be. Webhooks that lead elsewhere stay as they are, and what users have
// tuned stays.
func Desired(live client.Object, in Input) client.Object {
	switch live := live.(type) {
	case *admissionv1.MutatingWebhookConfiguration:
		return in.mutating(live.DeepCopy())
	case *admissionv1.ValidatingWebhookConfiguration:
		return in.validating(live.DeepCopy())
	case *apiextensionsv1.CustomResourceDefinition:
		return in.crd(live)
	default:
		return live
	}
}

func (in Input) mutating(next *admissionv1.MutatingWebhookConfiguration) *admissionv1.MutatingWebhookConfiguration {
	next.Webhooks = withManifest(next.Webhooks, in.Mutating.DeepCopy().Webhooks, mutatingWebhook, in)
	if in.Workloads != nil {
		next.Webhooks = in.Workloads.webhooks(next.Webhooks)
	}
	if in.Pods == nil {
		return next
	}
	next.Webhooks = in.Pods.webhooks(next.Webhooks)
	if in.Pods.Pending == "" {
		delete(next.Annotations, keys.PodScopePending)
	} else {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, keys.PodScopePending, in.Pods.Pending)
	}
	if in.Pods.PendingSpreads == "" {
		delete(next.Annotations, keys.SpreadScopePending)
	} else {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, keys.SpreadScopePending, in.Pods.PendingSpreads)
	}
	return next
}

func (in Input) validating(next *admissionv1.ValidatingWebhookConfiguration) *admissionv1.ValidatingWebhookConfiguration {
	next.Webhooks = withManifest(next.Webhooks, in.Validating.DeepCopy().Webhooks, validatingWebhook, in)
	if in.Evictions != nil {
		next.Webhooks = in.Evictions.webhooks(next.Webhooks)
	}
	return next
}

// crd has the managers convert a kind of several versions. A kind of one version needs no conversion.
func (in Input) crd(live *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	next := live.DeepCopy()
	if len(live.Spec.Versions) < 2 || !in.Serves(conversionPath) {
		return next
	}
	conversion := &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{}, ConversionReviewVersions: []string{"v1"},
		},
	}
	if old := live.Spec.Conversion; old != nil && old.Webhook != nil {
		conversion.Webhook.ConversionReviewVersions = old.Webhook.ConversionReviewVersions
		if old.Webhook.ClientConfig != nil {
			conversion.Webhook.ClientConfig.CABundle = old.Webhook.ClientConfig.CABundle
		}
	}
	config := conversion.Webhook.ClientConfig
	where := in.Endpoint.at(conversionPath)
	config.URL = where.URL
	if s := where.Service; s != nil {
		config.Service = &apiextensionsv1.ServiceReference{Namespace: s.Namespace, Name: s.Name, Path: s.Path, Port: s.Port}
	}
	config.CABundle = in.bundle(config.CABundle)
	next.Spec.Conversion = conversion
	return next
}

// bundle returns the CAs that are to be in the place of live ones.
func (in Input) bundle(live []byte) []byte {
	switch {
	case in.CA == nil:
		return live
	case in.OnlyCA:
		return certs.Only(live, in.CA)
	default:
		return certs.Add(live, in.CA)
	}
}

// parts are what webhooks of both kinds have.
type parts struct {
	name       string
	server     *admissionv1.WebhookClientConfig
	namespaces *metav1.LabelSelector
}

func mutatingWebhook(w *admissionv1.MutatingWebhook) parts {
	return parts{w.Name, &w.ClientConfig, w.NamespaceSelector}
}

func validatingWebhook(w *admissionv1.ValidatingWebhook) parts {
	return parts{w.Name, &w.ClientConfig, w.NamespaceSelector}
}

// leaveOut adds a namespace to those that a selector leaves out, if it leaves any out.
func leaveOut(selector *metav1.LabelSelector, namespace string) {
	if selector == nil {
		return
	}
	for i := range selector.MatchExpressions {
		e := &selector.MatchExpressions[i]
		leavesOut := e.Key == corev1.LabelMetadataName && e.Operator == metav1.LabelSelectorOpNotIn
		if leavesOut && namespace != "" && !slices.Contains(e.Values, namespace) {
			e.Values = append(e.Values, namespace)
		}
	}
}

// withManifest returns the live webhooks, with address and CA filled into those that lead to the managers. Names and paths are known where
// managers were reached elsewhere before. Those of the manifest that are served and missing are added if the manager leads, or is to send
// Pods, which takes a webhook to copy.
func withManifest[T any](live, manifest []T, of func(*T) parts, in Input) []T {
	var out []T
	served, found, paths := map[string]bool{}, map[string]bool{}, map[string]string{}
	add := func(webhook T) {
		w := of(&webhook)
		found[w.name] = true
		where := in.Endpoint.at(pathOf(w.server))
		w.server.URL, w.server.Service, w.server.CABundle = where.URL, where.Service, in.bundle(w.server.CABundle)
		leaveOut(w.namespaces, in.Namespace)
		out = append(out, webhook)
	}
	for i := range manifest {
		w := of(&manifest[i])
		paths[w.name] = pathOf(w.server)
		served[w.name] = in.Serves(paths[w.name])
	}
	for _, webhook := range live {
		w := of(&webhook)
		switch ours := served[w.name] || in.Endpoint.owns(w.server); {
		case ours && in.Serves(pathOf(w.server)):
			add(webhook)
		case !ours && paths[w.name] != pathOf(w.server), !in.Leads && !served[w.name]:
			out = append(out, webhook)
		}
	}
	if !in.Leads && in.Pods == nil {
		return out
	}
	for _, webhook := range manifest {
		if name := of(&webhook).name; served[name] && !found[name] {
			add(webhook)
		}
	}
	return out
}

// bundles returns the CAs that each webhook which leads to the managers trusts.
func bundles(object client.Object, e Endpoint) [][]byte {
	var servers []*admissionv1.WebhookClientConfig
	switch o := object.(type) {
	case *admissionv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			servers = append(servers, &o.Webhooks[i].ClientConfig)
		}
	case *admissionv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			servers = append(servers, &o.Webhooks[i].ClientConfig)
		}
	case *apiextensionsv1.CustomResourceDefinition:
		if c := o.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil {
			return [][]byte{c.Webhook.ClientConfig.CABundle}
		}
	}
	var out [][]byte
	for _, server := range servers {
		if e.owns(server) {
			out = append(out, server.CABundle)
		}
	}
	return out
}

// servicePort is the port of the Service in front of the managers.
const servicePort int32 = 443

// Endpoint is where the API server reaches the managers.
type Endpoint struct {
	// HostPort is host:port of a manager that runs as a process, which is reached by URL. Empty to go through Service.
	HostPort string
	// Service is the Service in front of the managers.
	Service types.NamespacedName
}

// Hosts returns the names and addresses that the API server, and the manager asking itself, verify.
func (e Endpoint) Hosts() []string {
	if e.HostPort == "" {
		return []string{e.Service.Name + "." + e.Service.Namespace + ".svc", "localhost"}
	}
	host, _, err := net.SplitHostPort(e.HostPort)
	if err != nil {
		host = e.HostPort
	}
	if host == "localhost" {
		return []string{host}
	}
	return []string{host, "localhost"}
}

// at returns the address of a path.
func (e Endpoint) at(path string) admissionv1.WebhookClientConfig {
	if e.HostPort != "" {
		return admissionv1.WebhookClientConfig{URL: new((&url.URL{Scheme: "https", Host: e.HostPort, Path: path}).String())}
	}
	return admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{
		Namespace: e.Service.Namespace, Name: e.Service.Name, Path: &path, Port: new(servicePort),
	}}
}

// owns reports whether a webhook leads to the managers.
func (e Endpoint) owns(c *admissionv1.WebhookClientConfig) bool {
	if c.Service != nil {
		return c.Service.Name == e.Service.Name && c.Service.Namespace == e.Service.Namespace
	}
	return c.URL != nil && e.HostPort != "" && strings.HasPrefix(*c.URL, "https://"+e.HostPort+"/")
}

func pathOf(c *admissionv1.WebhookClientConfig) string {
	switch {
	case c.Service != nil && c.Service.Path != nil:
		return *c.Service.Path
	case c.URL != nil:
		if u, err := url.Parse(*c.URL); err == nil {
			return u.Path
		}
	}
	return "/"
}
