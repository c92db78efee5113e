package cli

import (
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

func (p *program) restart() *cobra.Command {
	var dry dryRun
	var selector string
	c := &cobra.Command{
		Use:   "restart TYPE/NAME ...",
		Short: "Recreate all Pods, by the strategy of the workload",
		Long: `Recreate all Pods: the template gets an annotation with the time, which is
rolled out as any change of it is.

A workload that updates its Pods in place is refused: it would write the
annotation into its Pods, and restart no container.`,
		Example: `  kubectl kruise restart asts/db
  kubectl kruise restart clonesets -l team=shop`,
		ValidArgsFunction: p.completeObjects,
		RunE: func(c *cobra.Command, args []string) error {
			dryRun, err := dry.on()
			if err != nil {
				return err
			}
			found, err := p.cluster.Find(c.Context(), args, "", selector)
			if err != nil {
				return err
			}
			at := p.now().UTC().Format(time.RFC3339)
			for _, o := range found {
				if o, err = p.workloadOf(c.Context(), o); err != nil {
					return err
				}
				after, _, err := p.cluster.Edit(c.Context(), o, dryRun, func(u *unstructured.Unstructured) error {
					return o.Kind.Restart(u, at, inPlaceOptions())
				})
				if err != nil {
					return err
				}
				p.changed(after, "restarted", dryRun)
			}
			return nil
		},
	}
	dry.add(c)
	c.Flags().StringVarP(&selector, "selector", "l", "", "all objects of TYPE with these labels")
	return c
}

// inPlaceOptions are those of a manager whose feature gates nobody has set.
func inPlaceOptions() inplace.Options {
	return inplace.Options{EnvFromMetadata: true, IgnoreClaims: true}
}
