package cluster

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/seed-69ecc383/kruise/localcluster/component"
	"github.com/seed-69ecc383/kruise/localcluster/pki"
)

// Three authorities, so that no certificate opens a door it was not made for: a kubelet's must not open etcd.
const (
	clusterCA    = "ca"
	etcdCA       = "etcd-ca"
	frontProxyCA = "front-proxy-ca"
	tokenKey     = "service-account"

	serviceNetwork = "10.96.0.0/16"
	// apiServiceIP is the first address of serviceNetwork, which the Service "kubernetes" gets.
	apiServiceIP = "10.96.0.1"
)

// simulatorUser is who the simulated kubelets and the volume provisioner are to the API server.
const simulatorUser = "kruise-local:simulator"

// identities are the clients of the API server that get a kubeconfig of their own.
func identities() []pki.Request {
	return []pki.Request{
		{Name: "admin", CommonName: "kubernetes-admin", Organizations: []string{"system:masters"}},
		{Name: component.ControllerManager, CommonName: "system:kube-controller-manager"},
		{Name: component.Scheduler, CommonName: "system:kube-scheduler"},
		{Name: component.Simulator, CommonName: simulatorUser},
	}
}

// ensureCredentials makes all keys, certificates and kubeconfigs that are missing.
func (c *Cluster) ensureCredentials() error {
	folder := c.pki()
	for _, authority := range []string{clusterCA, etcdCA, frontProxyCA} {
		if err := folder.Authority(authority); err != nil {
			return err
		}
	}
	if err := folder.SigningKey(tokenKey); err != nil {
		return err
	}
	local := []string{"localhost", "127.0.0.1", "::1"}
	api := append([]string{
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", apiServiceIP,
	}, append(local, hostAddresses()...)...)
	certificates := []struct {
		authority string
		request   pki.Request
	}{
		{etcdCA, pki.Request{Name: "etcd", CommonName: "etcd", Hosts: local}},
		{etcdCA, pki.Request{Name: "etcd-client", CommonName: "kube-apiserver"}},
		{frontProxyCA, pki.Request{Name: "front-proxy", CommonName: "front-proxy-client"}},
		{clusterCA, pki.Request{Name: "serving", CommonName: "kube-apiserver", Hosts: api}},
		{clusterCA, pki.Request{
			Name: "kubelet-client", CommonName: "kube-apiserver-kubelet-client", Organizations: []string{"system:masters"},
		}},
	}
	for _, certificate := range certificates {
		if err := folder.Issue(certificate.authority, certificate.request); err != nil {
			return err
		}
	}
	for _, identity := range identities() {
		path := c.kubeconfigOf(identity.Name)
		if identity.Name == "admin" {
			path = c.Kubeconfig()
		}
		if err := c.EnsureKubeconfig(path, identity); err != nil {
			return err
		}
	}
	return nil
}

// EnsureKubeconfig makes sure that a client certificate for the identity exists, and a kubeconfig at path that uses it.
func (c *Cluster) EnsureKubeconfig(path string, identity pki.Request) error {
	if err := c.pki().Issue(clusterCA, identity); err != nil {
		return err
	}
	var parts [3][]byte
	for i, file := range []string{c.pki().Cert(clusterCA), c.pki().Cert(identity.Name), c.pki().Key(identity.Name)} {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("making kubeconfig of %s: %w", identity.Name, err)
		}
		parts[i] = content
	}
	config := clientcmdapi.NewConfig()
	name, user := c.context(), identity.Name
	if c.state.Config.Name != "" {
		user = name + "-" + identity.Name // a list of kubeconfigs has one user of a name
	}
	config.Clusters[name] = &clientcmdapi.Cluster{Server: c.Server(), CertificateAuthorityData: parts[0]}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: parts[1], ClientKeyData: parts[2]}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("making kubeconfig of %s: %w", identity.Name, err)
	}
	return writeFile(path, content)
}

// IssueCertificate makes sure that a certificate of the cluster's authority exists and returns the paths of it and its key.
func (c *Cluster) IssueCertificate(request pki.Request) (cert, key string, err error) {
	if err := c.pki().Issue(clusterCA, request); err != nil {
		return "", "", err
	}
	return c.pki().Cert(request.Name), c.pki().Key(request.Name), nil
}

// AuthorityCert is the path of the certificate of the cluster's authority.
func (c *Cluster) AuthorityCert() string { return c.pki().Cert(clusterCA) }

// context is what kubeconfigs call the cluster, and their context.
func (c *Cluster) context() string {
	if c.state.Config.Name == "" {
		return "kruise-local"
	}
	return "kruise-local-" + c.state.Config.Name
}

// Server is the URL of the API server on this machine.
func (c *Cluster) Server() string {
	return "https://127.0.0.1:" + strconv.Itoa(c.state.Ports.APIServer)
}

func (c *Cluster) kubeconfigOf(name string) string { return c.path("config", name+".kubeconfig") }

// hostAddresses are the addresses of this machine that other machines, or containers on it, can dial.
func hostAddresses() []string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil // a certificate without them serves all but real nodes
	}
	var hosts []string
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			hosts = append(hosts, network.IP.String())
		}
	}
	return hosts
}

// advertisedAddress is what the endpoints of the Service "kubernetes" hold. The API server refuses a loopback address
// there; a machine with no other gets one of those reserved for documentation, which nothing on such a machine dials.
func advertisedAddress() string {
	for _, host := range hostAddresses() {
		if ip := net.ParseIP(host).To4(); ip != nil {
			return host
		}
	}
	return "192.0.2.1"
}
