package convert

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

func TestRolloutRoundTripsLoseNothing(t *testing.T) {
	fromSeeds(t, rolloutSurvives)
	fromSeeds(t, olderRolloutKeepsItsMeaning)
	fromSeeds(t, batchReleaseSurvives)
}

func FuzzRolloutRoundTrips(f *testing.F) {
	fromBytes(f, rolloutSurvives, olderRolloutKeepsItsMeaning, batchReleaseSurvives)
}

func rolloutFiller(from *randfill.Filler) *randfill.Filler {
	return from.NilChance(0.4).NumElements(1, 3).MaxDepth(20).Funcs(
		func(v *intstr.IntOrString, c randfill.Continue) { *v = intstr.FromString(fmt.Sprint(c.Intn(100), "%")) },
		func(at *metav1.Time, c randfill.Continue) { *at = metav1.Unix(int64(c.Int31n(1e9)), 0) },
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			m.Name = c.String(4)
			for _, key := range []string{"a", keys.RollingStyle, keys.TrafficRoutingName} {
				if c.Bool() {
					m.Annotations = with(m.Annotations, key, []string{"partition", "Partition", "bluegreen", "other", ""}[c.Intn(5)])
				}
			}
		},
		func(ref *v1beta1.WorkloadReference, c randfill.Continue) {
			*ref = v1beta1.WorkloadReference{
				APIVersion: []string{"apps/v1", "apps.kruise.io/v1alpha1"}[c.Intn(2)], Kind: []string{"Deployment", "CloneSet"}[c.Intn(2)], Name: c.String(4),
			}
		},
		func(job *batchv1.JobTemplateSpec, c randfill.Continue) { job.Name = c.String(4) },
		func(a *v1beta1.AnalysisStatus, c randfill.Continue) { a.Message = c.String(4) },
		func(check *v1beta1.Check, c randfill.Continue) {
			*check = v1beta1.Check{Name: c.String(4), Prometheus: &v1beta1.PrometheusCheck{Query: c.String(4)}}
		},
		func(share *string, c randfill.Continue) {
			*share = []string{"0%", "5%", "100%", "007%", "many"}[c.Intn(5)]
		},
	)
}

// rolloutSurvives checks that all of a Rollout survives being read and written by a user of the older version.
func rolloutSurvives(t *testing.T, from *randfill.Filler) {
	t.Helper()
	var want, got v1beta1.Rollout
	var middle v1alpha1.Rollout
	rolloutFiller(from).Fill(&want)
	want.TypeMeta = metav1.TypeMeta{}
	before := want.DeepCopy()
	RolloutFromHub(&want, &middle)
	shown := middle.DeepCopy()
	RolloutToHub(&middle, &got)
	if diff := cmp.Diff(before, &want); diff != "" {
		t.Errorf("converting changed its source (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(shown, &middle); diff != "" {
		t.Errorf("converting back changed its source (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// olderRolloutKeepsItsMeaning checks that what a user of the older version wrote means the same once it was stored and read again.
func olderRolloutKeepsItsMeaning(t *testing.T, from *randfill.Filler) {
	t.Helper()
	var src, again v1alpha1.Rollout
	var want, got v1beta1.Rollout
	rolloutFiller(from).Fill(&src)
	before := src.DeepCopy()
	RolloutToHub(&src, &want)
	if diff := cmp.Diff(before, &src); diff != "" {
		t.Errorf("converting changed its source (-before +after):\n%s", diff)
	}
	RolloutFromHub(&want, &again)
	RolloutToHub(&again, &got)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func batchReleaseSurvives(t *testing.T, from *randfill.Filler) {
	t.Helper()
	var want, got v1beta1.BatchRelease
	var middle v1alpha1.BatchRelease
	rolloutFiller(from).Funcs(func(style *v1beta1.RollingStyle, c randfill.Continue) {
		*style = append(rollingStyles(), "")[c.Intn(4)]
	}).Fill(&want)
	want.TypeMeta = metav1.TypeMeta{}
	want.Annotations = without(want.Annotations, keys.RollingStyle) // it says nothing in this version
	BatchReleaseFromHub(&want, &middle)
	BatchReleaseToHub(&middle, &got)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

const (
	olderRollout = "{apiVersion: rollouts.kruise.io/v1alpha1, kind: Rollout, metadata: {name: web}, "
	newerRollout = "{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, metadata: {name: web}, "
)

func TestRolloutsOfTheOlderVersionInTheHub(t *testing.T) {
	for name, tc := range map[string]struct{ older, spec string }{
		"weights are traffic, and replicas where none are given": {
			`spec: {objectRef: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}}, strategy: {canary: {steps: [{weight: 5}, {weight: 100, replicas: 3}]}}}}`,
			`{workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}, strategy: {canary: {enableExtraWorkloadForCanary: true,
				steps: [{traffic: 5%, replicas: 5%, pause: {}}, {traffic: 100%, replicas: 3, pause: {}}]}}}`,
		},
		"a CloneSet has no second workload": {
			`spec: {objectRef: {workloadRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}}, strategy: {canary: {steps: [{replicas: 1}]}}}}`,
			`{workloadRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}, strategy: {canary: {steps: [{replicas: 1, pause: {}}]}}}`,
		},
		"without a workload and without steps": {
			`spec: {objectRef: {}, strategy: {}}}`, `{workloadRef: {apiVersion: "", kind: "", name: ""}, strategy: {}}`,
		},
		"without anything": {`spec: {}}`, `{workloadRef: {apiVersion: "", kind: "", name: ""}, strategy: {}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Object(parsed(t, olderRollout+tc.older), "rollouts.kruise.io/v1beta1")
			if err != nil {
				t.Fatal(err)
			}
			want := parsed(t, newerRollout+"spec: "+tc.spec+"}")
			if diff := cmp.Diff(want.Object["spec"], got.Object["spec"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnEditInTheOlderVersionKeepsTheRest is what scenario 25 of the acceptance list asks for.
func TestAnEditInTheOlderVersionKeepsTheRest(t *testing.T) {
	stored := parsed(t, newerRollout+`spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}, strategy: {
		progressDeadlineSeconds: 60, onProgressDeadline: Rollback, guard: {onFailure: Rollback}, canary: {
		disableGenerateCanaryService: true, trafficRoutingRef: shared, steps: [
		{replicas: 1, analysis: {checks: [{name: up, http: {url: "http://web"}}]}, matches: [{headers: [{name: user, value: a}], path: {type: Exact, value: /a}}, {headers: [{name: user, value: b}]}]},
		{replicas: 100%, queryParams: []}]}}}}`)
	shown, err := Object(stored, "rollouts.kruise.io/v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	if shown.GetAnnotations()[keys.RollingStyle] != "partition" || shown.GetAnnotations()[keys.TrafficRoutingName] != "shared" {
		t.Errorf("shown with annotations %v", shown.GetAnnotations())
	}
	steps, _, _ := unstructured.NestedSlice(shown.Object, "spec", "strategy", "canary", "steps")
	first := steps[0].(map[string]any)
	first["weight"], first["matches"] = int64(20), first["matches"].([]any)[:1] // the other match is gone
	if err := unstructured.SetNestedSlice(shown.Object, steps, "spec", "strategy", "canary", "steps"); err != nil {
		t.Fatal(err)
	}
	got, err := Object(shown, "rollouts.kruise.io/v1beta1")
	if err != nil {
		t.Fatal(err)
	}
	want := parsed(t, newerRollout+`spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}, strategy: {
		progressDeadlineSeconds: 60, onProgressDeadline: Rollback, guard: {onFailure: Rollback}, canary: {
		disableGenerateCanaryService: true, trafficRoutingRef: shared, steps: [
		{replicas: 1, traffic: 20%, pause: {}, analysis: {checks: [{name: up, http: {url: "http://web", access: {}}}]}, matches: [{headers: [{name: user, value: a}], path: {type: Exact, value: /a}}]}, {replicas: 100%, pause: {}}]}}}}`)
	if diff := cmp.Diff(want.Object["spec"], got.Object["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got.GetAnnotations()) > 0 {
		t.Errorf("stored with annotations %v", got.GetAnnotations())
	}
}

// TestABlueGreenRolloutIsShownWithItsSteps keeps a tool of the older version from taking it for an empty one.
func TestABlueGreenRolloutIsShownWithItsSteps(t *testing.T) {
	stored := parsed(t, newerRollout+`spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web},
		strategy: {blueGreen: {steps: [{replicas: 100%, traffic: 0%, pause: {}}]}}},
		status: {currentStepIndex: 1, currentStepState: StepPaused, blueGreenStatus: {currentStepIndex: 1, nextStepIndex: -1, currentStepState: StepPaused,
		updatedRevision: r, updatedReplicas: 4, updatedReadyReplicas: 4}}}`)
	shown, err := Object(stored, "rollouts.kruise.io/v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	steps, _, _ := unstructured.NestedSlice(shown.Object, "spec", "strategy", "canary", "steps")
	state, _, _ := unstructured.NestedString(shown.Object, "status", "canaryStatus", "currentStepState")
	if len(steps) != 1 || shown.GetAnnotations()[keys.RollingStyle] != "bluegreen" || state != "StepPaused" {
		t.Errorf("shown as %v", shown.Object)
	}
	if _, stashed := shown.GetAnnotations()[keys.RolloutHub]; stashed {
		t.Errorf("an ordinary Rollout needs the annotation: %v", shown.GetAnnotations())
	}
	if err := unstructured.SetNestedField(shown.Object, "StepReady", "status", "canaryStatus", "currentStepState"); err != nil {
		t.Fatal(err)
	}
	back, err := Object(shown, "rollouts.kruise.io/v1beta1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stored.Object["spec"], back.Object["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if state, _, _ := unstructured.NestedString(back.Object, "status", "blueGreenStatus", "currentStepState"); state != "StepReady" {
		t.Errorf("an approval is lost: %v", back.Object["status"])
	}
}
