package clusters

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/seed-69ecc383/kruise/internal/rules/connection"
)

// pair returns a certificate that is its own authority, and its key, both as PEM.
func pair(t testing.TB) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// good returns a kubeconfig that is used.
func good(t testing.TB) *clientcmdapi.Config {
	t.Helper()
	cert, key := pair(t)
	config := clientcmdapi.NewConfig()
	config.Clusters["member"] = &clientcmdapi.Cluster{Server: "https://member.example:6443", CertificateAuthorityData: cert}
	config.AuthInfos["kruise"] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts["member"] = &clientcmdapi.Context{Cluster: "member", AuthInfo: "kruise"}
	config.CurrentContext = "member"
	return config
}

func written(t testing.TB, config *clientcmdapi.Config) []byte {
	t.Helper()
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestKubeconfigsThatAreRefused has one field in each of them that would start a program, read a file, or leave out a check.
func TestKubeconfigsThatAreRefused(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	cert, key := pair(t)
	_, otherKey := pair(t)
	exec := &clientcmdapi.ExecConfig{
		Command: "sh", Args: []string{"-c", "touch " + ran}, APIVersion: "client.authentication.k8s.io/v1",
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}
	tests := map[string]struct {
		change func(*clientcmdapi.Config)
		want   string
	}{
		"a program that makes credentials": {func(c *clientcmdapi.Config) { c.AuthInfos["kruise"].Exec = exec }, "exec"},
		"a program of a user that no context names": {
			func(c *clientcmdapi.Config) { c.AuthInfos["other"] = &clientcmdapi.AuthInfo{Exec: exec} }, "exec",
		},
		"an auth provider": {
			func(c *clientcmdapi.Config) {
				c.AuthInfos["kruise"].AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "gcp"}
			},
			"auth-provider",
		},
		"a token in a file":       {func(c *clientcmdapi.Config) { c.AuthInfos["kruise"].TokenFile = "/var/run/token" }, "tokenFile"},
		"a certificate in a file": {func(c *clientcmdapi.Config) { c.AuthInfos["kruise"].ClientCertificate = "/etc/cert" }, "client-certificate"},
		"a key in a file":         {func(c *clientcmdapi.Config) { c.AuthInfos["kruise"].ClientKey = "/etc/key" }, "client-key"},
		"a CA in a file":          {func(c *clientcmdapi.Config) { c.Clusters["member"].CertificateAuthority = "/etc/ca" }, "certificate-authority"},
		"a password": {func(c *clientcmdapi.Config) {
			c.AuthInfos["kruise"].Username, c.AuthInfos["kruise"].Password = "a", "b"
		}, "username"},
		"no check of the server": {func(c *clientcmdapi.Config) { c.Clusters["member"].InsecureSkipTLSVerify = true }, "insecure-skip-tls-verify"},
		"no check of another server": {
			func(c *clientcmdapi.Config) {
				c.Clusters["other"] = &clientcmdapi.Cluster{Server: "https://o", InsecureSkipTLSVerify: true}
			}, "insecure-skip-tls-verify",
		},
		"no server":                    {func(c *clientcmdapi.Config) { c.Clusters["member"].Server = "" }, "https://"},
		"a server without a host":      {func(c *clientcmdapi.Config) { c.Clusters["member"].Server = "https:///path" }, "https://"},
		"a server without encryption":  {func(c *clientcmdapi.Config) { c.Clusters["member"].Server = "http://member" }, "https://"},
		"a server that is a socket":    {func(c *clientcmdapi.Config) { c.Clusters["member"].Server = "unix:///var/run/docker.sock" }, "https://"},
		"a server with a password":     {func(c *clientcmdapi.Config) { c.Clusters["member"].Server = "https://a:b@member" }, "more than a host"},
		"a server with a query":        {func(c *clientcmdapi.Config) { c.Clusters["member"].Server = "https://member?a=b" }, "more than a host"},
		"a proxy that is a file":       {func(c *clientcmdapi.Config) { c.Clusters["member"].ProxyURL = "file:///etc/passwd" }, "proxy-url"},
		"a CA that is none":            {func(c *clientcmdapi.Config) { c.Clusters["member"].CertificateAuthorityData = []byte("no") }, "certificate-authority-data"},
		"a key of another certificate": {func(c *clientcmdapi.Config) { c.AuthInfos["kruise"].ClientKeyData = otherKey }, "client-key-data"},
		"a key without a certificate": {
			func(c *clientcmdapi.Config) {
				c.AuthInfos["kruise"] = &clientcmdapi.AuthInfo{Token: "t", ClientKeyData: key}
			}, "client-key-data",
		},
		"a certificate without a key": {
			func(c *clientcmdapi.Config) {
				c.AuthInfos["kruise"] = &clientcmdapi.AuthInfo{ClientCertificateData: cert}
			}, "client-key-data",
		},
		"nobody":                       {func(c *clientcmdapi.Config) { c.AuthInfos["kruise"] = &clientcmdapi.AuthInfo{} }, "neither a token"},
		"no current context":           {func(c *clientcmdapi.Config) { c.CurrentContext = "" }, "current-context"},
		"a context of a missing user":  {func(c *clientcmdapi.Config) { c.Contexts["member"].AuthInfo = "gone" }, `user "gone"`},
		"a context of another cluster": {func(c *clientcmdapi.Config) { c.Contexts["member"].Cluster = "gone" }, `cluster "gone"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			config := good(t)
			tc.change(config)
			got, why := Kubeconfig(written(t, config))
			if why == nil || got != nil && why == nil {
				t.Fatalf("it is used: %v", got)
			}
			if why.Reason != connection.CredentialsInvalid || !strings.Contains(why.Message, tc.want) {
				t.Errorf("it is refused with %s, %q, want a message with %q", why.Reason, why.Message, tc.want)
			}
		})
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program was started")
	}
}

func TestTextThatIsNoKubeconfigIsRefused(t *testing.T) {
	tests := map[string]string{
		"nothing":                   "",
		"not YAML":                  "\x00{{{",
		"another kind":              "apiVersion: v1\nkind: Pod\n",
		"a list":                    "[]",
		"more than a kubeconfig is": strings.Repeat("#", maxKubeconfig+1),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			if _, why := Kubeconfig([]byte(text)); why == nil || why.Reason != connection.CredentialsInvalid {
				t.Errorf("got %v, want a refusal", why)
			}
		})
	}
}

// TestMessagesHaveNoSecrets: they end up in the status of an object that more people may read than the Secret.
func TestMessagesHaveNoSecrets(t *testing.T) {
	config := good(t)
	config.AuthInfos["kruise"] = &clientcmdapi.AuthInfo{Token: "secret-token", Password: "secret-password"}
	config.Clusters["member"].Server = "https://user:secret-in-the-address@member"
	for _, text := range [][]byte{written(t, config), []byte("users: secret-token"), []byte("apiVersion: secret-token")} {
		if _, why := Kubeconfig(text); why == nil || strings.Contains(why.Message, "secret-") {
			t.Errorf("message is %v", why)
		}
	}
}

func TestAGoodKubeconfigIsUsedAsItIs(t *testing.T) {
	config := good(t)
	config.Clusters["member"].TLSServerName = "kubernetes"
	config.Clusters["member"].ProxyURL = "http://proxy.example:3128"
	config.AuthInfos["kruise"].Impersonate = "somebody"
	got, why := Kubeconfig(written(t, config))
	if why != nil {
		t.Fatal(why)
	}
	if got.Host != "https://member.example:6443" || got.ServerName != "kubernetes" || got.Impersonate.UserName != "somebody" ||
		len(got.CertData) == 0 || len(got.KeyData) == 0 || len(got.CAData) == 0 || got.Proxy == nil {
		t.Errorf("got %v", got)
	}
	if got.Insecure || got.ExecProvider != nil || got.AuthProvider != nil || got.BearerTokenFile != "" || got.CAFile != "" ||
		got.CertFile != "" || got.KeyFile != "" || got.Username != "" {
		t.Errorf("it has more than what was checked: %v", got)
	}
}

func FuzzKubeconfig(f *testing.F) {
	f.Add(written(f, good(f)))
	f.Add([]byte("apiVersion: v1\nkind: Config\nusers: [{name: a, user: {exec: {command: sh}}}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		config, why := Kubeconfig(text)
		if why == nil && (config.ExecProvider != nil || config.BearerTokenFile != "" || config.CAFile != "" || config.Insecure) {
			t.Errorf("it is used: %v", config)
		}
	})
}
