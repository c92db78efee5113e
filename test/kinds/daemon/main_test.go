// Package daemon tries the daemon of a node on a real API server and a container runtime that only says that it does: what it may, and how it
// pulls.
package daemon

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// shared is the control plane of all tests, with all rights and policies in it and no manager.
var shared = &scene.Site{Name: "daemon", Options: cluster.Options{Bare: true}, Kruise: scene.Manifests}

// up brings the control plane up, once.
var up = sync.OnceValue(func() error {
	if err := shared.Up(); err != nil {
		return err
	}
	// There is no manager to convert, and nothing here is written in the older version.
	for _, kind := range []string{"nodeimages", "containerrecreaterequests"} {
		if _, err := shared.Kubectl(context.Background(), "patch", "crd", kind+".apps.kruise.io", "--type=merge",
			"-p", `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`); err != nil {
			return err
		}
	}
	return nil
})

func TestMain(m *testing.M) { scene.Main(m, shared) }

// node makes a node of a name that nobody has used, and takes it away after the test.
func node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	must(t, up())
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	must(t, shared.Client.Create(t.Context(), n))
	t.Cleanup(func() { must(t, shared.Client.Delete(context.Background(), n)) })
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	scene.NewTest(t).Eventually(what, check)
}
