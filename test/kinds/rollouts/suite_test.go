// Package rollouts runs the whole product on a real control plane with simulated nodes, and checks what users of Rollouts rely on: one cluster,
// one manager of each kind for all tests, a namespace for each. Tests that kill the manager take turns in a cluster of their own.
package rollouts

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// shared is the cluster of most tests, of which as many run at once as there are places. restarted is that of tests that kill the manager,
// for which they take turns.
var (
	shared    = siteOf("rollouts")
	restarted = siteOf("restarts")
	places    chan struct{}
	turns     sync.Mutex
)

// siteOf returns a cluster with all of Kruise. One process at a time needs no election, and a killed leader's Lease would only make the next
// one wait.
func siteOf(name string) *scene.Site {
	return &scene.Site{
		Name: name, Options: cluster.Options{Nodes: 5}, Args: []string{"--enable-leader-election=false"},
		Rollouts: []string{"--leader-elect=false", "--v=1", "--analysis-allow=127.0.0.0/8", "--feature-gates=RolloutHistory=true",
			"--filter-workload-type=false"},
	}
}

func TestMain(m *testing.M) {
	scene.ParseFlags()
	places = make(chan struct{}, flag.Lookup("test.parallel").Value.(flag.Getter).Get().(int))
	if err := flag.Set("test.parallel", "1000"); err != nil { // tests that wait for their turn must not take the places of others
		panic(err)
	}
	scene.Main(m, shared, restarted, alone)
}

// env is a namespace of a cluster, for one test.
type env struct{ *scene.Env }

// newEnv returns a namespace of the shared cluster.
func newEnv(t *testing.T) *env {
	t.Helper()
	takePlace(t)
	return enter(t, shared)
}

// takePlace waits until fewer tests run than may at once.
func takePlace(t *testing.T) {
	t.Helper()
	t.Parallel()
	places <- struct{}{}
	t.Cleanup(func() { <-places })
}

// newRestartEnv returns a namespace of the cluster whose manager the test may kill.
func newRestartEnv(t *testing.T) *env {
	t.Helper()
	takeTurn(t)
	return enter(t, restarted)
}

// takeTurn waits until no other test kills the manager.
func takeTurn(t *testing.T) {
	t.Helper()
	t.Parallel()
	turns.Lock()
	t.Cleanup(turns.Unlock)
}

func enter(t *testing.T, site *scene.Site) *env {
	t.Helper()
	e := &env{site.Enter(t)}
	e.Describe = e.describe
	return e
}

// restart kills the manager and starts another one, which is ready when this returns.
func (e *env) restart() {
	e.Helper()
	e.Site.RolloutManager.Kill()
	e.Must(e.Site.RelaunchRollouts(e.Afterwards()))
}

// describe prints what is in the namespace, for the reader of a failure.
func (e *env) describe() string {
	var out strings.Builder
	ctx := context.WithoutCancel(e.Ctx)
	var rollouts v1beta1.RolloutList
	if err := e.List(ctx, &rollouts, client.InNamespace(e.Namespace)); err == nil {
		for i := range rollouts.Items {
			r := &rollouts.Items[i]
			fmt.Fprintf(&out, "Rollout %s %s: %s\n  conditions %+v\n  %+v\n", r.Name, r.Status.Phase, r.Status.Message, r.Status.Conditions, releaseOf(r))
		}
	}
	var batches v1beta1.BatchReleaseList
	if err := e.List(ctx, &batches, client.InNamespace(e.Namespace)); err == nil {
		for i := range batches.Items {
			b := &batches.Items[i]
			fmt.Fprintf(&out, "BatchRelease %s deleted=%v %+v\n  %+v\n", b.Name, b.DeletionTimestamp, b.Spec.ReleasePlan, b.Status)
		}
	}
	var sets appsv1beta1.CloneSetList
	if err := e.List(ctx, &sets, client.InNamespace(e.Namespace)); err == nil {
		for i := range sets.Items {
			s := &sets.Items[i]
			fmt.Fprintf(&out, "CloneSet %s generation %d %v %+v\n  %+v\n", s.Name, s.Generation, s.Annotations, s.Spec.UpdateStrategy.RollingUpdate, s.Status)
		}
	}
	for _, p := range e.Pods() {
		fmt.Fprintf(&out, "Pod %s %s ready=%v %s deleted=%v %v\n", p.Name, p.Status.Phase, scene.IsReady(&p), p.Spec.Containers[0].Image, p.DeletionTimestamp, p.Labels)
	}
	return out.String()
}

const cloneSet = `
apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {%s}}
    spec: {containers: [{name: main, image: "web:v1"}]}
`

const statefulSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: %d
  serviceName: web
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "web:v1"}]}
`

// rolloutOf returns the manifest of a Rollout of a workload, with steps as YAML.
func rolloutOf(workload, steps string) string {
	return fmt.Sprintf(`
apiVersion: rollouts.kruise.io/v1beta1
kind: Rollout
metadata: {name: demo}
spec:
  workloadRef: {%s, name: web}
  strategy:
    canary:
      steps: [%s]
`, workload, steps)
}

const (
	ofCloneSet    = "apiVersion: apps.kruise.io/v1beta1, kind: CloneSet"
	ofStatefulSet = "apiVersion: apps/v1, kind: StatefulSet"
)

// steps returns steps that wait for approval, each with its replicas.
func steps(replicas ...string) string {
	var out []string
	for _, r := range replicas {
		out = append(out, fmt.Sprintf("{replicas: %s}", r))
	}
	return strings.Join(out, ", ")
}

// start makes a workload and its Rollout, and returns when both are at rest and changes are intercepted.
func (e *env) start(workload, rollout string) {
	e.Helper()
	o := e.Make(workload)
	e.Make(rollout)
	e.Eventually("the Rollout is healthy, and the workload has its label and its Pods", func() error {
		if err := e.Get(e.Ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		if o.GetLabels()[keys.WorkloadType] == "" {
			return errors.New("no label")
		}
		if r := e.rollout(); r.Status.Phase != v1beta1.RolloutPhaseHealthy || releaseOf(r) == nil {
			return fmt.Errorf("phase %s", r.Status.Phase)
		}
		return e.ready("v1", int(replicasOf(e.Env, o.GetKind())))
	})
}

func replicasOf(e *scene.Env, kind string) int32 {
	if kind == "StatefulSet" {
		var set appsv1.StatefulSet
		e.Read("web", &set)
		return *set.Spec.Replicas
	}
	var set appsv1beta1.CloneSet
	e.Read("web", &set)
	return *set.Spec.Replicas
}

func (e *env) rollout() *v1beta1.Rollout {
	e.Helper()
	r := &v1beta1.Rollout{}
	e.Read("demo", r)
	return r
}

func (e *env) cloneSet() *appsv1beta1.CloneSet {
	e.Helper()
	set := &appsv1beta1.CloneSet{}
	e.Read("web", set)
	return set
}

// images returns how many live Pods run each version of the image.
func (e *env) images() map[string]int {
	out := map[string]int{}
	for _, p := range e.Pods() {
		if p.DeletionTimestamp == nil {
			_, version, _ := strings.Cut(p.Spec.Containers[0].Image, ":")
			out[version]++
		}
	}
	return out
}

// updated complains unless so many Pods are of a version, ready or not.
func (e *env) updated(version string, want int) func() error {
	return func() error {
		if got := e.images()[version]; got != want {
			return fmt.Errorf("%d Pods are of %s, want %d", got, version, want)
		}
		return nil
	}
}

// ready complains unless so many Pods of a version are ready.
func (e *env) ready(version string, want int) error {
	got := 0
	for _, p := range e.Pods() {
		if p.DeletionTimestamp == nil && scene.IsReady(&p) && strings.HasSuffix(p.Spec.Containers[0].Image, ":"+version) {
			got++
		}
	}
	if got != want {
		return fmt.Errorf("%d Pods of %s are ready, want %d", got, version, want)
	}
	return nil
}

// edit changes an object, as often as it takes.
func edit[T client.Object](e *env, name string, into T, change func(T)) {
	e.Helper()
	scene.Edit(e.Env, name, into, change)
}

// setImage gives the CloneSet another version of its image.
func (e *env) setImage(version string) {
	e.Helper()
	edit(e, "web", &appsv1beta1.CloneSet{}, func(s *appsv1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = "web:" + version })
}

func (e *env) scale(replicas int32) {
	e.Helper()
	edit(e, "web", &appsv1beta1.CloneSet{}, func(s *appsv1beta1.CloneSet) { s.Spec.Replicas = &replicas })
}

func (e *env) change(change func(*v1beta1.Rollout)) {
	e.Helper()
	edit(e, "demo", &v1beta1.Rollout{}, change)
}

// releaseOf returns what the status says of the release, in any style; nil for nothing.
func releaseOf(r *v1beta1.Rollout) *v1beta1.CommonStatus {
	switch {
	case r.Status.CanaryStatus != nil:
		return &r.Status.CanaryStatus.CommonStatus
	case r.Status.BlueGreenStatus != nil:
		return &r.Status.BlueGreenStatus.CommonStatus
	}
	return nil
}

// setStatus writes into the status of the Rollout, as users and their tools do.
func (e *env) setStatus(change func(*v1beta1.CanaryStatus)) {
	e.Helper()
	scene.EditStatus(e.Env, "demo", &v1beta1.Rollout{}, func(r *v1beta1.Rollout) { change(r.Status.CanaryStatus) })
}

func (e *env) approve() {
	e.Helper()
	scene.EditStatus(e.Env, "demo", &v1beta1.Rollout{}, func(r *v1beta1.Rollout) { releaseOf(r).CurrentStepState = v1beta1.StepStateReady })
}

// paused waits until a step waits for its approval with so many Pods of a version.
func (e *env) paused(step int32, version string, pods int) {
	e.Helper()
	e.Eventually(fmt.Sprintf("step %d waits with %d Pods of %s", step, pods, version), func() error {
		return errors.Join(e.isAt(step, v1beta1.StepStatePaused), e.ready(version, pods))
	})
	if got := e.images()[version]; got != pods {
		e.Fatalf("%d Pods of %s at step %d, want %d\n%s", got, version, step, pods, e.describe())
	}
}

func (e *env) isAt(step int32, state v1beta1.StepState) error {
	c := releaseOf(e.rollout())
	if c == nil || c.CurrentStepIndex != step || c.CurrentStepState != state {
		return fmt.Errorf("the Rollout is at %+v, want step %d %s", c, step, state)
	}
	return nil
}

// confirm approves a step until it is over: an approval that comes while the Pods of the step are made anew does not count.
func (e *env) confirm(step int32) {
	e.Helper()
	e.Eventually(fmt.Sprintf("step %d is over", step), func() error {
		if e.isAt(step, v1beta1.StepStatePaused) == nil {
			e.approve()
		}
		if r := e.rollout(); r.Status.Phase == v1beta1.RolloutPhaseProgressing && r.Status.CurrentStepIndex <= step {
			return fmt.Errorf("the Rollout is at %+v", releaseOf(r))
		}
		return nil
	})
}

// over waits until a release has ended, in success or not, with all Pods of a version, and with nothing left on the CloneSet.
func (e *env) over(version string, pods int, succeeded corev1.ConditionStatus) {
	e.Helper()
	e.Eventually("the release is over with Pods of "+version, func() error {
		r := e.rollout()
		c := condition(r, v1beta1.ConditionSucceeded)
		if r.Status.Phase != v1beta1.RolloutPhaseHealthy || c == nil || c.Status != succeeded {
			return fmt.Errorf("phase %s, Succeeded %+v", r.Status.Phase, c)
		}
		return e.ready(version, pods)
	})
	e.clean()
}

// clean checks that a release has left nothing on the CloneSet.
func (e *env) clean() {
	e.Helper()
	set := e.cloneSet()
	for key := range set.Annotations {
		if strings.Contains(key, "rollouts.kruise.io/") {
			e.Errorf("annotation %s is left", key)
		}
	}
	for key := range set.Labels {
		if strings.HasPrefix(key, "rollouts.kruise.io/") && key != keys.WorkloadType && key != keys.RolloutID {
			e.Errorf("label %s is left", key)
		}
	}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil && rolling.Partition.String() != "0" {
		e.Errorf("partition %s is left", rolling.Partition)
	}
	var batches v1beta1.BatchReleaseList
	e.Must(e.List(e.Ctx, &batches, client.InNamespace(e.Namespace)))
	if len(batches.Items) > 0 {
		e.Errorf("BatchReleases are left: %+v", batches.Items)
	}
}

func condition(r *v1beta1.Rollout, of string) *v1beta1.RolloutCondition {
	i := slices.IndexFunc(r.Status.Conditions, func(c v1beta1.RolloutCondition) bool { return c.Type == of })
	if i < 0 {
		return nil
	}
	return &r.Status.Conditions[i]
}

func (e *env) partition() string {
	e.Helper()
	if rolling := e.cloneSet().Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		return rolling.Partition.String()
	}
	return "none"
}

type (
	cloneSetType = appsv1beta1.CloneSet
	rollingType  = appsv1beta1.RollingUpdateCloneSetStrategy
)
