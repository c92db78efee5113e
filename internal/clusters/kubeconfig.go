package clusters

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/seed-69ecc383/kruise/internal/rules/connection"
)

// maxKubeconfig is more than any kubeconfig of one cluster has, in bytes.
const maxKubeconfig = 256 << 10

// Kubeconfig returns how the cluster of a kubeconfig's current context is reached.
//
// Whoever may write the Secret has the manager act on it, so only what names a server and proves who we are to it is used: the address, the
// CA, a client certificate or a token, all of them in the kubeconfig itself. Whatever would start a program, read a file of the manager or
// leave out a check is refused, also where it would do nothing, and so is whatever is not understood.
func Kubeconfig(text []byte) (*rest.Config, *connection.Problem) {
	if len(text) == 0 {
		return nil, invalid("the kubeconfig is empty")
	}
	if len(text) > maxKubeconfig {
		return nil, invalid("the kubeconfig has %d bytes, want %d at most", len(text), maxKubeconfig)
	}
	config, err := clientcmd.Load(text)
	if err != nil {
		return nil, invalid("the kubeconfig cannot be read") // the error would have what is in it
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil {
		return nil, invalid("the kubeconfig has no context of the name in current-context, %q", config.CurrentContext)
	}
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster == nil || user == nil {
		return nil, invalid("context %q of the kubeconfig names cluster %q and user %q, want both in it", config.CurrentContext,
			context.Cluster, context.AuthInfo)
	}
	for _, user := range config.AuthInfos {
		if refused := refusedUser(user); refused != "" {
			return nil, invalid("the kubeconfig has %s, which is not used here", refused)
		}
	}
	for _, cluster := range config.Clusters {
		if refused := refusedCluster(cluster); refused != "" {
			return nil, invalid("the kubeconfig has %s, which is not used here", refused)
		}
	}
	out, why := server(cluster)
	if why != nil {
		return nil, why
	}
	return out, identify(out, user)
}

// refusedUser returns the field of a user that is refused; empty if there is none.
func refusedUser(user *clientcmdapi.AuthInfo) string {
	switch {
	case user.Exec != nil:
		return "exec, a program that makes credentials"
	case user.AuthProvider != nil:
		return "auth-provider"
	case user.TokenFile != "":
		return "tokenFile"
	case user.ClientCertificate != "":
		return "client-certificate, the path of a file"
	case user.ClientKey != "":
		return "client-key, the path of a file"
	case user.Username != "" || user.Password != "":
		return "username or password"
	}
	return ""
}

// refusedCluster returns the field of a cluster that is refused; empty if there is none.
func refusedCluster(cluster *clientcmdapi.Cluster) string {
	switch {
	case cluster.InsecureSkipTLSVerify:
		return "insecure-skip-tls-verify"
	case cluster.CertificateAuthority != "":
		return "certificate-authority, the path of a file"
	}
	return ""
}

// server returns a configuration that reaches a cluster and has no credentials yet.
func server(cluster *clientcmdapi.Cluster) (*rest.Config, *connection.Problem) {
	address, err := url.Parse(cluster.Server)
	switch {
	case err != nil || address.Scheme != "https" || address.Hostname() == "":
		return nil, invalid("the address of the server is not https:// with a host")
	case address.User != nil || address.RawQuery != "" || address.Fragment != "":
		return nil, invalid("the address of the server has more than a host, a port and a path")
	case strings.ContainsAny(address.Hostname(), " \t\r\n\x00"):
		return nil, invalid("the address of the server has no valid host")
	}
	out := &rest.Config{Host: cluster.Server}
	out.TLSClientConfig.CAData = cluster.CertificateAuthorityData
	out.TLSClientConfig.ServerName = cluster.TLSServerName
	if len(cluster.CertificateAuthorityData) > 0 && !x509.NewCertPool().AppendCertsFromPEM(cluster.CertificateAuthorityData) {
		return nil, invalid("certificate-authority-data has no certificate")
	}
	if cluster.ProxyURL != "" {
		proxy, err := url.Parse(cluster.ProxyURL)
		if err != nil || proxy.Hostname() == "" || !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) {
			return nil, invalid("proxy-url is not http://, https:// or socks5:// with a host")
		}
		out.Proxy = http.ProxyURL(proxy)
	}
	return out, nil
}

// identify adds the credentials of a user.
func identify(out *rest.Config, user *clientcmdapi.AuthInfo) *connection.Problem {
	if user.Token == "" && len(user.ClientCertificateData) == 0 {
		return invalid("the kubeconfig has neither a token nor client-certificate-data")
	}
	if len(user.ClientCertificateData) > 0 || len(user.ClientKeyData) > 0 {
		if _, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil {
			return invalid("client-certificate-data and client-key-data are not a certificate and its key")
		}
	}
	out.TLSClientConfig.CertData, out.TLSClientConfig.KeyData = user.ClientCertificateData, user.ClientKeyData
	out.BearerToken = user.Token
	out.Impersonate = rest.ImpersonationConfig{
		UserName: user.Impersonate, UID: user.ImpersonateUID, Groups: user.ImpersonateGroups, Extra: user.ImpersonateUserExtra,
	}
	return nil
}

func invalid(format string, args ...any) *connection.Problem {
	return &connection.Problem{Reason: connection.CredentialsInvalid, Message: fmt.Sprintf(format, args...)}
}

// fingerprint tells two ways to reach a cluster apart, without revealing any of them.
func fingerprint(of any) string {
	text, err := json.Marshal(of)
	if err != nil {
		return "" // none of the types that are passed here fails
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
