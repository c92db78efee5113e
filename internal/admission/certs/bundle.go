package certs

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
)

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}

// parseBundle returns the certificates of a PEM bundle; none if one of them can't be read.
func parseBundle(bundle []byte) []*x509.Certificate {
	all, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return nil
	}
	return all
}

// Add returns the bundle with the CA in front, and the bundle as it is if it holds the CA.
func Add(bundle, ca []byte) []byte {
	all, added := parseBundle(bundle), parseBundle(ca)[0]
	if slices.ContainsFunc(all, added.Equal) {
		return bundle
	}
	out := slices.Clone(ca)
	for _, other := range all {
		out = append(out, encode(other.Raw)...)
	}
	return out
}

// Only returns the bundle if it holds the CA and no other, and the CA else.
func Only(bundle, ca []byte) []byte {
	if all := parseBundle(bundle); len(all) == 1 && all[0].Equal(parseBundle(ca)[0]) {
		return bundle
	}
	return ca
}

// trusts reports whether a client that knows only the bundle accepts the certificate for the host.
func trusts(bundle []byte, leaf *x509.Certificate, host string, now time.Time) bool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: now})
	return err == nil
}
