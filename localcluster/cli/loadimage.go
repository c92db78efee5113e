package cli

import (
	"errors"
	"fmt"

	"github.com/distribution/reference"
	"github.com/spf13/cobra"

	"github.com/seed-69ecc383/kruise/localcluster/images"
)

func (r *root) loadImage() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "load-image FILE...",
		Short: "Let real nodes pull the images of files",
		Long: `Let real nodes pull the images of files: archives as "docker save" writes them, or OCI image layouts, as an archive or
a folder. Printed are the names that Pods can use, which are those in the file unless --name is said.`,
		Example: `  kruise-local load-image dist/kruise-manager.tar
  kruise-local load-image --name web:v2 image.tar`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			if name != "" && len(files) > 1 {
				return errors.New("--name goes with one file only")
			}
			c, err := r.open()
			if err != nil {
				return err
			}
			if c.Config().RealNodes == 0 {
				return errors.New("this cluster has no real nodes, and simulated ones take any image name: add one with up --real-nodes 1")
			}
			for _, file := range files {
				loaded, err := c.Images().Load(file, name)
				if err != nil {
					return err
				}
				printLoaded(cmd, loaded)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name for the image, in place of those in the file")
	return cmd
}

func printLoaded(cmd *cobra.Command, loaded []images.Loaded) {
	for _, image := range loaded {
		fmt.Fprintln(cmd.OutOrStdout(), reference.FamiliarString(image.Name))
		if image.Replaced {
			fmt.Fprintf(cmd.ErrOrStderr(),
				"%s was another image before. Nodes that have pulled that one use it until a Pod says imagePullPolicy: Always.\n",
				reference.FamiliarString(image.Name))
		}
	}
}
