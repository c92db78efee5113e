package cli

import "github.com/spf13/cobra"

// older returns the commands under the names that the plugin of OpenKruise has for them. They are not listed in the help.
func (p *program) older() []*cobra.Command {
	rollout := &cobra.Command{
		Use: "rollout", Short: "Older names of the commands", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	rollout.AddCommand(p.status(), p.history(), p.undo(), p.pause(), p.resume(), p.restart(), p.approve())
	return []*cobra.Command{rollout}
}
