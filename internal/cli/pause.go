package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-69ecc383/kruise/internal/cli/access"
)

// pausing is a command that pauses or resumes.
type pausing struct {
	pause    bool
	dryRun   dryRun
	selector string
}

func (p *program) pause() *cobra.Command {
	return p.pausing(&pausing{pause: true}, &cobra.Command{
		Use:   "pause TYPE/NAME ...",
		Short: "Stop a rollout where it is",
		Long: `Stop a rollout where it is: no further Pod is updated. Pods are still created
and deleted to keep replicas.

Workloads of Kruise, Deployments and Rollouts can be paused; StatefulSets and
DaemonSets of Kubernetes know no pause.`,
		Example: "  kubectl kruise pause cloneset/web",
	})
}

func (p *program) resume() *cobra.Command {
	return p.pausing(&pausing{}, &cobra.Command{
		Use:     "resume TYPE/NAME ...",
		Short:   "Let a rollout go on that is paused",
		Example: "  kubectl kruise resume cloneset/web rollout/api",
	})
}

func (p *program) pausing(o *pausing, c *cobra.Command) *cobra.Command {
	c.ValidArgsFunction = p.completeObjects
	c.RunE = func(c *cobra.Command, args []string) error {
		dry, err := o.dryRun.on()
		if err != nil {
			return err
		}
		found, err := p.cluster.Find(c.Context(), args, "", o.selector)
		if err != nil {
			return err
		}
		for _, one := range found {
			if err := p.setPaused(c.Context(), one, o.pause, dry); err != nil {
				return err
			}
		}
		return nil
	}
	o.dryRun.add(c)
	c.Flags().StringVarP(&o.selector, "selector", "l", "", "all objects of TYPE with these labels")
	return c
}

func (p *program) setPaused(ctx context.Context, o access.Object, pause, dry bool) error {
	verb, is := "resume", "resumed"
	if pause {
		verb, is = "pause", "paused"
	}
	if o.Kind.Paused == nil {
		return fmt.Errorf("%s can't be %sd: it has no field for it; set its partition instead, if it has one", o.Kind, verb)
	}
	if rollout := rolloutOf(o); rollout != "" {
		return fmt.Errorf("%s is released by rollout/%s: %s that", o.Arg(), rollout, verb)
	}
	after, changed, err := p.cluster.Edit(ctx, o, dry, func(u *unstructured.Unstructured) error {
		if o.Kind.IsPaused(u) == pause {
			return nil
		}
		return unstructured.SetNestedField(u.Object, pause, o.Kind.Paused...)
	})
	if err != nil {
		return err
	}
	if !changed {
		is = "is not paused"
		if pause {
			is = "is paused already"
		}
	}
	p.changed(after, is, dry && changed)
	return nil
}
