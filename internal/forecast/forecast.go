package forecast

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/controller/cloneset"
	"github.com/seed-69ecc383/kruise/internal/controller/daemonset"
	"github.com/seed-69ecc383/kruise/internal/controller/statefulset"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// inPlace are the choices of a manager that nobody has given other feature gates.
func inPlace() inplace.Options { return inplace.Options{EnvFromMetadata: true} }

// Step is one thing that the controller does to a Pod.
type Step struct {
	// Batch counts the passes of the controller that do something: steps of one batch are done together.
	Batch int `json:"batch"`
	// After is when it is done at the earliest, from now.
	After time.Duration `json:"-"`
	// Seconds is the same, in seconds.
	Seconds int64 `json:"afterSeconds"`
	// Verb is what happens to the Pod: update (in place), delete, or create.
	Verb plan.Verb `json:"verb"`
	// Recreated means that the Pod is deleted in order to be created at another revision.
	Recreated bool   `json:"recreated,omitempty"`
	Pod       string `json:"pod"`
	Node      string `json:"node,omitempty"`
	// What and Why are the words of the plan.
	What string `json:"what,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Result is what a forecast comes to.
type Result struct {
	// Summary is the workload and its limits, in the words of its controller.
	Summary string `json:"summary"`
	Steps   []Step `json:"steps"`
	// Problem says what is wrong with the spec such that nothing can be planned; empty mostly.
	Problem string `json:"problem,omitempty"`
	// First are what the first pass holds back, Last what is still held back in the end.
	First []plan.Hold `json:"-"`
	Last  []plan.Hold `json:"-"`
	// Held are the reasons of Last.
	Held []string `json:"held,omitempty"`
	// Least is the smallest number of available Pods on the way.
	Least int `json:"leastAvailable"`
	// Seconds is how long it takes at least.
	Seconds int64 `json:"seconds"`
	// Cut says that the forecast was not carried to its end, because it would have taken long: what is said of the end is so after the last
	// of Steps.
	Cut bool `json:"cut,omitempty"`
	// Owner is the workload with the status that it has in the end.
	Owner client.Object `json:"-"`
}

// controller runs one pass over an owner of one kind, and stores the status that it computes in the owner.
type controller func(ctx context.Context, reads loop.Reads, owner client.Object) (decided plan.Plan, settle func(apply.Outcome), err error)

func of[O interface {
	plan.Object
	client.Object
}, S, T any](k loop.Kind[O, S, T]) controller {
	return func(ctx context.Context, reads loop.Reads, owner client.Object) (plan.Plan, func(apply.Outcome), error) {
		typed := owner.(O)
		state, err := k.Read(ctx, reads, typed)
		if err != nil {
			return plan.Plan{}, nil, err
		}
		decided := k.Plan(state)
		return decided, func(done apply.Outcome) { *k.StatusOf(typed) = k.Status(state, decided, done) }, nil
	}
}

// controllerOf returns the controller of a workload.
func controllerOf(owner client.Object) (controller, error) {
	switch owner.(type) {
	case *v1beta1.CloneSet:
		return of(cloneset.Kind(cloneset.Options{InPlace: inPlace()})), nil
	case *v1beta1.StatefulSet:
		return of(statefulset.Kind(statefulset.Options{ClaimRetention: true, InPlace: inPlace()})), nil
	case *v1beta1.DaemonSet:
		return of(daemonset.Kind(daemonset.Options{BindPods: true, InPlace: inPlace()})), nil
	}
	return nil, fmt.Errorf("there is no forecast for a %T: only for CloneSets, and for StatefulSets and DaemonSets of Kruise", owner)
}

// First returns the plan of the next pass.
func First(ctx context.Context, w *World, owner client.Object) (plan.Plan, error) {
	run, err := controllerOf(owner)
	if err != nil {
		return plan.Plan{}, err
	}
	decided, _, err := run(ctx, loop.ReadsOf(w, w.Now), owner)
	return decided, err
}

// mostPasses is how many passes a Pod takes at most: a forecast that needs more goes round in circles.
const mostPasses = 40

// run is a forecast that is under way.
type run struct {
	*World
	pass  controller
	began time.Time
	// last is when something was done, or a Pod became available, for the last time; available is how many were then.
	last      time.Time
	available int
	broken    map[string]bool
	result    Result
	batch     int
}

// Run tells what the controller does with a workload, which the world holds as well, until it wants nothing more.
func Run(ctx context.Context, w *World, owner client.Object) (Result, error) {
	return RunWithin(ctx, w, owner, 0)
}

// RunWithin does the same, but cuts the forecast off when its passes have looked at so many Pods together: the time that it takes goes by
// that. Something is always told. 0 is no limit.
func RunWithin(ctx context.Context, w *World, owner client.Object, mostLooks int) (Result, error) {
	pass, err := controllerOf(owner)
	if err != nil {
		return Result{}, err
	}
	r := &run{World: w, pass: pass, began: w.Now, last: w.Now, broken: map[string]bool{}}
	for _, p := range w.pods() {
		if pod.Broken(p) != "" {
			r.broken[p.Name] = true
		}
	}
	r.result.Least = -1
	w.put(owner.DeepCopyObject().(client.Object))
	for passes, looks := 0, 0; ; passes++ {
		looks += len(w.pods())
		isLast := mostLooks > 0 && looks > mostLooks && len(r.result.Steps) > 0 // it sees what the one before did
		if passes > mostPasses*(len(w.pods())+10) {
			return r.result, fmt.Errorf("the forecast of %s does not come to an end after %d passes", owner.GetName(), passes)
		}
		on, err := r.step(ctx, owner)
		if err != nil || !on {
			return r.result, err
		}
		if isLast {
			r.result.Cut = true
			r.end(plan.Plan{}, r.find(owner)) // what is held back now may not be in the end
			return r.result, nil
		}
	}
}

// step makes one pass, and what follows from it; false when nothing follows any more.
func (r *run) step(ctx context.Context, owner client.Object) (bool, error) {
	now := r.find(owner)
	if now == nil {
		return false, fmt.Errorf("%s is gone in its own forecast", owner.GetName())
	}
	seen := now.DeepCopyObject().(client.Object)
	decided, settle, err := r.pass(ctx, loop.ReadsOf(r.World, r.Now), seen)
	if err != nil {
		return false, err
	}
	r.note(decided)
	if decided.Problem != nil {
		r.result.Problem = decided.Problem.Error()
		return false, nil
	}
	var done apply.Outcome
	for _, a := range decided.Actions() {
		if err := r.do(a); err != nil {
			return false, err
		}
		done.Results = append(done.Results, apply.Result{Action: a, Object: a.After})
	}
	settle(done)
	if stored := r.find(owner); stored != nil { // the plan may have changed the rest of it
		copyStatus(stored, seen)
		now = stored
	}
	r.seeAvailable(now)
	changed := r.runPods(r.broken)
	if changed || !decided.Empty() {
		return true, nil
	}
	if decided.Recheck > 0 {
		r.Now = r.Now.Add(decided.Recheck)
		return true, nil
	}
	r.end(decided, now)
	return false, nil
}

// note notes what a pass does to Pods.
func (r *run) note(decided plan.Plan) {
	if r.result.Summary == "" {
		r.result.Summary, r.result.First = decided.Summary, decided.Holds
	}
	counted := false
	for _, stage := range decided.Stages {
		for _, chain := range stage {
			step, is := stepOf(chain)
			if !is {
				continue
			}
			if !counted {
				r.batch, counted, r.last = r.batch+1, true, r.Now
			}
			step.Batch, step.After = r.batch, r.Now.Sub(r.began)
			step.Seconds = int64(step.After / time.Second)
			r.result.Steps = append(r.result.Steps, step)
		}
	}
}

// stepOf returns what a chain of writes does to a Pod; false for one that only finishes what is under way, or is about other objects.
func stepOf(chain plan.Chain) (Step, bool) {
	for _, a := range chain {
		p, is := a.Object().(*corev1.Pod)
		if !is || a.What == "" || a.Concern != plan.Rollout && a.Concern != plan.Scale {
			continue
		}
		verb := a.Verb
		if verb != plan.Create && verb != plan.Delete {
			verb = plan.Update
		}
		return Step{
			Verb: verb, Recreated: verb == plan.Delete && a.Concern == plan.Rollout, Pod: p.Name, Node: p.Spec.NodeName,
			What: a.What, Why: a.Why,
		}, true
	}
	return Step{}, false
}

// seeAvailable notes how many Pods the status says are available.
func (r *run) seeAvailable(owner client.Object) {
	now := 0
	switch o := owner.(type) {
	case *v1beta1.CloneSet:
		now = int(o.Status.AvailableReplicas)
	case *v1beta1.StatefulSet:
		now = int(o.Status.AvailableReplicas)
	case *v1beta1.DaemonSet:
		now = int(o.Status.NumberAvailable)
	}
	if r.result.Least < 0 || now < r.result.Least {
		r.result.Least = now
	}
	if now != r.available {
		r.available, r.last = now, r.Now
	}
}

// end notes how it stands when nothing follows any more.
func (r *run) end(decided plan.Plan, owner client.Object) {
	r.result.Last, r.result.Owner = decided.Holds, owner
	for _, h := range decided.Holds {
		r.result.Held = append(r.result.Held, strings.TrimPrefix(h.Name+": "+h.Why, ": "))
	}
	r.result.Seconds = int64(r.last.Sub(r.began) / time.Second)
}
