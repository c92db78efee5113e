package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"

	"github.com/seed-69ecc383/kruise/internal/node/cri"
)

func TestGraceLeft(t *testing.T) {
	for name, tc := range map[string]struct{ grace, used, want time.Duration }{
		"no hook":                   {30 * time.Second, 0, 30 * time.Second},
		"a hook of some seconds":    {30 * time.Second, 12400 * time.Millisecond, 18 * time.Second},
		"a hook of nearly all":      {30 * time.Second, 29500 * time.Millisecond, 2 * time.Second},
		"a hook that was given up":  {30 * time.Second, 30 * time.Second, 2 * time.Second},
		"no grace at all":           {0, 0, 2 * time.Second},
		"a hook of less than 1 sec": {5 * time.Second, 900 * time.Millisecond, 5 * time.Second},
	} {
		if got := GraceLeft(tc.grace, tc.used); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestGraceOfPods(t *testing.T) {
	p := &corev1.Pod{}
	if got := Grace(p); got != 30*time.Second {
		t.Errorf("a Pod that does not say has %s, want 30 s", got)
	}
	zero := int64(0)
	p.Spec.TerminationGracePeriodSeconds = &zero
	if got := Grace(p); got != 0 {
		t.Errorf("a Pod that gives none has %s", got)
	}
}

// runtime answers commands.
type runtime func(ctx context.Context, limit time.Duration) (cri.Output, error)

func (r runtime) Exec(ctx context.Context, _ string, _ []string, limit time.Duration) (cri.Output, error) {
	return r(ctx, limit)
}

func TestHooksThatRunACommand(t *testing.T) {
	away := fmt.Errorf("running: %w", status.Error(codes.Unavailable, "gone"))
	for name, tc := range map[string]struct {
		runtime runtime
		want    string
		tells   bool
	}{
		"it ends well": {func(context.Context, time.Duration) (cri.Output, error) { return cri.Output{}, nil }, "", false},
		"it fails": {func(context.Context, time.Duration) (cri.Output, error) {
			return cri.Output{ExitCode: 3, Stderr: []byte("no\n")}, nil
		}, `command ["drain"] ended with code 3: no`, true},
		"there is no such thing": {func(context.Context, time.Duration) (cri.Output, error) {
			return cri.Output{}, errors.New("no such file")
		}, "no such file", true},
		"the runtime is not here": {
			func(context.Context, time.Duration) (cri.Output, error) { return cri.Output{}, away }, away.Error(), false,
		},
		"it hangs": {func(ctx context.Context, _ time.Duration) (cri.Output, error) {
			<-ctx.Done()
			return cri.Output{}, ctx.Err()
		}, "the hook was given up after 50ms, which is all the time that the container has", true},
	} {
		t.Run(name, func(t *testing.T) {
			events := record.NewFakeRecorder(9)
			h := Hook{
				Runtime: tc.runtime, Container: "a", Pod: &corev1.Pod{}, Grace: 50 * time.Millisecond, Events: events,
				Handler: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"drain"}}},
			}
			got := ""
			if err := h.Run(t.Context()); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("error %q, want %q", got, tc.want)
			}
			if told := len(events.Events) > 0; told != tc.tells {
				t.Errorf("an event tells of it: %t", told)
			}
		})
	}
}

// TestEventsOfHooksTellNoSecrets: who may read events of a Pod need not be allowed to read what its commands print.
func TestEventsOfHooksTellNoSecrets(t *testing.T) {
	events := record.NewFakeRecorder(9)
	h := Hook{
		Runtime: runtime(func(context.Context, time.Duration) (cri.Output, error) {
			return cri.Output{ExitCode: 1, Stderr: []byte("login failed: hunter2"), Stdout: []byte(strings.Repeat("x", 1<<20))}, nil
		}),
		Container: "a", Pod: &corev1.Pod{}, Grace: time.Second, Events: events,
		Handler: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"drain", "--token=hunter2"}}},
	}
	err := h.Run(t.Context())
	if err == nil || len(err.Error()) > 2048 {
		t.Errorf("the error has %d bytes", len(fmt.Sprint(err)))
	}
	if told := <-events.Events; strings.Contains(told, "hunter2") || !strings.Contains(told, "FailedPreStopHook") || len(told) > 200 {
		t.Errorf("the event says %.200s", told)
	}
}

func TestHooksThatSleep(t *testing.T) {
	h := Hook{
		Pod: &corev1.Pod{}, Grace: 20 * time.Millisecond, Events: record.NewFakeRecorder(9),
		Handler: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 60}},
	}
	if err := h.Run(t.Context()); err == nil {
		t.Error("a hook that sleeps longer than it may is not given up")
	}
	h.Handler.Sleep.Seconds = 0
	if err := h.Run(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestHooksOverHTTP(t *testing.T) {
	var heard *http.Request
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard = r
		w.WriteHeader(http.StatusInternalServerError) // any answer will do
	}))
	t.Cleanup(web.Close)
	port := web.Listener.Addr().(*net.TCPAddr).Port
	for name, tc := range map[string]struct {
		get  corev1.HTTPGetAction
		want string // of the error
	}{
		"a named port":           {corev1.HTTPGetAction{Port: intstr.FromString("web"), Path: "/drain?now"}, ""},
		"a number as text":       {corev1.HTTPGetAction{Port: intstr.FromString(strconv.Itoa(port)), Path: "drain?now"}, ""},
		"https answered plainly": {corev1.HTTPGetAction{Port: intstr.FromInt(port), Path: "/drain?now", Scheme: corev1.URISchemeHTTPS}, ""},
		"an unknown port":        {corev1.HTTPGetAction{Port: intstr.FromString("other")}, "the container has no port other"},
	} {
		t.Run(name, func(t *testing.T) {
			heard = nil
			err := Hook{
				Container: "a", Pod: &corev1.Pod{Status: corev1.PodStatus{PodIP: "127.0.0.1"}},
				Handler: &corev1.LifecycleHandler{HTTPGet: &tc.get},
				Ports:   []corev1.ContainerPort{{Name: "web", ContainerPort: int32(port)}}, Grace: 5 * time.Second,
				Events: record.NewFakeRecorder(9),
			}.Run(t.Context())
			if tc.want != "" {
				if err == nil || err.Error() != tc.want {
					t.Errorf("error %v, want %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if heard == nil || heard.URL.String() != "/drain?now" || heard.UserAgent() != "kube-lifecycle" {
				t.Errorf("heard %+v", heard)
			}
		})
	}
}

// TestNoCredentialsInTheClear: a hook that is answered over HTTP when it asks over HTTPS asks again without the credentials that were meant to be
// encrypted. One that asks over HTTP from the start sends them.
func TestNoCredentialsInTheClear(t *testing.T) {
	var heard http.Header
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard = r.Header }))
	t.Cleanup(web.Close)
	for scheme, want := range map[corev1.URIScheme]string{corev1.URISchemeHTTPS: "", corev1.URISchemeHTTP: "Bearer hunter2"} {
		get := &corev1.HTTPGetAction{
			Port: intstr.FromInt(web.Listener.Addr().(*net.TCPAddr).Port), Path: "/drain", Scheme: scheme,
			HTTPHeaders: []corev1.HTTPHeader{{Name: "authorization", Value: "Bearer hunter2"}, {Name: "X-Reason", Value: "restart"}},
		}
		err := Hook{
			Container: "a", Pod: &corev1.Pod{Status: corev1.PodStatus{PodIP: "127.0.0.1"}}, Grace: 5 * time.Second,
			Handler: &corev1.LifecycleHandler{HTTPGet: get}, Events: record.NewFakeRecorder(9),
		}.Run(t.Context())
		if err != nil || heard.Get("Authorization") != want || heard.Get("X-Reason") != "restart" || len(get.HTTPHeaders) != 2 {
			t.Errorf("over %s: %v, heard %v, want Authorization %q", scheme, err, heard, want)
		}
	}
}

// TestRedirectsToPlainHTTP: neither do redirects lead credentials there.
func TestRedirectsToPlainHTTP(t *testing.T) {
	var heard http.Header
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard = r.Header }))
	t.Cleanup(web.Close)
	secure := httptest.NewTLSServer(http.RedirectHandler(web.URL, http.StatusFound))
	t.Cleanup(secure.Close)
	address := secure.Listener.Addr().(*net.TCPAddr)
	_, err := Endpoint{Host: address.IP.String(), Port: address.Port}.Get(t.Context(), &corev1.HTTPGetAction{
		Scheme: corev1.URISchemeHTTPS, HTTPHeaders: []corev1.HTTPHeader{{Name: "Authorization", Value: "Bearer hunter2"}},
	})
	if err != nil || heard == nil || heard.Get("Authorization") != "" {
		t.Errorf("%v, heard %v", err, heard)
	}
}

// TestHooksAreNotSentElsewhere: a Pod must not have the node, on whose network the daemon is, ask whom it names.
func TestHooksAreNotSentElsewhere(t *testing.T) {
	var heard []string
	note := func(_ http.ResponseWriter, r *http.Request) { heard = append(heard, r.Host+r.URL.Path) }
	other := httptest.NewServer(http.HandlerFunc(note))
	t.Cleanup(other.Close)
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1) + "/stolen"
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(w, r)
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, elsewhere, http.StatusFound)
		case "/here":
			http.Redirect(w, r, "/here/", http.StatusFound)
		}
	}))
	t.Cleanup(web.Close)
	address := web.Listener.Addr().(*net.TCPAddr)
	for path, want := range map[string][]string{
		"/away": {address.String() + "/away"},
		"/here": {address.String() + "/here", address.String() + "/here/"},
	} {
		heard = nil
		err := Hook{
			Container: "a", Pod: &corev1.Pod{Status: corev1.PodStatus{PodIP: "127.0.0.1"}}, Grace: 5 * time.Second,
			Events:  record.NewFakeRecorder(9),
			Handler: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt(address.Port), Path: path}},
		}.Run(t.Context())
		if diff := cmp.Diff(want, heard); diff != "" || err != nil {
			t.Errorf("%s: %v, heard (-want +got):\n%s", path, err, diff)
		}
	}
}
