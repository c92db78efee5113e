package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// settle is how long a manager that has just started must have seen a certificate to be trusted by every configuration before it
	// presents it: API servers learn of a change of a configuration within milliseconds.
	settle = time.Second
	// patience is the same for a manager that has a certificate to go on with.
	patience = time.Minute
	// resync is how often everything is compared when nothing is known to have changed.
	resync = time.Minute
	// retry is the wait after an error, and again its longest wait.
	retry, retryMost = 500 * time.Millisecond, 30 * time.Second
)

// Config is what a Rotator needs.
type Config struct {
	Store    Store
	Targets  Targets
	Endpoint Endpoint
	// Serves reports whether the admission server answers on a path.
	Serves func(path string) bool
	// RenewBefore is how long before its end a certificate is replaced, see ParseRenewBefore.
	RenewBefore time.Duration
	// External leaves making certificates and filling in CAs to another controller: the store is only read, under the names ca.crt, tls.crt
	// and tls.key, and the CAs in the configurations are only compared.
	External bool
	Log      logr.Logger
	// Now is the time; nil for the clock of the machine.
	Now func() time.Time
}

// Rotator keeps the certificate of the admission server valid and trusted. Make it with New.
type Rotator struct {
	Config
	policy policy
	poke   chan struct{}

	// Known to Run alone: since when every configuration trusts which certificate, and which one is presented.
	trusted    string
	since      time.Time
	presenting string

	serving atomic.Pointer[tls.Certificate]
	// left is what the last pass left everything with; nil unless all is well and the stored certificate is the one that is presented.
	left    atomic.Pointer[leftBehind]
	mu      sync.Mutex
	problem error
}

// leftBehind are the stored certificates of a pass after which there was nothing more to be done.
type leftBehind struct {
	material Material
	leaf     *x509.Certificate
}

// New returns a Rotator; it does nothing until Run.
func New(c Config) *Rotator {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Rotator{
		Config:  c,
		policy:  policy{hosts: c.Endpoint.hosts(), renewBefore: c.RenewBefore},
		poke:    make(chan struct{}, 1),
		problem: errors.New("the certificate has not been looked at yet"),
	}
}

// Run keeps the certificate valid and trusted until the context ends.
func (r *Rotator) Run(ctx context.Context) error {
	go r.watch(ctx)
	pause := retry
	for {
		next, err := r.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errChanged):
			next = wait.Jitter(retry/10, 2)
		case err != nil:
			r.Log.Error(err, "Keeping the certificate failed", "retryIn", pause.String())
			next, pause = pause, min(2*pause, retryMost)
		default:
			pause = retry
		}
		r.note(err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		case <-r.poke:
		}
	}
}

// pass brings store, configurations and server together once, and returns when to look again at the latest.
func (r *Rotator) pass(ctx context.Context) (time.Duration, error) {
	r.left.Store(nil)
	now := r.Now()
	m, err := r.stored(ctx, now)
	if err != nil {
		return 0, err
	}
	bundles, err := r.Targets.sync(ctx, r.wiring(m, now))
	if err != nil {
		return 0, err
	}
	next, err := r.present(m.leaf, bundles, now)
	if err == nil && r.presenting == string(m.leaf.cert) {
		r.left.Store(&leftBehind{material: m, leaf: r.serving.Load().Leaf})
	}
	return next, err
}

// stored returns the certificates of all managers, after those that were due have been made and stored.
func (r *Rotator) stored(ctx context.Context, now time.Time) (Material, error) {
	data, version, err := r.Store.Load(ctx)
	if err != nil {
		return Material{}, err
	}
	if r.External {
		return Material{
			ca: pair{cert: data[keyExternalCA]}, leaf: pair{cert: data[keyTLSCert], key: data[keyTLSKey]},
		}, nil
	}
	had := materialOf(data)
	m, err := r.policy.next(had, now)
	if err != nil || m.equal(had) {
		return m, err
	}
	if err := r.Store.Save(ctx, m.data(), version); err != nil {
		return Material{}, err
	}
	r.Log.Info("Stored a certificate", "newCA", !m.ca.equal(had.ca))
	return m, nil
}

func (r *Rotator) wiring(m Material, now time.Time) wiring {
	w := wiring{endpoint: r.Endpoint, serves: r.Serves, bundle: m.ca.cert}
	if r.External {
		w.bundle, w.keep = nil, func(live []byte) []byte { return live }
	} else {
		w.keep = func(live []byte) []byte { return r.policy.keep(m, live, now) }
	}
	return w
}

// present makes the server use a certificate that every configuration has trusted for long enough, and returns when to look again. Until
// then the server stays with the certificate it has.
func (r *Rotator) present(leaf pair, bundles [][]byte, now time.Time) (time.Duration, error) {
	both, err := tls.X509KeyPair(leaf.cert, leaf.key)
	if err != nil {
		return 0, fmt.Errorf("reading the certificate: %w", err)
	}
	if !trustedBy(bundles, both.Leaf, r.policy.hosts[:1], now) {
		r.trusted = ""
		return 0, errors.New("not every webhook configuration trusts the certificate yet")
	}
	if r.trusted != string(leaf.cert) {
		r.trusted, r.since = string(leaf.cert), now
	}
	wanted := patience
	if r.serving.Load() == nil {
		wanted = settle
	}
	if left := wanted - now.Sub(r.since); left > 0 && r.presenting != r.trusted {
		return min(left, resync), nil
	}
	if r.presenting != r.trusted {
		r.serving.Store(&both)
		r.presenting = r.trusted
		r.Log.Info("Presenting a certificate", "validUntil", both.Leaf.NotAfter, "for", r.policy.hosts)
	}
	return resync, nil
}

// GetCertificate is for the TLS configuration of the admission server.
func (r *Rotator) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := r.serving.Load(); c != nil {
		return c, nil
	}
	return nil, errors.Join(errors.New("there is no certificate that the API server trusts yet"), r.Problem())
}

// Expiry returns when the certificate that is presented ends; ok is false while there is none.
func (r *Rotator) Expiry() (end time.Time, ok bool) {
	if c := r.serving.Load(); c != nil {
		return c.Leaf.NotAfter, true // X509KeyPair fills Leaf in
	}
	return time.Time{}, false
}

// Check is a readiness check: it fails until the server has a certificate that the API server trusts.
func (r *Rotator) Check(*http.Request) error {
	_, err := r.GetCertificate(nil)
	return err
}

// Problem returns what went wrong last; nil when all is well.
func (r *Rotator) Problem() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.problem
}

func (r *Rotator) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problem = err
}
