package cri_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/test/kit/fakecri"
)

func TestWhereRuntimesAreLookedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		named string
		want  []string
	}{
		"where they usually are": {"", []string{
			"/run/containerd.sock", "/run/containerd/containerd.sock", "/run/crio.sock", "/run/crio/crio.sock",
			"/run/cri-dockerd.sock", "/run/cri-dockerd/cri-dockerd.sock",
		}},
		"below the folder": {"k3s/containerd.sock", []string{"/run/k3s/containerd.sock"}},
		"at a full path":   {"/var/other.sock", []string{"/var/other.sock"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, cri.Sockets("/run", tc.named)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheFirstOfEachRuntimeIsKept: the one whose socket comes first; what does not serve is passed over.
func TestTheFirstOfEachRuntimeIsKept(t *testing.T) {
	dir, err := os.MkdirTemp("", "kc-") // not the test's own: a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // of a test's own folder nothing is lost
	sockets := []string{filepath.Join(dir, "none"), filepath.Join(dir, "deaf"), filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	if err := os.WriteFile(sockets[1], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	set := cri.NewSet(sockets)
	if _, err := set.Primary(); !errors.Is(err, cri.ErrNone) || !cri.IsAway(err) {
		t.Errorf("before anything is found: %v", err)
	}
	for _, socket := range sockets[2:] {
		r := fakecri.New()
		if err := r.Serve(socket); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Away)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = set.Start(ctx) }) // it never fails
	t.Cleanup(func() { cancel(); running.Wait() })
	select {
	case <-set.Found():
	case <-time.After(10 * time.Second):
		t.Fatal("nothing is found")
	}
	r, err := set.Primary()
	if err != nil || r.Socket != sockets[2] || r.Name != fakecri.Name {
		t.Fatalf("found is %+v, %v", r, err)
	}
	if of, id, err := set.Of(fakecri.Name + "://1234"); err != nil || of != r || id != "1234" {
		t.Errorf("a container of it is %s of %v, %v", id, of, err)
	}
	for id, want := range map[string]string{
		"docker://1234":      "this node has no container runtime docker",
		"1234":               `container ID "1234" is not of the form RUNTIME://ID`,
		fakecri.Name + "://": `container ID "containerd://" is not of the form RUNTIME://ID`,
	} {
		if _, _, err := set.Of(id); err == nil || err.Error() != want || cri.IsAway(err) {
			t.Errorf("a container %s: %v, want %q", id, err, want)
		}
	}
	if err := set.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestASecondRuntimeThatComesUpLater is found, and takes the place of the first when that one goes.
func TestASecondRuntimeThatComesUpLater(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "kc-") // not the test's own: a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // of a test's own folder nothing is lost
	sockets := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	first, second := fakecri.New(), fakecri.New()
	second.As = "cri-o"
	set := cri.NewSet(sockets)
	set.Interval = 20 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	if err := first.Serve(sockets[0]); err != nil {
		t.Fatal(err)
	}
	running.Go(func() { _ = set.Start(ctx) }) // it never fails
	t.Cleanup(func() { cancel(); running.Wait(); second.Away() })
	<-set.Found()
	if err := second.Serve(sockets[1]); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a container of the second is found", func() bool {
		r, id, err := set.Of("cri-o://1")
		return err == nil && r.Socket == sockets[1] && id == "1"
	})
	if r, err := set.Primary(); err != nil || r.Name != fakecri.Name {
		t.Errorf("images are for %v, %v, want those of the first", r, err)
	}
	first.Away()
	if err := os.Remove(sockets[0]); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	eventually(t, "images are for the second", func() bool {
		r, err := set.Primary()
		return err == nil && r.Name == "cri-o"
	})
	second.Away()
	if err := os.Remove(sockets[1]); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	time.Sleep(10 * set.Interval)
	if _, err := set.Primary(); err != nil {
		t.Errorf("the last one restarts, and is forgotten: %v", err)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: it never is", what)
		}
	}
}

// TestCommandsThatPrintTooMuch: what a container prints must not be able to use up the memory of the daemon.
func TestCommandsThatPrintTooMuch(t *testing.T) {
	dir, err := os.MkdirTemp("", "kc-") // not the test's own: a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // of a test's own folder nothing is lost
	runtime := fakecri.New()
	prints := 0
	runtime.OnExec = func(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
		return &runtimeapi.ExecSyncResponse{Stdout: make([]byte, prints)}, nil
	}
	socket := filepath.Join(dir, "a")
	if err := runtime.Serve(socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runtime.Away)
	r, err := cri.Open(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() }) // nothing is asked of it any more
	prints = 1 << 19
	if out, err := r.Exec(t.Context(), "c", []string{"print"}, time.Second); err != nil || len(out.Stdout) != prints {
		t.Errorf("of %d bytes there are %d, %v", prints, len(out.Stdout), err)
	}
	prints = 2 << 20
	if out, err := r.Exec(t.Context(), "c", []string{"print"}, time.Second); err == nil || cri.IsAway(err) || !strings.Contains(err.Error(), "printed more than 1 MiB") {
		t.Errorf("of %d bytes there are %d, %v", prints, len(out.Stdout), err)
	}
}
