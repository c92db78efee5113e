package certs

import (
	"crypto/tls"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

const (
	// firstDelay is how long every configuration must have trusted a CA before a manager that has just started serves under it: API servers
	// learn of a change of a configuration within milliseconds.
	firstDelay = time.Second
	// nextDelay is the same for a manager that serves already.
	nextDelay = time.Minute
)

// Serving holds the certificate that this manager serves. GetCertificate and Check may be called at any time; Observe and Failed by
// one goroutine. Make it with NewServing.
type Serving struct {
	hosts []string
	now   func() time.Time
	log   logr.Logger

	// next is the certificate of the last issue, and since when each part of the configurations has trusted it; zero for not yet.
	id    string
	next  *tls.Certificate
	since map[string]time.Time

	current atomic.Pointer[tls.Certificate]
	problem atomic.Pointer[error]
}

// ServingOptions is what NewServing needs.
type ServingOptions struct {
	Hosts []string
	// Parts are the names of the parts of the configurations that Observe is called for.
	Parts []string
	Log   logr.Logger
	Now   func() time.Time
}

// NewServing returns a Serving without a certificate.
func NewServing(o ServingOptions) *Serving {
	s := &Serving{hosts: o.Hosts, now: o.Now, log: o.Log, since: map[string]time.Time{}}
	for _, part := range o.Parts {
		s.since[part] = time.Time{}
	}
	return s
}

// Seen is what was seen of one part of the configurations.
type Seen struct {
	Part string
	// Bundles are the CAs that its webhooks trust.
	Bundles [][]byte
	// Written means that the part was changed just now, and that API servers may not yet go by it.
	Written bool
}

// Observe serves the certificate of the issue once all parts have trusted it for long enough. It returns how long that takes; 0 if it is
// served, or if other parts have to be seen first.
func (s *Serving) Observe(i Issue, seen Seen) (time.Duration, error) {
	if s.id != i.id {
		next, err := i.certificate()
		if err != nil {
			return 0, err
		}
		s.id, s.next = i.id, next
		for part := range s.since {
			s.since[part] = time.Time{}
		}
	}
	if !s.isTrusted(i, seen.Bundles) {
		s.since[seen.Part] = time.Time{}
		return 0, errors.New("not every webhook configuration trusts the certificate yet")
	}
	if s.since[seen.Part].IsZero() || seen.Written {
		s.since[seen.Part] = s.now()
	}
	return s.serve(), nil
}

// isTrusted checks bundles that another controller writes. Those that managers write hold the CA; to verify the certificate would mean to
// ask the clock of this machine.
func (s *Serving) isTrusted(i Issue, bundles [][]byte) bool {
	if i.CA != nil {
		return true
	}
	verified := map[string]bool{} // most are the same
	for _, bundle := range bundles {
		if !verified[string(bundle)] && !trusts(bundle, s.next.Leaf, s.hosts[0], s.now()) {
			return false
		}
		verified[string(bundle)] = true
	}
	return true
}

func (s *Serving) serve() time.Duration {
	if s.current.Load() == s.next {
		return 0
	}
	delay := nextDelay
	if s.current.Load() == nil {
		delay = firstDelay
	}
	left := time.Duration(0)
	for _, since := range s.since {
		if since.IsZero() {
			return 0
		}
		left = max(left, delay-s.now().Sub(since))
	}
	if left == 0 {
		s.current.Store(s.next)
		s.log.Info("Serving a certificate", "validUntil", s.next.Leaf.NotAfter, "for", s.hosts)
	}
	return left
}

// Failed notes what went wrong last, nil for nothing, for Check to tell.
func (s *Serving) Failed(err error) { s.problem.Store(&err) }

// GetCertificate is for the TLS configuration of the admission server.
func (s *Serving) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := s.current.Load(); c != nil {
		return c, nil
	}
	problem := errors.New("the configurations have not been looked at yet")
	if p := s.problem.Load(); p != nil {
		problem = *p
	}
	return nil, errors.Join(errors.New("there is no certificate that the API server trusts yet"), problem)
}

// Expiry returns when the certificate that is served ends, in seconds since 1970; 0 if there is none.
func (s *Serving) Expiry() int64 {
	if c := s.current.Load(); c != nil {
		return c.Leaf.NotAfter.Unix()
	}
	return 0
}

// Check is a readiness check: it fails until the server has a certificate that the API server trusts.
func (s *Serving) Check(*http.Request) error {
	_, err := s.GetCertificate(nil)
	return err
}
