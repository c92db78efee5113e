package integrations

import (
	"testing"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/json" // whole numbers are int64, as those that Flux reads
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// check is how Flux is told what the health of a kind is.
type check struct{ APIVersion, Kind, InProgress, Failed, Current string }

// fluxHealth returns what Flux makes of an object: it asks for in progress first, then for failed, then for current.
func fluxHealth(t *testing.T, c check, object any) string {
	t.Helper()
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	input := map[string]any{"metadata": map[string]any{}, "spec": map[string]any{}, "status": map[string]any{}}
	if err := json.Unmarshal(encoded, &input); err != nil {
		t.Fatal(err)
	}
	env, err := cel.NewEnv(cel.Variable("metadata", cel.DynType), cel.Variable("spec", cel.DynType), cel.Variable("status", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct{ is, expression string }{{"InProgress", c.InProgress}, {"Failed", c.Failed}, {"Current", c.Current}} {
		ast, issues := env.Compile(one.expression)
		if issues.Err() != nil {
			t.Fatalf("%s of %s: %v", one.is, c.Kind, issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := program.Eval(input)
		if err != nil {
			t.Errorf("%s of %s is an error, which Flux waits for until its timeout: %v", one.is, c.Kind, err)
			return "Error"
		}
		if out.Value() == true {
			return one.is
		}
	}
	return "InProgress" // as Flux takes what is none of them
}

func TestHealthInFlux(t *testing.T) {
	var file struct{ HealthCheckExprs []check }
	read(t, "flux/health-checks.yaml", &file)
	checks := map[string]check{}
	for _, c := range file.HealthCheckExprs {
		checks[c.Kind] = c
	}
	failing := func(set *appsv1beta1.CloneSet) {
		set.Status.Conditions = []appsv1beta1.CloneSetCondition{{Type: "Progressing", Status: "False", Reason: "ProgressDeadlineExceeded"}}
	}
	united := &appsv1beta1.UnitedDeployment{ObjectMeta: seen(1)}
	united.Spec.Replicas = ptr.To[int32](2)
	united.Status.ObservedGeneration, united.Status.ReadyReplicas = 1, 2
	const progressing = rolloutsv1beta1.RolloutPhaseProgressing
	tested := map[string]bool{}
	for name, tc := range map[string]struct {
		kind   string
		object any
		want   string
	}{
		"a CloneSet that is new":       {"CloneSet", &appsv1beta1.CloneSet{ObjectMeta: seen(1)}, "InProgress"},
		"a CloneSet without a status":  {"CloneSet", map[string]any{"metadata": map[string]any{"generation": 1}}, "InProgress"},
		"a CloneSet at rest":           {"CloneSet", cloneSet(asIs), "Current"},
		"a CloneSet at its partition":  {"CloneSet", cloneSet(func(set *appsv1beta1.CloneSet) { set.Status.UpdatedReplicas, set.Status.ExpectedUpdatedReplicas = 5, 5 }), "Current"},
		"a CloneSet being updated":     {"CloneSet", cloneSet(func(set *appsv1beta1.CloneSet) { set.Status.UpdatedReplicas = 5 }), "InProgress"},
		"a CloneSet past its deadline": {"CloneSet", cloneSet(failing), "Failed"},
		"a StatefulSet at rest":        {"StatefulSet", statefulSet(asIs), "Current"},
		"a StatefulSet at its partition": {"StatefulSet", statefulSet(func(set *appsv1beta1.StatefulSet) {
			set.Status.UpdatedReplicas = 1
			set.Spec.UpdateStrategy.RollingUpdate = &appsv1beta1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](3)}
		}), "Current"},
		"a StatefulSet being updated": {"StatefulSet", statefulSet(func(set *appsv1beta1.StatefulSet) { set.Status.UpdatedReplicas = 1 }), "InProgress"},
		"a DaemonSet at rest":         {"DaemonSet", daemonSet(asIs), "Current"},
		"a DaemonSet being updated":   {"DaemonSet", daemonSet(func(set *appsv1beta1.DaemonSet) { set.Status.UpdatedNumberScheduled = 1 }), "InProgress"},
		"a UnitedDeployment at rest":  {"UnitedDeployment", united, "Current"},
		"a BroadcastJob that is new":  {"BroadcastJob", &appsv1beta1.BroadcastJob{}, "InProgress"},
		"a BroadcastJob that failed":  {"BroadcastJob", &appsv1beta1.BroadcastJob{Status: appsv1beta1.BroadcastJobStatus{Phase: "failed"}}, "Failed"},
		"a BroadcastJob that is done": {"BroadcastJob", &appsv1beta1.BroadcastJob{Status: appsv1beta1.BroadcastJobStatus{Phase: "completed"}}, "Current"},
		"a Rollout at rest":           {"Rollout", release(rolloutsv1beta1.RolloutPhaseHealthy, "", asIs), "Current"},
		"a Rollout under way":         {"Rollout", release(progressing, rolloutsv1beta1.StepStatePaused, blueGreen), "InProgress"},
		"a Rollout that is stuck":     {"Rollout", release(progressing, rolloutsv1beta1.StepStatePaused, stalled), "Failed"},
		"a Rollout that is new":       {"Rollout", &rolloutsv1beta1.Rollout{ObjectMeta: seen(1)}, "InProgress"},
	} {
		tested[tc.kind] = true
		if got := fluxHealth(t, checks[tc.kind], tc.object); got != tc.want {
			t.Errorf("%s is %s, want %s", name, got, tc.want)
		}
	}
	if len(tested) != len(checks) {
		t.Errorf("%d kinds of %d are tested", len(tested), len(checks))
	}
}
