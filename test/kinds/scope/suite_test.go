// Package scope asks a real API server, with a manager behind it and with none, to create Pods, and checks which of them it asks the manager about:
// those that a SidecarSet selects or that ask for a launch order, and no others. One cluster for all tests, which run one after the other, because
// they kill the manager.
package scope

import (
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// env is a cluster with a manager, for one test at a time.
type env struct {
	*scene.Stage
	client.Client
	options cluster.ManagerOptions
	manager *cluster.Manager
	metrics string
}

// TestScope brings up one cluster for all tests below.
func TestScope(t *testing.T) {
	at := scene.NewStage(t, cluster.Options{Bare: true})
	e := &env{Stage: at, Client: at.Cluster.Client, metrics: freeAddress(t)}
	e.options = cluster.ManagerOptions{Dir: filepath.Join(at.Dir, "manager"), Args: []string{
		"--enable-leader-election=false", "--metrics-addr=" + e.metrics,
	}}
	var err error
	e.manager, err = e.StartManager(e.Ctx, e.options)
	e.Must(err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the manager's last words:\n%s", e.manager.Tail(60))
		}
		e.manager.Stop()
	})
	defer func() { e.T = t }()
	for _, namespace := range []string{"default", "shop", "team-x"} {
		e.namespace(namespace)
	}
	for name, test := range tests() {
		t.Run(name, func(t *testing.T) {
			e.T = t
			test(e)
		})
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// namespace makes a namespace with the account that its Pods get, which nobody else makes in a cluster without controllers.
func (e *env) namespace(name string) {
	e.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": strings.TrimPrefix(name, "team-")}}}
	e.Must(client.IgnoreAlreadyExists(e.Create(e.Ctx, namespace)))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}}
	e.Must(client.IgnoreAlreadyExists(e.Create(e.Ctx, account)))
}

// kill ends the manager as a crash would, until the test ends.
func (e *env) kill() {
	e.Helper()
	e.manager.Kill()
	e.Cleanup(func() {
		var err error
		e.manager, err = e.LaunchManager(e.Ctx, e.options)
		e.Must(err)
		e.Must(e.manager.WaitReady(e.Ctx))
	})
}

// sidecarSet creates a SidecarSet with a sidecar of its own name.
func (e *env) sidecarSet(name, selectors string) *v1beta1.SidecarSet {
	e.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	e.Must(yaml.UnmarshalStrict([]byte(selectors), &set.Spec))
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: name, Image: "agent"}}}
	e.Must(e.Create(e.Ctx, set))
	e.Cleanup(func() {
		e.settled() // otherwise the note of it stands for two minutes, and the next test begins with it
		e.Must(client.IgnoreNotFound(e.Delete(e.Ctx, set)))
	})
	return set
}

// pod creates a Pod with one container.
func (e *env) pod(namespace, labels string, annotations ...string) (*corev1.Pod, error) {
	e.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "web-", Annotations: map[string]string{}}}
	e.Must(yaml.UnmarshalStrict([]byte(labels), &p.Labels))
	for _, key := range annotations {
		p.Annotations[key] = "Ordered"
	}
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: "nginx"}, {Name: "aux", Image: "nginx"}}
	return p, e.Create(e.Ctx, p)
}

// passes checks that a Pod is created at once and as it was asked for. A busy machine may take its time, but not for one Pod after the
// other.
func (e *env) passes(namespace, labels string) {
	e.Helper()
	var p *corev1.Pod
	took := time.Hour
	for tries := 0; took > 2*time.Second && tries < 3; tries++ {
		began := time.Now()
		var err error
		if p, err = e.pod(namespace, labels); err != nil {
			e.Errorf("a Pod of namespace %s with labels %s: %v", namespace, labels, err)
			return
		}
		took = time.Since(began)
	}
	if took > 2*time.Second {
		e.Errorf("a Pod of namespace %s with labels %s took %s", namespace, labels, took)
	}
	if n := len(p.Spec.Containers); n != 2 {
		e.Errorf("a Pod of namespace %s with labels %s got %d containers", namespace, labels, n)
	}
}

// refused checks that no Pod is created, and that the user is told why.
func (e *env) refused(namespace, labels string, annotations ...string) {
	e.Helper()
	_, err := e.pod(namespace, labels, annotations...)
	if err == nil || !strings.Contains(err.Error(), "failed calling webhook \"mpod") {
		e.Errorf("a Pod of namespace %s with labels %s, annotations %v: %v, want it refused for want of an answer", namespace, labels, annotations, err)
	}
}

// asked returns how often the manager was asked about a Pod.
func (e *env) asked() int {
	e.Helper()
	response, err := http.Get("http://" + e.metrics + "/metrics")
	e.Must(err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	e.Must(err)
	total := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "controller_runtime_webhook_requests_total{") || !strings.Contains(line, `webhook="/mutate-pod"`) {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndex(line, " "):]))
		e.Must(err)
		total += n
	}
	return total
}

func (e *env) configuration() *admissionv1.MutatingWebhookConfiguration {
	e.Helper()
	out := &admissionv1.MutatingWebhookConfiguration{}
	e.Must(e.Get(e.Ctx, client.ObjectKey{Name: "kruise-mutating-webhook-configuration"}, out))
	return out
}

// webhooks returns the names of the webhooks for Pods.
func (e *env) webhooks() []string {
	e.Helper()
	var out []string
	for _, w := range e.configuration().Webhooks {
		if strings.HasPrefix(w.Name, "mpod") {
			out = append(out, w.Name)
		}
	}
	return out
}

// settled waits until no SidecarSet is on its way any more.
func (e *env) settled() {
	e.Helper()
	e.Eventually("nothing is on its way", func() error {
		if noted := e.configuration().Annotations[keys.PodScopePending]; noted != "" {
			return errors.New(noted)
		}
		return nil
	})
}

// calm waits until SidecarSets of earlier tests are forgotten.
func (e *env) calm() {
	e.Helper()
	e.Eventually("no webhook for SidecarSets is left", func() error {
		if left := e.webhooks(); len(left) != 1 {
			return errors.New(strings.Join(left, " "))
		}
		return nil
	})
	e.HeedsWebhooks(e.Client, "default")
}
