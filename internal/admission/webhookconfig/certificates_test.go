package webhookconfig

import (
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/admission/certs"
)

const (
	day, year = 24 * time.Hour, 365 * 24 * time.Hour
	// lag is how much later than a write an API server may go by it. Managers wait for a second at least.
	lag = time.Second - time.Millisecond
	// nextDelay is how long a manager that serves waits before it serves under the next CA.
	nextDelay = time.Minute
	service   = "kruise-webhook-service.kruise-system.svc"
)

// fleet are managers, of which the first one leads, with API servers whose clock is right.
type fleet struct {
	*world
	members []*Reconciler
	// ahead is by how much the clock of each is ahead.
	ahead []time.Duration
	// known are the CAs that API servers may go by: those of now, and those of before until lag has passed.
	known  []knowledge
	leaves map[string]bool
	// trusted are the certificates that were verified by some CAs in a month, which need not be verified again.
	trusted map[string]bool
}

type knowledge struct {
	bundle []byte
	until  time.Time // zero while it is what is stored
}

func newFleet(t rapid.TB, ahead ...time.Duration) *fleet {
	t.Helper()
	known := manifests(t) // one webhook of each is enough
	known.Mutating.Webhooks, known.Validating.Webhooks = known.Mutating.Webhooks[:1], known.Validating.Webhooks[:1]
	f := &fleet{world: emptyWorld(t, known), leaves: map[string]bool{}, trusted: map[string]bool{}, ahead: ahead}
	for i := range ahead {
		f.members = append(f.members, nil)
		f.restart(i)
	}
	return f
}

func (f *fleet) restart(i int) {
	elected := closed()
	if i > 0 {
		elected = make(chan struct{})
	}
	f.members[i] = f.manager(f.ahead[i], elected)
}

// bundles returns the CAs that the API server trusts for each of its webhooks.
func (f *fleet) bundles() [][]byte {
	ctx := context.Background()
	v, crd := &admissionv1.ValidatingWebhookConfiguration{}, &apiextensionsv1.CustomResourceDefinition{}
	f.must(f.client.Get(ctx, types.NamespacedName{Name: "kruise-validating-webhook-configuration"}, v))
	f.must(f.client.Get(ctx, types.NamespacedName{Name: crdName}, crd))
	all := [][]byte{f.configuration().Webhooks[0].ClientConfig.CABundle, v.Webhooks[0].ClientConfig.CABundle}
	if crd.Spec.Conversion != nil {
		all = append(all, crd.Spec.Conversion.Webhook.ClientConfig.CABundle)
	}
	return all
}

// pass has a manager reconcile one part, and checks what the API server would say of every certificate that is served.
func (f *fleet) pass(i int, part string) {
	f.t.Helper()
	_, err := f.members[i].reconcile(context.Background(), part)
	if err != nil && !errors.Is(err, certs.ErrConflict) && !apierrors.IsConflict(err) {
		f.t.Fatal(err)
	}
	f.learn()
	for i, m := range f.members {
		c, err := m.Serving.GetCertificate(nil)
		if err != nil {
			continue
		}
		f.leaves[string(c.Certificate[0])] = true
		for _, k := range f.known {
			checked := string(c.Certificate[0]) + string(k.bundle) + f.now.Format("2006-01")
			if f.trusted[checked] {
				continue
			}
			f.trusted[checked] = true
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(k.bundle)
			if _, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: service, Roots: roots, CurrentTime: f.now}); err != nil {
				f.t.Fatalf("at %s the API server refuses the certificate of manager %d, whose clock is ahead by %s: %v",
					f.now, i, f.ahead[i], err)
			}
		}
	}
}

// learn notes what is known to API servers now, and for how long it was before.
func (f *fleet) learn() {
	bundles := f.bundles()
	var still []knowledge
	for _, k := range f.known {
		if k.until.IsZero() && !slices.ContainsFunc(bundles, func(b []byte) bool { return string(b) == string(k.bundle) }) {
			k.until = f.now.Add(lag)
		}
		if k.until.After(f.now) {
			still = append(still, k)
		}
	}
	for _, b := range bundles {
		still = append(still, knowledge{bundle: b})
	}
	f.known = still
}

// settle lets every manager reconcile until all serve what is stored.
func (f *fleet) settle() {
	f.t.Helper()
	for range 3 {
		for i := range f.members {
			f.pass(i, allParts)
		}
		f.now = f.now.Add(nextDelay)
	}
	for i, m := range f.members {
		if err := m.Serving.Check(nil); err != nil {
			f.t.Fatalf("manager %d is not ready in the end: %v", i, err)
		}
	}
}

func (f *fleet) deleteSecret() {
	f.t.Helper()
	name := secretName()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	f.must(client.IgnoreNotFound(f.client.Delete(context.Background(), secret)))
}

// TestEveryServedCertificateIsTrusted: whatever managers do in what order, and whatever their clocks say.
func TestEveryServedCertificateIsTrusted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := rapid.SampledFrom([]time.Duration{0, 0, 0, time.Hour, -time.Hour, 9 * year, 40 * year, -9 * year, -55 * year})
		f := newFleet(t, clock.Draw(t, "ahead"), clock.Draw(t, "ahead"))
		for _, step := range rapid.SliceOfN(rapid.IntRange(0, 8), 10, 40).Draw(t, "steps") {
			manager := rapid.IntRange(0, 1).Draw(t, "manager")
			switch step {
			case 0, 1, 2:
				f.pass(manager, rapid.SampledFrom(append(Parts(), allParts)).Draw(t, "part"))
			case 3:
				f.now = f.now.Add(time.Duration(rapid.IntRange(1, 80000).Draw(t, "milliseconds")) * time.Millisecond)
			case 4, 5:
				f.settle()
				f.now = f.now.Add(time.Duration(rapid.IntRange(1, 29).Draw(t, "days")) * day)
			case 6:
				f.restart(manager)
			case 7: // somebody takes the Secret away
				f.settle()
				f.deleteSecret()
			case 8: // a clock is mended, and the manager restarted
				f.ahead[manager] = clock.Draw(t, "ahead")
				f.restart(manager)
			}
		}
		f.settle()
		writes := f.writes
		f.settle()
		if f.writes != writes {
			t.Fatalf("with clocks ahead by %v managers write %d times although nothing has changed", f.ahead, f.writes-writes)
		}
	})
}

// TestClocksThatAreWrong: a manager whose clock is wrong starts alone and makes the CA, or comes to the CA of another one. Every manager
// gets ready, and the CA is made twice at most.
func TestClocksThatAreWrong(t *testing.T) {
	for name, ahead := range map[string]time.Duration{
		"an hour ahead": time.Hour, "a year ahead": year, "twenty years ahead": 20 * year, "a day behind": -day,
		"twenty years behind":       -20 * year,
		"at its beginning, in 1970": time.Unix(1, 0).Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	} {
		for order, clocks := range map[string][]time.Duration{"the first": {ahead, 0, 0}, "the second": {0, ahead, 0}} {
			t.Run(order+" manager is "+name, func(t *testing.T) {
				f := newFleet(t, clocks...)
				wrong := slices.Index(clocks, ahead)
				if wrong == 0 { // alone at first
					for range 2 {
						_, err := f.members[0].reconcile(t.Context(), allParts)
						f.must(err)
					}
				}
				f.settle()
				if n := len(parseAll(f.bundles()[0])); n > 2 {
					t.Errorf("%d CAs are in the configurations", n)
				}
				writes := f.writes
				f.settle()
				f.ahead[wrong] = 0
				f.restart(wrong)
				f.settle()
				if f.writes != writes {
					t.Errorf("%d writes after all serve", f.writes-writes)
				}
			})
		}
	}
}

// TestACAThatIsNotYetValidIsReplaced: an earlier version dated CAs by its clock.
func TestACAThatIsNotYetValidIsReplaced(t *testing.T) {
	f := newFleet(t, 0, 0)
	from := f.now.Add(5 * year)
	f.must(f.client.Create(t.Context(), earlierSecret(t, from, from.Add(year))))
	f.settle()
}

func TestFiftyYearsOfRotation(t *testing.T) {
	f := newFleet(t, 0, 0)
	for _, m := range f.members {
		m.Issuer.RenewBefore = 200 * day
	}
	cas := map[string]bool{}
	for f.now.Year() < 2076 {
		f.settle() // as in the minutes of a day
		cas[string(parseAll(f.bundles()[0])[0].Raw)] = true
		c, err := f.members[1].Serving.GetCertificate(nil)
		if err != nil || c.Leaf.NotAfter.Sub(f.now) < certs.DefaultRenewBefore-day {
			t.Fatalf("at %s the certificate ends at %s: %v", f.now, c.Leaf.NotAfter, err)
		}
		f.now = f.now.Add(100 * day)
	}
	if got := len(cas); got < 5 || got > 6 {
		t.Errorf("%d CAs in fifty years, want one in nine and a half", got)
	}
	if got := len(f.leaves); got != 2*len(cas) {
		t.Errorf("%d certificates by %d CAs, want one of each manager by each CA", got, len(cas))
	}
	if got := len(parseAll(f.bundles()[0])); got != 1 {
		t.Errorf("%d CAs are left in the configurations, want 1", got)
	}
}

// TestBothCAsAreTrustedForADay: by then every manager serves under the new one.
func TestBothCAsAreTrustedForADay(t *testing.T) {
	f := newFleet(t, 0, 0)
	f.settle()
	f.deleteSecret()
	f.settle()
	f.now = f.now.Add(caOverlap - time.Hour)
	f.settle()
	if got := len(parseAll(f.bundles()[0])); got != 2 {
		t.Errorf("%d CAs within a day, want 2", got)
	}
	f.now = f.now.Add(time.Hour)
	f.pass(1, allParts)
	if got := len(parseAll(f.bundles()[0])); got != 2 {
		t.Errorf("%d CAs after a manager that does not lead, want 2", got)
	}
	f.settle()
	for _, bundle := range f.bundles() {
		if got := len(parseAll(bundle)); got != 1 {
			t.Errorf("%d CAs after a day, want 1", got)
		}
	}
}

// TestTheCAIsReadOncePerResync: a Secret is no part of a configuration, whose changes come with every SidecarSet.
func TestTheCAIsReadOncePerResync(t *testing.T) {
	f := newFleet(t, 0, 0)
	f.settle()
	for i, want := range map[int]int{0: 1, 1: 0} { // the leader may take CAs away, for which it looks anew
		f.caReads = 0
		f.pass(i, allParts)
		if f.caReads != 1 {
			t.Errorf("manager %d reads the CA %d times in a resync, want 1", i, f.caReads)
		}
		f.caReads = 0
		f.pass(i, mutatingPart)
		if f.caReads != want {
			t.Errorf("manager %d reads the CA %d times after a change of a configuration, want %d", i, f.caReads, want)
		}
	}
}

func TestQuietManagersWriteNothing(t *testing.T) {
	f := newFleet(t, 0)
	f.settle()
	f.writes = 0
	f.ahead = append(f.ahead, 0, 0)
	f.members = append(f.members, nil, nil)
	f.restart(1)
	f.restart(2)
	f.settle()
	f.now = f.now.Add(2 * day)
	f.settle()
	if f.writes != 0 {
		t.Errorf("%d writes by managers that had nothing to change, want 0", f.writes)
	}
}

// TestTheCAOfAnEarlierVersionIsKept: what its managers serve stays trusted, and nothing has to be written.
func TestTheCAOfAnEarlierVersionIsKept(t *testing.T) {
	f := newFleet(t, 0)
	secret := earlierSecret(t, f.now.Add(-100*day), f.now.Add(3550*day))
	f.must(f.client.Create(t.Context(), secret.DeepCopy()))
	f.settle()
	stored := &corev1.Secret{}
	f.must(f.client.Get(t.Context(), client.ObjectKeyFromObject(secret), stored))
	for key, value := range secret.Data {
		if string(stored.Data[key]) != string(value) {
			t.Errorf("%s was replaced", key)
		}
	}
	served := parseAll(secret.Data["tls.crt"])[0]
	for _, bundle := range f.bundles() {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(bundle)
		if _, err := served.Verify(x509.VerifyOptions{DNSName: service, Roots: roots, CurrentTime: f.now}); err != nil {
			t.Errorf("what managers of the earlier version serve is refused: %v", err)
		}
	}
}
