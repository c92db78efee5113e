// Command kruise-rollout runs the controllers and the webhooks of Rollouts. It needs none of the other kinds of Kruise.
package main

import (
	"context"
	"os"

	"github.com/seed-69ecc383/kruise/internal/command"
	"github.com/seed-69ecc383/kruise/internal/rolloutmanager"
)

func main() {
	o := &rolloutmanager.Options{}
	args := append([]string{"kruise-rollout"}, os.Args[1:]...)
	os.Exit(command.Main(args, os.Stderr, o, func(ctx context.Context) error { return rolloutmanager.Run(ctx, *o) }))
}
