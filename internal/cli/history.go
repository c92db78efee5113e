package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
	"github.com/seed-69ecc383/kruise/internal/cli/past"
	"github.com/seed-69ecc383/kruise/internal/cli/screen"
)

func (p *program) history() *cobra.Command {
	var out output
	var number int64
	c := &cobra.Command{
		Use:   "history TYPE/NAME",
		Short: "List the revisions of a workload",
		Long: `List the templates that a workload has and had, the newest first, with the
Pods that are at each of them. --revision shows one in full.

The history of a Rollout is that of its workload.`,
		Example: `  kubectl kruise history cloneset/web
  kubectl kruise history asts/db --revision 3`,
		ValidArgsFunction: p.completeObjects,
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			o, entries, err := p.entries(c.Context(), args)
			if err != nil {
				return err
			}
			if number != 0 {
				return p.showRevision(out, o, entries, number)
			}
			if o.Kind.GroupVersionKind.Kind != "UnitedDeployment" { // its Pods have revisions of its subsets
				pods, err := p.pods(c.Context(), o)
				if err != nil {
					return err
				}
				past.CountPods(entries, pods)
			}
			for i := range entries {
				entries[i].Template = nil
			}
			return p.show(out, entries, func() { p.historyText(o, entries) })
		},
	}
	c.Flags().Int64Var(&number, "revision", 0, "show the template of this revision")
	addOutput(c, &out)
	return c
}

// entries reads the templates of the workload that arguments name.
func (p *program) entries(ctx context.Context, args []string) (access.Object, []past.Entry, error) {
	o, err := p.cluster.One(ctx, args, "")
	if err != nil {
		return o, nil, err
	}
	if o, err = p.workloadOf(ctx, o); err != nil {
		return o, nil, err
	}
	if o.Kind.Revisions == kinds.NoRevisions {
		return o, nil, fmt.Errorf("%s keeps no earlier templates", o.Kind)
	}
	entries, err := past.Read(ctx, p.cluster, o)
	return o, entries, err
}

func (p *program) historyText(o access.Object, entries []past.Entry) {
	if len(entries) == 0 {
		p.screen.Linef("%s has no revision yet.", o.Arg())
		return
	}
	var rows [][]string
	for _, e := range entries {
		pods := ""
		if e.Pods != nil {
			pods = strconv.Itoa(*e.Pods)
		}
		rows = append(rows, []string{
			strconv.FormatInt(e.Revision, 10), e.Name, pods, screen.Age(e.Created.Time, p.now()), strings.Join(e.Images, " "),
		})
	}
	p.screen.Table([]string{"REVISION", "NAME", "PODS", "AGE", "IMAGES"}, rows)
}

func (p *program) showRevision(out output, o access.Object, entries []past.Entry, number int64) error {
	e, err := past.Find(entries, number)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Arg(), err)
	}
	encoded, err := yaml.Marshal(e.Template)
	if err != nil {
		return fmt.Errorf("encoding the template: %w", err)
	}
	return p.show(out, e, func() {
		p.screen.Linef("%s  revision %d  %s", o.Arg(), e.Revision, e.Name)
		fmt.Fprint(p.Out, string(encoded))
	})
}
