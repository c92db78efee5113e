package cli

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/explain"
	"github.com/seed-69ecc383/kruise/internal/cli/screen"
)

// someObjects are one in each state.
func someObjects(t *testing.T) []access.Object {
	t.Helper()
	named := func(name string, o access.Object) access.Object {
		o.SetName(name)
		return o
	}
	halfWay := "availableReplicas: 5, updatedReplicas: 2, updatedAvailableReplicas: 2"
	marked := named("marked", cloneSet(t, "", halfWay))
	marked.SetAnnotations(map[string]string{keys.InProgressing: `{"rolloutName":"demo"}`})
	gone := named("gone", cloneSet(t, "", halfWay))
	at := metav1.NewTime(noon.Add(-time.Minute))
	gone.SetDeletionTimestamp(&at)
	gone.SetFinalizers([]string{"example.com/keep"})
	written := named("moving", cloneSet(t, "", halfWay))
	written.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Time: &metav1.Time{Time: noon.Add(-90 * time.Second)}, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)},
		{Time: &metav1.Time{Time: noon}, FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`), Subresource: "status"},
	})
	return []access.Object{
		written, marked, gone,
		named("paused", cloneSet(t, "updateStrategy: {rollingUpdate: {paused: true}}", halfWay)),
		named("full", cloneSet(t, "", halfWay+`, conditions: [{type: FailedScale, status: "True", lastTransitionTime: "2026-01-02T11:00:00Z", message: 'pods "full-x" is forbidden: exceeded quota: small'}]`)),
		named("well", cloneSet(t, "", "availableReplicas: 5, updatedReplicas: 5, updatedAvailableReplicas: 5")),
		named("kept", cloneSet(t, "updateStrategy: {rollingUpdate: {partition: 3}}", halfWay)),
		named("once", objectOf(t, "batch", "Job", "{spec: {}, status: {succeeded: 1, conditions: [{type: Complete, status: 'True'}]}}")),
	}
}

func TestOverviewScreen(t *testing.T) {
	v := overview{AtRest: map[string]int{}, Unread: []string{"SidecarSet"}}
	for _, o := range someObjects(t) {
		if err := v.add(o); err != nil {
			t.Fatal(err)
		}
	}
	v.sort()
	p, out := shown()
	v.text(p.screen, false, noon)
	golden(t, "overview", out.String())
	out.Reset()
	v.text(p.screen, true, noon)
	golden(t, "overview-all", out.String())
	out.Reset()
	(overview{}).text(p.screen, true, noon)
	golden(t, "overview-nothing", out.String())
}

// memberOf returns a Pod of the CloneSet web in service.
func memberOf(name, revision, image string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"controller-revision-hash": revision}, CreationTimestamp: metav1.NewTime(noon.Add(-3 * time.Hour)),
	}}
	p.Spec.NodeName = "n1"
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: image}, {Name: "log", Image: "log:v1"}}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Ready: true}, {Name: "log", Ready: true}}
	if change != nil {
		change(p)
	}
	return p
}

func TestTreeScreen(t *testing.T) {
	o := cloneSet(t, "", "availableReplicas: 3, updatedReplicas: 2, updatedAvailableReplicas: 1")
	e := examined{revisions: entries(t)}
	at, err := o.Kind.Progress(o.Unstructured)
	if err != nil {
		t.Fatal(err)
	}
	e.Situation = explain.Situation{Arg: o.Arg(), Progress: at, Now: noon, Updated: "web-7f9c4d", Pods: []*corev1.Pod{
		memberOf("web-4xq", "web-7f9c4d", "web:v3", func(p *corev1.Pod) {
			p.Annotations = map[string]string{keys.InPlaceUpdateState: `{"revision":"web-7f9c4d"}`}
			p.Labels[keys.RolloutBatchID] = "1"
		}),
		memberOf("web-77a", "web-7f9c4d", "web:v3", func(p *corev1.Pod) {
			p.Status.Conditions[0].Status = corev1.ConditionFalse
			p.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "app", RestartCount: 4, State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"},
			}}
		}),
		memberOf("web-c0d", "web-66d9aa", "web:v1", nil),
		memberOf("web-old", "web-none", "web:v0", nil),
	}}
	workload := treeOf(o, e)
	p, out := shown()
	workload.text(p.screen, noon)
	golden(t, "tree", out.String())

	release := objectOf(t, "rollouts.kruise.io", "Rollout", `{
  spec: {workloadRef: {kind: CloneSet, name: web}, strategy: {canary: {steps: [{replicas: 1, traffic: 5%}, {replicas: 2}, {replicas: "100%"}]}}},
  status: {observedGeneration: 2, phase: Progressing, canaryStatus: {currentStepIndex: 2, currentStepState: StepPaused, canaryReplicas: 2, canaryReadyReplicas: 1}}}`)
	var r v1beta1.Rollout
	if err := release.Into(&r); err != nil {
		t.Fatal(err)
	}
	if at, err = release.Kind.Progress(release.Unstructured); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	(&tree{Object: release.Arg(), Progress: at, Cause: rolloutCause(release, &r, at), Steps: stepsOf(&r), Workload: workload}).text(p.screen, noon)
	golden(t, "tree-rollout", out.String())

	wide := &screen.Screen{Writer: out, Width: screen.DefaultWidth}
	out.Reset()
	workload.Revisions[0].List[0].Differs = []string{"app=registry.example.com/shop/web@sha256:0123456789abcdef0123456789abcdef"}
	workload.text(wide, noon)
	golden(t, "tree-cut", out.String())
}

// BenchmarkTree explains a workload of 1,000 Pods and writes its tree, without the requests.
func BenchmarkTree(b *testing.B) {
	t := &testing.T{}
	o := cloneSet(t, "", "availableReplicas: 3, updatedReplicas: 2, updatedAvailableReplicas: 1")
	e := examined{revisions: entries(t)}
	e.Situation = explain.Situation{Arg: o.Arg(), Now: noon, Updated: "web-7f9c4d"}
	for i := range 1000 {
		e.Pods = append(e.Pods, memberOf(fmt.Sprintf("web-%d", i), []string{"web-7f9c4d", "web-66d9aa"}[i%2], "web:v1", nil))
	}
	for b.Loop() {
		p, _ := shown()
		treeOf(o, e).text(p.screen, noon)
	}
}
