package rollouts

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// seeds is how many releases a test of many draws. As many as the command line has in parallel are in the cluster at once.
var seeds = flag.Int("seeds", 3, "how many releases are drawn")

// patience is how long a release of many may take for what it has to come to: the machine serves all of them.
const patience = 10 * time.Minute

// drawn is a release of a Deployment: with how many Pods, in which style, and with which traffic.
type drawn struct {
	*rand.Rand
	replicas int32
	budget   [2]string
	canary   bool
	routings string
}

func draw(scenario, seed int) drawn {
	d := drawn{Rand: rand.New(rand.NewPCG(uint64(scenario), uint64(seed)))}
	d.replicas = int32(2 + d.IntN(5))
	d.budget = [][2]string{{"25%", "25%"}, {"1", "0"}, {"0", "1"}, {"2", "1"}}[d.IntN(4)]
	d.canary = d.IntN(2) == 0
	if d.IntN(2) == 0 {
		d.routings = byIngress
	}
	return d
}

// begin makes what is to be released, and its Rollout.
func (d drawn) begin(in *env) *deploymentEnv {
	in.Helper()
	in.Timeout = patience
	e := &deploymentEnv{env: in}
	steps := "{replicas: 1}, {replicas: 50%}, {replicas: 100%}"
	if d.routings != "" {
		steps = "{replicas: 1, traffic: 20%}, {replicas: 50%, traffic: 50%}, {replicas: 100%}"
		e.Make(service)
		e.Make(webIngress)
	}
	rollout := canaryOf(steps, d.routings)
	if !d.canary {
		rollout = strings.Replace(rollout, "enableExtraWorkloadForCanary: true", "enableExtraWorkloadForCanary: false", 1)
	}
	e.beginWith(d.replicas, d.budget, rollout)
	return e
}

// upTo waits for so long at most.
func (d drawn) upTo(limit time.Duration) { time.Sleep(time.Duration(d.Int64N(int64(limit)))) }

// waits waits until a step waits for its approval.
func (e *env) waits(step int32) {
	e.Helper()
	e.Eventually(fmt.Sprintf("step %d waits", step), func() error { return e.isAt(step, v1beta1.StepStatePaused) })
}

// nothingLeft waits until a Deployment is complete, and checks that it is what its user applied, and that nothing of a release is left.
func (e *deploymentEnv) nothingLeft(version string) {
	e.Helper()
	want := &appsv1.Deployment{}
	scene.Parse(e.Env, want, e.manifest(version))
	e.Eventually("it is rolled out natively", func() error { return e.complete(version, *want.Spec.Replicas) })
	e.clean()
	(&canaryEnv{e}).noSecond()
	want.Name = "defaulted"
	e.Must(e.Create(e.Ctx, want, client.DryRunAll))
	if diff := cmp.Diff(want.Spec, e.deployment().Spec, cmpopts.EquateEmpty()); diff != "" {
		e.Errorf("the spec is not what was applied (-want +got):\n%s", diff)
	}
	var services corev1.ServiceList
	e.Must(e.List(e.Ctx, &services, client.InNamespace(e.Namespace)))
	if len(services.Items) > 0 {
		e.untouched()
	}
}

// TestScenario14OverSeeds: a Rollout is disabled or deleted at any moment of a release, while a tool writes the manifest back.
func TestScenario14OverSeeds(t *testing.T) {
	t.Parallel()
	for seed := range *seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			d := draw(14, seed)
			e := d.begin(newEnv(t))
			e.setImage("v2")
			write := []func() error{e.replace, e.merge}[d.IntN(2)]
			end := e.writing(write)
			defer end()
			moment := d.IntN(5)
			if moment >= 1 {
				e.waits(1)
			}
			if moment >= 2 {
				e.approve()
			}
			if moment >= 3 {
				e.waits(2)
			}
			if moment >= 4 {
				e.approve()
			}
			if moment%2 == 0 {
				d.upTo(3 * time.Second)
			}
			if d.IntN(2) == 0 {
				e.disable()
			} else {
				e.remove()
			}
			e.Eventually("it is rolled out natively", func() error { return e.complete("v2", d.replicas) })
			end()
			e.nothingLeft("v2")
		})
	}
}

// TestScenario15OverSeeds: a manager is killed again and again, in each state that releases in canary style with traffic come to. They come to
// the same end as without, and never have two second Deployments of a template.
func TestScenario15OverSeeds(t *testing.T) {
	takeTurn(t)
	if err := restarted.Up(); err != nil {
		t.Fatal(err)
	}
	atOnce := min(*seeds, cap(places))
	k := &killer{t: t, Rand: rand.New(rand.NewPCG(15, 0)), struck: map[string]int{}}
	for first := 0; first < *seeds; first += atOnce {
		last := min(first+atOnce, *seeds)
		var begun, killing sync.WaitGroup
		begun.Add(last - first)
		over, end := context.WithCancel(t.Context())
		killing.Go(func() {
			begun.Wait() // without a manager no Rollout can be made
			k.run(over)
		})
		t.Run(fmt.Sprintf("seeds %d to %d", first, last-1), func(t *testing.T) {
			for seed := first; seed < last; seed++ {
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
					t.Parallel()
					survives(t, seed, &begun)
				})
			}
		})
		end()
		killing.Wait()
	}
	t.Logf("the manager was killed %d times, when this many releases were in each state: %v", k.kills, k.struck)
	for _, state := range states {
		if *seeds >= 100 && k.struck[state] == 0 {
			t.Errorf("the manager was never killed in state %s", state)
		}
	}
}

// survives takes a release to its end, or back in the middle, which is told by the seed.
func survives(t *testing.T, seed int, begun *sync.WaitGroup) {
	t.Helper()
	d := draw(15, seed)
	d.canary, d.routings = true, byIngress
	in := enter(t, restarted)
	e := func() *deploymentEnv {
		defer begun.Done()
		return d.begin(in)
	}()
	begun.Wait()
	l := e.record(&appsv1.DeploymentList{})
	d.upTo(5 * time.Second)
	e.insist(func() error { return e.trySetImage("v2") })
	back := d.IntN(6) // the step that is gone back from; above 2 none is
	end, succeeded := "v2", corev1.ConditionTrue
	for step := int32(1); step <= 2; step++ {
		e.waits(step)
		d.upTo(3 * time.Second)
		if int(step) == back {
			end, succeeded = "v1", corev1.ConditionFalse
			e.insist(func() error { return e.trySetImage("v1") })
			break
		}
		e.confirm(step)
	}
	e.over(end, d.replicas, succeeded)
	l.end()
	e.nothingLeft(end)
	there := map[string]bool{}
	for _, v := range l.ordered() {
		if _, second := v.GetLabels()[keys.CanaryDeployment]; !second {
			continue
		}
		if there[v.GetName()] = true; v.deleted || v.GetDeletionTimestamp() != nil {
			delete(there, v.GetName())
		}
		if len(there) > 1 {
			t.Errorf("there are the second Deployments %v at once", slices.Sorted(maps.Keys(there)))
		}
	}
}

// insist does something until a manager is there to judge it.
func (e *env) insist(do func() error) {
	e.Helper()
	e.Eventually("a manager is there", func() error {
		err := do()
		if err != nil && !scene.IsUnanswered(err) {
			e.Fatal(err)
		}
		return err
	})
}

func (e *deploymentEnv) trySetImage(version string) error {
	return scene.TryEdit(e.Env, "web", &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:" + version })
}

// states are those in which a manager is killed: of a step, and of the ways to both ends.
var states = []string{
	v1beta1.ReasonInitializing, string(v1beta1.StepStateBeforeUpgrade), string(v1beta1.StepStateUpgrade), string(v1beta1.StepStateTrafficRouting),
	string(v1beta1.StepStatePaused), v1beta1.ReasonFinalising, v1beta1.ReasonCancelling,
}

// killer kills the manager when a release is in the state whose turn it is.
type killer struct {
	t *testing.T
	*rand.Rand
	kills int
	// struck counts the releases that were in each state when the manager was killed.
	struck map[string]int
}

// run kills the manager until it is told that it is over. There is one then.
func (k *killer) run(over context.Context) {
	lives := 2 * time.Second
	for turn := 0; over.Err() == nil; turn++ {
		time.Sleep(500*time.Millisecond + time.Duration(k.Int64N(int64(lives))))
		found := k.find(over, states[turn%len(states)])
		if over.Err() != nil {
			return
		}
		restarted.RolloutManager.Kill()
		k.kills++
		for state, n := range found {
			k.struck[state] += n
		}
		began := time.Now()
		if err := restarted.RelaunchRollouts(k.t.Context()); err != nil {
			k.t.Error(err)
			return
		}
		lives = max(2*time.Second, 2*time.Since(began)) // where it starts slowly it also gets on slowly
	}
}

// find waits for a few seconds until a release is in a state, and returns how many are in each.
func (k *killer) find(ctx context.Context, wanted string) (found map[string]int) {
	for deadline := time.Now().Add(3 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var all v1beta1.RolloutList
		if err := restarted.Client.List(ctx, &all); err != nil {
			return nil
		}
		found = map[string]int{}
		for i := range all.Items {
			if state := stateOf(&all.Items[i]); state != "" {
				found[state]++
			}
		}
		if found[wanted] > 0 || time.Now().After(deadline) {
			return found
		}
	}
}

// stateOf returns the state of a release; empty if none is under way.
func stateOf(r *v1beta1.Rollout) string {
	c := condition(r, v1beta1.ConditionProgressing)
	switch {
	case r.Status.Phase != v1beta1.RolloutPhaseProgressing || c == nil:
		return ""
	case c.Reason == v1beta1.ReasonInRolling && r.Status.CanaryStatus != nil:
		return string(r.Status.CanaryStatus.CurrentStepState)
	}
	return c.Reason
}
