package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/past"
)

// comparison is what diff shows.
type comparison struct {
	From past.Entry `json:"from"`
	To   past.Entry `json:"to"`
	// Differences are the fields that differ.
	Differences []past.Difference `json:"differences"`
	// InPlace says whether Pods can be updated in place from one to the other, and HowItGoes what is done to them, or what stands against
	// it; both are left out for kinds that are never updated in place.
	InPlace   *bool  `json:"inPlace,omitempty"`
	HowItGoes string `json:"howItGoes,omitempty"`
}

func (p *program) diff() *cobra.Command {
	var out output
	var from, to int64
	c := &cobra.Command{
		Use:   "diff TYPE/NAME",
		Short: "Compare two revisions of a workload",
		Long: `Compare two revisions of a workload, field by field, and say whether Pods can
go from one to the other in place.

Without flags the newest revision is compared with the one before it.`,
		Example: `  kubectl kruise diff cloneset/web
  kubectl kruise diff asts/db --from 3 --to 5`,
		ValidArgsFunction: p.completeObjects,
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			o, entries, err := p.entries(c.Context(), args)
			if err != nil {
				return err
			}
			compared, err := compare(o, entries, from, to)
			if err != nil {
				return fmt.Errorf("%s: %w", o.Arg(), err)
			}
			return p.show(out, compared, func() { p.diffText(o, compared) })
		},
	}
	c.Flags().Int64Var(&from, "from", 0, "the older revision; the one before --to if it is not given")
	c.Flags().Int64Var(&to, "to", 0, "the newer revision; the newest if it is not given")
	addOutput(c, &out)
	return c
}

func compare(o access.Object, entries []past.Entry, from, to int64) (comparison, error) {
	if len(entries) == 0 {
		return comparison{}, past.ErrNoEarlier
	}
	newer := entries[0]
	var err error
	if to != 0 {
		if newer, err = past.Find(entries, to); err != nil {
			return comparison{}, err
		}
	}
	if from == 0 {
		from = before(entries, newer)
	}
	if from == 0 {
		return comparison{}, past.ErrNoEarlier
	}
	older, err := past.Find(entries, from)
	if err != nil {
		return comparison{}, err
	}
	out := comparison{From: older, To: newer, Differences: past.Diff(older.Template, newer.Template)}
	out.From.Template, out.To.Template = nil, nil
	if o.Kind.IsKruise() && o.Kind.Template != nil {
		is := false
		is, out.HowItGoes = past.HowItGoes(older, newer, inPlaceOptions())
		out.InPlace = &is
	}
	return out, nil
}

// before returns the number of the revision before one; 0 if there is none.
func before(entries []past.Entry, e past.Entry) int64 {
	for _, other := range entries {
		if other.Revision < e.Revision {
			return other.Revision
		}
	}
	return 0
}

func (p *program) diffText(o access.Object, c comparison) {
	p.screen.Linef("%s  revision %d -> %d", o.Arg(), c.From.Revision, c.To.Revision)
	if len(c.Differences) == 0 {
		p.screen.Linef("  The templates are the same.")
	}
	for _, d := range c.Differences {
		p.screen.Linef("  %s", d.Path)
		p.screen.Wrapf("    - ", "%s", past.Text(d.Old))
		p.screen.Wrapf("    + ", "%s", past.Text(d.New))
	}
	switch {
	case c.InPlace == nil || len(c.Differences) == 0:
	case *c.InPlace:
		p.screen.Wrapf("", "Pods can be updated in place (%s).", c.HowItGoes)
	default:
		p.screen.Wrapf("", "Pods are recreated: %s.", c.HowItGoes)
	}
}
