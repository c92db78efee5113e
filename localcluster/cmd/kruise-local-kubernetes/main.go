// Command kruise-local-kubernetes is Kubernetes in one program, compiled from its Go modules: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kubelet or kubectl, whichever its argument zero, or else its first argument, names. kruise-local
// starts it.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-69ecc383/kruise/localcluster/binaries"
	"github.com/seed-69ecc383/kruise/localcluster/kubernetes"
	"github.com/seed-69ecc383/kruise/localcluster/process"
)

func main() {
	if filepath.Base(os.Args[0]) == binaries.Compiled && len(os.Args) > 1 {
		os.Args = os.Args[1:]
	}
	program, ok := kubernetes.Lookup(filepath.Base(os.Args[0]))
	if !ok {
		fmt.Fprintf(os.Stderr, "Error: want the name of a program of Kubernetes, got %q\n", os.Args[0])
		os.Exit(1)
	}
	if err := errors.Join(kubernetes.Stamp(), process.Tether()); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	os.Exit(program())
}
