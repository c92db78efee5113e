package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	// path is where collectors take traces, unless a URL says another one.
	path = "/v1/traces"
	// firstWait is how long a collector is left alone that did not take spans; each further wait is twice as long.
	firstWait = time.Second
	// mostAnswered is how much is read of what a collector answers.
	mostAnswered = 1 << 10
)

// client sends spans by OTLP over HTTP, as protobuf. The clients of OpenTelemetry for that and for gRPC both have all of gRPC linked, which
// would make the managers larger by a third.
type client struct {
	url     string
	headers map[string]string
	http    *http.Client
}

// newClient returns a client for a URL. Headers are joined by commas as KEY=VALUE, with values as in a URL.
func newClient(endpoint, headers string) (*client, error) {
	at, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("reading the URL of the collector: %w", err)
	}
	if strings.Trim(at.Path, "/") == "" {
		at.Path = path
	}
	c := &client{url: at.String(), headers: map[string]string{}, http: &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second,
	}}}
	for pair := range strings.SplitSeq(headers, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, found := strings.Cut(pair, "=")
		if value, err = url.PathUnescape(strings.TrimSpace(value)); err != nil || !found {
			return nil, fmt.Errorf("reading the headers for the collector: no KEY=VALUE for %q", key) // not the value, which may be secret
		}
		c.headers[strings.TrimSpace(key)] = value
	}
	return c, nil
}

// Start does nothing: each request connects if it has to.
func (*client) Start(context.Context) error { return nil }

// Stop closes connections.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans, again and again until the context ends if the collector can't be reached or says that it will take them later.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// A request to export has the same form on the wire.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encoding spans: %w", err)
	}
	for wait := firstWait; ; wait *= 2 {
		later, err := c.post(ctx, body)
		if err == nil || !later {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(wait):
		}
	}
}

// post sends a request; later means that it may succeed when it is sent once more.
func (c *client) post(ctx context.Context, body []byte) (later bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("asking the collector: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	for key, value := range c.headers {
		request.Header.Set(key, value)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return true, fmt.Errorf("reaching the collector: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	answer, _ := io.ReadAll(io.LimitReader(response.Body, mostAnswered))
	switch response.StatusCode {
	case http.StatusOK:
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		later = true
	}
	return later, fmt.Errorf("the collector answers %s: %s", response.Status, strings.ToValidUTF8(string(answer), ""))
}
