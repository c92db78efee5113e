// Package kubernetes is Kubernetes compiled into one binary: etcd, the control plane, the kubelet and kubectl. Started under the name of
// one of them as its argument zero, the binary is that program.
package kubernetes

import (
	"context"
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
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"github.com/seed-69ecc383/kruise/localcluster/component"
)

// Lookup returns the program that a process is to run by its argument zero: the name of a component, or kubelet@NODE.
func Lookup(argument string) (component.Program, bool) {
	name, _, _ := strings.Cut(argument, "@")
	program, ok := map[string]component.Program{
		component.Etcd:              runEtcd,
		component.APIServer:         command(apiserver.NewAPIServerCommand),
		component.ControllerManager: command(controllermanager.NewControllerManagerCommand),
		component.Scheduler:         command(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		component.Kubelet:           command(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
		component.Kubectl:           runKubectl,
	}[name]
	return program, ok
}

func command(build func() *cobra.Command) component.Program {
	return func() int { return cli.Run(build()) }
}

func runEtcd() int {
	etcdmain.Main(os.Args) // exits by itself when it fails
	return 0
}
