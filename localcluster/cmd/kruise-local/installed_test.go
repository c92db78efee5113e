package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-69ecc383/kruise/localcluster/binaries"
	"github.com/seed-69ecc383/kruise/localcluster/component"
)

// An installed program is played by a script, as the test's own binary has all programs.
func TestInstalledProgramsOfKubernetesAreUsed(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	installed := t.TempDir()
	script := "#!/bin/sh\nexec " + filepath.Join(filepath.Dir(self), binaries.Compiled) + " kube-apiserver \"$@\"\n"
	if err := os.WriteFile(filepath.Join(installed, component.APIServer), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := clusterIn(t)
	client := clientOf(t, kruiseLocal(t, dir, "up", "--bare", "--binaries", installed))
	if _, err := client.Discovery().ServerVersion(); err != nil {
		t.Error(err)
	}
	before := processes(t, dir)
	kruiseLocal(t, dir, "up", "--bare") // the folder is remembered
	if after := processes(t, dir); !slices.Equal(before, after) {
		t.Errorf("a second up restarted components: %v, then %v", before, after)
	}
	kruiseLocal(t, dir, "down")
	eventually(t, func() string {
		out, err := exec.Command("pgrep", "-f", "etcd-servers.*"+dir).Output()
		if err == nil {
			return "after down, the API server still runs: process " + string(out)
		}
		return ""
	})

	if _, err := tryKruiseLocal(t, dir, "up", "--bare", "--binaries", filepath.Join(installed, "none")); err == nil ||
		!strings.Contains(err.Error(), "reading --binaries") {
		t.Errorf("a folder that does not exist: got error %v", err)
	}
	old := "#!/bin/sh\necho Kubernetes v1.20.0\n"
	if err := os.WriteFile(filepath.Join(installed, component.APIServer), []byte(old), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := tryKruiseLocal(t, dir, "up", "--bare", "--binaries", installed); err == nil ||
		!strings.Contains(err.Error(), "is of Kubernetes 1.20.0: 1.36 is needed") {
		t.Errorf("an old API server: got error %v", err)
	}
}
