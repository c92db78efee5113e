package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func (p *program) set() *cobra.Command {
	c := &cobra.Command{
		Use: "set", Short: "Change the template of a workload", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.setImage())
	return c
}

func (p *program) setImage() *cobra.Command {
	var dry dryRun
	var selector string
	c := &cobra.Command{
		Use:   "image TYPE/NAME CONTAINER=IMAGE ...",
		Short: "Give containers other images",
		Long: `Give containers other images, which begins a rollout. * is all containers but
init containers.

The containers of a SidecarSet are its sidecars. The image of a Rollout is
that of its workload.`,
		Example: `  kubectl kruise set image cloneset/web app=web:v2
  kubectl kruise set image sidecarset mesh proxy=envoy:v3 --dry-run`,
		ValidArgsFunction: p.completeObjects,
		RunE: func(c *cobra.Command, args []string) error {
			dryRun, err := dry.on()
			if err != nil {
				return err
			}
			named, images, err := imageArgs(args)
			if err != nil {
				return err
			}
			found, err := p.cluster.Find(c.Context(), named, "", selector)
			if err != nil {
				return err
			}
			for _, o := range found {
				if o, err = p.workloadOf(c.Context(), o); err != nil {
					return err
				}
				after, changed, err := p.cluster.Edit(c.Context(), o, dryRun, func(u *unstructured.Unstructured) error {
					return o.Kind.SetImages(u, images)
				})
				if err != nil {
					return err
				}
				what := "has these images already"
				if changed {
					what = "image updated: " + strings.Join(o.Kind.Images(after.Unstructured), ", ")
				}
				p.changed(after, what, dryRun && changed)
			}
			return nil
		},
	}
	dry.add(c)
	c.Flags().StringVarP(&selector, "selector", "l", "", "all objects of TYPE with these labels")
	return c
}

// imageArgs tells objects from CONTAINER=IMAGE.
func imageArgs(args []string) (named []string, images map[string]string, err error) {
	images = map[string]string{}
	at := slices.IndexFunc(args, func(arg string) bool { return strings.Contains(arg, "=") })
	if at < 0 {
		return nil, nil, fmt.Errorf("no image is given: add CONTAINER=IMAGE, such as app=web:v2")
	}
	for _, arg := range args[at:] {
		container, image, is := strings.Cut(arg, "=")
		if !is || container == "" || image == "" {
			return nil, nil, fmt.Errorf("%q is not CONTAINER=IMAGE, such as app=web:v2", arg)
		}
		images[container] = image
	}
	return args[:at], images, nil
}
