package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// rig is a server with the clients of a test.
type rig struct {
	*testing.T
	server *Server
	// stop asks the server to end, and ended is how it did.
	stop  func()
	ended chan error
}

// start starts a server that a test has changed, and that answers on path /answer with the length of what it was sent.
func start(t *testing.T, change func(*Server)) *rig {
	t.Helper()
	server, err := New(Options{Host: "127.0.0.1", Port: freePort(t), Registry: prometheus.NewRegistry(), Log: logr.Discard(),
		Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	_, key := newCA(t, "server")
	server.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return key, nil }
	for _, path := range []string{"/answer", "/convert"} {
		server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			fmt.Fprint(w, len(body))
		}))
	}
	change(server)
	ctx, stop := context.WithCancel(t.Context())
	r := &rig{T: t, server: server, stop: stop, ended: make(chan error, 1)}
	go func() { r.ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-r.ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	ready := server.StartedChecker()
	for range 500 {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if err = ready(request); err == nil {
			return r
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the server is not ready")
	return nil
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func (r *rig) url(path string) string {
	return fmt.Sprintf("https://127.0.0.1:%d%s", r.server.Port, path)
}

// client returns a client at an address of this machine, with a certificate or none.
func client(from string, certificates ...tls.Certificate) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		DialContext:     dialer.DialContext,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}, //nolint:gosec // not what is tested
	}}
}

// post returns the status and the text of an answer.
func (r *rig) post(c *http.Client, path string, body io.Reader) (*http.Response, string) {
	r.Helper()
	answer, err := c.Post(r.url(path), "application/json", body)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.Fatal(err)
	}
	return answer, strings.TrimSpace(string(text))
}

// newCA returns a CA as PEM, and a certificate by it with a common name.
func newCA(t *testing.T, name string) (caPEM []byte, leaf *tls.Certificate) {
	t.Helper()
	sign := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if parent == nil {
			parent, signer = template, key
		}
		template.SerialNumber, template.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
		if err != nil {
			t.Fatal(err)
		}
		made, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return made, key
	}
	ca, caKey := sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "ca of " + name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	own, key := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, ca, caKey)
	caPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw})
	return caPEM, &tls.Certificate{Certificate: [][]byte{own.Raw}, PrivateKey: key, Leaf: own}
}
