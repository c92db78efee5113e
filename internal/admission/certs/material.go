package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// skew is how far clocks may be apart: certificates are valid that long before they are made.
const skew = time.Hour

// pair is a certificate and its private key, both PEM.
type pair struct {
	cert, key []byte
}

func (p pair) empty() bool { return len(p.cert) == 0 && len(p.key) == 0 }

func (p pair) equal(o pair) bool { return bytes.Equal(p.cert, o.cert) && bytes.Equal(p.key, o.key) }

// Material is everything that is stored: the CA, and the certificate that it signed, which managers present.
type Material struct {
	ca, leaf pair
}

func (m Material) equal(o Material) bool { return m.ca.equal(o.ca) && m.leaf.equal(o.leaf) }

// Names of what is stored.
const (
	keyCAKey   = "ca-key.pem"
	keyCACert  = "ca-cert.pem"
	keyKey     = "key.pem"
	keyCert    = "cert.pem"
	keyTLSKey  = "tls.key"
	keyTLSCert = "tls.crt"
	// Of a Secret that another controller writes.
	keyExternalCA = "ca.crt"
)

// data returns what is stored under which name. Wire: the names are those of existing installations.
func (m Material) data() map[string][]byte {
	return map[string][]byte{
		keyCACert: m.ca.cert, keyCAKey: m.ca.key,
		keyCert: m.leaf.cert, keyKey: m.leaf.key,
		keyTLSCert: m.leaf.cert, keyTLSKey: m.leaf.key,
	}
}

func materialOf(data map[string][]byte) Material {
	m := Material{
		ca:   pair{cert: data[keyCACert], key: data[keyCAKey]},
		leaf: pair{cert: data[keyTLSCert], key: data[keyTLSKey]},
	}
	if len(m.leaf.cert) == 0 {
		m.leaf = pair{cert: data[keyCert], key: data[keyKey]}
	}
	return m
}

// life is the time in which a certificate is valid.
type life struct {
	from, to time.Time
}

func newCA(l life) (pair, error) {
	template, err := blank(l)
	if err != nil {
		return pair{}, err
	}
	// Wire: the common name by which existing installations know the CA. The serial number makes two CAs different for a verifier that
	// holds both.
	template.Subject = pkix.Name{CommonName: "webhook-cert-ca", SerialNumber: template.SerialNumber.Text(16)}
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	template.IsCA, template.BasicConstraintsValid = true, true
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("making the key of the CA: %w", err)
	}
	return sign(signing{template: template, parent: template, key: key, parentKey: key})
}

func newLeaf(ca pair, hosts []string, l life) (pair, error) {
	parent, err := tls.X509KeyPair(ca.cert, ca.key)
	if err != nil {
		return pair{}, fmt.Errorf("reading the CA: %w", err)
	}
	template, err := blank(l)
	if err != nil {
		return pair{}, err
	}
	if len(hosts) > 0 {
		template.Subject = pkix.Name{CommonName: hosts[0]}
	}
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
		return pair{}, fmt.Errorf("making the key of the certificate: %w", err)
	}
	return sign(signing{template: template, parent: parent.Leaf, key: key, parentKey: parent.PrivateKey})
}

func blank(l life) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return &x509.Certificate{SerialNumber: serial, NotBefore: l.from, NotAfter: l.to}, nil
}

type signing struct {
	template, parent *x509.Certificate
	key              *ecdsa.PrivateKey
	parentKey        any
}

func sign(s signing) (pair, error) {
	certificate, err := x509.CreateCertificate(rand.Reader, s.template, s.parent, s.key.Public(), s.parentKey)
	if err != nil {
		return pair{}, fmt.Errorf("signing the certificate of %s: %w", s.template.Subject, err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(s.key)
	if err != nil {
		return pair{}, fmt.Errorf("encoding a key: %w", err)
	}
	return pair{cert: encode(certificate), key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})}, nil
}

// parse returns the certificate of a pair whose key fits it.
func (p pair) parse() (*x509.Certificate, error) {
	if p.empty() {
		return nil, errors.New("there is none")
	}
	both, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, err
	}
	return both.Leaf, nil
}
