// Package component is the list of programs inside this one binary: started under the name of a component, as its
// argument zero, the binary is that component.
//
// Each runs as a process of its own, for the components share flag sets and metric registries too badly to live in one.
package component

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // the JSON log format
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the metrics of client-go
	_ "k8s.io/component-base/metrics/prometheus/version"  // the metric of the build
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/seed-69ecc383/kruise/localcluster/images"
	"github.com/seed-69ecc383/kruise/localcluster/realnode"
	"github.com/seed-69ecc383/kruise/localcluster/simnode"
)

// The names of the components, which are also the names of their processes and logs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Simulator         = "simulator"
	Registry          = "registry"
)

// Program runs one component until it ends and returns its exit code. It reads os.Args[1:].
type Program func() int

// Lookup returns the program that a process is to run by its argument zero: the name of a component, or PROGRAM@NODE for the processes of a
// real node.
func Lookup(argument string) (Program, bool) {
	name, _, _ := strings.Cut(argument, "@")
	program, ok := Programs()[name]
	return program, ok
}

// Programs maps each component's name to its program.
func Programs() map[string]Program {
	return map[string]Program{
		Etcd:              runEtcd,
		APIServer:         command(apiserver.NewAPIServerCommand),
		ControllerManager: command(controllermanager.NewControllerManagerCommand),
		Scheduler:         command(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		Simulator:         command(simnode.NewCommand),
		Registry:          command(images.NewCommand),

		realnode.Containerd: realnode.RunForeign,
		realnode.Daemon:     realnode.RunForeign,
		realnode.Kubelet:    command(realnode.NewKubeletCommand),
	}
}

func command(build func() *cobra.Command) Program {
	return func() int { return cli.Run(build()) }
}

func runEtcd() int {
	etcdmain.Main(os.Args) // exits by itself when it fails
	return 0
}
