package probe

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
)

func TestAddressesOfPods(t *testing.T) {
	// Nobody listens there: what was tried is in the answer.
	const nobody = 1
	for name, tc := range map[string]struct{ ip, want string }{
		"of version 4": {"127.0.0.1", "127.0.0.1:1"},
		"of version 6": {"::1", "[::1]:1"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			a := podProbe{ip: tc.ip}
			a.spec.Probe.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(nobody)}
			said, err := execute(ctx, nil, a, target{timeout: 5 * time.Second})
			if err != nil || said.State != v1alpha1.ProbeFailed || !strings.Contains(said.Message, tc.want) {
				t.Errorf("over TCP: %+v, %v, want %s in it", said, err, tc.want)
			}
			a.spec.Probe.TCPSocket, a.spec.Probe.HTTPGet = nil, &corev1.HTTPGetAction{Port: intstr.FromInt32(nobody), Path: "/healthy"}
			said, err = execute(ctx, nil, a, target{timeout: 5 * time.Second})
			if err != nil || said.State != v1alpha1.ProbeFailed || !strings.Contains(said.Message, "http://"+tc.want+"/healthy") {
				t.Errorf("over HTTP: %+v, %v, want %s in it", said, err, tc.want)
			}
		})
	}
	a := podProbe{}
	a.spec.Probe.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(nobody)}
	if said, err := execute(t.Context(), nil, a, target{timeout: time.Second}); err == nil {
		t.Errorf("a Pod without an address answers %+v: the node itself was asked", said)
	}
}

func TestWhatServersHear(t *testing.T) {
	var heard *http.Request
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard = r
		_, _ = w.Write([]byte(strings.Repeat("x", 20<<10)))
	}))
	t.Cleanup(web.Close)
	port := intstr.FromInt32(int32(web.Listener.Addr().(*net.TCPAddr).Port))
	for name, tc := range map[string]struct {
		headers []corev1.HTTPHeader
		want    map[string]string
	}{
		"nothing of the user's": {nil, map[string]string{"User-Agent": "kube-probe", "Accept": "*/*"}},
		"headers of the user's": {[]corev1.HTTPHeader{{Name: "user-agent", Value: "me"}, {Name: "Accept", Value: "text/html"}, {Name: "X-A", Value: "b"}, {Name: "Host", Value: "shop.example"}},
			map[string]string{"User-Agent": "me", "Accept": "text/html", "X-A": "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := podProbe{ip: "127.0.0.1"}
			a.spec.Probe.HTTPGet = &corev1.HTTPGetAction{
				Port: port, Path: "healthy?deep=1", Scheme: corev1.URISchemeHTTPS, HTTPHeaders: tc.headers,
			}
			said, err := execute(t.Context(), nil, a, target{timeout: 5 * time.Second})
			if err != nil || said.State != v1alpha1.ProbeSucceeded || len(said.Message) != 1024 {
				t.Fatalf("the answer is %s with %d bytes, %v", said.State, len(said.Message), err)
			}
			for key, want := range tc.want {
				if got := heard.Header.Get(key); got != want {
					t.Errorf("header %s is %q, want %q", key, got, want)
				}
			}
			if heard.URL.String() != "/healthy?deep=1" || len(tc.headers) > 0 && heard.Host != "shop.example" {
				t.Errorf("heard %s of %s", heard.URL, heard.Host)
			}
		})
	}
}
