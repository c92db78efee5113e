package promises

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// Story tells everything that happened, a line for each change.
func (w *World) Story() string {
	var out strings.Builder
	for _, change := range w.Cluster.History() {
		out.WriteString(describe(change))
		out.WriteByte('\n')
		for _, planned := range w.told[change.Revision] {
			out.WriteString(planned)
		}
	}
	return out.String()
}

func describe(c simulate.Change) string {
	what := "changes"
	switch {
	case c.Before == nil:
		what = "creates"
	case c.After == nil:
		what = "removes"
	case c.Before.GetDeletionTimestamp() == nil && c.After.GetDeletionTimestamp() != nil:
		what = "deletes"
	}
	pass := ""
	if c.Pass != nil {
		pass = fmt.Sprintf(" pass %d, had seen %s", c.Pass.Number, seen(c.Pass))
	}
	detail := ""
	if c.Before != nil && c.After != nil {
		for line := range strings.Lines(cmp.Diff(flat(c.Before), flat(c.After))) {
			if strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
				detail += "\n      " + strings.TrimSpace(line)
			}
		}
	}
	return fmt.Sprintf("%d %s %s%s %s %s %s%s", c.Revision, c.Time.Format("15:04:05.000"), c.Actor, pass, what, c.Key.Kind.Kind, c.Key.Name,
		detail)
}

// flat is an object as lines that can be compared.
func flat(object client.Object) []string {
	text, err := json.MarshalIndent(object, "", " ")
	if err != nil {
		panic(err)
	}
	return strings.Split(string(text), "\n")
}

func seen(p *simulate.Pass) string {
	var kinds []string
	for kind, revision := range p.Seen {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind.Kind, revision))
	}
	slices.Sort(kinds)
	return strings.Join(kinds, " ")
}
