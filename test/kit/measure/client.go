// Package measure sends requests at a steady rate, and tells which version answered how many of them, and which failed.
package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// RevisionHeader of an answer names the version that gave it. Without it, the body does.
	RevisionHeader = "X-Revision"
	// PodHeader of an answer names the Pod that gave it.
	PodHeader = "X-Pod"

	// patience is how long an answer may take.
	patience = 10 * time.Second
	// pace is how often it is looked how many requests are due: they go out in small groups, which a busy machine can keep up with.
	pace = 5 * time.Millisecond
	// connections to the data plane that are kept open.
	connections = 100
	// unanswered is how many requests may wait for an answer at once: more would only be added to what overloads the data plane already.
	unanswered = 500
	grpcType   = "application/grpc"
)

// Target is what is requested.
type Target struct {
	// URL is where requests go, and Host the host that they name; the URL's own if empty.
	URL, Host string
	// Method is that of requests, POST if empty: those are sent with a body, so that no proxy may hide a failure by sending one again.
	Method string
	// Header is sent with each request.
	Header http.Header
	// Rate is the number of requests in a second.
	Rate int
	// GRPC has requests be calls of gRPC: over HTTP/2, without TLS, with an empty message.
	GRPC bool
}

// Result is what became of a request.
type Result struct {
	// Sent is when the request was sent, and Took how long it took.
	Sent time.Time
	Took time.Duration
	// Revision and Pod are what the back end says of itself; empty if none answered.
	Revision, Pod string
	// Failure says why there was no answer of a back end; empty if there was.
	Failure string
}

// Client sends requests until it is stopped. It does not wait for answers before it sends more: a slow answer delays no other request.
type Client struct {
	target Target
	http   http.Client
	stop   context.CancelFunc
	pacing sync.WaitGroup

	mu      sync.Mutex
	results []Result
	waiting int

	inFlight sync.WaitGroup
}

// Start begins to send requests. The caller ends it by Stop.
func Start(ctx context.Context, t Target) *Client {
	if t.Method == "" {
		t.Method = http.MethodPost
	}
	transport := &http.Transport{MaxIdleConns: connections, MaxIdleConnsPerHost: connections, DisableCompression: true}
	if t.GRPC {
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	c := &Client{target: t, http: http.Client{Transport: transport, Timeout: patience}}
	ctx, c.stop = context.WithCancel(ctx)
	c.pacing.Go(func() { c.run(ctx) })
	return c
}

// Stop sends no more requests, waits for the answers to those that were sent, and returns what became of all.
func (c *Client) Stop() Tally {
	c.stop()
	c.pacing.Wait()
	c.inFlight.Wait()
	c.http.CloseIdleConnections()
	return c.Since(time.Time{})
}

// Since returns what has become of the requests that were sent since a moment, as far as that is known.
func (c *Client) Since(from time.Time) Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	var t Tally
	for _, r := range c.results {
		if !r.Sent.Before(from) {
			t.add(r)
		}
	}
	return t
}

// Next waits until a number of requests that are sent from now on have come to their end, and returns what became of them.
func (c *Client) Next(ctx context.Context, requests int) (Tally, error) {
	began := time.Now()
	for {
		if t := c.Since(began); t.Requests >= requests {
			return t, nil
		}
		select {
		case <-ctx.Done():
			return c.Since(began), fmt.Errorf("waiting for %d requests: %w", requests, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// run sends what is due.
func (c *Client) run(ctx context.Context) {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	began, sent := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			for ; sent < int(now.Sub(began).Seconds()*float64(c.target.Rate)); sent++ {
				c.inFlight.Go(func() { c.send(context.WithoutCancel(ctx)) })
			}
		}
	}
}

// send sends a request and notes what became of it. One that too many others wait before fails at once.
func (c *Client) send(ctx context.Context) {
	result := Result{Sent: time.Now()}
	err := errBusy
	if c.waits(1) <= unanswered {
		err = c.ask(ctx, &result)
	}
	if err != nil {
		result.Failure = err.Error()
	}
	result.Took = time.Since(result.Sent)
	c.waits(-1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.results = append(c.results, result)
}

var errBusy = fmt.Errorf("not sent, as %d requests wait for an answer", unanswered)

// waits counts a request that begins to wait or has its answer, and returns how many wait.
func (c *Client) waits(more int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting += more
	return c.waiting
}

func (c *Client) ask(ctx context.Context, result *Result) error {
	request, err := http.NewRequestWithContext(ctx, c.target.Method, c.target.URL, c.body())
	if err != nil {
		return err
	}
	request.GetBody = nil // nor may this client send a request again
	request.Host = c.target.Host
	for name, values := range c.target.Header {
		request.Header[name] = values
	}
	if c.target.GRPC {
		request.Header.Set("Content-Type", grpcType)
		request.Header.Set("TE", "trailers")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if err := refused(response, text); err != nil {
		return err
	}
	result.Revision, result.Pod = response.Header.Get(RevisionHeader), response.Header.Get(PodHeader)
	if result.Revision == "" && !c.target.GRPC {
		result.Revision = strings.TrimSpace(string(text))
	}
	if result.Revision == "" {
		return errors.New("the answer does not say which version gave it")
	}
	return nil
}

// body is that of a request: for gRPC a message of no bytes.
func (c *Client) body() io.Reader {
	switch {
	case c.target.GRPC:
		return bytes.NewReader(make([]byte, 5))
	case c.target.Method == http.MethodPost:
		return strings.NewReader("which version is this?")
	}
	return http.NoBody
}

// refused says why an answer counts as a failure.
func refused(response *http.Response, text []byte) error {
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s: %s", response.Status, bytes.TrimSpace(text))
	}
	for _, fields := range []http.Header{response.Header, response.Trailer} {
		if status := fields.Get("Grpc-Status"); status != "" && status != "0" {
			return fmt.Errorf("gRPC status %s: %s", status, fields.Get("Grpc-Message"))
		}
	}
	return nil
}
