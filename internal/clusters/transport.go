package clusters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// answerLimit is how long a cluster may take until an answer begins. It bounds a watch no less than a read: its headers come at once.
const answerLimit = 10 * time.Second

// dialLimit is how long a connection may take to come about.
const dialLimit = 5 * time.Second

// silenceError is the error of a request whose answer did not begin in time.
type silenceError struct{ limit time.Duration }

// Error says so.
func (e silenceError) Error() string { return fmt.Sprintf("no answer within %s", e.limit) }

// newHTTPClient returns a client for a cluster that waits for no answer longer than it may, follows no redirection, which could lead
// somewhere else, and has no limit on the number of its requests but what the server sets.
func newHTTPClient(config *rest.Config) (*http.Client, error) {
	config.QPS = -1
	config.Dial = (&net.Dialer{Timeout: dialLimit, KeepAlive: 30 * time.Second}).DialContext
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return impatient{next, answerLimit} })
	out, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	out.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return out, nil
}

// impatient ends a request whose answer does not begin in time. A time limit of the request itself would end watches.
type impatient struct {
	next  http.RoundTripper
	limit time.Duration
}

// RoundTrip sends a request.
func (t impatient) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	timer := time.AfterFunc(t.limit, func() { cancel(silenceError{t.limit}) })
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	timer.Stop()
	if err != nil {
		if silence := (silenceError{}); errors.As(context.Cause(ctx), &silence) {
			err = silence
		}
		cancel(nil)
		return nil, err
	}
	response.Body = &ending{response.Body, cancel}
	return response, nil
}

// WrappedRoundTripper returns what is behind it, for those who close idle connections.
func (t impatient) WrappedRoundTripper() http.RoundTripper { return t.next }

// ending is a body that ends the context of its request when it is closed.
type ending struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close closes the body.
func (b *ending) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}
