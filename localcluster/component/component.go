// Package component names the programs that a cluster consists of. Most of them are Kubernetes' own, which package kubernetes compiles or
// package binaries finds; those of this project are run by kruise-local itself, started under the component's name as argument zero.
//
// Each runs as a process of its own, because the components share flag sets and metric registries and cannot live in one.
package component

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"

	"github.com/seed-69ecc383/kruise/localcluster/images"
	"github.com/seed-69ecc383/kruise/localcluster/process"
	"github.com/seed-69ecc383/kruise/localcluster/realnode"
	"github.com/seed-69ecc383/kruise/localcluster/simnode"
)

// The names of the components, which are also the names of their processes and logs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelet           = realnode.Kubelet
	Kubectl           = "kubectl"
	Simulator         = "simulator"
	Registry          = "registry"
)

// Program runs one component until it ends and returns its exit code. It reads os.Args[1:].
type Program func() int

// Lookup returns the program that a process is to run by its argument zero, the name of a component, or PROGRAM@NODE for the processes of a
// real node. Programs of Kubernetes are installed ones here: kruise-local starts them and ends with them.
func Lookup(argument string) (Program, bool) {
	name, _, _ := strings.Cut(argument, "@")
	program, ok := map[string]Program{
		Etcd:              process.RunForeign,
		APIServer:         process.RunForeign,
		ControllerManager: process.RunForeign,
		Scheduler:         process.RunForeign,
		Kubelet:           process.RunForeign,
		Simulator:         command(simnode.NewCommand),
		Registry:          command(images.NewCommand),

		realnode.Containerd: process.RunForeign,
		realnode.Daemon:     process.RunForeign,
	}[name]
	return program, ok
}

func command(build func() *cobra.Command) Program {
	return func() int { return cli.Run(build()) }
}
