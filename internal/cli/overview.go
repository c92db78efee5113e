package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
	"github.com/seed-69ecc383/kruise/internal/cli/screen"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// overviewOptions are the flags of overview.
type overviewOptions struct {
	all, watch bool
	output     output
}

// state says what is the matter with an object that is not at rest.
type state string

const (
	waits    state = "waits" // for a person
	stuck    state = "stuck"
	frozen   state = "frozen" // by its Rollout
	deleting state = "deleting"
	updating state = "updating"
)

// states are in the order in which they are shown.
func states() []state { return []state{waits, stuck, frozen, deleting, updating} }

// unrest is an object that is not at rest.
type unrest struct {
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace,omitempty"`
	Name      string      `json:"name"`
	State     state       `json:"state"`
	Code      reason.Code `json:"code"`
	Since     *time.Time  `json:"since,omitempty"`
	Why       string      `json:"why"`

	arg string
}

// overview is what is shown of a cluster or a namespace.
type overview struct {
	Objects []unrest `json:"objects"`
	// AtRest are the numbers of those that are at rest, by kind.
	AtRest map[string]int `json:"atRest"`
	// Unread says what could not be read.
	Unread []string `json:"unread,omitempty"`
}

func (p *program) overview() *cobra.Command {
	o := &overviewOptions{}
	c := &cobra.Command{
		Use:   "overview",
		Short: "List what is not at rest: updating, stuck, frozen, or waiting for a person",
		Long: `List all workloads, jobs and Rollouts that are not at rest, one line each: those
that wait for a person first, then what is stuck, frozen by a Rollout, being
deleted, or updating; then how many are at rest. Pods are not read: explain
tells more of an object.

Kinds that the cluster does not have are left out; those that you may not list
are named.`,
		Example: `  kubectl kruise overview
  kubectl kruise overview -A -w
  kubectl kruise -A -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return p.runOverview(c.Context(), o) },
	}
	p.addOverviewFlags(c, o)
	return c
}

func (p *program) addOverviewFlags(c *cobra.Command, o *overviewOptions) {
	c.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "look at all namespaces")
	c.Flags().BoolVarP(&o.watch, "watch", "w", false,
		"look again every two seconds: in place on a terminal, elsewhere write the lines that are new")
	addOutput(c, &o.output)
}

func (p *program) runOverview(ctx context.Context, o *overviewOptions) error {
	if err := o.output.check(); err != nil {
		return err
	}
	namespace := ""
	if !o.all {
		var err error
		if namespace, err = p.cluster.Namespace(); err != nil {
			return err
		}
	}
	return p.again(ctx, o.watch, func() error {
		v, err := p.look(ctx, namespace)
		if err != nil {
			return err
		}
		return p.frame(o.output, o.watch, v, func(s *screen.Screen) { v.text(s, o.all, p.ages(s, o.watch)) })
	})
}

// look reads all kinds at once, each in pages.
func (p *program) look(ctx context.Context, namespace string) (overview, error) {
	all := kinds.All()
	parts, problems := make([]overview, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	for i, kind := range all {
		parts[i].AtRest = map[string]int{}
		running.Go(func() { problems[i] = p.cluster.Each(ctx, kind, namespace, parts[i].add) })
	}
	running.Wait()
	v := overview{AtRest: map[string]int{}, Objects: []unrest{}}
	read := 0
	for i, kind := range all {
		switch err := problems[i]; {
		case err == nil:
			read++
			v.Objects = append(v.Objects, parts[i].Objects...)
			maps.Copy(v.AtRest, parts[i].AtRest)
		case access.IsNotInstalled(err):
		case apierrors.IsForbidden(err):
			v.Unread = append(v.Unread, kind.String())
		default:
			return v, err
		}
	}
	if read == 0 && len(v.Unread) > 0 {
		return v, fmt.Errorf("you may list none of %s", strings.Join(v.Unread, ", "))
	}
	v.sort()
	return v, nil
}

// sort puts those first that a person has to see to.
func (v *overview) sort() {
	slices.SortStableFunc(v.Objects, func(a, b unrest) int {
		return cmp.Or(cmp.Compare(slices.Index(states(), a.State), slices.Index(states(), b.State)), strings.Compare(a.Namespace,
			b.Namespace),
			strings.Compare(a.arg, b.arg))
	})
}

// add notes an object.
func (v *overview) add(o access.Object) error {
	at, err := o.Kind.Progress(o.Unstructured)
	if err != nil { // a field that can't be read is a reason to look at it
		at = progress.Progress{Phase: progress.Failed, Code: reason.InvalidSpec, Message: err.Error()}
	}
	u := unrest{
		Kind: o.Kind.GroupVersionKind.Kind, Namespace: o.GetNamespace(), Name: o.GetName(), Code: at.Code, Since: at.Since, Why: at.Message,
		arg: o.Arg(),
	}
	switch rollout := rolloutOf(o); {
	case o.GetDeletionTimestamp() != nil:
		u.State, u.Code, u.Since, u.Why = deleting, reason.WaitDeletion, &o.GetDeletionTimestamp().Time, "it is being deleted"
		if left := o.GetFinalizers(); len(left) > 0 {
			u.Why += ", and has finalizers: " + strings.Join(left, ", ")
		}
	case rollout != "" && !isRollout(o):
		u.State, u.Code, u.Why = frozen, reason.HeldByRollout, "rollout/"+rollout+" releases it in steps"
	case at.AtRest():
		v.AtRest[o.Kind.String()]++
		return nil
	case at.Phase == progress.Waiting:
		u.State = waits
	case at.Phase == progress.Failed || at.Code.Stuck():
		u.State = stuck
	default:
		u.State = updating
	}
	if u.Since == nil {
		u.Since = specWritten(o)
	}
	v.Objects = append(v.Objects, u)
	return nil
}

// specWritten returns when the spec of an object was written for the last time, as the API server notes it; nil where it does not.
func specWritten(o access.Object) *time.Time {
	var last *time.Time
	for _, entry := range o.GetManagedFields() {
		isSpec := entry.Subresource == "" && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:spec"`)
		if isSpec && entry.Time != nil && (last == nil || entry.Time.After(*last)) {
			last = &entry.Time.Time
		}
	}
	return last
}

func (v overview) text(s *screen.Screen, all bool, now time.Time) {
	var rows [][]string
	for _, u := range v.Objects {
		row := []string{u.arg, string(u.State), string(u.Code), "", u.Why}
		if u.Since != nil && !now.IsZero() {
			row[3] = screen.Age(*u.Since, now)
		}
		if all {
			row = slices.Insert(row, 0, u.Namespace)
		}
		rows = append(rows, row)
	}
	headings := []string{"OBJECT", "STATE", "REASON", "SINCE", "WHY"}
	if all {
		headings = slices.Insert(headings, 0, "NAMESPACE")
	}
	if len(rows) > 0 {
		s.Table(headings, rows)
	}
	s.Wrapf("", "At rest: %s.", v.counts())
	if len(v.Unread) > 0 {
		s.Wrapf("", "You may not list: %s.", strings.Join(v.Unread, ", "))
	}
}

// counts says how many objects are at rest, in the order of their kinds.
func (v overview) counts() string {
	var out []string
	for _, k := range kinds.All() {
		if n := v.AtRest[k.String()]; n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, k))
		}
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, ", ")
}

// redrawEvery is how often what is watched is read anew.
const redrawEvery = 2 * time.Second

// again calls look once, or until the context ends.
func (p *program) again(ctx context.Context, watch bool, look func() error) error {
	for {
		if err := look(); err != nil || !watch {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(redrawEvery):
		}
	}
}

// ages returns the time that ages are told at; none where lines are written that have changed, as ages always do.
func (p *program) ages(s *screen.Screen, watch bool) time.Time {
	if watch && !s.Live {
		return time.Time{}
	}
	return p.now()
}

// frame shows a value in the format that was asked for, or as text; what is watched in place of what was shown before.
func (p *program) frame(o output, watch bool, value any, draw func(*screen.Screen)) error {
	if o == screen.Text && watch {
		p.screen.Frame(draw)
		return nil
	}
	return p.show(o, value, func() { draw(p.screen) })
}
