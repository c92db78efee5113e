package clusters

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// behind is a client of a server that does as handler says, and the address of that server.
func behind(t *testing.T, handler http.HandlerFunc) (*http.Client, string) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, BearerToken: "token", TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}}
	out, err := newHTTPClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return out, server.URL
}

// TestNoAnswerIsWaitedForForEver, but one that goes on, as that of a watch does, is read as long as it does.
func TestNoAnswerIsWaitedForForEver(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hangs" {
			<-release
			return
		}
		for i := range 10 {
			_, _ = fmt.Fprintln(w, i)
			w.(http.Flusher).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	client := &http.Client{Transport: impatient{http.DefaultTransport, 100 * time.Millisecond}}

	begin := time.Now()
	response, err := client.Get(server.URL + "/hangs")
	if err == nil {
		_ = response.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "no answer within 100ms") || time.Since(begin) > 2*time.Second {
		t.Errorf("after %s: %v", time.Since(begin), err)
	}

	response, err = client.Get(server.URL + "/goes-on")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if text, err := io.ReadAll(response.Body); err != nil || strings.Count(string(text), "\n") != 10 {
		t.Errorf("got %q, %v", text, err)
	}
}

// TestRedirectionsAreNotFollowed: they could lead into the hub's network, and have the token sent there.
func TestRedirectionsAreNotFollowed(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(other.Close)
	client, address := behind(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token" {
			t.Error("the request has no token")
		}
		http.Redirect(w, r, other.URL, http.StatusFound)
	})
	response, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if asked || response.StatusCode != http.StatusFound {
		t.Errorf("the other server was asked: %t; code %d", asked, response.StatusCode)
	}
}
