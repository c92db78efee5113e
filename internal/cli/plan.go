package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/forecast"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
)

// planned is what plan shows.
type planned struct {
	forecast.Result
	// End is how it stands in the end, or after the last step of a forecast that is cut off.
	End progress.Progress `json:"end"`
	// Budgets are the PodUnavailableBudgets that cover Pods of the workload, with what they allow now.
	Budgets []budgetRoom `json:"budgets,omitempty"`
	// Release is how a Rollout releases changes of the template; nil if none does.
	Release *preview `json:"release,omitempty"`
}

type budgetRoom struct {
	Name    string `json:"name"`
	Allowed int32  `json:"unavailableAllowed"`
}

func (p *program) plan() *cobra.Command {
	var out output
	var file string
	var set []string
	var all bool
	c := &cobra.Command{
		Use:   "plan TYPE/NAME",
		Short: "Tell what the controller will do: which Pods, in which order, and how",
		Long: `Tell what the controller of a CloneSet, or of a StatefulSet or DaemonSet of
Kruise, will do: which Pods it updates in which order, in place or by
recreating them and why, what it holds back, and how long it takes at least.

The functions of the controller itself are run over what is read now: with the
object as it is, or as the API server would store it with -f or --set, which
is asked by a dry run and needs the right to change it. The forecast holds as
long as the health of Pods does not change: those that are broken stay so
until they are updated, others become ready at once. It takes no account of
PodUnavailableBudgets, but names them, and of feature gates of the manager
other than the defaults. Where few of many Pods are updated at a time, only the
first updates are told, within a second: --all tells all of them.

Of a Rollout, and of a workload that one releases, it tells what each step comes
to: how many Pods, which requests, and what it waits for.

--set takes image=CONTAINER=IMAGE, replicas=N, partition=N or N%,
maxUnavailable=N or N%, paused=BOOL.

Exit codes: 0, or 2 if it comes to a point where nothing goes on until a
person acts, or 1 if it does not come to its end otherwise.`,
		Example: `  kubectl kruise plan cloneset/web
  kubectl kruise plan cloneset/web --set image=app=web:v2 --set partition=30%
  kubectl kruise plan asts/db -f db.yaml
  kubectl kruise plan rollout/web`,
		ValidArgsFunction: p.completeObjects,
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			o, err := p.cluster.One(c.Context(), args, "")
			if err != nil {
				return err
			}
			if isRollout(o) {
				return p.planRollout(c.Context(), o, file, set, out)
			}
			looks := mostLooks
			if all {
				looks = 0
			}
			return p.planWorkload(c.Context(), o, wish{file: file, set: set}, looks, out)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "tell all updates, however long it takes to work them out")
	c.Flags().StringVarP(&file, "filename", "f", "", "a file with the object as it is to be")
	c.Flags().StringArrayVar(&set, "set", nil, "FIELD=VALUE, a change of the object; may be given several times")
	addOutput(c, &out)
	return c
}

// mostLooks is how many Pods the passes of a forecast look at together: it takes half a second or so.
const mostLooks = 150_000

// wish is how an object is to be: as a file has it, or with fields that are set.
type wish struct {
	file string
	set  []string
}

// planWorkload tells what the controller of a workload will do, and how a Rollout that releases it goes.
func (p *program) planWorkload(ctx context.Context, o access.Object, as wish, looks int, out output) error {
	stages, err := p.releasedBy(ctx, o)
	switch {
	case err != nil:
		return err
	case !forecasted(o) && (stages == nil || as.file != "" || len(as.set) > 0):
		return noForecast(o)
	case !forecasted(o):
		return p.show(out, stages, func() { p.previewText(stages) })
	}
	if o, err = p.wanted(ctx, o, as.file, as.set); err != nil {
		return err
	}
	r, err := p.forecast(ctx, o, looks)
	if err != nil {
		return err
	}
	r.Release = stages
	if err := p.show(out, r, func() { p.planText(r) }); err != nil {
		return err
	}
	return r.exit()
}

func (r planned) exit() error {
	switch {
	case r.Cut:
		return nil
	case r.Problem != "" || r.End.Phase == progress.Failed || r.End.Phase == progress.Updating:
		return &exit{code: exitFailed}
	case r.End.Phase == progress.Waiting:
		return &exit{code: exitWaits}
	}
	return nil
}

// forecast reads what the controller of a workload reads, and has it told what it will do, looking at so many Pods at most; 0 is no limit.
func (p *program) forecast(ctx context.Context, o access.Object, looks int) (planned, error) {
	owner, w, err := p.snapshot(ctx, o)
	if err != nil {
		return planned{}, err
	}
	out := planned{}
	if out.Budgets, err = p.budgets(ctx, w, o.GetNamespace()); err != nil {
		return planned{}, err
	}
	if out.Result, err = forecast.RunWithin(ctx, w, owner, looks); err != nil {
		return planned{}, err
	}
	end := owner
	if out.Owner != nil {
		end = out.Owner
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(end)
	if err != nil {
		return planned{}, fmt.Errorf("reading the forecast: %w", err)
	}
	out.End, err = o.Kind.Progress(&unstructured.Unstructured{Object: fields})
	return out, err
}

// holds returns the reasons for which something is held back, each once.
func holds(all []plan.Hold) []string {
	seen := map[string]bool{}
	var out []string
	for _, h := range all {
		why := h.Why
		if h.Name != "" {
			why = h.Name + ": " + why
		}
		if !seen[why] {
			seen[why] = true
			out = append(out, why)
		}
	}
	return out
}

func (p *program) planText(r planned) {
	if r.Release != nil {
		defer p.previewText(r.Release)
	}
	p.screen.Wrapf("", "%s", r.Summary)
	if r.Problem != "" {
		p.screen.Wrapf("", "Nothing can be planned: %s.", r.Problem)
		return
	}
	if len(r.Steps) == 0 {
		p.screen.Linef("No Pod is updated, created or deleted.")
	} else {
		p.planTable(r)
	}
	for _, why := range holds(r.Last) {
		p.screen.Wrapf("held: ", "%s", why)
	}
	for _, b := range r.Budgets {
		p.screen.Wrapf("", "PodUnavailableBudget %s allows %d unavailable Pods now: what it does not allow comes later.", b.Name, b.Allowed)
	}
	takes := time.Duration(r.Seconds) * time.Second
	if r.Cut {
		p.screen.Wrapf("", "Then: %s, after %s at least; never fewer than %d Pods are available until then. "+
			"More follows, which takes long to work out: plan --all tells it.", r.End.Numbers(), takes, max(r.Least, 0))
		return
	}
	p.screen.Wrapf("", "In the end: %s (%s).", r.End.Numbers(), r.End.Message)
	if r.End.Next != "" {
		p.screen.Wrapf("", "To go on: %s.", r.End.Next)
	}
	if len(r.Steps) > 0 {
		p.screen.Wrapf("", "It takes %s at least; never fewer than %d Pods are available on the way.", takes, max(r.Least, 0))
	}
}

func (p *program) planTable(r planned) {
	var rows [][]string
	var reasons []string
	for i, s := range r.Steps {
		when := "batch " + strconv.Itoa(s.Batch)
		if s.Seconds > 0 {
			when += ", +" + (time.Duration(s.Seconds) * time.Second).String()
		}
		how, what := wordsOf(s)
		if s.Recreated && what != "" { // mostly the same for all of them, and long
			at := slices.Index(reasons, what)
			if at < 0 {
				at, reasons = len(reasons), append(reasons, what)
			}
			what = fmt.Sprintf("(%d)", at+1)
		}
		rows = append(rows, []string{strconv.Itoa(i + 1), when, s.Pod, s.Node, how, what})
	}
	p.screen.Table([]string{"#", "WHEN", "POD", "NODE", "HOW", "WHAT"}, rows)
	for i, why := range reasons {
		p.screen.Wrapf(fmt.Sprintf("(%d) ", i+1), "can't go in place: %s", why)
	}
}

// wordsOf says how a Pod is changed, and what changes or why.
func wordsOf(s forecast.Step) (how, what string) {
	change, isInPlace := strings.CutPrefix(s.What, "in place: ")
	switch {
	case isInPlace:
		return "in place", change
	case s.Recreated:
		return "RECREATE", strings.TrimPrefix(strings.TrimPrefix(s.What, "recreate"), ": ")
	case s.Verb == plan.Delete:
		return "delete", s.Why
	}
	return string(s.Verb), s.What
}
