// Package proxy is an API server with faults: it stands between a client, such as a manager, and a real API server, answers late, wrong or
// not at all as rules say, holds watches back, and keeps a record of what was asked, answered and shown.
package proxy

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Proxy passes requests on to an API server. What identifies a client is passed on, too, if it is a bearer token.
type Proxy struct {
	server *httptest.Server
	target *url.URL
	to     http.RoundTripper
	record *Record

	mu    sync.Mutex
	rand  *rand.Rand
	rules []Rule
	// changed is closed when the rules change.
	changed chan struct{}
}

// New returns a proxy that runs, without rules. All chance is from the seed.
func New(config *rest.Config, seed uint64) (*Proxy, error) {
	anonymous := rest.AnonymousClientConfig(config)
	tlsConfig, err := rest.TLSConfigFor(anonymous)
	if err != nil {
		return nil, fmt.Errorf("reading how the API server is known: %w", err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	p := &Proxy{
		target: target, record: newRecord(), changed: make(chan struct{}),
		to:   &http.Transport{TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true, DisableCompression: true, MaxIdleConnsPerHost: 100},
		rand: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // a test is to be repeated
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = true
	p.server.StartTLS()
	return p, nil
}

// Close ends the proxy and all connections through it.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// Cut ends all connections, as a restart of the API server does.
func (p *Proxy) Cut() { p.server.CloseClientConnections() }

// Record returns what was asked and answered so far.
func (p *Proxy) Record() *Record { return p.record }

// Set replaces the rules. A watch that the rules before held back goes on.
func (p *Proxy) Set(rules ...Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = rules
	close(p.changed)
	p.changed = make(chan struct{})
}

// Kubeconfig writes to a file what another file says, with the proxy as the API server.
func (p *Proxy) Kubeconfig(from, to string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return fmt.Errorf("reading %s: %w", from, err)
	}
	for _, c := range config.Clusters {
		c.Server = p.server.URL
		c.CertificateAuthority = ""
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	}
	return clientcmd.WriteToFile(*config, to)
}

// Config returns how a client with a token reaches the proxy.
func (p *Proxy) Config(token string) *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return &rest.Config{Host: p.server.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca}, QPS: -1}
}

// fault returns what goes wrong with a request; nil for nothing.
func (p *Proxy) fault(r *Request) *Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.rules {
		if !p.rules[i].isOfEvents() && p.rules[i].concerns(r) && p.rand.Float64() < p.rules[i].Share {
			rule := p.rules[i]
			rule.delay = rule.Delay
			if rule.DelayMost > rule.Delay {
				rule.delay += time.Duration(p.rand.Int64N(int64(rule.DelayMost - rule.Delay)))
			}
			return &rule
		}
	}
	return nil
}

// ServeHTTP answers a request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked := describe(r)
	rule := p.fault(asked)
	if rule != nil {
		asked.Fault = rule.Name
	}
	entry := p.record.begin(asked)
	if rule != nil && !rule.pause(r.Context()) {
		entry.end(p.record, 0, nil)
		return
	}
	if rule != nil && rule.Code != 0 {
		refuse(w, rule)
		entry.end(p.record, rule.Code, nil)
		return
	}
	answer, err := p.ask(r)
	if err != nil {
		entry.end(p.record, 0, nil)
		panic(http.ErrAbortHandler) // the client sees a broken connection
	}
	defer func() { _ = answer.Body.Close() }() // it was read as far as it was needed
	if asked.Verb == "watch" {
		entry.end(p.record, answer.StatusCode, nil)
		p.stream(w, r, answer, asked)
		return
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		entry.end(p.record, 0, nil)
		panic(http.ErrAbortHandler)
	}
	entry.end(p.record, answer.StatusCode, body)
	if rule != nil && rule.Lost {
		panic(http.ErrAbortHandler)
	}
	for key, values := range answer.Header {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(body) // an error is the client's
}

// ask passes a request on. Answers are asked for in JSON, which the record can read.
func (p *Proxy) ask(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	out := r.Clone(r.Context())
	out.RequestURI, out.Host = "", ""
	out.URL.Scheme, out.URL.Host = p.target.Scheme, p.target.Host
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.Header.Del("Accept-Encoding")
	out.Header.Set("Accept", strings.ReplaceAll(r.Header.Get("Accept"), "application/vnd.kubernetes.protobuf", "application/json"))
	return p.to.RoundTrip(out)
}

// refuse answers as an API server does that does not do what it is asked for.
func refuse(w http.ResponseWriter, rule *Rule) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(rule.Code),
		Message: "the fault " + rule.Name, Reason: reasonOf(rule.Code),
	}
	if rule.RetryAfter > 0 {
		seconds := int32(rule.RetryAfter.Seconds())
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: seconds}
		w.Header().Set("Retry-After", fmt.Sprint(seconds))
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(rule.Code)
	text, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(text) // an error is the client's
}

// reasonOf returns the reason that an API server gives with a code.
func reasonOf(code int) metav1.StatusReason {
	return map[int]metav1.StatusReason{
		http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests, http.StatusInternalServerError: metav1.StatusReasonInternalError,
		http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable, http.StatusGone: metav1.StatusReasonExpired,
		http.StatusGatewayTimeout: metav1.StatusReasonTimeout,
	}[code]
}
