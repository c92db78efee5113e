package clusters

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
)

// fakeHub holds cluster objects.
type fakeHub struct {
	mu       sync.Mutex
	secrets  map[types.NamespacedName]*corev1.Secret
	profiles map[types.NamespacedName]string
	err      error
}

func newFakeHub() *fakeHub {
	return &fakeHub{secrets: map[types.NamespacedName]*corev1.Secret{}, profiles: map[types.NamespacedName]string{}}
}

func (h *fakeHub) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return h.err
	}
	switch into := into.(type) {
	case *corev1.Secret:
		if secret := h.secrets[key]; secret != nil {
			secret.DeepCopyInto(into)
			return nil
		}
	case *unstructured.Unstructured:
		if h.profiles == nil {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ClusterProfile"}}
		}
		if text, ok := h.profiles[key]; ok {
			return json.Unmarshal([]byte(text), &into.Object)
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (h *fakeHub) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	asked := (&client.ListOptions{}).ApplyOptions(options)
	for key, secret := range h.secrets {
		if key.Namespace == asked.Namespace && asked.LabelSelector.Matches(labels.Set(secret.Labels)) {
			list.(*corev1.SecretList).Items = append(list.(*corev1.SecretList).Items, *secret)
		}
	}
	return h.err
}

func (h *fakeHub) change(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

// secret stores a kubeconfig Secret and returns the reference to it.
func (h *fakeHub) secret(name string, kubeconfig []byte) Ref {
	ref := Ref{Secret, "default", name}
	h.change(func() {
		h.secrets[ref.key()] = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: ref.Namespace, Name: name, Labels: map[string]string{keys.KubeconfigSecret: "true", "region": "a"},
			},
			Data: map[string][]byte{keys.KubeconfigKey: kubeconfig},
		}
	})
	return ref
}

// fakeMember is the API server of a cluster that has namespaces, Pods, Deployments and StatefulSets, and none of any but a namespace.
type fakeMember struct {
	*httptest.Server
	mu       sync.Mutex
	uid      string
	revision int
	code     int // of every answer, if it is not zero
	kruise   bool
	// news is the revision of a Deployment of the hub's that watches tell of; 0 for none. Since it was restored, earlier watches are over.
	news     int
	restored int
	// listing is called before a probe's list is answered.
	listing func()
	// gone ends watches.
	gone chan struct{}
}

func newFakeMember(t *testing.T, uid string) *fakeMember {
	t.Helper()
	m := &fakeMember{uid: uid, revision: 100, gone: make(chan struct{})}
	m.Server = httptest.NewTLSServer(m)
	t.Cleanup(func() {
		close(m.gone)
		m.Close()
	})
	return m
}

func (m *fakeMember) change(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

func (m *fakeMember) kubeconfig(t testing.TB) []byte {
	t.Helper()
	config := good(t)
	config.Clusters["member"] = &clientcmdapi.Cluster{
		Server:                   m.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.Certificate().Raw}),
	}
	config.AuthInfos["kruise"] = &clientcmdapi.AuthInfo{Token: "token"}
	return written(t, config)
}

func (m *fakeMember) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	uid, revision, code, kruise, listing := m.uid, m.revision, m.code, m.kruise, m.listing
	m.mu.Unlock()
	answer := func(code int, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = fmt.Fprint(w, text)
	}
	discovery := r.URL.Path == "/api" || r.URL.Path == "/apis" || r.URL.Path == "/api/v1" || strings.HasPrefix(r.URL.Path, "/apis/") && strings.Count(r.URL.Path, "/") == 3
	if code != 0 && !discovery {
		reason := map[int]string{401: "Unauthorized", 403: "Forbidden"}[code]
		answer(code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"it says %d","code":%d}`, reason, code, code))
		return
	}
	resources := func(group string, kinds ...string) string {
		var out []string
		for _, kind := range kinds {
			out = append(out, fmt.Sprintf(`{"name":"%ss","namespaced":%t,"kind":%q,"verbs":["list","watch"]}`, strings.ToLower(kind), kind != "Namespace", kind))
		}
		return fmt.Sprintf(`{"kind":"APIResourceList","groupVersion":%q,"resources":[%s]}`, group, strings.Join(out, ","))
	}
	group := func(name, version string) string {
		v := fmt.Sprintf(`{"groupVersion":"%s/%s","version":%q}`, name, version, version)
		return fmt.Sprintf(`{"name":%q,"versions":[%s],"preferredVersion":%s}`, name, v, v)
	}
	groups := []string{group("apps", "v1")}
	if kruise {
		groups = append(groups, group("apps.kruise.io", "v1beta1"))
	}
	switch path := r.URL.Path; {
	case path == "/readyz":
		answer(200, `"ok"`)
	case path == "/api":
		answer(200, `{"kind":"APIVersions","versions":["v1"]}`)
	case path == "/apis":
		answer(200, fmt.Sprintf(`{"kind":"APIGroupList","groups":[%s]}`, strings.Join(groups, ",")))
	case path == "/api/v1":
		answer(200, resources("v1", "Pod", "Namespace"))
	case path == "/apis/apps/v1":
		answer(200, resources("apps/v1", "Deployment", "StatefulSet"))
	case path == "/apis/apps.kruise.io/v1beta1" && kruise:
		answer(200, resources("apps.kruise.io/v1beta1", "CloneSet", "StatefulSet"))
	case path == "/api/v1/namespaces/kube-system":
		answer(200, fmt.Sprintf(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, uid))
	case r.URL.Query().Has("sendInitialEvents"):
		answer(422, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case r.URL.Query().Has("watch"):
		if from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion")); from > revision {
			answer(410, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
			return
		}
		m.watch(w, r)
	case strings.HasPrefix(path, "/api"):
		parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/"), "/")
		kind := map[string]string{"pods": "PodList", "deployments": "DeploymentList", "statefulsets": "StatefulSetList", "clonesets": "CloneSetList"}[parts[len(parts)-1]]
		version := strings.Join(parts[:len(parts)-1], "/")
		if listing != nil && r.URL.Query().Get("limit") == "1" {
			listing()
		}
		answer(200, fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[]}`, kind, version, revision))
	default:
		answer(404, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
}

// watch tells of the news once, until the member is restored.
func (m *fakeMember) watch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	m.mu.Lock()
	epoch := m.restored
	m.mu.Unlock()
	for told := false; ; {
		m.mu.Lock()
		news, over := m.news, m.restored != epoch
		m.mu.Unlock()
		if over {
			return
		}
		if news > 0 && !told && strings.HasSuffix(r.URL.Path, "/deployments") {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"namespace":"shop","name":"web","uid":"web",`+
				`"resourceVersion":"%d","labels":{%q:"hub",%q:"owner"}}}}`+"\n", news, keys.HubID, keys.HubOwnerUID)
			w.(http.Flusher).Flush()
			told = true
		}
		select {
		case <-r.Context().Done():
			return
		case <-m.gone:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// silent is the address of a server that accepts connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = connection.Close() })
		}
	}()
	return "https://" + listener.Addr().String()
}

// rig is a registry over a fake hub.
type rig struct {
	*testing.T
	*Registry
	hub *fakeHub
	mu  sync.Mutex
	// told counts the news for each owner.
	told map[types.UID]int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, hub: newFakeHub(), told: map[types.UID]int{}}
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	r.Registry = New(Options{
		Hub: r.hub, HubID: "hub", Scheme: s, UserAgent: "test", Now: time.Now, Log: logr.Discard(),
		Changed: func(owner types.UID) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.told[owner]++
		},
		Times: connection.Times{
			Probe: 20 * time.Millisecond, ProbeLimit: 500 * time.Millisecond, Misses: 3, Join: 2 * time.Second,
			Backoff: 20 * time.Millisecond, MaxBackoff: 100 * time.Millisecond, Rediscovery: 100 * time.Millisecond, Idle: 100 * time.Millisecond,
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

func (r *rig) news(owner types.UID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told[owner]
}

// becomes waits until a cluster is in a state, and returns it.
func (r *rig) becomes(ref Ref, want connection.Reason) View {
	r.Helper()
	return r.until(ref, string(want), func(v View) bool { return v.Reason == want })
}

func (r *rig) until(ref Ref, what string, is func(View) bool) View {
	r.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		v := r.Look(ref)
		if is(v) {
			return v
		}
		if time.Now().After(deadline) {
			r.Fatalf("%s is %s: %s; want %s", ref, v.Reason, v.Message, what)
		}
	}
}
