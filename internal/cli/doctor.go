package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-69ecc383/kruise/internal/cli/doctor"
)

func (p *program) doctor() *cobra.Command {
	var out output
	var takeover bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look whether the installation can do its work, or what a takeover of OpenKruise would do",
		Long: `Look whether the installation of Kruise can do its work: the versions of its
kinds and of what is stored, its managers and their leader, webhooks and their
certificates, daemons on all nodes, and what an absent manager holds. The
webhooks are asked by a dry run. Of all that is amiss it says why that matters
and what mends it.

With --takeover it looks at a cluster in which OpenKruise runs, and says what is
to be settled before, what happens step by step, and how to go back. Nothing is
changed.

Exit codes: 0, 1 if something is broken, 2 if there are only warnings.`,
		Example: `  kubectl kruise doctor
  kubectl kruise doctor --takeover -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			facts, err := p.facts(c.Context(), takeover)
			if err != nil {
				return err
			}
			if takeover {
				return p.takeover(out, doctor.Plan(facts))
			}
			return p.diagnosed(out, doctor.Diagnose(facts))
		},
	}
	addOutput(c, &out)
	c.Flags().BoolVar(&takeover, "takeover", false, "say what a takeover of OpenKruise would do")
	return c
}

// diagnosed shows what is amiss, and ends with the code for it.
func (p *program) diagnosed(out output, found []doctor.Finding) error {
	if found == nil {
		found = []doctor.Finding{}
	}
	if err := p.show(out, found, func() {
		p.findingsText(found)
		if len(found) == 0 {
			p.screen.Linef("Nothing is amiss.")
		}
	}); err != nil {
		return err
	}
	return graveness(found)
}

// graveness returns the exit code for findings.
func graveness(found []doctor.Finding) error {
	code := exitOK
	for _, f := range found {
		if f.Severity == doctor.Broken {
			return &exit{code: exitFailed}
		}
		code = exitWaits
	}
	if code == exitOK {
		return nil
	}
	return &exit{code: code}
}

func (p *program) findingsText(found []doctor.Finding) {
	for _, f := range found {
		p.screen.Wrapf("", "%s: %s.", strings.ToUpper(string(f.Severity)), strings.TrimSuffix(f.What, "."))
		p.screen.Wrapf("  Why:  ", "%s.", strings.TrimSuffix(f.Why, "."))
		p.screen.Wrapf("  Mend: ", "%s", f.Mend)
	}
}

// takeover shows what a takeover would do.
func (p *program) takeover(out output, t doctor.Takeover) error {
	if err := p.show(out, t, func() { p.takeoverText(t) }); err != nil {
		return err
	}
	return graveness(t.Against)
}

func (p *program) takeoverText(t doctor.Takeover) {
	if len(t.Found) == 0 {
		p.screen.Linef("There is nothing of OpenKruise here: an installation takes nothing over.")
		p.findingsText(t.Against)
		return
	}
	p.screen.Linef("There is:")
	for _, what := range t.Found {
		p.screen.Wrapf("- ", "%s", what)
	}
	if len(t.Against) > 0 {
		p.screen.Linef("Before:")
		p.findingsText(t.Against)
	}
	p.screen.Linef("What happens:")
	for i, step := range t.Steps {
		p.screen.Wrapf(fmt.Sprintf("%d. ", i+1), "%s", step)
	}
	p.screen.Linef("To go back:")
	for i, step := range t.Back {
		p.screen.Wrapf(fmt.Sprintf("%d. ", i+1), "%s", step)
	}
}
