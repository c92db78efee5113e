package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// named runs a verb in a home of its own, so that it sees no other clusters of this machine's user.
func named(t *testing.T, state string, args ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, progress bytes.Buffer
	cmd := &exec.Cmd{
		Path: self, Args: append([]string{"kruise-local"}, args...), Env: append(os.Environ(), "XDG_STATE_HOME="+state),
		Stdout: &out, Stderr: &progress,
	}
	if err := cmd.Run(); err != nil {
		return out.String(), errors.New(strings.Join(args, " ") + ": " + err.Error() + "\n" + progress.String() + out.String())
	}
	return out.String(), nil
}

func mustNamed(t *testing.T, state string, args ...string) string {
	t.Helper()
	out, err := named(t, state, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// statuses returns the names of the clusters that status tells of, each with the number of its parts that run.
func statuses(t *testing.T, out string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for decoder := json.NewDecoder(strings.NewReader(out)); ; {
		var status struct {
			Name       string
			Components []struct{ Alive bool }
		}
		if err := decoder.Decode(&status); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		alive := 0
		for _, component := range status.Components {
			if component.Alive {
				alive++
			}
		}
		found[status.Name] = alive
	}
}

// TestNamedClustersRunSideBySide: a hub without a name, and a member.
func TestNamedClustersRunSideBySide(t *testing.T) {
	state := t.TempDir()
	hub := strings.TrimSpace(mustNamed(t, state, "up", "--bare"))
	t.Cleanup(func() {
		for _, args := range [][]string{{"down"}, {"down", "--name", "member-1"}} {
			if _, err := named(t, state, args...); err != nil {
				t.Error(err)
			}
		}
	})
	member := strings.TrimSpace(mustNamed(t, state, "up", "--name", "member-1", "--bare"))
	ctx := context.Background()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "of-the-member"}}
	if _, err := clientOf(t, member).CoreV1().ConfigMaps("default").Create(ctx, object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if maps, err := clientOf(t, hub).CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{}); err != nil || len(maps.Items) > 1 {
		t.Errorf("the hub has %d config maps in namespace default, %v; want that of its authority at most", len(maps.Items), err)
	}

	both, err := (&clientcmd.ClientConfigLoadingRules{Precedence: []string{hub, member}}).Load()
	if err != nil {
		t.Fatal(err)
	}
	var contexts []string
	for name, context := range both.Contexts {
		contexts = append(contexts, name)
		if both.Clusters[context.Cluster] == nil || both.AuthInfos[context.AuthInfo] == nil {
			t.Errorf("context %s has no cluster or no user", name)
		}
	}
	slices.Sort(contexts)
	if diff := cmp.Diff([]string{"kruise-local", "kruise-local-member-1"}, contexts); diff != "" || len(both.AuthInfos) != 2 {
		t.Errorf("kubeconfigs together have %d users; contexts differ (-want +got):\n%s", len(both.AuthInfos), diff)
	}

	if diff := cmp.Diff(map[string]int{"": 2, "member-1": 2}, statuses(t, mustNamed(t, state, "status", "-o", "json"))); diff != "" {
		t.Errorf("status of all differs (-want +got):\n%s", diff)
	}
	mustNamed(t, state, "stop", "--name", "member-1")
	out, err := named(t, state, "status", "-o", "json")
	if diff := cmp.Diff(map[string]int{"": 2, "member-1": 0}, statuses(t, out)); diff != "" || err == nil {
		t.Errorf("with the member stopped, status says %v and differs (-want +got):\n%s", err, diff)
	}
	mustNamed(t, state, "up", "--name", "member-1")
	if _, err := clientOf(t, member).CoreV1().ConfigMaps("default").Get(ctx, object.Name, metav1.GetOptions{}); err != nil {
		t.Errorf("the member does not come back as it was: %v", err)
	}

	mustNamed(t, state, "down", "--name", "member-1")
	if diff := cmp.Diff(map[string]int{"": 2}, statuses(t, mustNamed(t, state, "status", "-o", "json"))); diff != "" {
		t.Errorf("with the member down, status of all differs (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(state, "kruise-local-clusters", "member-1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the member's folder is still there: %v", err)
	}
}

func TestNamesOfClustersAreChecked(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"a name that leads out of the folder": {[]string{"status", "--name", "../other"}, `--name "../other"`},
		"a name beside a folder":              {[]string{"status", "--name", "a", "--dir", "b"}, "--dir and --name"},
		"a cluster that is not there":         {[]string{"status", "--name", "a"}, "no cluster in"},
		"no cluster at all":                   {[]string{"status"}, "no cluster in"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := named(t, t.TempDir(), tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q; output:\n%s", err, tc.want, out)
			}
		})
	}
}
