package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestBodiesAreLimited: also those of conversion, and of whoever does not say how long they are.
func TestBodiesAreLimited(t *testing.T) {
	r := start(t, func(*Server) {})
	c := client("127.0.0.1")
	for _, path := range []string{"/answer", "/convert"} {
		if answer, text := r.post(c, path, strings.NewReader("hello")); answer.StatusCode != http.StatusOK || text != "5" {
			t.Errorf("%s: %d %s, want 5 bytes to be taken", path, answer.StatusCode, text)
		}
		for name, body := range map[string]io.Reader{
			"says its length": bytes.NewReader(make([]byte, 8<<20+1)),
			"does not":        io.LimitReader(zeros{}, 8<<20+1),
		} {
			if answer, text := r.post(c, path, body); answer.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("%s: a body of more than 8 MiB that %s is answered by %d %s", path, name, answer.StatusCode, text)
			}
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestOneAddressLeavesRoomForOthers: whatever a Pod sends, an API server is answered.
func TestOneAddressLeavesRoomForOthers(t *testing.T) {
	r := start(t, func(s *Server) { s.limits.bodies, s.limits.body, s.limits.wait = 4<<20, 1<<20, 50*time.Millisecond })
	for range 2 { // which is half of it
		holds, writes := io.Pipe()
		t.Cleanup(func() { _ = writes.Close() })
		go func() {
			answer, err := client("127.0.0.2").Post(r.url("/convert"), "application/json", holds)
			if err == nil {
				_ = answer.Body.Close()
			}
		}()
		if _, err := writes.Write([]byte("slow")); err != nil {
			t.Fatal(err)
		}
	}
	for range 500 {
		if r.server.bodies.usedBy("127.0.0.2") == 2<<20 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if answer, text := r.post(client("127.0.0.2"), "/answer",
		strings.NewReader("more")); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("an address that has its share is answered by %d %s", answer.StatusCode, text)
	}
	if answer, text := r.post(client("127.0.0.1"), "/answer", strings.NewReader("hello")); answer.StatusCode != http.StatusOK {
		t.Errorf("another address is answered by %d %s", answer.StatusCode, text)
	}
}

func (s *shares) usedBy(address string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[address]
}

// TestAConnectionCarriesOneRequestAtATime: there are limits on connections and on bodies, and with HTTP/2 neither would limit requests.
func TestAConnectionCarriesOneRequestAtATime(t *testing.T) {
	r := start(t, func(*Server) {})
	c := client("127.0.0.1")
	c.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	if answer, _ := r.post(c, "/answer", strings.NewReader("x")); answer.ProtoMajor != 1 || answer.StatusCode != http.StatusOK {
		t.Errorf("answered by %s, %d", answer.Proto, answer.StatusCode)
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	r := start(t, func(s *Server) { s.limits.connections = 8 })
	address := strings.TrimPrefix(r.url(""), "https://")
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
	open := 0
	for range 10 {
		c, err := from.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond)) // the server says nothing before the client does
		if _, err := c.Read(make([]byte, 1)); os.IsTimeout(err) {
			open++
		}
	}
	if open != 4 {
		t.Errorf("one address has %d connections, want half of 8", open)
	}
	if answer, _ := r.post(client("127.0.0.1"), "/answer", strings.NewReader("x")); answer.StatusCode != http.StatusOK {
		t.Errorf("another address is answered by %d", answer.StatusCode)
	}
}

// TestSlowClientsAreLeft: headers and bodies have to come in time.
func TestSlowClientsAreLeft(t *testing.T) {
	r := start(t, func(s *Server) { s.limits.header, s.limits.read = 300*time.Millisecond, 600*time.Millisecond })
	for name, sent := range map[string]string{
		"in the handshake": "",
		"in its headers":   "POST /convert HTTP/1.1\r\nHost: x\r\n",
		"in its body":      "POST /convert HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhello",
	} {
		t.Run(name, func(t *testing.T) {
			plain, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(r.url(""), "https://"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = plain.Close() }()
			c := plain
			if sent != "" {
				c = tls.Client(plain, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // not what is tested
				if _, err := c.Write([]byte(sent)); err != nil {
					t.Fatal(err)
				}
			}
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Second)) // a connection that can't has ended
			if _, err := io.Copy(io.Discard, c); os.IsTimeout(err) {
				t.Error("it is waited for")
			}
		})
	}
}

// TestClientsAreVerified: for admission, if a CA is given. API servers have no certificate for conversion.
func TestClientsAreVerified(t *testing.T) {
	ca, apiServer := newCA(t, "kube-apiserver")
	_, stranger := newCA(t, "kube-apiserver")
	file := filepath.Join(t.TempDir(), "ca.crt")
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(ca)
	r := start(t, func(s *Server) { s.Clients = Clients{CAFile: file, Names: []string{"kube-apiserver"}} })
	ask := func(c *http.Client, path string) int {
		answer, err := c.Post(r.url(path), "application/json", strings.NewReader("x"))
		if err != nil {
			return 0
		}
		_ = answer.Body.Close() // its status is enough
		return answer.StatusCode
	}
	for name, tc := range map[string]struct {
		client           *http.Client
		answer, converts int
	}{
		"the API server":               {client("127.0.0.1", *apiServer), 200, 200},
		"a client without":             {client("127.0.0.1"), 403, 200},
		"a client of another CA":       {client("127.0.0.1", *stranger), 0, 0}, // it is not connected
		"a client that is not the one": {client("127.0.0.1", *apiServer), 403, 200},
	} {
		r.server.Clients.Names = []string{"kube-apiserver"}
		if strings.HasSuffix(name, "not the one") {
			r.server.Clients.Names = []string{"another"}
		}
		if got := ask(tc.client, "/answer"); got != tc.answer {
			t.Errorf("%s is answered by %d, want %d", name, got, tc.answer)
		}
		if got := ask(tc.client, "/convert"); got != tc.converts {
			t.Errorf("%s that has an object converted is answered by %d, want %d", name, got, tc.converts)
		}
	}
	r.server.Clients.Names = nil
	next, apiServer := newCA(t, "any")
	write(next)
	if got := ask(client("127.0.0.1", *apiServer), "/answer"); got != http.StatusOK {
		t.Errorf("a client of the CA that took the place of the first is answered by %d", got)
	}
	write([]byte("nothing"))
	if got := ask(client("127.0.0.1", *apiServer), "/answer"); got != 0 {
		t.Errorf("with no readable CA a client is answered by %d", got)
	}
}

// TestARequestEndsWithItsClientsPatience, which API servers tell.
func TestARequestEndsWithItsClientsPatience(t *testing.T) {
	r := start(t, func(s *Server) {
		s.Register("/waits", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			w.WriteHeader(http.StatusTeapot)
		}))
	})
	if answer, _ := r.post(client("127.0.0.1"), "/waits?timeout=100ms", strings.NewReader("x")); answer.StatusCode != http.StatusTeapot {
		t.Errorf("answered by %d", answer.StatusCode)
	}
}

// TestAHungHandlerIsSeen: it holds a lock for ever, say, and every request with it.
func TestAHungHandlerIsSeen(t *testing.T) {
	now := time.Now()
	release, asked := make(chan struct{}), make(chan struct{})
	r := start(t, func(s *Server) {
		s.handled.now = func() time.Time { return now }
		s.Register("/hangs", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(asked)
			<-release
		}))
	})
	check := r.server.HungChecker()
	go func() {
		answer, err := client("127.0.0.1").Post(r.url("/hangs"), "application/json", strings.NewReader("x"))
		if err == nil {
			_ = answer.Body.Close()
		}
	}()
	<-asked
	now = now.Add(hungAfter)
	if err := check(nil); err != nil {
		t.Errorf("after %s: %v", hungAfter, err)
	}
	now = now.Add(time.Second)
	if err := check(nil); err == nil || !strings.Contains(err.Error(), "/hangs has not been answered for 1m1s") {
		t.Errorf("a handler that has hung for %s: %v", hungAfter+time.Second, err)
	}
	close(release)
}

// TestDraining: a server that is about to end is unready, answers all the same, and closes connections only with an answer.
func TestDraining(t *testing.T) {
	asked, release := make(chan struct{}, 1), make(chan struct{})
	r := start(t, func(s *Server) {
		s.Register("/slow", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			<-release
			if err := r.Context().Err(); err != nil {
				t.Errorf("a request is given up: %v", err)
			}
		}))
	})
	c := client("127.0.0.1")
	if answer, _ := r.post(c, "/answer", strings.NewReader("x")); answer.Close {
		t.Error("a connection is closed without need")
	}
	r.server.Drain()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "/readyz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.server.StartedChecker()(request); err == nil {
		t.Error("the server is ready")
	}
	if answer, _ := r.post(c, "/answer", strings.NewReader("x")); answer.StatusCode != http.StatusOK || !answer.Close {
		t.Errorf("answered by %d, and the connection closed: %t", answer.StatusCode, answer.Close)
	}
	got := make(chan int)
	go func() {
		answer, err := c.Post(r.url("/slow"), "application/json", strings.NewReader("x"))
		if err != nil {
			t.Error(err)
			got <- 0
			return
		}
		_ = answer.Body.Close() // its status is enough
		got <- answer.StatusCode
	}()
	<-asked
	r.stop()
	time.Sleep(100 * time.Millisecond)
	close(release)
	if status := <-got; status != http.StatusOK {
		t.Errorf("a request that had come before the end is answered by %d", status)
	}
}
