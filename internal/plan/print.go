package plan

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// String prints the plan for people: the summary, then a line for every write, every hold, and the next look.
func (p Plan) String() string {
	var out strings.Builder
	out.WriteString(p.Summary)
	out.WriteByte('\n')
	table := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	row := func(cells ...string) {
		for len(cells) > 2 && cells[len(cells)-1] == "" {
			cells = cells[:len(cells)-1]
		}
		_, _ = fmt.Fprintf(table, "  %s\n", strings.Join(cells, "\t"))
	}
	if p.Problem != nil {
		row("problem", p.Problem.Error())
	}
	for _, a := range p.Actions() {
		if a.What != "" {
			row(a.verb(), a.Object().GetName(), a.What, a.Why)
		}
	}
	for _, h := range p.Holds {
		row("hold", h.Name, h.Why)
	}
	if p.Recheck > 0 {
		row("recheck", "in "+p.Recheck.Round(time.Millisecond).String(), p.RecheckWhy)
	}
	_ = table.Flush() // a strings.Builder does not fail
	return out.String()
}

// verb is the word that people read: how a change is written does not matter to them.
func (a Action) verb() string {
	switch a.Verb {
	case UpdateStatus, Resize, AddContainers:
		return string(Update)
	default:
		return string(a.Verb)
	}
}
