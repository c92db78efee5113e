package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
	"github.com/seed-69ecc383/kruise/internal/cli/past"
)

func (p *program) undo() *cobra.Command {
	var dry dryRun
	var to int64
	var yes bool
	c := &cobra.Command{
		Use:   "undo TYPE/NAME",
		Short: "Put an earlier template back",
		Long: `Put an earlier template back, and have it rolled out as any change is: that of
the revision before the newest, or of --to-revision.

What will change is shown first. On a terminal it is asked for; -y does not
ask. Nothing but the template is put back: replicas, partition, strategy and
claim templates stay as they are. To undo a Rollout is to undo its workload,
which the Rollout then takes back.`,
		Example: `  kubectl kruise undo cloneset/web --dry-run
  kubectl kruise undo asts/db --to-revision 3 -y`,
		ValidArgsFunction: p.completeObjects,
		RunE: func(c *cobra.Command, args []string) error {
			dryRun, err := dry.on()
			if err != nil {
				return err
			}
			o, entries, err := p.entries(c.Context(), args)
			if err != nil {
				return err
			}
			target, err := undone(o, entries, to)
			if err != nil {
				return fmt.Errorf("%s: %w", o.Arg(), err)
			}
			return p.putBack(c.Context(), o, entries[0], target, confirmation{dryRun: dryRun, yes: yes})
		},
	}
	dry.add(c)
	c.Flags().Int64Var(&to, "to-revision", 0, "the revision to put back; 0 is the one before the newest")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

// undone returns the entry that is put back. It refuses to guess while the controller has not numbered the present template.
func undone(o access.Object, entries []past.Entry, to int64) (past.Entry, error) {
	progress, err := o.Kind.Progress(o.Unstructured)
	if err != nil {
		return past.Entry{}, err
	}
	if to == 0 && !progress.Seen {
		return past.Entry{}, fmt.Errorf("%s; try again, or say --to-revision", progress.Message)
	}
	return past.Find(entries, to)
}

// confirmation says whether a change is written.
type confirmation struct{ dryRun, yes bool }

// putBack shows how an earlier template differs from the present one, and writes it.
func (p *program) putBack(ctx context.Context, o access.Object, now, target past.Entry, confirm confirmation) error {
	compared, err := compare(o, []past.Entry{now, target}, now.Revision, target.Revision)
	if err != nil {
		return err
	}
	p.diffText(o, compared)
	if len(compared.Differences) > 0 && o.Kind.IsPaused(o.Unstructured) && rolloutOf(o) == "" {
		p.screen.Wrapf("", "It is paused: nothing moves until `kubectl kruise resume %s`.", o.Arg())
	}
	if len(compared.Differences) > 0 {
		if err := p.planOf(ctx, o, target.Restore); err != nil {
			return err
		}
	}
	if !confirm.dryRun && !confirm.yes && len(compared.Differences) > 0 && !p.confirmed("Put it back?") {
		return &exit{exitFailed, fmt.Errorf("nothing was changed")}
	}
	after, changed, err := p.cluster.Edit(ctx, o, confirm.dryRun, restoreOver(o, target))
	if err != nil {
		return err
	}
	what := fmt.Sprintf("has the template of revision %d already", target.Revision)
	if changed {
		what = fmt.Sprintf("rolled back to revision %d", target.Revision)
	}
	p.changed(after, what, confirm.dryRun && changed)
	return nil
}

// restoreOver puts an earlier template in the place of the one that was shown, and of no other that somebody has written meanwhile.
func restoreOver(shown access.Object, target past.Entry) func(*unstructured.Unstructured) error {
	path := []string{"spec", "template"} // what Restore writes, also of a UnitedDeployment
	was, _, _ := unstructured.NestedFieldCopy(shown.Object, path...)
	return func(u *unstructured.Unstructured) error {
		is, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
		if !reflect.DeepEqual(was, is) {
			return fmt.Errorf("the template of %s was changed while this was shown: look again with `kubectl kruise diff %s`",
				shown.Arg(), shown.Arg())
		}
		return target.Restore(u)
	}
}

// planOf shows what the controller will do after a change, where there is a forecast for it: not while a Rollout steers the workload.
func (p *program) planOf(ctx context.Context, o access.Object, change func(*unstructured.Unstructured) error) error {
	if !forecasted(o) || o.GetLabels()[keys.WorkloadType] != "" {
		return nil
	}
	after, _, err := p.cluster.Edit(ctx, o, true, change)
	if err != nil {
		return err
	}
	r, err := p.forecast(ctx, after, mostLooks)
	if err != nil {
		return err
	}
	p.planText(r)
	return nil
}

// confirmed asks a person, if there is one, and reports whether the answer was yes.
func (p *program) confirmed(question string) bool {
	in, isFile := p.In.(*os.File)
	if !isFile || !p.screen.Live || !term.IsTerminal(int(in.Fd())) {
		return true
	}
	fmt.Fprintf(p.Out, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(p.In).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// entryOf returns the entry that a Rollout came from.
func (p *program) entryOf(ctx context.Context, workload access.Object, stable string) (now, target past.Entry, err error) {
	if workload.Kind.Revisions == kinds.NoRevisions {
		return now, target, fmt.Errorf("%s keeps no earlier templates", workload.Kind)
	}
	entries, err := past.Read(ctx, p.cluster, workload)
	if err != nil {
		return now, target, err
	}
	target, found := past.Named(entries, stable)
	if !found || len(entries) == 0 {
		return now, target, fmt.Errorf("%s: the revision %q that the release came from is not stored any more", workload.Arg(), stable)
	}
	return entries[0], target, nil
}
