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
)

func main() { os.Exit(run()) }

// run acts as the program that argument zero names, or else as the command line, and returns the exit code.
func run() int {
	name := filepath.Base(os.Args[0])
	if program, ok := component.Lookup(name); ok {
		return runComponent(program)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := cli.NewCommand().ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if !errors.Is(err, cli.ErrReported) {
		fmt.Fprintln(os.Stderr, "Error:", err)
	}
	return 1
}

// runComponent acts as one component of the cluster, as Home.Start of package process asked for.
func runComponent(program component.Program) int {
	if err := process.Tether(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return program()
}
