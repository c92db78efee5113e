// Package traces has both managers send their traces to a collector, while CloneSets and Rollouts are rolled out on simulated nodes.
package traces

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/otlp"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

var (
	shared    = &scene.Site{Name: "traces", Options: cluster.Options{Nodes: 2}}
	collector *otlp.Collector
)

func TestMain(m *testing.M) {
	collector = otlp.Start()
	shared.Args = []string{"--enable-leader-election=false", "--trace-endpoint=" + collector.URL()}
	shared.Rollouts = []string{"--leader-elect=false", "--trace-endpoint=" + collector.URL()}
	scene.Main(m, shared)
}

// spansOf returns what has come in of the rollouts of an object to a revision; to any if it is empty.
func spansOf(e *scene.Env, kind, revision string) []otlp.Span {
	of := map[string]string{"k8s.namespace.name": e.Namespace}
	own := map[string]string{"k8s.object.kind": kind}
	if revision != "" {
		own["kruise.revision"] = revision
	}
	traces := map[string]bool{}
	for _, s := range collector.Spans(of) {
		is := true
		for key, value := range own {
			is = is && s.Attributes[key] == value
		}
		if is {
			traces[s.Trace] = true
		}
	}
	var out []otlp.Span
	for _, s := range collector.Spans(of) {
		if traces[s.Trace] {
			out = append(out, s)
		}
	}
	return out
}

// story returns the names of spans in the order in which they began: of writes what they did to which Pod, and no passes.
func story(spans []otlp.Span) []string {
	var out []string
	for _, s := range spans {
		switch {
		case s.Name == "pass":
		case s.Attributes["kruise.update.method"] != "":
			out = append(out, s.Attributes["kruise.update.method"]+" "+s.Attributes["k8s.pod.name"])
		case strings.HasPrefix(s.Name, "wait "), s.Name == "rollout":
			out = append(out, s.Name)
		}
	}
	return out
}

// TestARolloutIsATrace follows an update of one Pod after the other, which a partition holds in between while the manager is killed: the
// next manager goes on with the same trace, and ends it.
func TestARolloutIsATrace(t *testing.T) {
	e := shared.Enter(t)
	e.Make(`
apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 1}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "web:v1"}]}
`)
	set := &v1beta1.CloneSet{}
	updated := func(n int32) {
		t.Helper()
		e.Eventually(fmt.Sprintf("%d Pods are updated", n), func() error {
			e.Read("web", set)
			if s := set.Status; s.ObservedGeneration != set.Generation || s.UpdatedAvailableReplicas != n || s.AvailableReplicas != 2 {
				return fmt.Errorf("the status is %+v", s)
			}
			return nil
		})
	}
	updated(2)
	scene.Edit(e, "web", set, func(set *v1beta1.CloneSet) {
		one := intstr.FromInt32(1)
		set.Spec.UpdateStrategy.RollingUpdate.Partition = &one
		set.Spec.Template.Spec.Containers[0].Image = "web:v2"
	})
	updated(1)
	revision := set.Status.UpdateRevision
	e.Eventually("the collector has the first update", func() error {
		if got := story(spansOf(e, "CloneSet", revision)); len(got) == 0 {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
	e.CrashManager()
	time.Sleep(time.Second) // for who looks at the trace: the wait of the second manager is to be seen
	scene.Edit(e, "web", set, func(set *v1beta1.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = nil })
	updated(2)
	var spans []otlp.Span
	e.Eventually("the collector has the end", func() error {
		if spans = spansOf(e, "CloneSet", revision); len(spans) == 0 || spans[0].Name != "rollout" {
			return fmt.Errorf("it has %v", otlp.Tree(spans))
		}
		return nil
	})
	t.Logf("the trace:\n%s", strings.Join(otlp.Tree(spans), "\n"))
	got := story(spans)
	if got[0] != "rollout" || !inOrder(got, "InPlace ", "wait HeldByPartition", "InPlace ") {
		t.Errorf("the story is %v", got)
	}
	for _, s := range spans {
		began := spans[0].Start.Add(-time.Second) // a revision tells when it was made in whole seconds
		if s.Trace != spans[0].Trace || s.Start.Before(began) || s.End.After(spans[0].End) {
			t.Errorf("span %+v is not within the root %+v", s, spans[0])
		}
		if s.Resource["service.name"] != "kruise-manager" {
			t.Errorf("span %s is of service %v", s.Name, s.Resource)
		}
	}
	if last := spans[0].Attributes; last["kruise.result"] != "done" || last["kruise.pods.updated"] != "2" {
		t.Errorf("the root says %v", last)
	}
}

// inOrder reports whether lines begin with some texts, in their order, with others between them.
func inOrder(lines []string, want ...string) bool {
	for _, line := range lines {
		if len(want) > 0 && strings.HasPrefix(line, want[0]) {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// TestAReleaseIsATrace follows a release of a Deployment by a Rollout whose step a person approves.
func TestAReleaseIsATrace(t *testing.T) {
	e := shared.Enter(t)
	e.Make(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "web:v1"}]}
`)
	e.Make(`
apiVersion: rollouts.kruise.io/v1beta1
kind: Rollout
metadata: {name: web}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  strategy:
    canary:
      steps: [{replicas: 1}, {replicas: "100%"}]
`)
	r := &rolloutsv1beta1.Rollout{}
	phase := func(want rolloutsv1beta1.RolloutPhase, state rolloutsv1beta1.StepState) {
		t.Helper()
		e.Eventually(fmt.Sprintf("the Rollout is %s %s", want, state), func() error {
			e.Read("web", r)
			if r.Status.Phase != want || state != "" && (r.Status.CanaryStatus == nil || r.Status.CanaryStatus.CurrentStepState != state) {
				return fmt.Errorf("the status is %+v", r.Status)
			}
			return nil
		})
	}
	d := &appsv1.Deployment{}
	e.Eventually("changes of the Deployment are released in steps", func() error {
		e.Read("web", r)
		e.Read("web", d)
		if s := d.Status; r.Status.CanaryStatus == nil || d.Labels[keys.WorkloadType] == "" || s.AvailableReplicas != 2 || s.Replicas != 2 {
			return fmt.Errorf("the status is %+v, and that of the Rollout %+v", s, r.Status)
		}
		return nil
	})
	phase(rolloutsv1beta1.RolloutPhaseHealthy, "")
	scene.Edit(e, "web", d, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:v2" })
	phase(rolloutsv1beta1.RolloutPhaseProgressing, rolloutsv1beta1.StepStatePaused)
	scene.EditStatus(e, "web", r, func(r *rolloutsv1beta1.Rollout) {
		r.Status.CanaryStatus.CurrentStepState = rolloutsv1beta1.StepStateReady
	})
	phase(rolloutsv1beta1.RolloutPhaseHealthy, "")
	var spans []otlp.Span
	e.Eventually("the collector has the end", func() error {
		if spans = spansOf(e, "Rollout", ""); len(spans) == 0 || spans[0].Name != "rollout" {
			return fmt.Errorf("it has %v", otlp.Tree(spans))
		}
		return nil
	})
	if diff := cmp.Diff([]string{"rollout", "wait WaitApproval"}, story(spans)); diff != "" {
		t.Errorf("the story differs (-want +got):\n%s\nof\n%s", diff, strings.Join(otlp.Tree(spans), "\n"))
	}
	if spans[0].Attributes["kruise.result"] != "done" || spans[0].Resource["service.name"] != "kruise-rollout" {
		t.Errorf("the root says %+v", spans[0])
	}
}
