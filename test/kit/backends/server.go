package backends

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/test/kit/measure"
)

const (
	// Port is where containers listen for HTTP and for gRPC, both without TLS.
	Port = 8080
	// TLSPort is where they listen for the same with TLS, and a certificate of no authority: a data plane may reach HTTP/2 without TLS
	// through no proxy.
	TLSPort = 8443
)

// server is what runs in a Pod: it answers HTTP and gRPC, and ends as a good server does when it is told to.
type server struct {
	http.Server
	// told is closed when the server has been told to end.
	told chan struct{}
}

// start has a Pod be served.
func (n *Network) start(pod *corev1.Pod) (*server, error) {
	ip, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil {
		return nil, fmt.Errorf("reading the address of Pod %s: %w", pod.Name, err)
	}
	plain, err := n.Open(netip.AddrPortFrom(ip, Port))
	if err != nil {
		return nil, err
	}
	secure, err := n.Open(netip.AddrPortFrom(ip, TLSPort))
	if err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	s := newServer(pod)
	s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{n.identity}}
	go func() { _ = s.Serve(plain) }() // both end by stop or Close
	go func() { _ = s.ServeTLS(secure, "", "") }()
	return s, nil
}

func newServer(pod *corev1.Pod) *server {
	s := &server{told: make(chan struct{})}
	s.Handler = answers(pod.Name, Revision(pod))
	s.ErrorLog = log.New(io.Discard, "", 0) // connections that break are what happens here
	s.Protocols = new(http.Protocols)
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// newIdentity returns a certificate that nobody has signed.
func newIdentity() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	content := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(1, 0, 0)}
	signed, err := x509.CreateCertificate(rand.Reader, content, content, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, err
}

// stop ends a server as its kubelet does: after the sleep of its preStop hook it is told to end. It then takes no more connections, and
// closes those that it has once the requests on them are answered.
func (s *server) stop(pod *corev1.Pod) {
	select {
	case <-s.told:
		return
	default:
		close(s.told)
	}
	time.AfterFunc(preStop(pod), func() { _ = s.Shutdown(context.Background()) }) // what is left is ended by Close
}

func preStop(pod *corev1.Pod) time.Duration {
	hook := pod.Spec.Containers[0].Lifecycle
	if hook == nil || hook.PreStop == nil || hook.PreStop.Sleep == nil {
		return 0
	}
	return time.Duration(hook.PreStop.Sleep.Seconds) * time.Second
}

// Revision returns what a Pod's server says that it is: the tag of its image.
func Revision(pod *corev1.Pod) string {
	image := pod.Spec.Containers[0].Image
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tag
}

// answers returns a handler that answers every request by saying who it is.
func answers(pod, revision string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set(measure.RevisionHeader, revision)
		header.Set(measure.PodHeader, pod)
		if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			fmt.Fprintln(w, revision)
			return
		}
		header.Set("Content-Type", "application/grpc")
		header.Set("Trailer", "Grpc-Status")
		_, _ = w.Write(make([]byte, 5)) // a message of no bytes; who has gone needs no answer
		header.Set("Grpc-Status", "0")
	})
}
