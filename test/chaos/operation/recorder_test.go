package operation

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// write is a write that the API server took from one manager.
type write struct {
	at           time.Time
	method, path string
	body         string
}

func (w write) String() string { return fmt.Sprintf("%s %s %s", w.method, w.path, w.body) }

// aUID is what a UID looks like, in a body of any encoding.
var aUID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// isFenced reports whether the write fails if the object is not the one that its writer saw.
func (w write) isFenced() bool {
	if w.method == http.MethodDelete {
		return aUID.MatchString(w.body)
	}
	tests := strings.Contains(w.body, `"op":"test","path":"/metadata/uid"`) // a JSON patch
	return w.method != http.MethodPost && (tests || strings.Contains(w.body, `"resourceVersion":"`) || strings.Contains(w.body, `"uid":"`))
}

// line is a manager's own connection to the API server, which knows what the manager writes and can cut it off from its Lease.
type line struct {
	mu      sync.Mutex
	writes  []write
	leasing bool
}

// lineOf returns the connection of a manager that is to be launched under a name, and the arguments for it.
func (s *site) lineOf(name string) (*line, []string) {
	s.Helper()
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(s.Config)) // the manager is known by its own token
	s.Must(err)
	server, err := url.Parse(s.Config.Host)
	s.Must(err)
	l := &line{leasing: true}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(server) }, Transport: transport, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				s.Logf("the connection of manager %s: %v", name, err)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	serving := httptest.NewUnstartedServer(l.through(proxy))
	serving.EnableHTTP2 = true
	serving.StartTLS() // clients send no token otherwise
	s.Cleanup(func() {
		serving.CloseClientConnections()
		serving.Close()
	})
	dir := filepath.Join(s.Dir, name+"-line")
	s.Must(os.MkdirAll(dir, 0o755))
	path, err := s.ManagerKubeconfig(s.Ctx, dir)
	s.Must(err)
	config, err := clientcmd.LoadFromFile(path)
	s.Must(err)
	for _, c := range config.Clusters {
		c.Server, c.CertificateAuthority = serving.URL, ""
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: serving.Certificate().Raw})
	}
	s.Must(clientcmd.WriteToFile(*config, path))
	return l, []string{"--kubeconfig", path}
}

// through passes requests on, and notes the writes that are taken.
func (l *line) through(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/leases/") && !l.leases() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if r.Method == http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		came := time.Now()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := &status{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(answer, r)
		if answer.code < http.StatusMultipleChoices {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.writes = append(l.writes, write{came, r.Method, r.URL.Path, string(body)})
		}
	})
}

func (l *line) leases() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leasing
}

// cutLease has the manager be unable to renew its Lease.
func (l *line) cutLease() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leasing = false
}

// since returns the writes of objects of the default namespace that were taken after a time, without events.
func (l *line) since(at time.Time) []write {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.writes), func(w write) bool {
		return !w.at.After(at) || !strings.Contains(w.path, "/namespaces/default/") || strings.Contains(w.path, "/events")
	})
}

// status notes the code of an answer.
type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap lets watches be flushed.
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// shortLease has another manager lead soon after one is gone.
func shortLease() []string {
	return []string{"--leader-election-lease-duration=6s", "--leader-election-renew-deadline=4s", "--leader-election-retry-period=500ms"}
}

// colleague is one of several managers.
type colleague struct {
	*cluster.Manager
	name string
	line *line
}

// join launches a manager behind the Service, with a connection of its own and a Lease that another one takes over soon.
func (s *site) join(name string) *colleague {
	s.Helper()
	return s.joinAs(name, "")
}

// joinAs does the same with the manager of another version, by the path of its binary.
func (s *site) joinAs(name, binary string) *colleague {
	s.Helper()
	c := s.launchAs(name, binary)
	s.addEndpoint(name, c.WebhookPort())
	return c
}

// launchAs launches such a manager that the Service does not lead to.
func (s *site) launchAs(name, binary string) *colleague {
	s.Helper()
	l, args := s.lineOf(name)
	m := s.Launch(name, cluster.ManagerOptions{Binary: binary, Env: []string{"WEBHOOK_HOST="}, Args: append(args, shortLease()...)})
	s.Must(m.WaitReady(s.Ctx))
	return &colleague{Manager: m, name: name, line: l}
}
