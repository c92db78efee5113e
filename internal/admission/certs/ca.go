package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/keyutil"
)

const (
	caLife = 10 * 365 * day
	// skew is how far in the future a CA may begin that another version has stored.
	skew = time.Hour
)

// authority is a CA with its private key.
type authority struct {
	tls.Certificate
	// certPEM and keyPEM are what is stored.
	certPEM, keyPEM []byte
}

func parseAuthority(certPEM, keyPEM []byte) (authority, error) {
	parsed, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return authority{}, fmt.Errorf("reading the CA: %w", err)
	}
	if !parsed.Leaf.IsCA {
		return authority{}, errors.New("reading the CA: it is the certificate of no CA")
	}
	return authority{Certificate: parsed, certPEM: certPEM, keyPEM: keyPEM}, nil
}

// usable reports whether the CA needs no replacement. A CA of another version may have been dated by a clock that was ahead.
func (a authority) usable(now time.Time, renewBefore time.Duration) bool {
	return a.Leaf.NotAfter.Sub(now) >= renewBefore && !a.Leaf.NotBefore.After(now.Add(skew))
}

// earliest is a time that is over: a clock that shows an earlier one is wrong.
func earliest() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// newAuthority returns a CA that is valid for every clock from 1970 to ten years from now.
func newAuthority(now time.Time) (authority, error) {
	if now.Before(earliest()) {
		now = earliest()
	}
	template, err := newTemplate(time.Unix(0, 0), now.Add(caLife))
	if err != nil {
		return authority{}, err
	}
	// Wire: the common name by which existing installations know the CA. The serial number tells two CAs apart for a verifier that holds
	// both.
	template.Subject = pkix.Name{CommonName: "webhook-cert-ca", SerialNumber: template.SerialNumber.Text(16)}
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	template.IsCA, template.BasicConstraintsValid = true, true
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, fmt.Errorf("making the key of the CA: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, fmt.Errorf("signing the CA: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return authority{}, fmt.Errorf("encoding the key of the CA: %w", err)
	}
	return parseAuthority(encode(der), keyPEM)
}

// sign returns a new serving certificate with the dates of the CA.
func (a authority) sign(hosts []string) (*tls.Certificate, error) {
	template, err := newTemplate(a.Leaf.NotBefore, a.Leaf.NotAfter)
	if err != nil {
		return nil, err
	}
	template.Subject = pkix.Name{CommonName: hosts[0]}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of the certificate: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Leaf, key.Public(), a.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of %s: %w", hosts[0], err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of %s: %w", hosts[0], err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: crypto.PrivateKey(key), Leaf: leaf}, nil
}

func newTemplate(from, to time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return &x509.Certificate{SerialNumber: serial, NotBefore: from, NotAfter: to}, nil
}
