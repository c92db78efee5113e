package analysis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	rules "github.com/seed-69ecc383/kruise/internal/rules/analysis"
)

// Limits of answers, in bytes.
const (
	maxBody    = 1 << 20
	maxHeaders = 64 << 10
)

// prometheus asks for a number.
func (r *Runner) prometheus(ctx context.Context, namespace string, check *v1beta1.PrometheusCheck) rules.Outcome {
	address := strings.TrimSuffix(check.Address, "/") + "/api/v1/query?query=" + url.QueryEscape(check.Query)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return rules.Inconclusive("reading the address: %v", err)
	}
	code, body, err := r.ask(request, namespace, check.Access)
	if err != nil {
		return rules.Inconclusive("%v", err)
	}
	outcome := rules.Prometheus(check, body)
	if code != http.StatusOK && outcome.Phase == v1beta1.AnalysisInconclusive {
		outcome.Message = fmt.Sprintf("status %d: %s", code, outcome.Message)
	}
	return outcome
}

// http sends a request, and looks at the answer.
func (r *Runner) http(ctx context.Context, namespace string, check *v1beta1.HTTPCheck) rules.Outcome {
	address := check.URL
	if s := check.Service; s != nil {
		host := net.JoinHostPort(s.Name+"."+namespace+".svc", strconv.Itoa(int(or(s.Port, 80))))
		address = or(s.Scheme, "http") + "://" + host + or(s.Path, "/")
	}
	request, err := http.NewRequestWithContext(ctx, or(string(check.Method), http.MethodGet), address, nil)
	if err != nil {
		return rules.Inconclusive("reading the address: %v", err)
	}
	for _, h := range check.Headers {
		request.Header.Set(h.Name, h.Value)
	}
	code, body, err := r.ask(request, namespace, check.Access)
	if err != nil {
		return rules.Inconclusive("%v", err)
	}
	return rules.Answer(check, code, body)
}

// or returns a value, or the default if it is zero.
func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// ask sends a request and returns the answer. An error says nothing of the address but what refuses it.
func (r *Runner) ask(request *http.Request, namespace string, access v1beta1.Access) (code int, body []byte, err error) {
	if access.SecretName != "" {
		if err := r.authorize(request, namespace, access.SecretName); err != nil {
			return 0, nil, err
		}
	}
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", "kruise-rollout")
	}
	transport, err := r.transport(access.CABundle)
	if err != nil {
		return 0, nil, err
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, reason(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("reading the answer: %w", reason(err))
	case len(body) > maxBody:
		return 0, nil, fmt.Errorf("the answer has more than %d bytes", maxBody)
	}
	return response.StatusCode, body, nil
}

// transport returns a way to one server, which no other request takes.
func (r *Runner) transport(ca []byte) (*http.Transport, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("caBundle holds no certificate")
		}
	}
	dialer := &net.Dialer{Control: r.Addresses.control}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: settings, ForceAttemptHTTP2: true,
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeaders,
	}, nil
}

// reason returns why a request failed, in a few words.
func reason(err error) error {
	var refused refusedError
	var request *url.Error
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("there was no answer in time")
	case errors.As(err, &request):
		return request.Err
	}
	return err
}
