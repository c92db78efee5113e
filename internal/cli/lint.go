package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/lint"
)

func (p *program) lint() *cobra.Command {
	var out output
	var files []string
	var recursive bool
	c := &cobra.Command{
		Use:   "lint -f FILE",
		Short: "Check manifests without a cluster, as an API server with Kruise would",
		Long: `Check manifests without a cluster, as an API server with Kruise would: by the
schemas of the CustomResourceDefinitions and their rules, the defaults, the
conversion between versions, and the handlers of the webhooks themselves, with
the default feature gates. Fields that do not exist are refused.

It warns of labels, annotations and variables of Kruise that are misspelt or
whose values say nothing, also on other kinds; and, within the files, of
objects that are named and not there, Services that select other Pods, budgets
that guard none, and partitions that hold everything.

Of Pod templates it checks names and types of fields, and what every container
needs. For all other rules of Pods: kubectl apply --dry-run=server.

Exit codes: 0, or 1 if the API server would refuse something. Warnings are
shown, and change no exit code.`,
		Example: `  kubectl kruise lint -f web.yaml
  kubectl kruise lint -f deploy/ -R
  helm template web | kubectl kruise lint -f - -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if len(files) == 0 {
				return errors.New("no file is named: add -f FILE, -f FOLDER, or -f - for the standard input")
			}
			manifests, err := lint.Read(p.In, files, recursive)
			if err != nil {
				return err
			}
			scheme, err := access.Scheme()
			if err != nil {
				return err
			}
			namespace, _ := p.cluster.Namespace() // a kubeconfig need not be there
			found, err := lint.Check(c.Context(), manifests, lint.Options{Scheme: scheme, Namespace: namespace, Now: p.now})
			if err != nil {
				return err
			}
			return p.linted(out, found)
		},
	}
	addOutput(c, &out)
	c.Flags().StringSliceVarP(&files, "filename", "f", nil, "a file, a folder, or - for the standard input")
	c.Flags().BoolVarP(&recursive, "recursive", "R", false, "look into folders in folders")
	return c
}

// linted shows what was found, and ends with the code for it.
func (p *program) linted(out output, found lint.Result) error {
	if err := p.show(out, found, func() { p.lintText(found) }); err != nil {
		return err
	}
	if found.Errors > 0 {
		return &exit{code: exitFailed}
	}
	return nil
}

func (p *program) lintText(found lint.Result) {
	for _, f := range found.Findings {
		where := fmt.Sprintf("%s:%d: ", f.File, f.Line)
		if f.Object != "" {
			where += f.Object + ": "
		}
		what := f.Message
		if f.Field != "" {
			what = f.Field + ": " + what
		}
		p.screen.Wrapf("", "%s%s: %s", where, f.Severity, what)
	}
	counted := fmt.Sprintf("%d objects, %d of them of Kruise", found.Objects, found.Ours)
	p.screen.Linef("%s: %s.", counted, cmp.Or(counts(found), "the API server would take all of them"))
}

// counts tells how many errors and warnings there are; empty if there are none.
func counts(found lint.Result) string {
	if found.Errors+found.Warnings == 0 {
		return ""
	}
	return fmt.Sprintf("%d errors, %d warnings", found.Errors, found.Warnings)
}
