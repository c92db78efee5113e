// Package pki keeps the certificates of a local cluster in one folder.
//
// Promise: everything is made once and found again afterwards, so that a second call changes nothing and kubeconfigs
// handed out stay valid. Keys are ECDSA P-256: as safe as the RSA keys others make, and made in no time.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is long enough that no local cluster lives to see its certificates expire.
const validity = 5 * 365 * 24 * time.Hour

// Folder is a directory of NAME.crt and NAME.key files.
type Folder string

// Cert is the path of a certificate.
func (f Folder) Cert(name string) string { return filepath.Join(string(f), name+".crt") }

// Key is the path of a private key.
func (f Folder) Key(name string) string { return filepath.Join(string(f), name+".key") }

// Request describes one certificate.
type Request struct {
	// Name is the file name without extension.
	Name string
	// CommonName and Organizations are the user and its groups, as Kubernetes reads client certificates.
	CommonName    string
	Organizations []string
	// Hosts are the DNS names and IP addresses that a server answers to; none for a pure client.
	Hosts []string
}

// Authority makes sure that a certificate authority exists.
func (f Folder) Authority(name string) error {
	if f.has(name) {
		return nil
	}
	template, err := template(Request{CommonName: name})
	if err != nil {
		return err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = nil
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key for %s: %w", name, err)
	}
	return f.write(name, template, signer{cert: template, key: key}, key)
}

// Issue makes sure that a certificate signed by authority exists.
func (f Folder) Issue(authority string, req Request) error {
	if f.has(req.Name) {
		return nil
	}
	ca, err := f.load(authority)
	if err != nil {
		return fmt.Errorf("issuing %s: %w", req.Name, err)
	}
	template, err := template(req)
	if err != nil {
		return fmt.Errorf("issuing %s: %w", req.Name, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("issuing %s: %w", req.Name, err)
	}
	return f.write(req.Name, template, ca, key)
}

// SigningKey makes sure that a key pair for service account tokens exists: NAME.key and, with the public half, NAME.pub.
func (f Folder) SigningKey(name string) error {
	public := filepath.Join(string(f), name+".pub")
	if exists(f.Key(name)) && exists(public) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making signing key %s: %w", name, err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return fmt.Errorf("encoding signing key %s: %w", name, err)
	}
	if err := f.writeKey(name, key); err != nil {
		return err
	}
	return writePEM(public, "PUBLIC KEY", der)
}

type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func template(req Request) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	cert := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: req.CommonName, Organization: req.Organizations},
		NotBefore:    time.Now().Add(-time.Hour), // clocks of containers and virtual machines may lag
		NotAfter:     time.Now().Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, host := range req.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			cert.IPAddresses = append(cert.IPAddresses, ip)
		} else {
			cert.DNSNames = append(cert.DNSNames, host)
		}
	}
	if len(req.Hosts) > 0 {
		cert.ExtKeyUsage = append(cert.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	return cert, nil
}

func (f Folder) write(name string, template *x509.Certificate, ca signer, key *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, &key.PublicKey, ca.key)
	if err != nil {
		return fmt.Errorf("signing %s: %w", name, err)
	}
	if err := f.writeKey(name, key); err != nil {
		return err
	}
	return writePEM(f.Cert(name), "CERTIFICATE", der)
}

func (f Folder) writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding the key of %s: %w", name, err)
	}
	return writePEM(f.Key(name), "EC PRIVATE KEY", der)
}

func (f Folder) load(name string) (signer, error) {
	certDER, err := readPEM(f.Cert(name))
	if err != nil {
		return signer{}, err
	}
	keyDER, err := readPEM(f.Key(name))
	if err != nil {
		return signer{}, err
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return signer{}, fmt.Errorf("parsing certificate %s: %w", name, err)
	}
	key, err := x509.ParseECPrivateKey(keyDER)
	if err != nil {
		return signer{}, fmt.Errorf("parsing key %s: %w", name, err)
	}
	return signer{cert: cert, key: key}, nil
}

// has tells whether both files are there. The certificate is written last, so a half-written pair is made anew.
func (f Folder) has(name string) bool { return exists(f.Cert(name)) && exists(f.Key(name)) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func readPEM(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, errors.New("no PEM block in " + path)
	}
	return block.Bytes, nil
}

func writePEM(path, kind string, der []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	content := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
