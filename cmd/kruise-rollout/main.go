// Command kruise-rollout runs the controllers and the webhooks of Rollouts. It needs none of the other kinds of Kruise. With
// check-uninstall as its first argument, it says which releases would stand still without them, and ends.
package main

import (
	"context"
	"os"

	"github.com/seed-69ecc383/kruise/internal/command"
	"github.com/seed-69ecc383/kruise/internal/rolloutmanager"
	"github.com/seed-69ecc383/kruise/internal/uninstall"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == uninstall.Verb {
		os.Exit(uninstall.Main(append([]string{"kruise-rollout " + uninstall.Verb}, os.Args[2:]...), os.Stderr, uninstall.Releases()))
	}
	o := &rolloutmanager.Options{}
	args := append([]string{"kruise-rollout"}, os.Args[1:]...)
	os.Exit(command.Main(args, os.Stderr, o, func(ctx context.Context) error { return rolloutmanager.Run(ctx, *o) }))
}
