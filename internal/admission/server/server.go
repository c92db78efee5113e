// Package server serves admission and conversion to API servers, such that nobody who can reach it can do harm:
//
//	memory of all bodies that are read  ≤  32 MiB, of which one address gets half at most
//	open connections                    ≤  1024, of which one address gets half at most
//
// Headers and bodies have to arrive within seconds. Where a CA for clients is given, only its clients may ask for admission. Conversion
// is open to everybody: API servers present no certificate for it, and it is a function of what it is given.
//
// It is closed such that no API server notices: see Drain.
package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Options is what a Server needs.
type Options struct {
	// Host is the address to listen on, empty for all.
	Host string
	Port int
	// GetCertificate returns the serving certificate.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Clients says who is served.
	Clients Clients
	// Registry is where the metrics are registered.
	Registry prometheus.Registerer
	Log      logr.Logger
	Now      func() time.Time
}

// Limits are what clients may use.
type limits struct {
	// body is the largest body, bodies the largest sum of those that are read at the same time, in bytes.
	body, bodies int64
	connections  int64
	// header and read are how long the headers, and all of a request, may take to arrive.
	header, read time.Duration
	// wait is how long a request waits for others to be answered, when there are too many bodies.
	wait time.Duration
}

// defaultLimits: an API server sends two objects of 3 MiB each at most. A body takes about eight times its size while it is handled.
func defaultLimits() limits {
	return limits{body: 8 << 20, bodies: 32 << 20, connections: 1024, header: 5 * time.Second, read: 10 * time.Second, wait: time.Second}
}

const (
	// maxTimeout is the longest that an API server waits for a webhook.
	maxTimeout = 30 * time.Second
	// hungAfter is how long a handler may take: every request has ended then whose handler heeds its context.
	hungAfter = 2 * maxTimeout
	// idleTimeout is longer than the 90 s after which API servers close idle connections themselves. Else a request could come on a
	// connection
	// that is being closed, which the API server would take for a failure.
	idleTimeout = 5 * time.Minute
	// closeTimeout is how long requests that are being handled may take when the server is closed.
	closeTimeout   = 10 * time.Second
	maxHeaderBytes = 32 << 10
	// minimalCost is what a request takes of the bodies at least: also a small one needs memory.
	minimalCost = 8 << 10
)

// Server implements webhook.Server. Make it with New.
type Server struct {
	webhook.Server // registers handlers, with a metric for each
	Options
	limits limits

	bodies   *shares
	handled  *inFlight
	refused  *prometheus.CounterVec
	listens  atomic.Bool
	draining atomic.Bool
}

// New returns a server. It fails if the CA of the clients can't be read.
func New(o Options) (*Server, error) {
	if o.Clients.CAFile != "" {
		if _, err := o.Clients.cas(); err != nil {
			return nil, err
		}
	}
	s := &Server{
		Server:  webhook.NewServer(webhook.Options{WebhookMux: http.NewServeMux()}),
		Options: o,
		limits:  defaultLimits(),
		handled: newInFlight(o.Now),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kruise_webhook_refused_total",
			Help: "What the webhook server refused before a handler saw it, by reason: certificate, size, busy, connections.",
		}, []string{"reason"}),
	}
	return s, o.Registry.Register(s.refused)
}

// Start serves until the context ends, and then closes without failing a request that has come.
func (s *Server) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(s.Host, strconv.Itoa(s.Port)))
	if err != nil {
		return fmt.Errorf("listening for webhooks: %w", err)
	}
	s.bodies = newShares(s.limits.bodies)
	server := &http.Server{
		Handler:     http.HandlerFunc(s.serve),
		TLSConfig:   s.tls(),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },

		ReadHeaderTimeout: s.limits.header, ReadTimeout: s.limits.read, WriteTimeout: s.limits.read + maxTimeout,
		// API servers ask webhooks by HTTP/1.1. By HTTP/2 a connection could carry hundreds of requests at the same time.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		IdleTimeout:  idleTimeout, MaxHeaderBytes: maxHeaderBytes, ErrorLog: stdlog.New(errorLog{s.Log}, "", 0),
	}
	served := make(chan error, 1)
	go func() {
		fair := &fairListener{Listener: listener, open: newShares(s.limits.connections), refuse: s.refuse("connections")}
		served <- server.ServeTLS(fair, "", "")
	}()
	s.listens.Store(true)
	select {
	case err := <-served:
		return fmt.Errorf("serving webhooks: %w", err)
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if err := server.Shutdown(ending); err != nil {
		return fmt.Errorf("ending the last webhooks: %w", err)
	}
	return nil
}

// errorLog writes what the HTTP server says to the log. Whoever connects can fail a handshake, and must not fill the log.
type errorLog struct{ logr.Logger }

// Write implements io.Writer.
func (l errorLog) Write(line []byte) (int, error) {
	level := 0
	if bytes.Contains(line, []byte("TLS handshake error")) {
		level = 1
	}
	l.V(level).Info("The webhook server complains", "text", string(bytes.TrimSpace(line)))
	return len(line), nil
}

func (s *Server) tls() *tls.Config {
	base := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.GetCertificate, NextProtos: []string{"http/1.1"}}
	if s.Clients.CAFile == "" {
		return base
	}
	base.SessionTicketsDisabled = true // else a client would go on whose CA is no longer trusted
	with := base.Clone()
	with.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := s.Clients.cas()
		if err != nil {
			return nil, err
		}
		own := base.Clone()
		own.ClientCAs, own.ClientAuth = pool, tls.VerifyClientCertIfGiven
		return own, nil
	}
	return with
}

// Drain makes the server unready. From now on it closes each connection with the next answer. Once new connections have gone elsewhere for
// a while, there is none left that an API server would use, and the server can be closed.
func (s *Server) Drain() { s.draining.Store(true) }

// StartedChecker fails until the server listens and has a certificate, and once it drains.
func (s *Server) StartedChecker() healthz.Checker {
	return func(r *http.Request) error {
		switch {
		case s.draining.Load():
			return errors.New("the manager is about to end")
		case !s.listens.Load():
			return errors.New("the webhook server does not listen yet")
		}
		// It is itself that it asks, about nothing.
		dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
		ctx, cancel := context.WithTimeout(r.Context(), s.limits.header)
		defer cancel()
		connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(s.Host, strconv.Itoa(s.Port)))
		if err != nil {
			return fmt.Errorf("reaching the webhook server: %w", err)
		}
		return connection.Close()
	}
}

// HungChecker fails if a handler has not answered for so long that it never will.
func (s *Server) HungChecker() healthz.Checker {
	return func(*http.Request) error {
		if path, took := s.handled.oldest(); took > hungAfter {
			return fmt.Errorf("a request to %s has not been answered for %s", path, took.Round(time.Second))
		}
		return nil
	}
}

func (s *Server) refuse(reason string) func() { return s.refused.WithLabelValues(reason).Inc }
