package certs

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/go-logr/logr"
)

// Names of what is stored. Wire: the names are those of existing installations. Those that hold a serving certificate as well keep it,
// unread.
const (
	keyCACert = "ca-cert.pem"
	keyCAKey  = "ca-key.pem"
	// Of a Secret that another controller writes.
	keyTLSCert = "tls.crt"
	keyTLSKey  = "tls.key"
)

// Issuer gives the serving certificate of a manager, by the CA of all managers. Make it as a literal.
type Issuer struct {
	Store Store
	// Hosts are the names and addresses that the API server, and the manager itself, verify.
	Hosts []string
	// RenewBefore is how long before its end a CA is replaced, see ParseRenewBefore.
	RenewBefore time.Duration
	// External leaves making certificates to another controller: the store is only read, under the names tls.crt and tls.key.
	External bool
	Log      logr.Logger
	Now      func() time.Time
}

// Issue is what a manager may serve.
type Issue struct {
	// CA is what the API server has to trust, as PEM; nil if another controller sees to that.
	CA []byte
	// id changes with the certificate.
	id          string
	certificate func() (*tls.Certificate, error)
}

// Current returns what the store holds, after a CA that was due has been made and stored. It returns ErrConflict if another manager stored
// one in the meantime.
func (i Issuer) Current(ctx context.Context) (Issue, error) {
	data, version, err := i.Store.Load(ctx)
	if err != nil {
		return Issue{}, err
	}
	if i.External {
		return external(data), nil
	}
	stored, err := parseAuthority(data[keyCACert], data[keyCAKey])
	if err == nil && stored.usable(i.Now(), i.RenewBefore) {
		return i.issue(stored), nil
	}
	made, err := newAuthority(i.Now())
	if err != nil {
		return Issue{}, err
	}
	if err := i.Store.Save(ctx, map[string][]byte{keyCACert: made.certPEM, keyCAKey: made.keyPEM}, version); err != nil {
		return Issue{}, err
	}
	i.Log.Info("Stored a CA", "validUntil", made.Leaf.NotAfter)
	return i.issue(made), nil
}

func (i Issuer) issue(a authority) Issue {
	return Issue{
		CA: encode(a.Leaf.Raw), id: string(a.Leaf.Raw),
		certificate: func() (*tls.Certificate, error) { return a.sign(i.Hosts) },
	}
}

func external(data map[string][]byte) Issue {
	return Issue{id: string(data[keyTLSCert]), certificate: func() (*tls.Certificate, error) {
		parsed, err := tls.X509KeyPair(data[keyTLSCert], data[keyTLSKey])
		if err != nil {
			return nil, fmt.Errorf("reading the certificate: %w", err)
		}
		return &parsed, nil
	}}
}
