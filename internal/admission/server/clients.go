package server

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"

	"github.com/seed-69ecc383/kruise/internal/convert"
)

// Clients says who is served.
type Clients struct {
	// CAFile is the path of a file with the CAs of clients, as PEM. It is read anew for each connection. Empty to serve whoever reaches the
	// server.
	CAFile string
	// Names are the common names of clients; none for every client of the CAs.
	Names []string
}

func (c Clients) cas() (*x509.CertPool, error) {
	text, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of webhook clients: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("reading the CA of webhook clients: %s holds no certificate", c.CAFile)
	}
	return pool, nil
}

// check fails if the request is not of a client that may be served. An API server has a certificate for admission only, see
// docs/security.md.
func (c Clients) check(r *http.Request) error {
	if c.CAFile == "" || r.URL.Path == convert.Path {
		return nil
	}
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return errors.New("this server asks for a client certificate: see docs/security.md on how an API server gets one")
	}
	if name := r.TLS.PeerCertificates[0].Subject.CommonName; len(c.Names) > 0 && !slices.Contains(c.Names, name) {
		return fmt.Errorf("the client %q is not among those that are served", name)
	}
	return nil
}
