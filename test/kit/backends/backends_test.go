package backends

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/seed-69ecc383/kruise/test/kit/measure"
)

// clientOf returns a client that reaches Pods as a data plane does.
func clientOf(t *testing.T, n *Network) *http.Client {
	t.Helper()
	proxy, err := url.Parse(n.Proxy())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(proxy)}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 5 * time.Second}
}

func network(t *testing.T) *Network {
	t.Helper()
	n, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func ask(t *testing.T, c *http.Client, pod *corev1.Pod) (revision, name string, err error) {
	t.Helper()
	response, err := c.Get("http://" + pod.Status.PodIP + ":8080/")
	if err != nil {
		return "", "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if body := strings.TrimSpace(string(text)); body != response.Header.Get(measure.RevisionHeader) {
		t.Errorf("the body says %q, and the header %q", body, response.Header.Get(measure.RevisionHeader))
	}
	return response.Header.Get(measure.RevisionHeader), response.Header.Get(measure.PodHeader), nil
}

func running(name, ip, image string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: image}}
	p.Status.PodIP = ip
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	return p
}

func TestEachPodAnswersAtItsOwnAddress(t *testing.T) {
	n := network(t)
	s := &servers{network: n, byPod: map[types.UID]*server{}}
	client := clientOf(t, n)
	for _, p := range []*corev1.Pod{running("a", "10.128.0.1", "app:v1"), running("b", "10.128.0.2", "registry:5000/team/app:v2")} {
		if _, _, err := ask(t, client, p); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("a Pod that does not run answers, or does not refuse: %v", err)
		}
		s.see(watch.Event{Type: watch.Added, Object: p})
		revision, name, err := ask(t, client, p)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]string{"a": "v1", "b": "v2"}[p.Name]; revision != want || name != p.Name {
			t.Errorf("Pod %s answers as %s of %s, want %s", p.Name, name, revision, want)
		}
		s.see(watch.Event{Type: watch.Deleted, Object: p})
		if _, _, err := ask(t, client, p); err == nil {
			t.Errorf("Pod %s answers after its end", p.Name)
		}
	}
	if s.failed != nil {
		t.Error(s.failed)
	}
}

func TestAServerEndsAfterThePreStopHook(t *testing.T) {
	n := network(t)
	s := &servers{network: n, byPod: map[types.UID]*server{}}
	client := clientOf(t, n)
	p := running("a", "10.128.0.1", "app:v1")
	p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}}
	s.see(watch.Event{Type: watch.Added, Object: p})
	leaving := p.DeepCopy()
	now := metav1.Now()
	leaving.DeletionTimestamp = &now
	began := time.Now()
	s.see(watch.Event{Type: watch.Modified, Object: leaving})
	s.see(watch.Event{Type: watch.Modified, Object: leaving})
	for {
		if _, _, err := ask(t, client, p); err != nil {
			break
		}
		if time.Since(began) > 5*time.Second {
			t.Fatal("the server does not end")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if lasted := time.Since(began); lasted < time.Second {
		t.Errorf("the server ended after %v, before its preStop hook did", lasted)
	}
}

// TestARestartedContainerIsServedAgain ends the container and starts it anew, as the kubelet reports it.
func TestARestartedContainerIsServedAgain(t *testing.T) {
	n := network(t)
	s := &servers{network: n, byPod: map[types.UID]*server{}}
	client := clientOf(t, n)
	p := running("a", "10.128.0.1", "app:v1")
	s.see(watch.Event{Type: watch.Added, Object: p})
	ended := p.DeepCopy()
	ended.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	s.see(watch.Event{Type: watch.Modified, Object: ended})
	if _, _, err := ask(t, client, p); err == nil {
		t.Error("a container that has ended answers")
	}
	again := running("a", "10.128.0.1", "app:v2")
	s.see(watch.Event{Type: watch.Modified, Object: again})
	if revision, _, err := ask(t, client, p); err != nil || revision != "v2" {
		t.Errorf("the container that was started again answers as %q: %v", revision, err)
	}
}

// TestCallsOfGRPCAreAnswered asks a server directly: Go reaches servers of HTTP/2 without TLS through no proxy.
func TestCallsOfGRPCAreAnswered(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(running("a", "10.128.0.1", "app:v3"))
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(func() { _ = s.Close() })
	client := measure.Start(t.Context(), measure.Target{URL: "http://" + listener.Addr().String() + "/app.Service/Call", Rate: 200, GRPC: true})
	got, err := client.Next(t.Context(), 50)
	if err != nil {
		t.Fatal(err)
	}
	client.Stop()
	if err := got.Lost(); err != nil || got.Share("v3") != 1 {
		t.Errorf("calls of gRPC: %v, answered by %v", err, got.ByRevision)
	}
}

func TestPodsAnswerWithTLSOverHTTP2(t *testing.T) {
	n := network(t)
	s := &servers{network: n, byPod: map[types.UID]*server{}}
	p := running("a", "10.128.0.1", "app:v1")
	s.see(watch.Event{Type: watch.Added, Object: p})
	client := clientOf(t, n)
	transport := client.Transport.(*http.Transport)
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // nobody has signed the certificates of Pods
	transport.ForceAttemptHTTP2 = true
	response, err := client.Get("https://10.128.0.1:8443/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.ProtoMajor != 2 || response.Header.Get(measure.RevisionHeader) != "v1" {
		t.Errorf("the Pod answers by %s as %s", response.Proto, response.Header.Get(measure.RevisionHeader))
	}
}
