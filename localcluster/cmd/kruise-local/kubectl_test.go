package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestAClusterOfTheAPIAlone(t *testing.T) {
	dir := clusterIn(t)
	kruiseLocal(t, dir, "up", "--bare")
	t.Run("kubectl is the real one and knows the cluster", func(t *testing.T) { kubectlWorks(t, dir) })
	t.Run("kubectl's exit code is passed on", func(t *testing.T) { kubectlFails(t, dir) })
	t.Run("there are no nodes to load images for", func(t *testing.T) {
		_, err := tryKruiseLocal(t, dir, "load-image", "image.tar")
		if err == nil || !strings.Contains(err.Error(), "no real nodes") {
			t.Errorf("got %v, want an error that there are no real nodes", err)
		}
	})
}

func kubectlWorks(t *testing.T, dir string) {
	t.Setenv("KUBECONFIG", "/no/such/kubeconfig") // the cluster's comes before the user's own
	if got := kruiseLocal(t, dir, "kubectl", "get", "namespaces", "-o", "name"); !strings.Contains(got, "namespace/default\n") {
		t.Errorf("get namespaces printed %q, want the namespace default among them", got)
	}
	if got := kruiseLocal(t, dir, "kubectl", "version"); strings.Count(got, "v1.36.3") != 2 {
		t.Errorf("version printed %q, want v1.36.3 for client and server", got)
	}
	if got := kruiseLocal(t, dir, "kubectl", "--help"); !strings.Contains(got, "kubectl controls the Kubernetes cluster manager") {
		t.Errorf("--help printed %q, want kubectl's own help", got)
	}
	kruiseLocal(t, dir, "kubectl", "create", "configmap", "spaced", "--from-literal=key=a b  c")
	if got := kruiseLocal(t, dir, "kubectl", "get", "configmap", "spaced", "-o", "jsonpath={.data.key}"); got != "a b  c" {
		t.Errorf("an argument with blanks arrived as %q", got)
	}

	_, err := tryKruiseLocal(t, dir, "kubectl", "get", "configmap", "no-such-map")
	if err == nil || !strings.Contains(err.Error(), `configmaps "no-such-map" not found`) {
		t.Errorf("got error %v, want kubectl's own", err)
	}
}

func kubectlFails(t *testing.T, dir string) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	manifest := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}`
	diff := &exec.Cmd{
		Path: self, Args: []string{"kruise-local", "--dir", dir, "kubectl", "diff", "-f", "-"}, Stdin: strings.NewReader(manifest),
	}
	var exit *exec.ExitError
	if err := diff.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("diff of a new object ended with %v, want exit code 1", err)
	}
	invalid := exec.Command(self)
	invalid.Args = []string{"kruise-local", "--dir", dir, "kubectl", "no-such-verb"}
	if out, err := invalid.CombinedOutput(); err == nil || !strings.Contains(string(out), `unknown command "no-such-verb" for "kubectl"`) {
		t.Errorf("an unknown verb ended with %v and printed %q", err, out)
	}
}

func TestWithoutAClusterVerbsSaySo(t *testing.T) {
	for _, verb := range [][]string{{"kubectl", "get", "pods"}, {"load-image", "image.tar"}} {
		_, err := tryKruiseLocal(t, t.TempDir(), verb...)
		if err == nil || !strings.Contains(err.Error(), "no cluster in ") {
			t.Errorf("%v: got %v, want an error that there is no cluster", verb, err)
		}
	}
}
