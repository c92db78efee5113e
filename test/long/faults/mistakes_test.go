package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/proxy"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// TestMistakesShow judges histories in which promises are broken on purpose.
func TestMistakesShow(t *testing.T) {
	t.Run("more Pods than the budget allows are out of service", func(t *testing.T) {
		h := newMistaken(t)
		for i := range guardedReplicas {
			h.see(watch.Added, h.pod(guarded, i))
		}
		for i := range budget {
			h.see(watch.Deleted, h.pod(guarded, i))
		}
		h.shows(t, "")
		h.see(watch.Deleted, h.pod(guarded, budget))
		h.shows(t, "the budget is overspent")
	})
	t.Run("a manager takes more Pods out of service than a CloneSet allows", func(t *testing.T) {
		h := newMistaken(t)
		set := newRecreated()
		set.UID = "owner"
		h.see(watch.Added, set)
		pods := make([]*corev1.Pod, recreatedReplicas)
		for i := range pods {
			pods[i] = h.pod(recreated, i)
			h.see(watch.Added, pods[i])
		}
		h.show(t)
		for i := range 3 {
			h.remove(t, pods[i])
			if want := map[int]string{2: invariant.RuleUnavailable}[i]; i > 0 {
				h.shows(t, want)
			}
		}
	})
	t.Run("what somebody else does is not the manager's", func(t *testing.T) {
		h := newMistaken(t)
		set := newRecreated()
		set.UID = "owner"
		h.see(watch.Added, set)
		for i := range recreatedReplicas {
			h.see(watch.Added, h.pod(recreated, i))
		}
		h.show(t)
		for i := range recreatedReplicas {
			h.see(watch.Deleted, h.pod(recreated, i))
		}
		h.shows(t, "")
	})
}

func TestMistakesInRequestsShow(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	throttled := proxy.Request{Verb: "patch", Resource: "pods", Name: "a", At: at, Done: at, Code: http.StatusTooManyRequests}
	again := func(after time.Duration) proxy.Request {
		r := throttled
		r.At, r.Code = at.Add(after), http.StatusOK
		return r
	}
	list := proxy.Request{Verb: "list", Resource: "pods", Namespace: namespace}
	for name, tc := range map[string]struct {
		judge func([]proxy.Request) []string
		asked []proxy.Request
		wrong bool
	}{
		"who is told to wait waits":          {waitsAsTold, []proxy.Request{throttled, again(retryAfter)}, false},
		"who is told to wait does not":       {waitsAsTold, []proxy.Request{throttled, again(time.Second)}, true},
		"nobody is told to wait":             {waitsAsTold, nil, true},
		"all Pods of a namespace are listed": {listsNothing, []proxy.Request{list}, true},
		"a Pod is read":                      {listsNothing, []proxy.Request{{Verb: "get", Resource: "pods", Name: "a"}}, false},
		"a version is asked for":             {listsNothing, []proxy.Request{{Verb: "list", Resource: "pods", Limit: "1"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if problems := tc.judge(tc.asked); (len(problems) > 0) != tc.wrong {
				t.Errorf("problems %q, want some: %t", problems, tc.wrong)
			}
		})
	}
}

// mistaken is a history that a test makes up, and a manager's requests in it through a proxy.
type mistaken struct {
	history
	revision int64
	proxy    *proxy.Proxy
	http     *http.Client
	url      string
	// answer is what the API server answers to the next request.
	answer any
}

func newMistaken(t *testing.T) *mistaken {
	t.Helper()
	h := &mistaken{history: history{last: map[simulate.Key]client.Object{}}, revision: 100}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(h.answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	var err error
	if h.proxy, err = proxy.New(&rest.Config{Host: server.URL}, 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.proxy.Close)
	config := h.proxy.Config("token")
	h.url = config.Host
	if h.http, err = rest.HTTPClientFor(config); err != nil {
		t.Fatal(err)
	}
	return h
}

// see has the API server tell of an event.
func (h *mistaken) see(event watch.EventType, o client.Object) {
	h.revision++
	o.SetResourceVersion(fmt.Sprint(h.revision))
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	if _, isSet := o.(*v1beta1.CloneSet); isSet {
		kind = v1beta1.GroupVersion.WithKind("CloneSet")
	}
	h.history.see(simulate.Key{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}, watch.Event{Type: event, Object: o})
}

// pod returns a Pod that is in service.
func (h *mistaken) pod(app string, n int) *corev1.Pod {
	name := fmt.Sprintf("%s-%d", app, n)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: namespace, UID: types.UID(name), Labels: map[string]string{"app": app},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "CloneSet", Name: app, UID: "owner", Controller: new(true)}},
	}, Spec: template(app).Spec}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Image: registry + "app:v1", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	return pod
}

func (h *mistaken) ask(t *testing.T, method, path string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := h.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
}

// show shows the manager all that there is.
func (h *mistaken) show(t *testing.T) {
	t.Helper()
	h.answer = metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(h.revision)}}
	h.ask(t, http.MethodGet, "/api/v1/pods")
	h.ask(t, http.MethodGet, "/apis/apps.kruise.io/v1beta1/clonesets")
}

// remove has the manager remove a Pod.
func (h *mistaken) remove(t *testing.T, p *corev1.Pod) {
	t.Helper()
	h.answer = p
	h.ask(t, http.MethodDelete, "/api/v1/namespaces/"+namespace+"/pods/"+p.Name)
	h.see(watch.Deleted, p.DeepCopy())
}

// shows checks that exactly one kind of promise is seen to be broken, or none.
func (h *mistaken) shows(t *testing.T, want string) {
	t.Helper()
	problems := strings.Join(broken(h.sorted(), h.proxy.Record()), "\n")
	if want == "" && problems != "" || !strings.Contains(problems, want) {
		t.Errorf("broken promises %q, want %q", problems, want)
	}
}
