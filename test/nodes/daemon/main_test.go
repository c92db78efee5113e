// Package daemon tries the daemon of a node on a real API server and a container runtime that only says that it does: what it may, and how it
// pulls.
package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// shared is the control plane that TestMain brings up, with all rights and policies in it and no manager.
var shared *cluster.Cluster

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "kruise-daemon-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	o := cluster.Options{Dir: filepath.Join(dir, "cluster"), Bare: true, Args: []string{"--owner", fmt.Sprint(os.Getpid())}}
	if shared, err = cluster.Up(ctx, o); err != nil {
		return 1, err
	}
	defer func() {
		if downErr := shared.Down(context.Background()); downErr != nil && err == nil {
			code, err = 1, downErr
		}
	}()
	if err := shared.Install(ctx); err != nil {
		return 1, err
	}
	// There is no manager to convert, and nothing here is written in the older version.
	if _, err := shared.Kubectl(ctx, "patch", "crd", "nodeimages.apps.kruise.io", "--type=merge", "-p", `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// node makes a node of a name that nobody has used, and takes it away after the test.
func node(t *testing.T, name string) *corev1.Node {
	t.Helper()
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
	deadline := time.Now().Add(45 * time.Second)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waiting until %s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
