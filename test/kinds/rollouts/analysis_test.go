package rollouts

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// held waits until the release is held for a reason, and checks what its condition says.
func (e *env) held(reason string, step int32, says string) {
	e.Helper()
	e.Eventually("the release is held: "+reason, func() error {
		r := e.rollout()
		c, stalled := condition(r, v1beta1.ConditionProgressing), condition(r, v1beta1.ConditionStalled)
		if c == nil || c.Reason != reason || c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, says) {
			return fmt.Errorf("Progressing %+v", c)
		}
		if r.Status.CurrentStepState != v1beta1.StepStatePaused || r.Status.CurrentStepIndex != step || stalled == nil || stalled.Status != corev1.ConditionTrue {
			return fmt.Errorf("step %d %s, Stalled %+v", r.Status.CurrentStepIndex, r.Status.CurrentStepState, stalled)
		}
		return nil
	})
}

// analysed returns the manifest of a Rollout whose first step, of two Pods, has one check.
func analysed(onFailure, check string) string {
	return rolloutOf(ofCloneSet, fmt.Sprintf("{replicas: 2, analysis: {onFailure: %s, checks: [%s]}}, {replicas: 100%%}", onFailure, check))
}

// TestTheGuardHoldsARelease: the fewest Pods that prove it, a reason that names one of them, and an approval to go on nevertheless.
func TestTheGuardHoldsARelease(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 20, ""), rolloutOf(ofCloneSet, steps("10", "100%")))
	// None is ever ready, so maxUnavailable, four Pods, bounds the release until the guard has seen enough.
	const bad = "v2-never-ready-crash"
	e.setImage(bad)
	e.held(v1beta1.ReasonGuardFailed, 1, "updated Pods failed, and 0 of 20 old ones; Pod web-")
	if c := condition(e.rollout(), v1beta1.ConditionProgressing); !strings.Contains(c.Message, "a container exited with code 1") {
		t.Errorf("it says %s", c.Message)
	}
	e.Eventually("the batch is stopped", func() error {
		set := e.cloneSet()
		if s := set.Status; s.ObservedGeneration != set.Generation || s.ExpectedUpdatedReplicas > s.UpdatedReplicas {
			return fmt.Errorf("%d of %d Pods are updated", s.UpdatedReplicas, s.ExpectedUpdatedReplicas)
		}
		return nil
	})
	updated := e.images()[bad]
	if updated > 4 {
		t.Errorf("%d Pods were updated before it was held", updated)
	}
	e.Never("another Pod is updated", func() bool { return e.images()[bad] > updated })
	e.Eventually("an event says so", func() error {
		if got := e.Reasons("demo"); !slices.Contains(got, v1beta1.ReasonGuardFailed) {
			return fmt.Errorf("events %v", got)
		}
		return nil
	})
	e.approve()
	e.Eventually("the guard is overridden", func() error {
		s := e.rollout().Status
		if len(s.Approvals) != 1 || s.Approvals[0].Despite != "Guard" || s.CanaryStatus.Guard.Phase != v1beta1.AnalysisOverridden {
			return fmt.Errorf("approvals %+v, guard %+v", s.Approvals, s.CanaryStatus.Guard)
		}
		return nil
	})
	e.setImage("v1")
	e.over("v1", 20, corev1.ConditionFalse)
}

// TestTheGuardRollsBack: the old template is put back once, and a GitOps tool that writes the bad one again is held before its first Pod.
func TestTheGuardRollsBack(t *testing.T) {
	e := newEnv(t)
	manifest := strings.Replace(rolloutOf(ofCloneSet, steps("10", "100%")), "  strategy:", "  strategy:\n    guard: {onFailure: Rollback}", 1)
	e.start(fmt.Sprintf(cloneSet, 20, ""), manifest)
	e.setImage("v2-crash")
	e.over("v1", 20, corev1.ConditionFalse)
	if image := e.cloneSet().Spec.Template.Spec.Containers[0].Image; image != "web:v1" {
		t.Errorf("the template has %s", image)
	}
	if r := e.rollout().Status.Rejected; r == nil || !strings.Contains(r.Message, "updated Pods failed") {
		t.Errorf("rejected %+v", r)
	}
	e.setImage("v2-crash")
	e.held(v1beta1.ReasonRejected, 1, "this revision was rolled back before")
	e.Never("a Pod is updated, or the template written again", func() bool {
		return e.images()["v2-crash"] > 0 || e.cloneSet().Spec.Template.Spec.Containers[0].Image != "web:v2-crash"
	})
	e.setImage("v3")
	e.Eventually("another version is released", func() error { return e.ready("v3", 10) })
}

// TestAnAnalysisByRequests: measured at intervals, failed, held, approved nevertheless; and rolled back.
func TestAnAnalysisByRequests(t *testing.T) {
	asked, bad := atomic.Int32{}, atomic.Bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		if bad.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	check := fmt.Sprintf("{name: health, count: 3, intervalSeconds: 1, http: {url: %q}}", server.URL)
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 4, ""), analysed("Pause", check))
	e.setImage("v2")
	e.paused(1, "v2", 2)
	if a := e.rollout().Status.CanaryStatus.Analysis; a == nil || a.Phase != v1beta1.AnalysisSuccessful || a.Checks[0].Successful != 3 || asked.Load() != 3 {
		t.Errorf("analysis %+v after %d requests", a, asked.Load())
	}
	e.approve()
	e.over("v2", 4, corev1.ConditionTrue)
	bad.Store(true)
	e.setImage("v3")
	e.held(v1beta1.ReasonAnalysisFailed, 1, "check health: 1 of 1 measurements failed, and 0 may; last values 500: want a status from 200 to 299")
	before := asked.Load()
	time.Sleep(2 * time.Second)
	if after := asked.Load(); after != before {
		t.Errorf("%d requests after the end of the analysis", after-before)
	}
	e.approve()
	e.over("v3", 4, corev1.ConditionTrue)
	if a := e.rollout().Status.Approvals; len(a) != 1 || a[0].Despite != "Analysis" {
		t.Errorf("approvals %+v", a)
	}
	e.change(func(r *v1beta1.Rollout) { r.Spec.Strategy.Canary.Steps[0].Analysis.OnFailure = v1beta1.FailureRollback })
	e.setImage("v4")
	e.over("v3", 4, corev1.ConditionFalse)
	if c := condition(e.rollout(), v1beta1.ConditionSucceeded); !strings.Contains(c.Message, "because check health") {
		t.Errorf("Succeeded %+v", c)
	}
}

// TestAnAnalysisByJobs: a Job for each measurement, no more.
func TestAnAnalysisByJobs(t *testing.T) {
	e := newEnv(t)
	job := "{name: smoke, count: 2, intervalSeconds: 1, job: {template: {spec: {backoffLimit: 0, template: " +
		"{metadata: {annotations: {sim.kruise.io/run-for: 100ms}}, spec: {restartPolicy: Never, containers: [{name: smoke, image: 'smoke:1'}]}}}}}}"
	e.start(fmt.Sprintf(cloneSet, 4, ""), analysed("Pause", job))
	e.setImage("v2")
	e.paused(1, "v2", 2)
	var made batchv1.JobList
	e.Must(e.List(e.Ctx, &made, client.InNamespace(e.Namespace)))
	for i := range made.Items {
		if j := &made.Items[i]; j.Labels[keys.AnalysisCheck] != "smoke" || len(j.OwnerReferences) != 1 || j.OwnerReferences[0].Name != "demo" {
			t.Errorf("Job %s %v %+v", j.Name, j.Labels, j.OwnerReferences)
		}
	}
	if a := e.rollout().Status.CanaryStatus.Analysis; len(made.Items) != 2 || a == nil || a.Phase != v1beta1.AnalysisSuccessful {
		t.Errorf("%d Jobs, analysis %+v", len(made.Items), a)
	}
	e.approve()
	e.over("v2", 4, corev1.ConditionTrue)
	e.change(func(r *v1beta1.Rollout) {
		r.Spec.Strategy.Canary.Steps[0].Analysis.Checks[0].Job.Template.Spec.Template.Annotations["sim.kruise.io/exit-code"] = "3"
	})
	e.setImage("v3")
	e.held(v1beta1.ReasonAnalysisFailed, 1, "check smoke: 1 of 1 measurements failed")
}

// TestAManagerThatIsKilledDuringAnAnalysis measures on, and counts nothing twice.
func TestAManagerThatIsKilledDuringAnAnalysis(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	e := newRestartEnv(t)
	e.start(fmt.Sprintf(cloneSet, 4, ""), analysed("Pause", fmt.Sprintf("{name: health, count: 6, intervalSeconds: 1, http: {url: %q}}", server.URL)))
	e.setImage("v2")
	e.Eventually("two measurements are made", func() error {
		if a := e.rollout().Status.CanaryStatus.Analysis; a == nil || a.Checks[0].Successful < 2 {
			return errors.New("not yet")
		}
		return nil
	})
	started := e.rollout().Status.CanaryStatus.Analysis.StartedAt
	e.restart()
	e.paused(1, "v2", 2)
	if a := e.rollout().Status.CanaryStatus.Analysis; a.Checks[0].Successful != 6 || !a.StartedAt.Equal(&started) || len(a.Checks[0].Measurements) != 5 {
		t.Errorf("analysis %+v", a)
	}
	e.approve()
	e.over("v2", 4, corev1.ConditionTrue)
}

// TestExamplesOfAnalyses: the API server takes them, and knows all of their fields.
func TestExamplesOfAnalyses(t *testing.T) { newEnv(t).AcceptsExamples("rollout-analysis*.yaml") }

// author returns a client of a user that may do all with Rollouts of the namespace, and nothing else.
func (e *env) author() client.Client {
	e.Helper()
	meta := metav1.ObjectMeta{Namespace: e.Namespace, Name: "author"}
	e.Must(e.Create(e.Ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1beta1.GroupVersion.Group}, Resources: []string{"rollouts"}, Verbs: []string{"*"}},
	}}))
	e.Must(e.Create(e.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "author"},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "author"}},
	}))
	config := rest.CopyConfig(e.Config)
	config.Impersonate.UserName = "author"
	c, err := client.New(config, client.Options{Scheme: e.Scheme()})
	e.Must(err)
	e.Eventually("the author may create Rollouts", func() error {
		return c.Create(e.Ctx, e.Manifest(rolloutOf(ofCloneSet, steps("1"))), client.DryRunAll)
	})
	return c
}

// TestWhoMayHaveJobsRun: without the right to create Jobs nobody has a Rollout do it, in no version.
func TestWhoMayHaveJobsRun(t *testing.T) {
	e := newEnv(t)
	author := e.author()
	job := "{name: smoke, job: {template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: smoke, image: 'smoke:1'}]}}}}}}"
	if err := author.Create(e.Ctx, e.Manifest(analysed("Pause", job))); !apierrors.IsForbidden(err) || !strings.Contains(fmt.Sprint(err), "may not create jobs") {
		t.Errorf("a Job in a check: %v", err)
	}
	older := e.Manifest(`
apiVersion: rollouts.kruise.io/v1alpha1
kind: Rollout
metadata: {name: older}
spec:
  objectRef: {workloadRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}}
  strategy: {canary: {steps: [{replicas: 1}]}}
`)
	hub := `{"spec":{"workloadRef":{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","name":"web"},"disabled":false,` +
		`"strategy":{"canary":{"steps":[{"replicas":1,"pause":{},"analysis":{"checks":[{"name":"a","job":{"template":{}}}]}}]}}}}`
	older.SetAnnotations(map[string]string{keys.RollingStyle: "partition", keys.RolloutHub: hub})
	if err := author.Create(e.Ctx, older); !apierrors.IsForbidden(err) {
		t.Errorf("a Job in the annotation of the older version: %v", err)
	}
}

// TestAnApprovalWithAPrecondition: the patch that the documentation shows approves the step that it names, once, and no other.
func TestAnApprovalWithAPrecondition(t *testing.T) {
	e := newEnv(t)
	e.start(fmt.Sprintf(cloneSet, 4, ""), rolloutOf(ofCloneSet, steps("1", "2", "100%")))
	e.setImage("v2")
	e.paused(1, "v2", 1)
	approve := func(step int) error {
		patch := fmt.Sprintf(`[{"op":"test","path":"/status/canaryStatus/currentStepIndex","value":%d},`+
			`{"op":"test","path":"/status/canaryStatus/currentStepState","value":"StepPaused"},`+
			`{"op":"replace","path":"/status/canaryStatus/currentStepState","value":"StepReady"}]`, step)
		return e.Status().Patch(e.Ctx, e.rollout(), client.RawPatch(types.JSONPatchType, []byte(patch)))
	}
	if err := approve(2); err == nil {
		t.Error("a step that is not reached is approved")
	}
	e.Must(approve(1))
	if err := approve(1); err == nil {
		t.Error("a step is approved twice")
	}
	e.paused(2, "v2", 2)
	if err := approve(1); err == nil {
		t.Error("a late approval counts for the next step")
	}
	if a := e.rollout().Status.Approvals; len(a) != 1 || a[0].Step != 1 || a[0].Despite != "" {
		t.Errorf("approvals %+v", a)
	}
}
