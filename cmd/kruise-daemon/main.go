// Command kruise-daemon runs on every node: it pulls images ahead, restarts containers, runs probes, and writes on Pods what their
// containers really run with.
package main

import (
	"context"
	"os"

	"github.com/seed-69ecc383/kruise/internal/command"
	"github.com/seed-69ecc383/kruise/internal/node"
)

func main() {
	o := &node.Options{}
	args := append([]string{"kruise-daemon"}, os.Args[1:]...)
	os.Exit(command.Main(args, os.Stderr, o, func(ctx context.Context) error { return node.Run(ctx, *o) }))
}
