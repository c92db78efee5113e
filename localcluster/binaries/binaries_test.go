package binaries_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-69ecc383/kruise/localcluster/binaries"
)

// install writes programs that print what Kubernetes' own print when they are asked for their version.
func install(t *testing.T, versions map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, version := range versions {
		output := "Kubernetes v" + version
		switch name {
		case "etcd":
			output = "etcd Version: " + version + "\nGit SHA: 0123456\nGo Version: go1.26.1"
		case "kubectl":
			output = "Client Version: v" + version + "\nKustomize Version: v5.8.0"
		}
		script := fmt.Sprintf("#!/bin/sh\necho '%s'\n", output) // a builtin: the PATH holds nothing else
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// controlPlane has every program, of one release, but for what is changed.
func controlPlane(changes map[string]string) map[string]string {
	all := map[string]string{"etcd": "3.6.1"}
	for _, name := range binaries.ControlPlane()[1:] {
		all[name] = "1.36.1"
	}
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_, version string) bool { return version == "" })
	return all
}

func TestInstalledProgramsCountIfAllFit(t *testing.T) {
	for name, test := range map[string]struct {
		versions map[string]string
		wantErr  string // "" if the installation is used
	}{
		"another patch release": {controlPlane(nil), ""},
		"none":                  {nil, "finding etcd"},
		"no scheduler":          {controlPlane(map[string]string{"kube-scheduler": ""}), "finding kube-scheduler"},
		"no kubectl":            {controlPlane(map[string]string{"kubectl": ""}), "finding kubectl"},
		"an older API server":   {controlPlane(map[string]string{"kube-apiserver": "1.35.9"}), "of Kubernetes 1.35.9: 1.36 is needed"},
		"a newer kubectl":       {controlPlane(map[string]string{"kubectl": "1.37.0"}), "of Kubernetes 1.37.0: 1.36 is needed"},
		"an etcd that is old":   {controlPlane(map[string]string{"etcd": "3.4.30"}), "is etcd 3.4.30: 3.5.0 or later is needed"},
		"something else":        {controlPlane(map[string]string{"kube-scheduler": "unknown"}), "reading the version"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, where := range []string{"folder", "PATH"} {
				folder := install(t, test.versions)
				finder := binaries.Finder{Kubernetes: "v1.36.3", Beside: t.TempDir()}
				t.Setenv("PATH", t.TempDir())
				if where == "folder" {
					finder.Folder = folder
				} else {
					t.Setenv("PATH", folder)
				}
				paths, err := finder.Installed(context.Background())
				if test.wantErr == "" {
					if err != nil {
						t.Errorf("in the %s: %v", where, err)
					}
					if got := slices.Sorted(maps.Keys(paths)); !slices.Equal(got, slices.Sorted(slices.Values(binaries.ControlPlane()))) {
						t.Errorf("in the %s: found %v", where, got)
					}
				} else if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("in the %s: got error %v, want one with %q", where, err, test.wantErr)
				}
			}
		})
	}
}

func TestAnOrderedFolderComesBeforeCompiledProgramsAndThesePrecedeThePath(t *testing.T) {
	folder, path := install(t, map[string]string{"etcd": "3.6.1"}), install(t, controlPlane(nil))
	beside := t.TempDir()
	t.Setenv("PATH", path)
	finder := binaries.Finder{Kubernetes: "v1.36.3", Folder: folder, Beside: beside}
	find := func(name string) binaries.Program {
		t.Helper()
		program, err := finder.Find(context.Background(), name)
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	if got, want := find("kube-apiserver"), (binaries.Program{Path: filepath.Join(path, "kube-apiserver")}); got != want {
		t.Errorf("nothing compiled: got %+v, want %+v", got, want)
	}
	compiled := filepath.Join(beside, binaries.Compiled)
	if err := os.WriteFile(compiled, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, want := find("kube-apiserver"), (binaries.Program{Path: compiled, Compiled: true}); got != want {
		t.Errorf("compiled: got %+v, want %+v", got, want)
	}
	if got, want := find("etcd"), (binaries.Program{Path: filepath.Join(folder, "etcd")}); got != want {
		t.Errorf("in the folder: got %+v, want %+v", got, want)
	}
}
