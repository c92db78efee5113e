package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// statusOptions are the flags of status.
type statusOptions struct {
	watch, through bool
	timeout        time.Duration
	output         output
}

// standing is what status shows of an object.
type standing struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	progress.Progress
	// Elapsed is for how many seconds it was watched.
	Elapsed int64 `json:"elapsedSeconds"`
}

func (p *program) status() *cobra.Command {
	o := &statusOptions{}
	c := &cobra.Command{
		Use:   "status TYPE/NAME",
		Short: "Follow a rollout until it is done, fails or waits for a person",
		Long: `Follow a rollout to its end, in one line that changes, or in a line for each
change where the output is no terminal (or CI is set).

A workload that a Rollout releases is followed by its Rollout.

Exit codes: 0 done (a partition may keep Pods at the old template), 1 failed,
2 waits for a person, 3 timed out.`,
		Example: `  kubectl kruise status cloneset/web --timeout 10m
  kubectl kruise status rollout web --through-pauses
  kubectl kruise status asts/db -o json`,
		ValidArgsFunction: p.completeObjects,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.output.check(); err != nil {
				return err
			}
			return p.runStatus(c.Context(), args, o)
		},
	}
	c.Flags().BoolVarP(&o.watch, "watch", "w", true, "follow the rollout to its end; false: look once, and exit with 3 if it goes on")
	c.Flags().BoolVar(&o.through, "through-pauses", false, "go on while the rollout waits for a person")
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "how long to wait, such as 10m; 0 is for ever")
	addOutput(c, &o.output)
	return c
}

func (p *program) runStatus(ctx context.Context, args []string, o *statusOptions) error {
	object, err := p.cluster.One(ctx, args, "")
	if err != nil {
		return err
	}
	if object, err = p.releasing(ctx, object); err != nil {
		return err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	f := &following{program: p, statusOptions: o, began: p.now()}
	err = f.follow(ctx, object)
	p.screen.End()
	if o.output != "" && f.last.Name != "" {
		err = errors.Join(err, p.show(o.output, f.last, nil))
	}
	if err != nil {
		return err
	}
	return f.exit()
}

// releasing returns the Rollout that releases a workload at the moment, or else the workload.
func (p *program) releasing(ctx context.Context, o access.Object) (access.Object, error) {
	name := rolloutOf(o)
	if name == "" {
		return o, nil
	}
	kind, err := kinds.Of(rolloutsv1beta1.GroupVersion.WithKind("Rollout").GroupKind())
	if err != nil {
		return o, err
	}
	found, err := p.cluster.Get(ctx, kind, o.GetNamespace(), name)
	if err != nil {
		return o, fmt.Errorf("%s is released by a Rollout: %w", o.Arg(), err)
	}
	fmt.Fprintf(p.Err, "%s is released by %s, which is followed\n", o.Arg(), found.Arg())
	return found, nil
}

// rolloutOf returns the name of the Rollout that a new template of a workload waits for; empty if it waits for none.
func rolloutOf(o access.Object) string {
	name, _ := steer.MarkOf(o)
	return name
}

// progress returns how far an object has come. A Rollout that has not yet seen the new template of its workload does not tell of the
// release that is about to begin: the mark of the workload does, which is there from the moment of the change.
func (p *program) progress(ctx context.Context, o access.Object) (progress.Progress, error) {
	at, err := o.Kind.Progress(o.Unstructured)
	if err != nil || !isRollout(o) || at.Phase != progress.Done && at.Reason != progress.GivenUp {
		return at, err
	}
	workload, err := p.workloadOf(ctx, o)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || access.IsNotInstalled(err):
		return at, nil // there is no release without it, and who may not read it sees what the status says
	case err != nil:
		return at, err
	}
	return begins(at, o.GetName(), workload), nil
}

// begins returns the progress of a Rollout with a release that is about to begin, if its workload has a new template that waits for it.
func begins(p progress.Progress, rollout string, workload access.Object) progress.Progress {
	if rolloutOf(workload) != rollout {
		return p
	}
	p.Phase, p.Reason, p.Next, p.Begins = progress.Updating, "", "", true
	p.Message = "the release of the new template of " + workload.Arg() + " is about to begin"
	return p
}

// following is one rollout that is followed.
type following struct {
	*program
	*statusOptions
	began time.Time
	last  standing
	shown string
	err   error
	// again is a Rollout whose workload has to be looked at again, because a watch of the Rollout would not tell.
	again *access.Object
}

func (f *following) follow(ctx context.Context, o access.Object) error {
	if !f.watch {
		f.see(ctx, o)
		return f.err
	}
	ticks, stop := context.WithCancel(ctx)
	defer stop()
	seen := make(chan access.Object)
	ended := make(chan error, 1)
	go func() {
		ended <- f.cluster.Follow(ticks, o, func(o access.Object) bool {
			select {
			case seen <- o:
				return true
			case <-ticks.Done():
				return false
			}
		})
	}()
	clock := time.NewTicker(time.Second)
	defer clock.Stop()
	for {
		select {
		case o := <-seen:
			if f.see(ctx, o) {
				return f.ended(ctx)
			}
		case <-clock.C:
			if f.again != nil && f.see(ctx, *f.again) {
				return f.ended(ctx)
			}
			f.tick()
		case err := <-ended:
			if ctx.Err() == nil {
				return err
			}
			return f.interrupted(ctx)
		case <-ctx.Done():
			return f.interrupted(ctx)
		}
	}
}

// ended returns the error that following an object ended with.
func (f *following) ended(ctx context.Context) error {
	if f.err != nil && ctx.Err() != nil {
		return f.interrupted(ctx)
	}
	return f.err
}

// interrupted returns the error of a watch that ended before the rollout.
func (f *following) interrupted(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &exit{exitTimeout, fmt.Errorf("not done after %s: %s", f.timeout, f.last.Message)}
	}
	return ctx.Err()
}

// see shows an object, and reports whether it is at its end.
func (f *following) see(ctx context.Context, o access.Object) bool {
	at, err := f.progress(ctx, o)
	if err != nil {
		f.err = err
		return true
	}
	f.again = nil
	if at.Begins {
		f.again = &o
	}
	f.last = standing{
		Kind: o.Kind.GroupVersionKind.Kind, Namespace: o.GetNamespace(), Name: o.GetName(), Progress: at,
		Elapsed: int64(f.now().Sub(f.began).Seconds()),
	}
	if line := f.line(); line != f.shown && f.output == "" {
		f.shown = line
		f.draw()
	}
	switch at.Phase {
	case progress.Done, progress.Failed:
		return true
	case progress.Waiting:
		return !f.through
	}
	return false
}

// line is what is shown; on a live screen the time that has passed comes before it.
func (f *following) line() string {
	return f.last.Name + " " + f.last.Line()
}

func (f *following) draw() {
	if !f.screen.Live {
		f.screen.Wrapf("", "%s", f.line())
		return
	}
	f.screen.Change(fmt.Sprintf("%s %s", f.now().Sub(f.began).Round(time.Second), f.line()))
}

// tick shows how much time has passed.
func (f *following) tick() {
	if f.screen.Live && f.shown != "" && f.output == "" {
		f.draw()
	}
}

// exit is the code for how the rollout stands.
func (f *following) exit() error {
	if f.screen.Live && f.output == "" { // the line in place may have been cut
		f.screen.Wrapf("", "%s: %s", f.last.Phase, f.last.Message)
	}
	if f.last.Next != "" && f.output == "" {
		f.screen.Wrapf("", "To go on: %s.", f.last.Next)
	}
	switch f.last.Phase {
	case progress.Failed:
		return &exit{code: exitFailed}
	case progress.Waiting:
		return &exit{code: exitWaits}
	case progress.Updating:
		return &exit{code: exitTimeout}
	}
	return nil
}
