package webhookconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/admission/certs"
)

func TestExternalCertificatesAreOnlyRead(t *testing.T) {
	f := newFleet(t, 0)
	f.settle() // fills the addresses in
	name := types.NamespacedName{Namespace: "kruise-system", Name: "from-elsewhere"}
	secret := earlierSecret(t, f.now, f.now.Add(day))
	secret.Name = name.Name
	f.must(f.client.Create(t.Context(), secret))
	m := f.manager(0, make(chan struct{}))
	m.Issuer.External, m.Issuer.Store = true, certs.SecretStore{Client: f.client, Name: name}
	f.writes = 0
	for _, part := range Parts() {
		if _, err := m.reconcile(t.Context(), part); err == nil {
			t.Error("a certificate that no configuration trusts is accepted")
		}
	}
	if f.writes != 0 {
		t.Errorf("%d writes, want 0", f.writes)
	}
	// Whoever fills the CAs in does so now.
	for _, o := range []client.Object{f.configuration(), &admissionv1.ValidatingWebhookConfiguration{},
		&apiextensionsv1.CustomResourceDefinition{}} {
		switch o := o.(type) {
		case *admissionv1.MutatingWebhookConfiguration:
			for i := range o.Webhooks {
				o.Webhooks[i].ClientConfig.CABundle = secret.Data["ca.crt"]
			}
		case *admissionv1.ValidatingWebhookConfiguration:
			f.must(f.client.Get(t.Context(), types.NamespacedName{Name: m.Validating.Name}, o))
			for i := range o.Webhooks {
				o.Webhooks[i].ClientConfig.CABundle = secret.Data["ca.crt"]
			}
		case *apiextensionsv1.CustomResourceDefinition:
			f.must(f.client.Get(t.Context(), types.NamespacedName{Name: crdName}, o))
			o.Spec.Conversion.Webhook.ClientConfig.CABundle = secret.Data["ca.crt"]
		}
		f.must(f.client.Update(t.Context(), o))
	}
	for range 2 {
		f.reconcile(m, allParts)
		f.now = f.now.Add(time.Second)
	}
	if err := m.Serving.Check(nil); err != nil {
		t.Errorf("a certificate that is trusted is not served: %v", err)
	}
}

// TestExternalCAsThatNoLongerTrustAreNoticed: they are only compared, and whoever fills them in may change them at any time.
func TestExternalCAsThatNoLongerTrustAreNoticed(t *testing.T) {
	f := newFleet(t, 0)
	secret := earlierSecret(t, f.now, f.now.Add(year))
	f.must(f.client.Create(t.Context(), secret))
	f.settle() // under the CA of the Secret
	f.members[0].Issuer.External = true
	f.reconcile(f.members[0], allParts)
	live := f.configuration()
	live.Webhooks[0].ClientConfig.CABundle = nil
	f.must(f.client.Update(t.Context(), live))
	if _, err := f.members[0].reconcile(t.Context(), mutatingPart); err == nil {
		t.Error("a configuration that trusts nothing is taken for one that trusts the certificate")
	}
}

func parseAll(bundle []byte) []*x509.Certificate {
	var out []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			panic(err)
		}
		out = append(out, c)
	}
	return out
}

// earlierSecret returns the Secret of an earlier version, which stored a serving certificate beside the CA, both with the same dates.
func earlierSecret(t *testing.T, from, to time.Time) *corev1.Secret {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	pair := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (cert *x509.Certificate, key *ecdsa.PrivateKey, certPEM,
		keyPEM []byte) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(err)
		if signer == nil {
			parent, signer = template, key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
		must(err)
		encoded, err := x509.MarshalPKCS8PrivateKey(key)
		must(err)
		cert, err = x509.ParseCertificate(der)
		must(err)
		return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
	}
	ca, signer, caPEM, caKey := pair(&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhook-cert-ca"}, NotBefore: from, NotAfter: to,
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}, nil, nil)
	_, _, leafPEM, leafKey := pair(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: service}, NotBefore: from, NotAfter: to,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: []string{service},
	}, ca, signer)
	name := secretName()
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Data: map[string][]byte{
		"ca-cert.pem": caPEM, "ca-key.pem": caKey, "cert.pem": leafPEM, "key.pem": leafKey, "tls.crt": leafPEM, "tls.key": leafKey,
		"ca.crt": caPEM,
	}}
}
