package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
)

// completionTimeout is how long a person is kept waiting for names.
const completionTimeout = 3 * time.Second

// completeObjects completes TYPE, TYPE/NAME and NAME after a TYPE.
func (p *program) completeObjects(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	const plain, unfinished = cobra.ShellCompDirectiveNoFileComp, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	kind, name, slash := strings.Cut(begun, "/")
	switch {
	case slash:
		return prefixed(kind+"/", p.names(c.Context(), kind, name)), plain
	case len(args) > 0 && !strings.Contains(args[0], "/"):
		return p.names(c.Context(), args[0], begun), plain
	}
	var out []string
	for _, k := range kinds.All() {
		resource, _, _ := strings.Cut(k.Arg(""), "/")
		if strings.HasPrefix(resource, begun) {
			out = append(out, resource+"/")
		}
	}
	return out, unfinished
}

// completeRollouts completes the names of Rollouts, with and without their type.
func (p *program) completeRollouts(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if strings.HasPrefix(begun, "rollout") || len(args) > 0 {
		return p.completeObjects(c, args, begun)
	}
	return p.names(c.Context(), "rollout", begun), cobra.ShellCompDirectiveNoFileComp
}

// names returns the names of objects that begin as a person has begun; none where they can't be read.
func (p *program) names(ctx context.Context, named, begun string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	kind, err := p.cluster.Kind(named)
	if err != nil {
		return nil
	}
	all, err := p.cluster.Names(ctx, kind)
	if err != nil {
		return nil
	}
	var out []string
	for _, name := range all {
		if strings.HasPrefix(name, begun) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func prefixed(prefix string, names []string) []string {
	for i, name := range names {
		names[i] = prefix + name
	}
	return names
}
