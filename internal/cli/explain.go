package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/explain"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
	"github.com/seed-69ecc383/kruise/internal/cli/past"
	"github.com/seed-69ecc383/kruise/internal/cli/screen"
	"github.com/seed-69ecc383/kruise/internal/forecast"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

func (p *program) explain() *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "explain TYPE/NAME [POD] | pod/NAME",
		Short: "Say why a rollout stands still, and what would free it",
		Long: `Say why a rollout stands still, and what would free it: the one cause that
matters in the first line, and a reason for each Pod that is not up to date
and in service. With the name of a Pod, say that of the Pod.

It is asked of the plan that the controller itself would make now, of its
status, and of the Pods. Nothing is changed.`,
		Example: `  kubectl kruise explain cloneset/web
  kubectl kruise explain pod/web-x7k2p
  kubectl kruise explain cloneset/web web-x7k2p
  kubectl kruise explain rollout/web -o json`,
		ValidArgsFunction: p.completeObjects,
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			o, pod, err := p.explained(c.Context(), args)
			if err != nil {
				return err
			}
			if isRollout(o) && pod == "" {
				return p.explainRollout(c.Context(), o, out)
			}
			if o, err = p.noticedWorkloadOf(c.Context(), o); err != nil {
				return err
			}
			s, err := p.situation(c.Context(), o)
			if err != nil {
				return err
			}
			if pod != "" {
				return p.explainPod(c.Context(), o, s, pod, out)
			}
			e := explain.Explain(s)
			return p.show(out, e, func() { p.explainText(o, e) })
		},
	}
	addOutput(c, &out)
	return c
}

// noticeTime is how long a controller has to see a change before it is said that it has not: a change of a moment ago tells nothing about
// the controller.
const noticeTime = 2 * time.Second

// noticed returns an object as it is once its controller has seen it, or after noticeTime.
func (p *program) noticed(ctx context.Context, o access.Object) (access.Object, error) {
	waiting, stop := context.WithTimeout(ctx, noticeTime)
	defer stop()
	err := p.cluster.Follow(waiting, o, func(now access.Object) bool {
		o = now
		at, err := now.Kind.Progress(now.Unstructured)
		return err == nil && !at.Seen // what is wrong with the object is told by the explanation
	})
	if waiting.Err() == nil {
		return o, err
	}
	if err := ctx.Err(); err != nil {
		return o, err
	}
	return p.cluster.Again(ctx, o) // who may not watch has not seen it since
}

// noticedWorkloadOf returns the workload of a Rollout, or any other object itself, once its controller has seen it.
func (p *program) noticedWorkloadOf(ctx context.Context, o access.Object) (access.Object, error) {
	workload, err := p.workloadOf(ctx, o)
	if err != nil {
		return workload, err
	}
	return p.noticed(ctx, workload)
}

// splitPod takes the name of a Pod off the end of TYPE/NAME POD or TYPE NAME POD.
func splitPod(args []string) (named []string, pod string) {
	most := 2
	if len(args) > 0 && strings.Contains(args[0], "/") {
		most = 1
	}
	if len(args) == most+1 {
		return args[:most], strings.TrimPrefix(args[most], "pod/")
	}
	return args, ""
}

// explained returns the object, and the name of the Pod, that is to be explained. A Pod alone is explained as one of its workload.
func (p *program) explained(ctx context.Context, args []string) (o access.Object, pod string, err error) {
	if name, alone := podAlone(args); alone {
		o, err = p.cluster.WorkloadOfPod(ctx, name)
		return o, name, err
	}
	named, pod := splitPod(args)
	o, err = p.cluster.One(ctx, named, "")
	return o, pod, err
}

// podAlone returns the name of the Pod of pod/NAME or pod NAME.
func podAlone(args []string) (name string, alone bool) {
	of, name, slash := strings.Cut(strings.Join(args, "/"), "/")
	return name, slash && name != "" && slices.Contains([]string{"pod", "pods", "po"}, strings.ToLower(of))
}

// situation reads what an explanation goes by.
func (p *program) situation(ctx context.Context, o access.Object) (explain.Situation, error) {
	e, err := p.examine(ctx, o)
	return e.Situation, err
}

// examined is a workload with its Pods, and those of its revisions that were read with them.
type examined struct {
	explain.Situation
	revisions []past.Entry
}

func (p *program) examine(ctx context.Context, o access.Object) (examined, error) {
	s := examined{}
	s.Situation = explain.Situation{
		Arg: o.Arg(), Rollout: rolloutOf(o), Paused: o.Kind.IsPaused(o.Unstructured), Now: p.now(), Updated: updateRevision(o),
		Native: !o.Kind.IsKruise(),
	}
	if at := o.GetDeletionTimestamp(); at != nil {
		s.Deleted, s.Finalizers = &at.Time, o.GetFinalizers()
	}
	var err error
	if s.Progress, err = o.Kind.Progress(o.Unstructured); err != nil {
		return s, err
	}
	ready, _, _ := unstructured.NestedInt64(o.Object, "spec", "minReadySeconds")
	s.MinReadySeconds = int32(ready)
	if fields, found, _ := unstructured.NestedMap(o.Object, "spec", "lifecycle"); found {
		if encoded, err := json.Marshal(fields); err == nil {
			s.Lifecycle = &pub.Lifecycle{}
			if err := json.Unmarshal(encoded, s.Lifecycle); err != nil {
				return s, fmt.Errorf("reading spec.lifecycle of %s: %w", o, err)
			}
		}
	}
	if forecasted(o) {
		return s, p.planned(ctx, o, &s)
	}
	if o.Kind.Selector == nil && o.Kind.GroupVersionKind.Kind != broadcastJob {
		return s, nil
	}
	if o.Kind.Revisions == kinds.ReplicaSets {
		entries, err := past.Read(ctx, p.cluster, o)
		if err != nil {
			return s, err
		}
		if s.revisions = entries; len(entries) > 0 {
			s.Updated, s.Label = entries[0].Name, keys.PodTemplateHash
		}
	}
	pods, err := p.pods(ctx, o)
	if err != nil {
		return s, err
	}
	for i := range pods {
		s.Pods = append(s.Pods, &pods[i])
	}
	if len(pods) == 0 && s.Progress.Phase == progress.Updating && s.Native {
		s.Refused = p.refusedOf(ctx, o)
	}
	return s, nil
}

// refusedOf returns what the API server has refused to a controller of Kubernetes, which says so by an event alone; empty where it has
// refused nothing, or the user may not read events.
func (p *program) refusedOf(ctx context.Context, o access.Object) string {
	reader, err := p.cluster.Client()
	if err != nil {
		return ""
	}
	var list corev1.EventList
	about := client.MatchingFields{"involvedObject.uid": string(o.GetUID()), "reason": "FailedCreate"}
	if err := reader.List(ctx, &list, client.InNamespace(o.GetNamespace()), about); err != nil || len(list.Items) == 0 {
		return ""
	}
	last := slices.MaxFunc(list.Items, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return last.Message
}

// planned adds the Pods of a workload, and what its controller would do now.
func (p *program) planned(ctx context.Context, o access.Object, s *examined) error {
	owner, w, err := p.snapshot(ctx, o)
	if err != nil {
		return err
	}
	var pods corev1.PodList
	if err := w.List(ctx, &pods); err != nil {
		return err
	}
	for _, one := range controlled(pods.Items, o) {
		s.Pods = append(s.Pods, &one)
	}
	var revisions appsv1.ControllerRevisionList
	if err := w.List(ctx, &revisions); err != nil {
		return err
	}
	if s.revisions, err = past.FromRevisions(revisions.Items, o); err != nil {
		return err
	}
	s.Plan, err = forecast.First(ctx, w, owner)
	return err
}

// updateRevision returns the revision that a status names as the newest; empty for a kind whose Pods do not carry it.
func updateRevision(o access.Object) string {
	if o.Kind.Revisions != kinds.ControllerRevisions || o.Kind.GroupVersionKind.Kind == "UnitedDeployment" {
		return ""
	}
	name, _, _ := unstructured.NestedString(o.Object, "status", "updateRevision")
	return name
}

func (p *program) explainText(o access.Object, e explain.Explanation) {
	p.causeText(o.Arg(), e.Cause)
	var rows [][]string
	for _, r := range e.Pods {
		rows = append(rows, []string{r.Pod, string(r.Code), p.since(r), r.Why})
	}
	if len(rows) > 0 {
		p.screen.Table([]string{"POD", "REASON", "SINCE", "WHY"}, rows)
	}
	if e.InService > 0 {
		p.screen.Linef("%d Pods are in service.", e.InService)
		return
	}
	p.screen.Linef("%d Pods have the newest template and are in service.", e.UpToDate)
}

// causeText writes a reason, and what would free it.
func (p *program) causeText(arg string, r explain.Reason) {
	line := arg + ": " + string(r.Code)
	if since := p.since(r); since != "" {
		line += " for " + since
	}
	if r.Pod != "" && r.Pod != arg {
		line += ", Pod " + r.Pod
	}
	p.screen.Wrapf("", "%s: %s.", line, strings.TrimSuffix(r.Why, "."))
	if r.Free != "" {
		p.screen.Wrapf("", "To free it: %s.", strings.TrimSuffix(r.Free, "."))
	}
}

func (p *program) since(r explain.Reason) string {
	if r.Since == nil {
		return ""
	}
	return screen.Age(*r.Since, p.now())
}

func (p *program) explainPod(ctx context.Context, o access.Object, s explain.Situation, name string, out output) error {
	r, found := explain.OfPod(s, name)
	if !found {
		return fmt.Errorf("%s has no Pod %q", o.Arg(), name)
	}
	if r.Code == reason.UpToDate || r.Code == reason.InService {
		i := slices.IndexFunc(s.Pods, func(p *corev1.Pod) bool { return p.Name == name })
		if missing, is := p.notInjected(ctx, s.Pods[i]); is {
			r = missing
		}
	}
	return p.show(out, r, func() { p.causeText(name, r) })
}
