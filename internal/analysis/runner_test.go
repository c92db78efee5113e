package analysis

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	rules "github.com/seed-69ecc383/kruise/internal/rules/analysis"
)

// local lets measurements reach the servers of tests.
func local() Addresses {
	return Addresses{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
}

// runner is one that runs until the end of the test, and a channel that says when measurements have ended.
func runner(t *testing.T, o Options) (*Runner, chan types.NamespacedName) {
	t.Helper()
	if o.Now = time.Now; o.Secrets == nil {
		o.Secrets = fake.NewClientBuilder().Build()
	}
	r := New(o)
	ended := make(chan types.NamespacedName, 100)
	r.Asked(func(rollout types.NamespacedName) { ended <- rollout })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Start(ctx) // never fails
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Error("measurements go on after the end")
		}
	})
	return r, ended
}

func rollout() types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: "web"} }

// measured returns what a check tells.
func measured(t *testing.T, o Options, check v1beta1.Check) rules.Result {
	t.Helper()
	r, ended := runner(t, o)
	r.Want(rollout(), "u", []rules.Request{{ID: "a", Number: 1, Check: check}})
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the measurement does not end")
	}
	results := r.Results("u")
	if len(results) != 1 {
		t.Fatalf("results %+v", results)
	}
	return results[0]
}

func get(url string) v1beta1.Check {
	return v1beta1.Check{Name: "up", TimeoutSeconds: ptr.To[int32](5), HTTP: &v1beta1.HTTPCheck{URL: url}}
}

func TestRequests(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"method":"` + r.Method + `","probe":"` + r.Header.Get("X-Probe") + `","rate":0.02}`))
	})
	mux.HandleFunc("/bad", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusFound) })
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, maxBody+1)) })
	mux.HandleFunc("/hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewServer(mux)
	defer server.Close()
	secure := httptest.NewTLSServer(mux)
	defer secure.Close()
	for name, tc := range map[string]struct {
		path   string
		change func(*v1beta1.Check)
		want   v1beta1.AnalysisPhase
		says   string
	}{
		"it answers":                 {"/ok", nil, v1beta1.AnalysisSuccessful, ""},
		"it fails":                   {"/bad", nil, v1beta1.AnalysisFailed, "want a status from 200 to 299"},
		"a redirection is an answer": {"/elsewhere", func(c *v1beta1.Check) { c.HTTP.Status = []int32{302} }, v1beta1.AnalysisSuccessful, ""},
		"the answer is too large":    {"/large", nil, v1beta1.AnalysisInconclusive, "more than 1048576 bytes"},
		"there is no answer":         {"/hangs", func(c *v1beta1.Check) { c.TimeoutSeconds = ptr.To[int32](1) }, v1beta1.AnalysisInconclusive, "no answer in time"},
		"a method": {"/ok", func(c *v1beta1.Check) {
			c.HTTP.Method = "POST"
			c.HTTP.JSON = &v1beta1.JSONRule{Field: "method", Equals: "POST"}
		}, v1beta1.AnalysisSuccessful, ""},
		"a header": {"/ok", func(c *v1beta1.Check) {
			c.HTTP.Headers = []v1beta1.RequestHeader{{Name: "X-Probe", Value: "yes"}}
			c.HTTP.JSON = &v1beta1.JSONRule{Field: "probe", Equals: "yes"}
		}, v1beta1.AnalysisSuccessful, ""},
		"a number":                    {"/ok", func(c *v1beta1.Check) { c.HTTP.JSON = &v1beta1.JSONRule{Field: "rate", Success: "< 0.01"} }, v1beta1.AnalysisFailed, "want < 0.01"},
		"a server of unknown origin":  {"/ok", func(c *v1beta1.Check) { c.HTTP.URL = secure.URL + "/ok" }, v1beta1.AnalysisInconclusive, "certificate"},
		"a caBundle that is none":     {"/ok", func(c *v1beta1.Check) { c.HTTP.Access.CABundle = []byte("x") }, v1beta1.AnalysisInconclusive, "caBundle holds no certificate"},
		"a Service that has no name":  {"/ok", func(c *v1beta1.Check) { c.HTTP.URL = ""; c.HTTP.Service = &v1beta1.ServiceTarget{Name: "web"} }, v1beta1.AnalysisInconclusive, "web.ns.svc"},
		"a port where nobody listens": {"/ok", func(c *v1beta1.Check) { c.HTTP.URL = "http://127.0.0.1:1" }, v1beta1.AnalysisInconclusive, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			check := get(server.URL + tc.path)
			if tc.change != nil {
				tc.change(&check)
			}
			if got := measured(t, Options{Addresses: local()}, check); got.Phase != tc.want || !strings.Contains(got.Message, tc.says) {
				t.Errorf("%+v, want %s: %s", got, tc.want, tc.says)
			}
		})
	}
}

func TestWhereConnectionsMayLead(t *testing.T) {
	a := Addresses{Refuse: []netip.Prefix{netip.MustParsePrefix("10.96.0.1/32")}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}}
	for address, want := range map[string]string{
		"10.96.0.2": "", "192.168.1.1": "", "203.0.113.7": "", "2001:db8::1": "", "fd12::1": "", "127.0.0.9": "",
		"127.0.0.1": "host", "::1": "host", "0.0.0.0": "host", "::": "host", "0.1.2.3": "host", "::ffff:127.0.0.1": "host", "64:ff9b::7f00:1": "host",
		"169.254.169.254": "link-local", "fe80::1": "link-local", "fe80::1%eth0": "link-local", "::ffff:169.254.169.254": "link-local",
		"64:ff9b::a9fe:a9fe": "link-local", "100.100.100.200": "themselves", "168.63.129.16": "themselves", "fd00:ec2::254": "themselves",
		"224.0.0.1": "many", "ff02::1": "many", "255.255.255.255": "many",
		"10.96.0.1": "not allowed", "::ffff:10.96.0.1": "not allowed",
	} {
		got := a.refuses(netip.MustParseAddr(address))
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	asked := atomic.Bool{}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	defer server.Close()
	for name, url := range map[string]string{
		"an address": server.URL, "a name": strings.Replace(server.URL, "127.0.0.1", "localhost", 1),
		"an address in another spelling": strings.Replace(server.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1),
	} {
		if got := measured(t, Options{}, get(url)); got.Phase != v1beta1.AnalysisInconclusive || !strings.Contains(got.Message, "are refused: it is the host of the managers") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if asked.Load() {
		t.Error("the server was asked")
	}
}

func TestCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		_, _ = w.Write([]byte(`{"sent":"` + r.Header.Get("Authorization") + `","user":"` + user + password + `"}`))
	}))
	defer server.Close()
	secret := func(of corev1.SecretType, data map[string]string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Type: of, Data: map[string][]byte{}}
		for key, value := range data {
			s.Data[key] = []byte(value)
		}
		return s
	}
	for name, tc := range map[string]struct {
		secret *corev1.Secret
		sent   string
		says   string
	}{
		"a token":              {secret(CredentialsType, map[string]string{"origin": server.URL, "token": "t"}), "Bearer t", ""},
		"a user":               {secret(CredentialsType, map[string]string{"origin": server.URL + "/", "username": "u", "password": "p"}), "Basic dTpw", ""},
		"of another server":    {secret(CredentialsType, map[string]string{"origin": "https://prometheus.example.com", "token": "t"}), "", "is for another server: its key origin has to be http://127.0.0.1:"},
		"of no server":         {secret(CredentialsType, map[string]string{"token": "t"}), "", "is for another server"},
		"of a service account": {secret(corev1.SecretTypeServiceAccountToken, map[string]string{"origin": server.URL, "token": "t"}), "", "is of type kubernetes.io/service-account-token"},
		"empty":                {secret(CredentialsType, map[string]string{"origin": server.URL}), "", "has neither token nor username"},
		"in another namespace": {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "s"}}, "", "there is no Secret s"},
	} {
		t.Run(name, func(t *testing.T) {
			check := get(server.URL)
			check.HTTP.Access.SecretName = "s"
			check.HTTP.JSON = &v1beta1.JSONRule{Field: "sent", Equals: tc.sent}
			got := measured(t, Options{Addresses: local(), Secrets: fake.NewClientBuilder().WithObjects(tc.secret).Build()}, check)
			if tc.says == "" && got.Phase != v1beta1.AnalysisSuccessful || tc.says != "" && (got.Phase != v1beta1.AnalysisInconclusive || !strings.Contains(got.Message, tc.says)) {
				t.Errorf("%+v, want %s", got, tc.says)
			}
		})
	}
}

// TestWhatIsWanted tells the same again, gives up, and stops.
func TestWhatIsWanted(t *testing.T) {
	var mu sync.Mutex
	asked, left := 0, make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked++
		mu.Unlock()
		if r.URL.Path == "/hangs" {
			<-r.Context().Done()
			left <- struct{}{}
		}
	}))
	defer server.Close()
	before := runtime.NumGoroutine()
	r := New(Options{Addresses: local(), Now: time.Now, Secrets: fake.NewClientBuilder().Build()})
	ended := make(chan types.NamespacedName, 10)
	r.Asked(func(rollout types.NamespacedName) { ended <- rollout })
	one := []rules.Request{{ID: "a", Number: 1, Check: get(server.URL)}}
	r.Want(rollout(), "u", one) // before it leads
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		_ = r.Start(ctx) // never fails
		close(stopped)
	}()
	if of := <-ended; of != rollout() {
		t.Errorf("ended of %s", of)
	}
	for range 3 {
		r.Want(rollout(), "u", one)
	}
	if results := r.Results("u"); len(results) != 1 || results[0].Key != one[0].Key() {
		t.Errorf("results %+v", results)
	}
	hangs := get(server.URL + "/hangs")
	hangs.TimeoutSeconds = ptr.To[int32](600)
	r.Want(rollout(), "u", []rules.Request{{ID: "a", Number: 2, Check: hangs}})
	if results := r.Results("u"); len(results) != 0 {
		t.Errorf("results that nobody wants any more: %+v", results)
	}
	for {
		mu.Lock()
		n := asked
		mu.Unlock()
		if n == 2 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	r.Forget("u") // gives it up
	<-left
	r.Want(rollout(), "u", []rules.Request{{ID: "b", Number: 1, Check: hangs}})
	time.Sleep(50 * time.Millisecond)
	cancel() // and so does the end
	<-stopped
	r.Want(rollout(), "u", one)
	if len(ended) > 0 {
		t.Error("what was given up has ended")
	}
	server.CloseClientConnections()
	for until := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before+2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d goroutines are left of %d", runtime.NumGoroutine(), before)
		}
	}
}

// TestManyMeasurementsAtOnce has more wanted than are made at a time: all end.
func TestManyMeasurementsAtOnce(t *testing.T) {
	now, most := atomic.Int32{}, atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		for n := now.Add(1); ; {
			if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		time.Sleep(20 * time.Millisecond)
		now.Add(-1)
	}))
	defer server.Close()
	r, ended := runner(t, Options{Addresses: local()})
	var wanted []rules.Request
	for i := range 60 {
		wanted = append(wanted, rules.Request{ID: "a", Number: int32(i), Check: get(server.URL)})
	}
	r.Want(rollout(), "u", wanted)
	for range wanted {
		<-ended
	}
	if n := most.Load(); n > parallel || len(r.Results("u")) != len(wanted) {
		t.Errorf("%d at a time, %d results", n, len(r.Results("u")))
	}
}
