package daemon

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/fakecri"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// nowhere is a kubeconfig that leads nowhere.
const nowhere = `{apiVersion: v1, kind: Config, current-context: none, contexts: [{name: none, context: {cluster: none}}],
  clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}]}`

// TestDaemonsThatReadTheirNodeAlone has an API server with the AuthorizationConfiguration that is shipped: a daemon works under it, and can read
// nothing of another node.
func TestDaemonsThatReadTheirNodeAlone(t *testing.T) {
	root, err := cluster.Root()
	must(t, err)
	text, err := os.ReadFile(filepath.Join(root, "config", "daemon", "authorization.yaml"))
	must(t, err)
	dir := t.TempDir()
	kubeconfig, config := filepath.Join(dir, "nowhere.kubeconfig"), filepath.Join(dir, "authorization.yaml")
	must(t, os.WriteFile(kubeconfig, []byte(nowhere), 0o600))
	must(t, os.WriteFile(config, []byte(strings.Replace(string(text), "/etc/kubernetes/nowhere.kubeconfig", kubeconfig, 1)), 0o600))
	w := scene.NewStage(t, cluster.Options{Bare: true, Args: []string{"--k8s-args", "kube-apiserver:--authorization-config=" + config}})
	must(t, w.Install(t.Context()))
	for _, name := range []string{"mine", "other"} {
		must(t, w.Client.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	daemon := as(t, w.Cluster, "mine")
	field := func(key, value string) client.ListOption { return client.MatchingFields{key: value} }
	label := func(value string) client.ListOption {
		return client.MatchingLabels{"crr.apps.kruise.io/node-name": value}
	}
	for name, tc := range map[string]struct {
		list    client.ObjectList
		which   client.ListOption
		allowed bool
	}{
		"Pods of its node":              {&corev1.PodList{}, field("spec.nodeName", "mine"), true},
		"Pods of another node":          {&corev1.PodList{}, field("spec.nodeName", "other"), false},
		"all Pods":                      {&corev1.PodList{}, client.InNamespace(""), false},
		"Pods of a name":                {&corev1.PodList{}, field("metadata.name", "mine"), false},
		"its NodeImage":                 {&v1beta1.NodeImageList{}, field("metadata.name", "mine"), true},
		"the NodeImage of another node": {&v1beta1.NodeImageList{}, field("metadata.name", "other"), false},
		"all NodeImages":                {&v1beta1.NodeImageList{}, client.InNamespace(""), false},
		"its NodePodProbe":              {&v1alpha1.NodePodProbeList{}, field("metadata.name", "mine"), true},
		"probes of another node":        {&v1alpha1.NodePodProbeList{}, field("metadata.name", "other"), false},
		"all probes":                    {&v1alpha1.NodePodProbeList{}, client.InNamespace(""), false},
		"restarts of its node":          {&v1beta1.ContainerRecreateRequestList{}, label("mine"), true},
		"restarts of another node":      {&v1beta1.ContainerRecreateRequestList{}, label("other"), false},
		"all restarts":                  {&v1beta1.ContainerRecreateRequestList{}, client.InNamespace(""), false},
		"events":                        {&corev1.EventList{}, client.InNamespace(""), false},
	} {
		err := daemon.List(t.Context(), tc.list, tc.which)
		if tc.allowed && err != nil || !tc.allowed && !isRefused(err) {
			t.Errorf("%s: listing: %v, want it allowed: %t", name, err, tc.allowed)
		}
		watched, err := daemon.Watch(t.Context(), tc.list, tc.which)
		if tc.allowed && err != nil || !tc.allowed && !isRefused(err) {
			t.Errorf("%s: watching: %v, want it allowed: %t", name, err, tc.allowed)
		}
		if err == nil {
			watched.Stop()
		}
	}
	runs(t, w)
}

// isRefused reports whether a request is refused: an API server calls it an internal error if that is because an authorizer does not answer.
func isRefused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInternalError(err) }

// runs shows that the daemon reads all that it needs.
func runs(t *testing.T, w *scene.Stage) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kd-") // not the test's own: a socket's path must be short
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // of a test's own folder nothing is lost
	runtime, socket := fakecri.New(), filepath.Join(dir, "c.sock")
	must(t, runtime.Serve(socket))
	t.Cleanup(runtime.Away)
	d, err := w.StartDaemon(context.WithoutCancel(t.Context()), cluster.DaemonOptions{Node: "mine", Socket: socket, Dir: dir})
	must(t, err)
	t.Cleanup(d.Stop)
	eventually(t, "the daemon is ready", func() error {
		if code := d.Answers(t.Context(), "/readyz"); code != http.StatusOK {
			return fmt.Errorf("it answers %d:\n%s", code, d.Tail(20))
		}
		return nil
	})
}
