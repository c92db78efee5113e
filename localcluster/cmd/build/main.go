// Command build compiles the project's programs into a folder and shows how far it is: the first time, that includes Kubernetes' control
// plane and takes minutes; after that, seconds. If Kubernetes is installed, in the folder KRUISE_LOCAL_BINARIES or on the PATH, it is not
// compiled.
//
//	cd localcluster && go run ./cmd/build ../bin
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/seed-69ecc383/kruise/localcluster/binaries"
)

// target is a program to compile.
type target struct {
	name    string
	module  string // folder of its module, from here
	content string // what it is made of, for people who wait
	flags   []string
}

func targets() []target {
	return []target{
		{name: "kruise-manager", module: "..", content: "Kruise", flags: []string{"-trimpath"}},
		{name: "kruise-rollout", module: "..", content: "Kruise", flags: []string{"-trimpath"}},
		{name: "kruise-daemon", module: "..", content: "Kruise", flags: []string{"-trimpath"}},
		{name: "kruise-local", module: ".", content: "simulated nodes and the command line"},
		{name: binaries.Compiled, module: ".",
			content: "Kubernetes itself (etcd, API server, controller manager, scheduler, kubelet, kubectl)"},
	}
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("want one argument: the folder to write the programs to")
	}
	out, err := filepath.Abs(args[0])
	if err != nil {
		return fmt.Errorf("finding %s: %w", args[0], err)
	}
	for _, t := range targets() {
		if t.name == binaries.Compiled {
			installed, err := installedKubernetes(ctx)
			if err != nil {
				return err
			}
			if installed {
				continue
			}
		}
		if err := t.build(ctx, filepath.Join(out, t.name)); err != nil {
			return err
		}
	}
	return nil
}

// installedKubernetes tells, also the user, whether this machine has all programs of the control plane in a version that fits.
func installedKubernetes(ctx context.Context) (bool, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	cmd.Stderr = os.Stderr
	wanted, err := cmd.Output()
	if err != nil {
		return false, fmt.Errorf("asking for the version of Kubernetes: %w", err)
	}
	finder := binaries.Finder{Kubernetes: strings.TrimSpace(string(wanted)), Folder: os.Getenv(binaries.FolderEnv)}
	paths, err := finder.Installed(ctx)
	if err != nil {
		if finder.Folder != "" {
			return false, fmt.Errorf("looking for Kubernetes in %s: %w", finder.Folder, err)
		}
		return false, nil
	}
	fmt.Fprintf(os.Stderr, "Kubernetes is installed and is not compiled: using %s and those beside it\n", paths["kube-apiserver"])
	return true, nil
}

// build compiles one program.
func (t target) build(ctx context.Context, path string) error {
	missing, err := t.missing(ctx)
	if err != nil {
		return err
	}
	progress := newProgress(os.Stderr, t, missing)
	progress.begin(runtime.NumCPU())
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build", "-v", "-o", path}, t.flags...), "./cmd/"+t.name)...)
	cmd.Dir, cmd.Env, cmd.Stderr = t.module, environment(), progress
	stop := progress.tick()
	err = cmd.Run()
	stop()
	if err != nil {
		return fmt.Errorf("compiling %s: %w\n%s", t.name, err, progress.rest())
	}
	progress.end()
	return nil
}

// environment is that of the compiler: programs are static, so that they run in any container.
func environment() []string { return append(os.Environ(), "CGO_ENABLED=0") }

// missing counts the packages of the program that are not in the build cache.
func (t target) missing(ctx context.Context) (int, error) {
	args := append([]string{"list", "-deps", "-f", "{{if .Stale}}x{{end}}"}, t.flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/"+t.name)...)
	cmd.Dir, cmd.Env, cmd.Stderr = t.module, environment(), os.Stderr // it also tells which modules it downloads
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("listing the packages of %s: %w", t.name, err)
	}
	return bytes.Count(out, []byte("x\n")), nil
}
