package broadcastjob

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
)

// state returns a job in a cluster of the nodes n1, n2 and so on, whose Pods are, in their order: R runs, S succeeded, F failed, - none,
// L is terminating, C was restarted three times, P has not started. A small letter stands for the same on a node that is tainted.
func state(t *testing.T, job, nodes string) State {
	t.Helper()
	s := Snapshot{Job: &v1beta1.BroadcastJob{}, Now: time.Unix(1_800_000_000, 0)}
	if err := yaml.UnmarshalStrict([]byte(job), s.Job); err != nil {
		t.Fatal(err)
	}
	s.Job.Name, s.Job.Namespace, s.Job.UID = "patch", "ns", "uid"
	for i, state := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i+1)}}
		if upper := strings.ToUpper(string(state)); upper != string(state) || state == '_' {
			node.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
		}
		s.Nodes = append(s.Nodes, node)
		if state == '-' || state == '_' {
			continue
		}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "patch-" + node.Name}, Spec: *s.Job.Spec.Template.Spec.DeepCopy()}
		nodefit.Pin(&p.Spec, node.Name)
		started := metav1.NewTime(s.Now)
		p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &started
		switch strings.ToUpper(string(state)) {
		case "S":
			p.Status.Phase = corev1.PodSucceeded
		case "F":
			p.Status.Phase = corev1.PodFailed
		case "L":
			p.DeletionTimestamp = &started
		case "C":
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 3}}
		case "P":
			p.Status.Phase, p.Status.StartTime = corev1.PodPending, nil
		}
		s.Pods = append(s.Pods, p)
	}
	return Classify(s)
}

// writes lists what a plan does: the nodes that get a Pod, the Pods that go, the status that is announced, and a change of the job.
func writes(p plan.Plan) string {
	var out []string
	for _, a := range p.Actions() {
		switch a.Verb {
		case plan.Create:
			out = append(out, "+"+nodefit.NodeOf(a.After.(*corev1.Pod)))
		default:
			out = append(out, string(a.Verb)+" "+a.Object().GetName())
		}
	}
	return strings.Join(out, ", ")
}

func TestJudge(t *testing.T) {
	const onFailure = "template: {spec: {restartPolicy: OnFailure}}"
	for name, tc := range map[string]struct {
		spec, status, nodes string
		want                string // phase, desired, active, succeeded, failed
		writes              string
	}{
		"nothing yet":                      {"{parallelism: 2}", "", "---_", "running 3 0 0 0", "+n1, +n2"},
		"a quarter, rounded up":            {"{parallelism: 25%}", "", "---------", "running 9 0 0 0", "+n1, +n2, +n3"},
		"none at a time":                   {"{parallelism: 0}", "", "---", "running 3 0 0 0", ""},
		"room for one more":                {"{parallelism: 2}", "", "SR--", "running 4 1 1 0", "+n3"},
		"all done":                         {"{}", "", "SSS", "completed 3 0 3 0", "update status patch"},
		"never done":                       {"{completionPolicy: {type: Never}}", "", "SSS", "running 3 0 3 0", ""},
		"for no node":                      {"{}", "", "__", "running 0 0 0 0", ""},
		"one is terminating":               {"{}", "", "SSL", "running 3 0 2 0", ""},
		"a failure ends it":                {"{}", "", "SFR-", "failed 4 0 1 2", "update status patch"},
		"a failure is passed over":         {"{failurePolicy: {type: Continue}}", "", "SFR-", "running 4 1 1 1", "+n4"},
		"all failed, all done":             {"{failurePolicy: {type: Continue}}", "", "FF", "completed 2 0 0 2", "update status patch"},
		"a failure pauses it":              {"{failurePolicy: {type: Pause}}", "", "SFR-", "paused 4 1 1 1", "update patch"},
		"paused by its user":               {"{paused: true}", "", "SFR-", "paused 4 1 1 1", ""},
		"it goes on":                       {"{}", "{phase: paused}", "SR-", "running 3 1 1 0", "update status patch, +n3"},
		"restarted too often":              {"{" + onFailure + ", failurePolicy: {type: Continue, restartLimit: 2}}", "", "SC", "completed 2 0 1 1", "update status patch"},
		"restarted, and put up with":       {"{" + onFailure + ", failurePolicy: {type: Continue, restartLimit: 3}}", "", "SC", "running 2 1 1 0", ""},
		"restarts that do not count":       {"{failurePolicy: {type: Continue}}", "", "SC", "running 2 1 1 0", ""},
		"past its deadline":                {"{completionPolicy: {activeDeadlineSeconds: 10}}", "{startTime: 2027-01-15T07:59:50Z}", "SR", "failed 2 0 1 1", "update status patch"},
		"before its deadline":              {"{completionPolicy: {activeDeadlineSeconds: 11}}", "{startTime: 2027-01-15T07:59:50Z}", "SR", "running 2 1 1 0", ""},
		"what runs stays, what waits goes": {"{}", "", "rp", "running 1 2 0 0", "delete patch-n2"},
		"what has ended stays":             {"{}", "", "sS", "completed 2 0 2 0", "update status patch"},
		"over, and something runs on":      {"{}", "{phase: failed, failed: 7}", "SRCF", "failed 0 0 0 7", "delete patch-n2, delete patch-n3"},
		"over for long":                    {"{completionPolicy: {ttlSecondsAfterFinished: 0}}", "{phase: completed, completionTime: 2027-01-15T07:59:50Z, conditions: [{type: Complete, status: 'True'}]}", "S", "completed 0 0 0 0", "delete patch"},
	} {
		t.Run(name, func(t *testing.T) {
			status := tc.status
			if status == "" {
				status = "{}"
			}
			v := state(t, "{spec: "+tc.spec+", status: "+status+"}", tc.nodes)
			s := v.status()
			got := fmt.Sprintf("%s %d %d %d %d", s.Phase, s.Desired, s.Active, s.Succeeded, s.Failed)
			if got != tc.want {
				t.Errorf("the job is %s, want %s", got, tc.want)
			}
			if diff := cmp.Diff(tc.writes, writes(Plan(v))); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestASecondFailurePausesAgain: the user has let one failure pass.
func TestASecondFailurePausesAgain(t *testing.T) {
	const job = `{metadata: {annotations: {broadcastjob.kruise.io/paused-at-failed: "1"}}, spec: {failurePolicy: {type: Pause}}}`
	for nodes, want := range map[string]v1beta1.BroadcastJobPhase{"SFR": v1beta1.BroadcastJobRunning, "FFR": v1beta1.BroadcastJobPaused} {
		if got := state(t, job, nodes).result.phase; got != want {
			t.Errorf("%s: the job is %s, want %s", nodes, got, want)
		}
	}
	// The user deleted the Pod that failed: the next failure is a new one.
	if got := writes(Plan(state(t, job, "S-R"))); got != "update patch, +n2" {
		t.Errorf("writes %s, want the annotation to be lowered", got)
	}
}
