package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/explain"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
	"github.com/seed-69ecc383/kruise/internal/cli/past"
	"github.com/seed-69ecc383/kruise/internal/cli/screen"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// tree is an object with its steps, its revisions and their Pods.
type tree struct {
	Object   string            `json:"object"`
	Progress progress.Progress `json:"progress"`
	Cause    explain.Reason    `json:"cause"`
	// Steps are those of a Rollout, and Workload is what it releases.
	Steps    []treeStep `json:"steps,omitempty"`
	Workload *tree      `json:"workload,omitempty"`
	// Revisions are the newest first.
	Revisions []branch `json:"revisions,omitempty"`
	// Others are Pods of which no revision is known.
	Others []leaf `json:"others,omitempty"`
}

type treeStep struct {
	Replicas string `json:"replicas,omitempty"`
	Traffic  string `json:"traffic,omitempty"`
	// State is done, that of the status for the step that is under way, or empty for a step to come.
	State string `json:"state,omitempty"`
}

// branch is a revision with its Pods.
type branch struct {
	past.Entry
	List []leaf `json:"list,omitempty"`
}

// leaf is a Pod.
type leaf struct {
	Pod  string `json:"pod"`
	Node string `json:"node,omitempty"`
	// Ready is how many of its containers are, of how many.
	Ready string `json:"ready"`
	// How is how the Pod came to its revision: "in place" or "new"; empty where there was no other one.
	How string `json:"how,omitempty"`
	// Differs are its containers whose images are not those of the newest revision.
	Differs  []string    `json:"differs,omitempty"`
	Batch    string      `json:"batch,omitempty"`
	Created  time.Time   `json:"created"`
	Restarts int32       `json:"restarts"`
	Code     reason.Code `json:"code"`
	Why      string      `json:"why"`
}

func (p *program) tree() *cobra.Command {
	var out output
	var watch bool
	c := &cobra.Command{
		Use:   "tree TYPE/NAME",
		Short: "Show a workload with its revisions and their Pods, and the steps of a Rollout",
		Long: `Show how far a workload is, and its revisions, the newest first, with their
Pods: whether they are ready, whether they were updated in place or are new,
which containers differ from the newest template, their batch, and the reason
for which they stand as they do (explain has it in words). Of a Rollout, show
its steps, and then its workload.`,
		Example: `  kubectl kruise tree cloneset/web
  kubectl kruise tree rollout/demo -w`,
		ValidArgsFunction: p.completeObjects,
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			o, err := p.cluster.One(c.Context(), args, "")
			if err != nil {
				return err
			}
			return p.again(c.Context(), watch, func() error {
				t, err := p.grow(c.Context(), o)
				if err != nil {
					return err
				}
				if err := p.frame(out, watch, t, func(s *screen.Screen) { t.text(s, p.ages(s, watch)) }); err != nil || !watch {
					return err
				}
				o, err = p.cluster.Again(c.Context(), o)
				return err
			})
		},
	}
	c.Flags().BoolVarP(&watch, "watch", "w", false,
		"look again every two seconds: in place on a terminal, elsewhere write the lines that are new")
	addOutput(c, &out)
	return c
}

// grow reads what is shown of an object.
func (p *program) grow(ctx context.Context, o access.Object) (*tree, error) {
	if isRollout(o) {
		return p.growRelease(ctx, o)
	}
	e, err := p.examine(ctx, o)
	if err != nil {
		return nil, err
	}
	if e.revisions == nil && o.Kind.Revisions != kinds.NoRevisions && o.Kind.Selector != nil {
		if e.revisions, err = past.Read(ctx, p.cluster, o); err != nil {
			return nil, err
		}
	}
	return treeOf(o, e), nil
}

// growRelease reads a Rollout, and its workload if that can be read.
func (p *program) growRelease(ctx context.Context, o access.Object) (*tree, error) {
	var r v1beta1.Rollout
	if err := o.Into(&r); err != nil {
		return nil, err
	}
	at, err := p.progress(ctx, o)
	if err != nil {
		return nil, err
	}
	t := &tree{Object: o.Arg(), Progress: at, Cause: rolloutCause(o, &r, at), Steps: stepsOf(&r)}
	workload, err := p.workloadOf(ctx, o)
	if err == nil {
		t.Workload, err = p.grow(ctx, workload)
	}
	if err != nil {
		fmt.Fprintf(p.Err, "Warning: its workload is not shown: %v\n", err)
	}
	return t, nil
}

// stepsOf returns the steps of a Rollout, with how far a release has come in them.
func stepsOf(r *v1beta1.Rollout) []treeStep {
	at, begun := progress.ReleaseOf(r)
	steps := at.Steps
	if !begun {
		switch s := r.Spec.Strategy; {
		case s.Canary != nil:
			steps = s.Canary.Steps
		case s.BlueGreen != nil:
			steps = s.BlueGreen.Steps
		}
	}
	var out []treeStep
	for i, step := range steps {
		one := treeStep{}
		if step.Replicas != nil {
			one.Replicas = step.Replicas.String()
		}
		if step.Traffic != nil {
			one.Traffic = *step.Traffic
		}
		under := begun && r.Status.Phase == v1beta1.RolloutPhaseProgressing
		switch now := current(at, begun); {
		case under && i+1 < now:
			one.State = "done"
		case under && i+1 == now:
			one.State = string(at.CurrentStepState)
		}
		out = append(out, one)
	}
	return out
}

// current is the step that a release is at; 0 where there is none.
func current(r progress.Release, begun bool) int {
	if !begun {
		return 0
	}
	return int(r.CurrentStepIndex)
}

// treeOf sorts the Pods of a workload under its revisions.
func treeOf(o access.Object, e examined) *tree {
	t := &tree{Object: o.Arg(), Progress: e.Progress, Cause: explain.Explain(e.Situation).Cause}
	for _, entry := range e.revisions {
		entry.Template = nil
		t.Revisions = append(t.Revisions, branch{Entry: entry})
	}
	var newest []string
	if len(t.Revisions) > 0 {
		newest = t.Revisions[0].Images
	}
	for i, r := range explain.EachPod(e.Situation) {
		p := e.Pods[i]
		l := leafOf(p, r, newest)
		list := &t.Others
		for j := range t.Revisions {
			if b := &t.Revisions[j]; b.IsOf(p) {
				if list = &b.List; len(t.Revisions) > 1 {
					l.How = howOf(p, b.Name)
				}
				break
			}
		}
		*list = append(*list, l)
	}
	return t
}

func leafOf(p *corev1.Pod, r explain.Reason, newest []string) leaf {
	l := leaf{
		Pod: p.Name, Node: p.Spec.NodeName, Batch: p.Labels[keys.RolloutBatchID], Created: p.CreationTimestamp.Time, Code: r.Code,
		Why: r.Why,
	}
	ready := 0
	for _, c := range p.Status.ContainerStatuses {
		l.Restarts += c.RestartCount
		if c.Ready {
			ready++
		}
	}
	l.Ready = fmt.Sprintf("%d/%d", ready, len(p.Spec.Containers))
	wanted := map[string]string{}
	for _, image := range newest {
		name, of, _ := strings.Cut(image, "=")
		wanted[name] = of
	}
	for _, c := range p.Spec.Containers {
		if of, is := wanted[c.Name]; is && of != c.Image {
			l.Differs = append(l.Differs, c.Name+"="+c.Image)
		}
	}
	return l
}

// howOf says how a Pod came to its revision: an update in place leaves a record of it.
func howOf(p *corev1.Pod, name string) string {
	state, err := inplace.State(p)
	if err == nil && state != nil && revision.IsOf(state.Revision, name) {
		return "in place"
	}
	return "new"
}

func (t *tree) text(s *screen.Screen, now time.Time) {
	s.Wrapf("", "%s  %s", t.Object, t.Progress.Line())
	if t.Cause.Code != reason.Nothing {
		lead := string(t.Cause.Code)
		if t.Cause.Pod != "" {
			lead += ", Pod " + t.Cause.Pod
		}
		s.Wrapf("", "%s", strings.TrimSuffix(lead+": "+t.Cause.Why, ": "))
	}
	for i, step := range t.Steps {
		s.Linef("step %d  %s", i+1, step.words())
	}
	if t.Workload != nil {
		t.Workload.text(s, now)
	}
	lines := t.leaves(s, now)
	for _, b := range t.Revisions {
		age := ""
		if !now.IsZero() {
			age = "  " + screen.Age(b.Created.Time, now)
		}
		s.Wrapf("", "revision %d  %s%s  %s", b.Revision, b.Name, age, strings.Join(b.Images, " "))
		lines = below(s, lines, len(b.List))
	}
	if len(t.Others) > 0 && len(t.Revisions) > 0 {
		s.Linef("of no revision that is stored")
	}
	below(s, lines, len(t.Others))
}

// leaves returns the lines of all Pods in one table, in the order in which they are shown, after its heading, which is written at once.
func (t *tree) leaves(s *screen.Screen, now time.Time) []string {
	var rows [][]string
	add := func(list []leaf) {
		for _, l := range list {
			age := ""
			if !now.IsZero() {
				age = screen.Age(l.Created, now)
			}
			rows = append(rows, []string{
				l.Pod, l.Ready, l.How, l.Batch, age, fmt.Sprint(l.Restarts), string(l.Code), strings.Join(l.Differs, " "),
			})
		}
	}
	for _, b := range t.Revisions {
		add(b.List)
	}
	add(t.Others)
	if len(rows) == 0 {
		return nil
	}
	lines := s.Lines([]string{"POD", "READY", "HOW", "BATCH", "AGE", "RESTARTS", "REASON", "DIFFERS"}, rows, indent)
	s.Linef("%s%s", indent, lines[0])
	return lines[1:]
}

// indent is before what belongs to a revision.
const indent = "  "

// below writes so many lines below a revision, and returns the rest.
func below(s *screen.Screen, lines []string, n int) []string {
	for _, line := range lines[:n] {
		s.Linef("%s%s", indent, line)
	}
	return lines[n:]
}

func (s treeStep) words() string {
	var out []string
	if s.Replicas != "" {
		out = append(out, s.Replicas+" updated")
	}
	if s.Traffic != "" {
		out = append(out, "traffic "+s.Traffic)
	}
	words := strings.Join(out, ", ")
	if s.State != "" {
		words += ": " + s.State
	}
	return words
}
