package certs

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

// hosts returns the names and addresses that the API server, and the manager asking itself, verify.
func (e Endpoint) hosts() []string {
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

// address is a URL, or a Service with a path, the two forms in which an API object names a webhook.
type address struct {
	url     *string
	service *admissionv1.ServiceReference
}

// at returns the address of a path.
func (e Endpoint) at(path string) address {
	if e.HostPort != "" {
		return address{url: new((&url.URL{Scheme: "https", Host: e.HostPort, Path: path}).String())}
	}
	return address{service: &admissionv1.ServiceReference{
		Namespace: e.Service.Namespace, Name: e.Service.Name, Path: &path, Port: new(servicePort),
	}}
}

// owns reports whether an address leads to the managers.
func (e Endpoint) owns(a address) bool {
	if a.service != nil {
		return a.service.Name == e.Service.Name && a.service.Namespace == e.Service.Namespace
	}
	return a.url != nil && e.HostPort != "" && strings.HasPrefix(*a.url, "https://"+e.HostPort+"/")
}

// path returns the path of an address of either form.
func (a address) path() string {
	switch {
	case a.service != nil && a.service.Path != nil:
		return *a.service.Path
	case a.url != nil:
		if u, err := url.Parse(*a.url); err == nil {
			return u.Path
		}
	}
	return "/"
}
