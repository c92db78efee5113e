package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// serve answers a request: its body is read within the limits, before it counts as being handled.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	if err := s.Clients.check(r); err != nil {
		s.refuse("certificate")()
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	size := r.ContentLength
	if size < 0 {
		size = s.limits.body // it does not say
	}
	if size > s.limits.body {
		s.tooLarge(w)
		return
	}
	address := hostOf(r.RemoteAddr)
	waiting, cancel := context.WithTimeout(r.Context(), s.limits.wait)
	defer cancel()
	cost := max(size, minimalCost)
	if err := s.bodies.take(waiting, address, cost); err != nil {
		s.refuse("busy")()
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests are being handled, try again", http.StatusServiceUnavailable)
		return
	}
	defer s.bodies.give(address, cost)
	body, err := readBody(w, r, size)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		s.tooLarge(w)
		return
	case err != nil:
		http.Error(w, fmt.Sprintf("reading the request: %v", err), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeoutOf(r))
	defer cancel()
	defer s.handled.begin(r.URL.Path)()
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.WebhookMux().ServeHTTP(w, r)
}

func (s *Server) tooLarge(w http.ResponseWriter) {
	s.refuse("size")()
	http.Error(w, fmt.Sprintf("a request may have %d bytes at most", s.limits.body), http.StatusRequestEntityTooLarge)
}

func readBody(w http.ResponseWriter, r *http.Request, size int64) ([]byte, error) {
	body := &bytes.Buffer{}
	if r.ContentLength > 0 {
		body.Grow(int(size) + bytes.MinRead)
	}
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, size))
	return body.Bytes(), err
}

// timeoutOf returns how long the client waits, which API servers say.
func timeoutOf(r *http.Request) time.Duration {
	if d, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && d > 0 {
		return min(d, maxTimeout)
	}
	return maxTimeout
}

// inFlight holds the requests that are being handled.
type inFlight struct {
	now func() time.Time

	mu    sync.Mutex
	next  uint64
	began map[uint64]handling
}

type handling struct {
	path string
	at   time.Time
}

func newInFlight(now func() time.Time) *inFlight {
	return &inFlight{now: now, began: map[uint64]handling{}}
}

// begin notes a request, and returns what is to be called at its end.
func (f *inFlight) begin(path string) (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.next
	f.next++
	f.began[id] = handling{path: path, at: f.now()}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.began, id)
	}
}

// oldest returns the path of the request that is being handled for the longest time, and that time.
func (f *inFlight) oldest() (path string, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.began {
		if d := f.now().Sub(h.at); d > took {
			path, took = h.path, d
		}
	}
	return path, took
}

// shares divides what there is little of between addresses. One address gets half of it at most: the managers' API server shall get its
// share whatever a Pod does.
type shares struct {
	total int64

	mu    sync.Mutex
	used  int64
	by    map[string]int64
	freed chan struct{}
}

func newShares(total int64) *shares {
	return &shares{total: total, by: map[string]int64{}, freed: make(chan struct{})}
}

// try takes n for an address, and reports whether there was enough. The channel is closed when there may be more.
func (s *shares) try(address string, n int64) (ok bool, freed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used+n > s.total || s.by[address]+n > s.total/2 {
		return false, s.freed
	}
	s.used += n
	s.by[address] += n
	return true, nil
}

// take takes n for an address as soon as there is enough.
func (s *shares) take(ctx context.Context, address string, n int64) error {
	for {
		ok, freed := s.try(address, n)
		if ok {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// give gives n back.
func (s *shares) give(address string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
	if s.by[address] -= n; s.by[address] == 0 {
		delete(s.by, address)
	}
	close(s.freed)
	s.freed = make(chan struct{})
}

// fairListener closes connections at once of which there are too many.
type fairListener struct {
	net.Listener
	open   *shares
	refuse func()
}

// Accept implements net.Listener.
func (l *fairListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := hostOf(c.RemoteAddr().String())
		if ok, _ := l.open.try(address, 1); ok {
			return &countedConnection{Conn: c, closed: sync.OnceFunc(func() { l.open.give(address, 1) })}, nil
		}
		l.refuse()
		_ = c.Close() // nothing was sent to it
	}
}

type countedConnection struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (c *countedConnection) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}
