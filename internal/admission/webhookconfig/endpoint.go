package webhookconfig

import (
	"net"
	"net/url"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
)

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
