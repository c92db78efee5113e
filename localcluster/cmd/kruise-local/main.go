// Command kruise-local runs a Kubernetes cluster on this machine: a real control plane with simulated or real nodes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/seed-69ecc383/kruise/localcluster/cli"
	"github.com/seed-69ecc383/kruise/localcluster/component"
	"github.com/seed-69ecc383/kruise/localcluster/process"
	"github.com/seed-69ecc383/kruise/localcluster/release"
)

func main() {
	if program, ok := component.Programs()[filepath.Base(os.Args[0])]; ok {
		os.Exit(runComponent(program))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cli.NewCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		if !errors.Is(err, cli.ErrReported) {
			fmt.Fprintln(os.Stderr, "Error:", err)
		}
		os.Exit(1)
	}
}

// runComponent acts as one component of the cluster, as Home.Start of package process asked for.
func runComponent(program component.Program) int {
	if err := errors.Join(release.Stamp(), process.Tether()); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return program()
}
