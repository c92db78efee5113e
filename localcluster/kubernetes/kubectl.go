package kubernetes

import (
	"fmt"
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways to log in that kubeconfigs may name
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// runKubectl ends the process with an exit code of its own if something fails.
func runKubectl() int {
	// Loading plugins and preferences, before flags are parsed, already logs.
	if _, err := logs.GlogSetter(cmd.GetLogVerbosity(os.Args)); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
	return 0
}
