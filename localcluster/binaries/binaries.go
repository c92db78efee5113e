// Package binaries finds the programs of Kubernetes that a cluster is made of: installed ones, or those that this project compiles.
package binaries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

const (
	// Compiled is the program that holds all of Kubernetes: `make build` puts it beside kruise-local.
	Compiled = "kruise-local-kubernetes"
	// FolderEnv names the folder of installed programs, where no flag does.
	FolderEnv = "KRUISE_LOCAL_BINARIES"

	kubernetesModule = "k8s.io/kubernetes"
	etcd             = "etcd"
	kubectl          = "kubectl"
	// leastEtcd is the oldest etcd that the API server may use.
	leastEtcd = "3.5.0"
	// askTimeout is how long a program may take to print its version.
	askTimeout = 20 * time.Second
)

// ControlPlane lists the programs of a cluster with simulated nodes. Real nodes need a kubelet as well.
func ControlPlane() []string {
	return []string{etcd, "kube-apiserver", "kube-controller-manager", "kube-scheduler", kubectl}
}

// Wanted returns the version of the Kubernetes module in this program, such as "v1.36.3"; "" if this program has none of it.
func Wanted() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == kubernetesModule {
			return module.Version
		}
	}
	return ""
}

// Finder finds programs that work together with one release of Kubernetes.
type Finder struct {
	// Kubernetes is the release, such as "v1.36.3". A program fits if it has the same minor version.
	Kubernetes string
	// Folder holds installed programs that are to be used; "" for none. A program there that does not fit is an error.
	Folder string
	// Beside is the folder in which Compiled may lie; "" if there is none.
	Beside string
}

// Beside returns the folder of this program, in which Compiled lies if it was built.
func Beside() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	return filepath.Dir(self), nil
}

// Program is where a program of Kubernetes was found.
type Program struct {
	Path string
	// Compiled means that Path is that of all programs in one, which acts by its argument zero.
	Compiled bool
}

// Find returns the program of this name: the one in Folder, else the compiled one, else one on the PATH that fits.
func (f Finder) Find(ctx context.Context, name string) (Program, error) {
	if f.Folder != "" {
		path := filepath.Join(f.Folder, name)
		if _, err := os.Stat(path); err == nil {
			return Program{Path: path}, f.fits(ctx, path)
		} else if !errors.Is(err, os.ErrNotExist) {
			return Program{}, fmt.Errorf("finding %s: %w", name, err)
		}
	}
	if f.Beside != "" {
		path := filepath.Join(f.Beside, Compiled)
		if _, err := os.Stat(path); err == nil {
			return Program{Path: path, Compiled: true}, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return Program{}, fmt.Errorf("finding %s: it is neither in %s nor on the PATH, and %s is not built: run make build",
			name, cmp.Or(f.Folder, "$"+FolderEnv), Compiled)
	}
	return Program{Path: path}, f.fits(ctx, path)
}

// Installed returns the paths of the control plane's programs by name, if all of them are installed and fit; else an error that names the
// first one that does not. A compiled program does not count.
func (f Finder) Installed(ctx context.Context) (map[string]string, error) {
	f.Beside = ""
	paths := map[string]string{}
	for _, name := range ControlPlane() {
		program, err := f.Find(ctx, name)
		if err != nil {
			return nil, err
		}
		paths[name] = program.Path
	}
	return paths, nil
}

var versionPattern = regexp.MustCompile(`\d+\.\d+\.\d+`)

// fits asks a program for its version.
func (f Finder) fits(ctx context.Context, path string) error {
	name := filepath.Base(path)
	args := []string{"--version"}
	if name == kubectl {
		args = []string{"version", "--client"}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).Output()
	if err != nil {
		return fmt.Errorf("asking %s for its version: %w", path, err)
	}
	has, err := version.ParseGeneric(versionPattern.FindString(string(out)))
	if err != nil {
		return fmt.Errorf("reading the version of %s from %q: %w", path, strings.TrimSpace(string(out)), err)
	}
	if name == etcd {
		if least := version.MustParseGeneric(leastEtcd); has.LessThan(least) {
			return fmt.Errorf("%s is etcd %s: %s or later is needed", path, has, least)
		}
		return nil
	}
	wanted, err := version.ParseGeneric(f.Kubernetes)
	if err != nil {
		return fmt.Errorf("reading the wanted version %q: %w", f.Kubernetes, err)
	}
	if has.Major() != wanted.Major() || has.Minor() != wanted.Minor() {
		return fmt.Errorf("%s is of Kubernetes %s: %d.%d is needed", path, has, wanted.Major(), wanted.Minor())
	}
	return nil
}
