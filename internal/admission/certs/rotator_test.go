package certs

import (
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const crdName = "clonesets.apps.kruise.io"

// world is an API server in memory, managers, and a clock.
type world struct {
	t        rapid.TB
	client   client.Client
	writes   int
	now      time.Time
	endpoint Endpoint
	managers []*Rotator
	leaves   map[string]bool
	// known are the CAs that API servers may go by: those of now, and those of before until lag has passed.
	known []knowledge
}

// lag is how much later than a write an API server may go by it.
const lag = settle - time.Millisecond

type knowledge struct {
	bundle []byte
	until  time.Time // zero while it is what is stored
}

func newWorld(t rapid.TB, managers int) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, admissionv1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{
		t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), leaves: map[string]bool{},
		endpoint: Endpoint{Service: types.NamespacedName{Namespace: "kruise-system", Name: "kruise-webhook-service"}},
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdName}}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1"}, {Name: "v1beta1"}}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(crd, mutating(w.endpoint), validating(w.endpoint)).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				w.writes++
				return c.Create(ctx, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				w.writes++
				return c.Patch(ctx, o, p, opts...)
			},
		}).Build()
	w.learn()
	for range managers {
		w.managers = append(w.managers, w.manager())
	}
	return w
}

func (w *world) manager() *Rotator {
	return New(Config{
		Store:    SecretStore{Client: w.client, Name: types.NamespacedName{Namespace: "kruise-system", Name: "kruise-webhook-certs"}},
		Targets:  Targets{Client: w.client, Mutating: mutating(w.endpoint), Validating: validating(w.endpoint), CRDs: []string{crdName}},
		Endpoint: w.endpoint, RenewBefore: DefaultRenewBefore, Log: logr.Discard(),
		Serves: served,
		Now:    func() time.Time { return w.now },
	})
}

func served(path string) bool {
	return path == "/mutate" || path == "/validate" || path == conversionPath
}

func mutating(e Endpoint) *admissionv1.MutatingWebhookConfiguration {
	c := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kruise-mutating-webhook-configuration"}}
	where := e.at("/mutate")
	c.Webhooks = []admissionv1.MutatingWebhook{{
		Name: "mcloneset.kb.io", ClientConfig: admissionv1.WebhookClientConfig{Service: where.service, URL: where.url},
	}}
	return c
}

func validating(e Endpoint) *admissionv1.ValidatingWebhookConfiguration {
	c := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kruise-validating-webhook-configuration"}}
	where := e.at("/validate")
	c.Webhooks = []admissionv1.ValidatingWebhook{{
		Name: "vcloneset.kb.io", ClientConfig: admissionv1.WebhookClientConfig{Service: where.service, URL: where.url},
	}}
	return c
}

// bundles returns the CAs that the API server trusts for each of its webhooks.
func (w *world) bundles() [][]byte {
	ctx := context.Background()
	m, v, crd := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}, &apiextensionsv1.CustomResourceDefinition{}
	w.must(w.client.Get(ctx, types.NamespacedName{Name: "kruise-mutating-webhook-configuration"}, m))
	w.must(w.client.Get(ctx, types.NamespacedName{Name: "kruise-validating-webhook-configuration"}, v))
	w.must(w.client.Get(ctx, types.NamespacedName{Name: crdName}, crd))
	all := [][]byte{m.Webhooks[0].ClientConfig.CABundle, v.Webhooks[0].ClientConfig.CABundle}
	if crd.Spec.Conversion != nil {
		all = append(all, crd.Spec.Conversion.Webhook.ClientConfig.CABundle)
	}
	return all
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// pass lets one manager look, and checks what the API server would say of every certificate that is presented.
func (w *world) pass(manager int) {
	w.t.Helper()
	if _, err := w.managers[manager].pass(context.Background()); err != nil && !errors.Is(err, errChanged) {
		w.t.Fatal(err)
	}
	w.learn()
	for i, m := range w.managers {
		c := m.serving.Load()
		if c == nil {
			continue
		}
		w.leaves[string(c.Certificate[0])] = true
		for _, k := range w.known {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(k.bundle)
			o := x509.VerifyOptions{DNSName: "kruise-webhook-service.kruise-system.svc", Roots: roots, CurrentTime: w.now}
			if _, err := c.Leaf.Verify(o); err != nil {
				w.t.Fatalf("at %s the API server refuses the certificate of manager %d: %v", w.now, i, err)
			}
		}
	}
}

// learn notes what is known to API servers now, and for how long it was before.
func (w *world) learn() {
	bundles := w.bundles()
	current := func(k knowledge) bool {
		return slices.ContainsFunc(bundles, func(b []byte) bool { return string(b) == string(k.bundle) })
	}
	var still []knowledge
	for _, k := range w.known {
		if k.until.IsZero() && !current(k) {
			k.until = w.now.Add(lag)
		}
		if k.until.After(w.now) {
			still = append(still, k)
		}
	}
	for _, b := range bundles {
		still = append(still, knowledge{bundle: b})
	}
	w.known = still
}

// settle lets every manager look until all present what is stored.
func (w *world) settle() {
	w.t.Helper()
	for range 3 {
		for i := range w.managers {
			w.pass(i)
		}
		w.now = w.now.Add(patience)
	}
	for i, m := range w.managers {
		if err := m.Check(nil); err != nil {
			w.t.Fatalf("manager %d is not ready after it has looked three times: %v", i, err)
		}
	}
}

func TestEveryPresentedCertificateIsTrusted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 2)
		steps := rapid.SliceOfN(rapid.IntRange(0, 7), 10, 40).Draw(t, "steps")
		for _, step := range steps {
			manager := rapid.IntRange(0, 1).Draw(t, "manager")
			switch step {
			case 0, 1, 2:
				w.pass(manager)
			case 3:
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 80000).Draw(t, "milliseconds")) * time.Millisecond)
			case 4, 5:
				w.settle()
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 29).Draw(t, "days")) * day)
			case 6:
				w.managers[manager] = w.manager()
			case 7: // somebody takes the Secret away
				w.settle()
				w.must(client.IgnoreNotFound(w.client.Delete(context.Background(), &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-webhook-certs"},
				})))
			}
		}
		w.settle()
	})
}

func TestFiveYearsOfRotation(t *testing.T) {
	w := newWorld(t, 2)
	cas := map[string]bool{}
	for w.now.Year() < 2031 {
		for range 3 { // as in the minutes of a day
			for i := range w.managers {
				w.pass(i)
			}
			w.now = w.now.Add(patience)
		}
		cas[string(split(w.bundles()[0])[0])] = true
		end, ok := w.managers[1].Expiry()
		if !ok || end.Sub(w.now) < DefaultRenewBefore-6*day {
			t.Fatalf("at %s the certificate ends at %s", w.now, end)
		}
		w.now = w.now.Add(5 * day)
	}
	if got, most := len(cas), 9; got < 7 || got > most {
		t.Errorf("%d CAs in five years, want one in 245 days, when a certificate of 90 days with 30 to spare just fits", got)
	}
	if got := len(w.leaves); got < 28 || got > 40 {
		t.Errorf("%d certificates in five years, want one in about 60 days", got)
	}
	if got := len(split(w.bundles()[0])); got != 1 {
		t.Errorf("%d CAs are left in the configurations, want 1", got)
	}
}

func TestQuietManagersWriteNothing(t *testing.T) {
	w := newWorld(t, 1)
	w.settle()
	w.writes = 0
	w.managers = append(w.managers, w.manager(), w.manager())
	w.settle()
	w.now = w.now.Add(2 * day)
	w.settle()
	if w.writes != 0 {
		t.Errorf("%d writes by managers that had nothing to change, want 0", w.writes)
	}
}

func TestStoredCertificatesOfAnotherVersionAreKept(t *testing.T) {
	w := newWorld(t, 1)
	ten := life{from: w.now.Add(-100 * day), to: w.now.Add(3550 * day)}
	ca, err := newCA(ten)
	w.must(err)
	leaf, err := newLeaf(ca, w.endpoint.hosts(), ten)
	w.must(err)
	w.must(w.client.Create(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-webhook-certs"},
		Data:       Material{ca: ca, leaf: leaf}.data(),
	}))
	w.settle()
	if got := w.managers[0].presenting; got != string(leaf.cert) {
		t.Error("a valid certificate was replaced")
	}
}

func TestExternalCertificatesAreOnlyRead(t *testing.T) {
	w := newWorld(t, 1)
	w.settle() // wires the configurations
	ca, err := newCA(life{from: w.now, to: w.now.Add(day)})
	w.must(err)
	leaf, err := newLeaf(ca, w.endpoint.hosts(), life{from: w.now, to: w.now.Add(day)})
	w.must(err)
	ctx := context.Background()
	name := types.NamespacedName{Namespace: "kruise-system", Name: "from-elsewhere"}
	w.must(w.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Data:       map[string][]byte{keyExternalCA: ca.cert, keyTLSCert: leaf.cert, keyTLSKey: leaf.key},
	}))
	m := w.manager()
	m.External, m.Store = true, SecretStore{Client: w.client, Name: name}
	w.writes = 0
	if _, err := m.pass(ctx); err == nil {
		t.Error("a certificate that no configuration trusts is accepted")
	}
	if w.writes != 0 {
		t.Errorf("%d writes, want 0", w.writes)
	}
}
