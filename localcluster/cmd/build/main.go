// Command build compiles the project's programs into a folder and shows how far it is: the first time, that includes Kubernetes' control
// plane and takes minutes; after that, seconds. If Kubernetes is installed, in the folder KRUISE_LOCAL_BINARIES or on the PATH, it is not
// compiled.
//
//	cd localcluster && go run ./cmd/build ../bin
//
// Further arguments name the programs to compile instead, such as the data plane of tests, which no other part needs:
//
//	cd localcluster && go run ./cmd/build ../bin data-plane
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
	"slices"
	"strings"

	"github.com/seed-69ecc383/kruise/localcluster/binaries"
)

// target is a program to compile.
type target struct {
	name    string
	module  string // folder of its module, from here
	pkg     string // its package; empty for cmd/NAME of the module
	content string // what it is made of, for people who wait
	flags   []string
}

func targets() []target {
	return []target{
		{name: "kruise-manager", module: "..", content: "Kruise", flags: []string{"-trimpath"}},
		{name: "kruise-rollout", module: "..", content: "Kruise", flags: []string{"-trimpath"}},
		// Without the traces of gRPC, which it serves nowhere, the linker leaves out a quarter of the daemon: it runs on every node.
		{name: "kruise-daemon", module: "..", content: "Kruise", flags: []string{"-trimpath", "-tags=grpcnotrace"}},
		{name: "kubectl-kruise", module: "..", content: "the command line", flags: []string{"-trimpath"}},
		{name: "kruise-local", module: ".", content: "simulated nodes and the command line"},
		{name: binaries.Compiled, module: ".",
			content: "Kubernetes itself (etcd, API server, controller manager, scheduler, kubelet, kubectl)"},
	}
}

// extras are programs that are compiled only where they are asked for.
func extras() []target {
	return []target{{
		name: "data-plane", module: "../dataplane", pkg: "github.com/traefik/traefik/v3/cmd/traefik",
		content: "Traefik, to measure traffic at", flags: []string{"-trimpath"},
	}}
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("want the folder to write the programs to, and the names of programs if not all that a cluster needs are wanted")
	}
	out, err := filepath.Abs(args[0])
	if err != nil {
		return fmt.Errorf("finding %s: %w", args[0], err)
	}
	wanted, err := chosen(args[1:])
	if err != nil {
		return err
	}
	for _, t := range wanted {
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

// chosen returns the programs of these names; without any, those that a cluster needs.
func chosen(names []string) ([]target, error) {
	if len(names) == 0 {
		return targets(), nil
	}
	all := append(targets(), extras()...)
	var out []target
	for _, name := range names {
		i := slices.IndexFunc(all, func(t target) bool { return t.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no program %s", name)
		}
		out = append(out, all[i])
	}
	return out, nil
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

// source is the package of the program, as the compiler is told it in the folder of the module.
func (t target) source() string {
	if t.pkg != "" {
		return t.pkg
	}
	return "./cmd/" + t.name
}

// build compiles one program.
func (t target) build(ctx context.Context, path string) error {
	missing, err := t.missing(ctx)
	if err != nil {
		return err
	}
	progress := newProgress(os.Stderr, t, missing)
	progress.begin(runtime.NumCPU())
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build", "-v", "-o", path}, t.flags...), t.source())...)
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
	cmd := exec.CommandContext(ctx, "go", append(args, t.source())...)
	cmd.Dir, cmd.Env, cmd.Stderr = t.module, environment(), os.Stderr // it also tells which modules it downloads
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("listing the packages of %s: %w", t.name, err)
	}
	return bytes.Count(out, []byte("x\n")), nil
}
