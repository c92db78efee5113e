package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
	"github.com/seed-69ecc383/kruise/internal/cli/migrate"
)

// lookAgain is how often both workloads are read while Pods move.
const lookAgain = time.Second

// migration is what the flags of migrate say.
type migration struct {
	dry                 dryRun
	confirm             confirmation
	from, source, name  string
	create, copied, yes bool
	replicas            int32
	limits              migrate.Limits
	timeout             time.Duration
	timeoutSeconds      int32
}

func (p *program) migrate() *cobra.Command {
	var m migration
	c := &cobra.Command{
		Use:   "migrate cloneset|statefulset|daemonset --from TYPE/NAME",
		Short: "Move the Pods of a workload of Kubernetes to one of Kruise",
		Long: `Move the Pods of a workload of Kubernetes to one of Kruise. What will be done
is shown first.

Of a Deployment, Pods come in a CloneSet and go in the Deployment, one after
the other within --max-surge and --max-unavailable. The CloneSet is made if it
is not there. Interrupted, the same command goes on. The Deployment stays, with
no Pods, until you delete it.

The Pods and claims of a StatefulSet or DaemonSet are taken over as they are:
it is deleted without its Pods, and one of Kruise with the same name and spec
is created, which adopts them. No Pod restarts.

Exit codes: 0, 1 if something stands against it, 3 if it was not done within
--timeout.`,
		Example: `  kubectl kruise migrate cloneset --from deployment/web --dry-run
  kubectl kruise migrate cloneset --from deployment/web --max-surge 2
  kubectl kruise migrate statefulset --from statefulset/db`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			to, err := targetKind(args[0])
			if err != nil {
				return err
			}
			return p.migrated(c.Context(), to, &m)
		},
	}
	m.dry.add(c)
	f := c.Flags()
	f.StringVar(&m.from, "from", "", "the workload that Pods move from, such as deployment/web")
	f.StringVar(&m.name, "dst-name", "", "the name of the CloneSet; that of the Deployment if none is given")
	f.StringVar(&m.source, "src-name", "", "the name of the workload, where --from is only a type")
	f.BoolVar(&m.create, "create", false, "only make the CloneSet, with no replicas")
	f.BoolVar(&m.copied, "copy", false, "only make the CloneSet, with as many replicas as the Deployment")
	f.Int32Var(&m.replicas, "replicas", -1, "how many Pods move; -1 are all")
	f.Int32Var(&m.limits.MaxSurge, "max-surge", 1, "how many Pods more there may be on the way")
	f.Int32Var(&m.limits.MaxUnavailable, "max-unavailable", 0, "how many Pods fewer may be available on the way")
	f.DurationVar(&m.timeout, "timeout", 0, "how long to go on at most; 0 is without an end")
	f.Int32Var(&m.timeoutSeconds, "timeout-seconds", -1, "the same in seconds")
	f.BoolVarP(&m.yes, "yes", "y", false, "do not ask")
	_ = f.MarkHidden("timeout-seconds")
	return c
}

// targetKind returns the kind of Kruise that is meant by a type.
func targetKind(named string) (kinds.Kind, error) {
	short, _, _ := strings.Cut(strings.ToLower(named), ".")
	kind := map[string]string{
		"cloneset": "CloneSet", "clonesets": "CloneSet", "clone": "CloneSet", "statefulset": "StatefulSet", "statefulsets": "StatefulSet",
		"asts": "StatefulSet", "daemonset": "DaemonSet", "daemonsets": "DaemonSet", "ads": "DaemonSet",
	}[short]
	if kind == "" {
		return kinds.Kind{}, fmt.Errorf("%q is no kind that Pods can be moved to: use cloneset, statefulset or daemonset", named)
	}
	return kinds.Of(schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: kind})
}

// check reads the flags.
func (m *migration) check() (err error) {
	dryRun, err := m.dry.on()
	m.confirm = confirmation{dryRun: dryRun, yes: m.yes}
	switch {
	case err != nil:
		return err
	case m.from == "":
		return errors.New("no workload is named: add --from TYPE/NAME, such as --from deployment/web")
	case m.create && m.copied:
		return errors.New("--create and --copy are given: give only one of them")
	case m.limits.MaxSurge < 0 || m.limits.MaxUnavailable < 0 || m.limits == (migrate.Limits{}):
		return errors.New("no Pod could move: give a --max-surge or --max-unavailable of 1 or more")
	case m.replicas < -1:
		return fmt.Errorf("--replicas=%d: give the number of Pods to move, or -1 for all", m.replicas)
	}
	if m.source != "" {
		m.from += "/" + m.source
	}
	if m.timeoutSeconds > 0 {
		m.timeout = time.Duration(m.timeoutSeconds) * time.Second
	}
	return nil
}

func (p *program) migrated(ctx context.Context, to kinds.Kind, m *migration) error {
	if err := m.check(); err != nil {
		return err
	}
	from, err := p.cluster.One(ctx, []string{m.from}, "")
	if err != nil {
		return err
	}
	wanted := map[string]string{"CloneSet": "Deployment", "StatefulSet": "StatefulSet", "DaemonSet": "DaemonSet"}[to.GroupVersionKind.Kind]
	if from.Kind.GroupVersionKind.Kind != wanted || from.Kind.IsKruise() {
		return fmt.Errorf("%s can't become a %s of Kruise: give a %s of Kubernetes", from.Arg(), to.GroupVersionKind.Kind, wanted)
	}
	if name := from.GetLabels()[keys.WorkloadType]; name != "" {
		return fmt.Errorf("%s is released by a Rollout: delete that, or disable it, and make one for the new workload afterwards",
			from.Arg())
	}
	if m.timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, m.timeout)
		defer stop()
	}
	if to.GroupVersionKind.Kind == "CloneSet" {
		err = p.toCloneSet(ctx, from, to, m)
	} else {
		err = p.takenOver(ctx, from, to, m.confirm)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &exit{exitTimeout, fmt.Errorf("not done after %s; the same command goes on", m.timeout)}
	}
	return err
}

// toCloneSet moves the Pods of a Deployment.
func (p *program) toCloneSet(ctx context.Context, from access.Object, kind kinds.Kind, m *migration) error {
	to, isNew, err := p.destination(ctx, from, kind, cmp.Or(m.name, from.GetName()))
	if err != nil {
		return err
	}
	goal, err := goalOf(from, to, m)
	if err != nil {
		return err
	}
	if err := p.moveText(ctx, from, to, move{isNew, goal, m}); err != nil {
		return err
	}
	if m.copied {
		if err := unstructured.SetNestedField(to.Object, int64(replicasOf(from)), "spec", "replicas"); err != nil {
			return err
		}
	}
	if m.confirm.dryRun {
		if isNew {
			_, err = p.cluster.Create(ctx, to, true)
		}
		return err
	}
	if !m.confirm.yes && !p.confirmed("Go on?") {
		return &exit{exitFailed, errors.New("nothing was changed")}
	}
	if isNew {
		if to, err = p.cluster.Create(ctx, to, false); err != nil {
			return err
		}
		p.changed(to, "created", false)
	}
	if m.create || m.copied {
		return nil
	}
	return p.moveAll(ctx, from, to, move{isNew, goal, m})
}

// move is a move of Pods that is about to be made.
type move struct {
	isNew bool
	goal  migrate.Goal
	*migration
}

// destination returns the CloneSet that Pods move to: that which is there, or one that is still to be created.
func (p *program) destination(ctx context.Context, from access.Object, kind kinds.Kind, name string) (access.Object, bool, error) {
	there, err := p.cluster.Get(ctx, kind, from.GetNamespace(), name)
	if !apierrors.IsNotFound(err) {
		return there, false, err
	}
	made, err := p.cluster.New(kind, migrate.CloneSetOf(from.Unstructured, kind.GroupVersionKind, name))
	return made, true, err
}

func replicasOf(o access.Object) int32 {
	n, found, err := unstructured.NestedInt64(o.Object, "spec", "replicas")
	if err != nil || !found {
		return 1
	}
	return int32(n) //nolint:gosec // the API server keeps it within 32 bits
}

// goalOf returns what the move is to come to: that of a move that was interrupted, or a new one.
func goalOf(from, to access.Object, m *migration) (migrate.Goal, error) {
	var goal migrate.Goal
	if text := to.GetAnnotations()[keys.Migration]; text != "" {
		if err := json.Unmarshal([]byte(text), &goal); err != nil {
			return goal, fmt.Errorf("annotation %s of %s: %w", keys.Migration, to.Arg(), err)
		}
		if goal.From != from.Arg() {
			return goal, fmt.Errorf("a move from %s to %s is not at its end: finish that one first", goal.From, to.Arg())
		}
		return goal, nil
	}
	there, already := replicasOf(from), replicasOf(to)
	moving := there
	if m.replicas >= 0 {
		moving = m.replicas
	}
	if moving > there {
		return goal, fmt.Errorf("--replicas=%d: %s has only %d", moving, from.Arg(), there)
	}
	return migrate.Goal{From: from.Arg(), Total: there + already, Target: already + moving}, nil
}

// moveAll goes step by step until all Pods have moved.
func (p *program) moveAll(ctx context.Context, from, to access.Object, m move) error {
	encoded, err := json.Marshal(m.goal)
	if err != nil {
		return err
	}
	if to, err = p.marked(ctx, to, string(encoded)); err != nil {
		return err
	}
	defer p.screen.End()
	for {
		if from, err = p.cluster.Again(ctx, from); err != nil {
			return err
		}
		if to, err = p.cluster.Again(ctx, to); err != nil {
			return err
		}
		step := migrate.Next(sideOf(from), sideOf(to), m.goal, m.limits)
		p.screen.Change(fmt.Sprintf("%d Pods in %s, %d in %s%s", step.From, from.Arg(), step.To, to.Arg(), waiting(step.Waits)))
		if step.Done {
			_, err := p.marked(ctx, to, "")
			return err
		}
		if err := p.scaled(ctx, to, step.To); err != nil {
			return err
		}
		if err := p.scaled(ctx, from, step.From); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookAgain):
		}
	}
}

func waiting(what string) string {
	if what == "" {
		return ""
	}
	return ": " + what
}

// marked notes a goal on a CloneSet; an empty one takes it off.
func (p *program) marked(ctx context.Context, o access.Object, goal string) (access.Object, error) {
	after, _, err := p.cluster.Edit(ctx, o, false, func(u *unstructured.Unstructured) error {
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[keys.Migration] = goal
		if goal == "" {
			delete(annotations, keys.Migration)
		}
		u.SetAnnotations(annotations)
		return nil
	})
	return after, err
}

// errScaled says that somebody else has changed the replicas meanwhile: the next step is decided anew.
var errScaled = errors.New("its replicas were changed")

// scaled writes a number of replicas over the one that it was decided from.
func (p *program) scaled(ctx context.Context, o access.Object, replicas int32) error {
	was := replicasOf(o)
	_, _, err := p.cluster.Edit(ctx, o, false, func(u *unstructured.Unstructured) error {
		if replicasOf(access.Object{Unstructured: u}) != was {
			return errScaled
		}
		return unstructured.SetNestedField(u.Object, int64(replicas), "spec", "replicas")
	})
	if errors.Is(err, errScaled) {
		return nil
	}
	return err
}

// sideOf reads the numbers of a workload.
func sideOf(o access.Object) migrate.Side {
	number := func(field string) int64 {
		n, _, _ := unstructured.NestedInt64(o.Object, "status", field)
		return n
	}
	return migrate.Side{
		Replicas: replicasOf(o), Seen: number("observedGeneration") >= o.GetGeneration(),
		Pods: int32(number("replicas")), Available: int32(number("availableReplicas")), //nolint:gosec // counts of Pods
	}
}
