package operation

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// admissionConfig and webhookUsers are those of docs/security.md.
const (
	admissionConfig = `
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: DIR/users.yaml}
- name: ValidatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: DIR/users.yaml}
`
	webhookUsers = `
apiVersion: v1
kind: Config
users:
- name: kruise-webhook-service.kruise-system.svc
  user: {client-certificate: DIR/client.crt, client-key: DIR/client.key}
`
)

// TestOnlyTheAPIServerIsAnswered: with a CA for clients, an API server that has a certificate is answered, conversion included, and nobody
// else is. One that has a certificate of another CA is not, and still has objects converted, for which it shows none.
func TestOnlyTheAPIServerIsAnswered(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	certificate, key := clientCertificate(t, "api-server")
	write("client.crt", certificate)
	write("client.key", key)
	write("users.yaml", webhookUsers)
	write("admission.yaml", admissionConfig)
	s := newSite(t, cluster.Options{Bare: true, Args: []string{
		"--k8s-args", "kube-apiserver:--admission-control-config-file=" + filepath.Join(dir, "admission.yaml"),
	}})
	s.Must(s.Install(s.Ctx))
	root, err := cluster.Root()
	s.Must(err)
	s.Must(s.ApplyFile(s.Ctx, filepath.Join(root, "config/webhook/service.yaml")))
	m := s.Launch("strict", cluster.ManagerOptions{
		Env:  []string{"WEBHOOK_HOST="},
		Args: []string{"--webhook-client-ca-file=" + filepath.Join(dir, "client.crt"), "--webhook-client-names=api-server"},
	})
	s.Must(m.WaitReady(s.Ctx))
	s.addEndpoint("strict", m.WebhookPort())
	s.Eventually("the API server is answered", func() error { return s.tryCreate(0) })
	tenant := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // not what is tested
	}}
	for path, want := range map[string]int{"/mutate-pod": http.StatusForbidden, "/validate-pod": http.StatusForbidden,
		"/convert": http.StatusBadRequest} {
		answer, err := tenant.Post("https://localhost:"+m.WebhookPort()+path, "application/json", bytes.NewBufferString("{}"))
		s.Must(err)
		s.Must(answer.Body.Close())
		if answer.StatusCode != want {
			t.Errorf("a tenant who asks %s is answered by %d, want %d", path, answer.StatusCode, want)
		}
	}
	s.convertsOnly(m)
}

// convertsOnly has the Service lead to a manager that trusts another CA than that of the API server's certificate.
func (s *site) convertsOnly(m *cluster.Manager) {
	s.Helper()
	stored := cloneSet("stored", 0)
	s.Must(s.Client.Create(s.Ctx, stored))
	foreign, _ := clientCertificate(s.T, "api-server")
	file := filepath.Join(s.Dir, "foreign.crt")
	s.Must(os.WriteFile(file, []byte(foreign), 0o600))
	other := s.Launch("foreign", cluster.ManagerOptions{
		Env: []string{"WEBHOOK_HOST="}, Args: append(shortLease(), "--webhook-client-ca-file="+file),
	})
	s.Must(other.WaitReady(s.Ctx))
	s.Must(s.Client.Delete(s.Ctx, s.slice("strict", "1")))
	m.Stop()
	s.addEndpoint("foreign", other.WebhookPort())
	s.Eventually("an object is converted", func() error {
		return s.Client.Get(s.Ctx, client.ObjectKeyFromObject(stored), &v1alpha1.CloneSet{})
	})
	s.says(s.tryCreate(1), "failed calling webhook", "mcloneset.kb.io") // the connection is closed, of which some clients see no more
}

// clientCertificate returns a certificate that is its own CA, and its key, as PEM.
func clientCertificate(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}))
}
