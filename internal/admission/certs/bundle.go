package certs

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"
)

// encode returns a DER certificate as PEM.
func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// split returns the DER certificates of a PEM bundle; what is not a certificate is left out.
func split(bundle []byte) [][]byte {
	var all [][]byte
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return all
		}
		if block.Type == "CERTIFICATE" {
			all = append(all, block.Bytes)
		}
	}
}

// join returns one bundle with every certificate of the given ones, each once, in their order.
func join(bundles ...[]byte) []byte {
	var all [][]byte
	for _, bundle := range bundles {
		for _, der := range split(bundle) {
			if !has(all, der) {
				all = append(all, der)
			}
		}
	}
	var out []byte
	for _, der := range all {
		out = append(out, encode(der)...)
	}
	return out
}

func has(all [][]byte, der []byte) bool {
	return slices.ContainsFunc(all, func(one []byte) bool { return bytes.Equal(one, der) })
}

// trusts reports whether a client that knows only the bundle accepts the certificate for every host.
func trusts(bundle []byte, leaf *x509.Certificate, hosts []string, now time.Time) bool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now}); err != nil {
		return false
	}
	return covers(leaf, hosts)
}

// trustedBy reports whether every client accepts the certificate that knows one of the bundles, most of which are the same.
func trustedBy(bundles [][]byte, leaf *x509.Certificate, hosts []string, now time.Time) bool {
	known := map[string]bool{}
	for _, bundle := range bundles {
		if known[string(bundle)] {
			continue
		}
		if !trusts(bundle, leaf, hosts, now) {
			return false
		}
		known[string(bundle)] = true
	}
	return true
}

func covers(leaf *x509.Certificate, hosts []string) bool {
	for _, host := range hosts {
		if leaf.VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}
