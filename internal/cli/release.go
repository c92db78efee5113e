package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
)

// released is a Rollout with a release that is under way.
type released struct {
	access.Object
	rollout *v1beta1.Rollout
	progress.Release
	// reason and message are those of condition Progressing.
	reason, message string
}

// release reads a Rollout that has a release under way.
func (p *program) release(ctx context.Context, args []string) (released, error) {
	o, err := p.cluster.One(ctx, args, "rollout")
	if err != nil {
		return released{}, err
	}
	return p.released(ctx, o)
}

// released returns the release of a Rollout, or of the Rollout that releases a workload.
func (p *program) released(ctx context.Context, o access.Object) (released, error) {
	if !isRollout(o) {
		of, err := p.releasing(ctx, o)
		if err != nil {
			return released{}, err
		}
		if !isRollout(of) {
			return released{}, fmt.Errorf("%s is not released by a Rollout: this command is for Rollouts", o.Arg())
		}
		o = of
	}
	r := released{Object: o, rollout: &v1beta1.Rollout{}}
	if err := o.Into(r.rollout); err != nil {
		return r, err
	}
	at, begun := progress.ReleaseOf(r.rollout)
	if !begun || r.rollout.Status.Phase != v1beta1.RolloutPhaseProgressing {
		return r, fmt.Errorf("%s has no release under way: its phase is %s", o.Arg(), r.rollout.Status.Phase)
	}
	r.Release = at
	_, r.reason, r.message = progress.RolloutReason(r.rollout, v1beta1.ConditionProgressing)
	return r, nil
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// test returns operations that fail unless the release is still at the step and the state that were seen.
func (r released) test() []operation {
	return []operation{
		{"test", r.Path + "/currentStepIndex", r.CurrentStepIndex},
		{"test", r.Path + "/currentStepState", r.CurrentStepState},
		{"test", r.Path + "/observedRolloutID", r.ObservedRolloutID},
	}
}

// write writes one field of the status, if the release is still where it was seen.
func (p *program) write(ctx context.Context, r released, field string, value any) error {
	patch, err := json.Marshal(append(r.test(), operation{"add", r.Path + "/" + field, value}))
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	err = p.cluster.PatchStatus(ctx, r.Object, patch)
	if apierrors.IsInvalid(err) {
		return fmt.Errorf("%s has gone on meanwhile, from step %d %s: look again with `kubectl kruise status %s`",
			r.Arg(), r.CurrentStepIndex, r.CurrentStepState, r.Arg())
	}
	return err
}

func (p *program) approve() *cobra.Command {
	var step int32
	c := &cobra.Command{
		Use:   "approve ROLLOUT",
		Short: "Approve the step that a Rollout waits at",
		Long: `Approve the step that a Rollout waits at, so that it goes on to the next one.
That also overrides a failed analysis, the guard, and the memory of a revision
that was rolled back before.

The write tests which step it is for: of two people who approve the same step,
the second one is told so. --step says which step is meant; one that is
approved already is no error then.`,
		Example: `  kubectl kruise approve web
  kubectl kruise approve rollout/web --step 2`,
		ValidArgsFunction: p.completeRollouts,
		RunE: func(c *cobra.Command, args []string) error {
			r, err := p.release(c.Context(), args)
			if err != nil {
				return err
			}
			done, err := approvable(r, step)
			if err != nil {
				return err
			}
			if done {
				p.changed(r.Object, fmt.Sprintf("step %d is approved already", step), false)
				return nil
			}
			if err := p.write(c.Context(), r, "currentStepState", v1beta1.StepStateReady); err != nil {
				return err
			}
			p.changed(r.Object, fmt.Sprintf("step %d/%d approved", r.CurrentStepIndex, len(r.Steps)), false)
			return nil
		},
	}
	c.Flags().Int32Var(&step, "step", 0, "the step that is meant; 0 is the one that the Rollout waits at")
	return c
}

// approvable reports whether the step that is meant is approved already; the error says why there is nothing to approve.
func approvable(r released, step int32) (already bool, err error) {
	switch {
	case step > 0 && (r.CurrentStepIndex > step || r.CurrentStepIndex == step && r.CurrentStepState == v1beta1.StepStateReady):
		return true, nil
	case step > r.CurrentStepIndex:
		return false, fmt.Errorf("%s is at step %d, and not yet at step %d", r.Arg(), r.CurrentStepIndex, step)
	case r.CurrentStepState == v1beta1.StepStateReady:
		return false, fmt.Errorf("step %d of %s is approved already", r.CurrentStepIndex, r.Arg())
	case !r.NeedsApproval(r.reason) && r.CurrentStepState == v1beta1.StepStatePaused:
		return false, nil // a pause that would end by itself can be cut short
	case !r.NeedsApproval(r.reason):
		return false, fmt.Errorf("step %d of %s does not wait for an approval, it is at %s: %s",
			r.CurrentStepIndex, r.Arg(), r.CurrentStepState, r.Message)
	}
	return false, nil
}

func (p *program) retry() *cobra.Command {
	return &cobra.Command{
		Use:   "retry ROLLOUT",
		Short: "Run the step anew that has stopped a Rollout",
		Long: `Run the present step anew: its Pods, its traffic and its analysis. For a
Rollout that a failed analysis, the guard, a deadline or the memory of a
revision that was rolled back has stopped.`,
		Example:           "  kubectl kruise retry web",
		ValidArgsFunction: p.completeRollouts,
		RunE: func(c *cobra.Command, args []string) error {
			r, err := p.release(c.Context(), args)
			if err != nil {
				return err
			}
			if !progress.StopsRelease(r.reason) && r.reason != v1beta1.ReasonStepTimeout {
				return fmt.Errorf("%s is not stopped: it is at step %d, %s (%s)", r.Arg(), r.CurrentStepIndex, r.CurrentStepState, r.reason)
			}
			// The index of a step in nextStepIndex makes the Rollout begin it, also the one that it is at.
			if err := p.write(c.Context(), r, "nextStepIndex", r.CurrentStepIndex); err != nil {
				return err
			}
			p.changed(r.Object, fmt.Sprintf("step %d/%d runs anew", r.CurrentStepIndex, len(r.Steps)), false)
			return nil
		},
	}
}

func (p *program) abort() *cobra.Command {
	var dry dryRun
	var yes bool
	c := &cobra.Command{
		Use:   "abort ROLLOUT",
		Short: "End a release and go back to the version before",
		Long: `End a release: the template that it came from is put back into the workload,
and the Rollout leads traffic and Pods back.

What will change is shown first. On a terminal it is asked for; -y does not
ask.`,
		Example:           "  kubectl kruise abort web",
		ValidArgsFunction: p.completeRollouts,
		RunE: func(c *cobra.Command, args []string) error {
			dryRun, err := dry.on()
			if err != nil {
				return err
			}
			r, err := p.release(c.Context(), args)
			if err != nil {
				return err
			}
			if r.reason == v1beta1.ReasonCancelling {
				return fmt.Errorf("%s goes back already: %s", r.Arg(), r.message)
			}
			if r.StableRevision == "" {
				return errors.New("the Rollout does not know yet which revision it came from: try again")
			}
			workload, err := p.workloadOf(c.Context(), r.Object)
			if err != nil {
				return err
			}
			now, target, err := p.entryOf(c.Context(), workload, r.StableRevision)
			if err != nil {
				return err
			}
			return p.putBack(c.Context(), workload, now, target, confirmation{dryRun: dryRun, yes: yes})
		},
	}
	dry.add(c)
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}
