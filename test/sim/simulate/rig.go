package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Process is a controller as the rig drives it.
type Process interface {
	// Reconcile looks at an owner once.
	Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error)
	// Hear takes an event of the cache and asks the queue for the looks that it makes necessary.
	Hear(event Event, queue *Queue)
}

// Rig runs a controller in a cluster where everything goes at its own pace.
type Rig struct {
	Cluster *Cluster
	Kubelet *Kubelet
	Rand    *rand.Rand
	// Watched are the kinds that the controller has caches of, as empty objects.
	Watched []client.Object
	// Start starts the controller, and again after each crash.
	Start func(connection *Client, view *View) Process
	// Faults go wrong while the cluster is in turmoil.
	Faults Faults
	// Sound keeps Pods from failing by themselves.
	Sound bool
	// User does something that a user might do, or another controller.
	User func()
	// Others do what other controllers do sooner or later, and report whether there was anything to do. They go on when the user has
	// stopped.
	Others []func() bool

	client  *Client
	view    *View
	queue   *Queue
	process Process
	passes  int
	// last is the last error of the controller.
	last error
	// Crashes is the number of times that the controller was started again.
	Crashes int
	// Writes is the number of writes that the controller has tried, and CrashAt the one at which it crashes.
	Writes  int
	CrashAt CrashPoint
	idle    map[reconcile.Request]*idlePasses
	// Restless holds the owners that were looked at more than MaxIdlePasses times within a minute although nothing changed, in words.
	Restless []string
}

// MaxIdlePasses is how often within a minute an owner may be looked at while no object changes and the cache shows no more than before.
// Retries after errors that double from 5 ms are 14 in a minute, and a cache that lags behind our own writes is asked again every 200 ms.
const MaxIdlePasses = 30

// idlePasses are the times of the last passes over an owner at the same state of the cluster and of the cache.
type idlePasses struct {
	revision, seen int64
	times          []time.Time
}

// noteIdle notes a pass, and an owner that is looked at too often for nothing.
func (r *Rig) noteIdle(request reconcile.Request, pass *Pass) {
	seen := int64(0)
	for _, revision := range pass.Seen {
		seen += revision // each of them only grows
	}
	known := r.idle[request]
	if known == nil || known.revision != r.Cluster.revision || known.seen != seen {
		if r.idle == nil {
			r.idle = map[reconcile.Request]*idlePasses{}
		}
		r.idle[request] = &idlePasses{revision: r.Cluster.revision, seen: seen}
		return
	}
	known.times = slices.DeleteFunc(append(known.times, pass.Time), func(at time.Time) bool { return pass.Time.Sub(at) >= time.Minute })
	if len(known.times) == MaxIdlePasses+1 {
		r.Restless = append(r.Restless, fmt.Sprintf(
			"%s was looked at %d times within a minute although nothing changed, the last time at %s",
			request, len(known.times), pass.Time.Format("15:04:05.000"),
		))
	}
}

func (r *Rig) start() {
	var late []func()
	behind := 0
	if r.client != nil {
		late, behind = r.client.late, r.client.faults.Behind
	}
	r.client = r.Cluster.Connect("controller", r.Rand)
	r.client.late, r.client.meantime, r.client.beforeWrite = late, r.meantime, r.countWrite
	r.view, r.queue = r.Cluster.NewView(), r.Cluster.NewQueue()
	r.process = r.Start(r.client, r.view)
	for _, kind := range r.Watched {
		lacks := 0
		if behind > 0 {
			lacks = r.Rand.Intn(behind + 1)
		}
		for _, event := range r.view.WatchPast(kind, lacks) {
			r.process.Hear(event, r.queue)
		}
	}
}

// countWrite counts a write, and has the controller crash if it is the one at which it should.
func (r *Rig) countWrite(becomes fate) fate {
	r.Writes++
	switch {
	case r.Writes != r.CrashAt.Write:
		return becomes
	case r.CrashAt.After:
		return crashesAfter
	}
	return crashesBefore
}

// LandAll makes all writes happen that their controller gave up on.
func (r *Rig) LandAll() {
	for r.client.LandLate() {
	}
}

// Turmoil lets a number of things happen in random order: users and faults are at work.
func (r *Rig) Turmoil(ctx context.Context, steps int) {
	if r.process == nil {
		r.start()
	}
	r.client.SetFaults(r.Faults)
	for range steps {
		r.turn(ctx)
	}
}

// turn does one random thing.
func (r *Rig) turn(ctx context.Context) {
	switch n := r.Rand.Intn(100); {
	case n < 8:
		r.User()
	case n < 18:
		r.Cluster.Sleep(time.Duration(r.Rand.Intn(3000)) * time.Millisecond)
	case n < 48:
		r.age()
	case n < 50:
		r.disturb()
	case n < 52:
		r.relist()
	case n < 57:
		r.client.LandLate()
	case n < 62:
		for _, other := range r.Others {
			other()
		}
		r.Cluster.Housekeep()
	case n < 82:
		r.deliver()
	default:
		r.waitABit()
		r.look(ctx)
	}
}

// waitABit moves the clock on to a look that is nearly due: controllers gather events for moments, not for steps of this rig.
func (r *Rig) waitABit() {
	const moment = 250 * time.Millisecond
	if _, at, ok := r.queue.Next(); ok {
		if wait := at.Sub(r.Cluster.now); wait > 0 && wait <= moment {
			r.Cluster.Sleep(wait)
		}
	}
}

// look lets the controller look at the owner that is due first, and reports whether one was due.
func (r *Rig) look(ctx context.Context) bool {
	request, at, ok := r.queue.Next()
	if !ok || at.After(r.Cluster.now) {
		return false
	}
	r.queue.Take(request)
	r.passes++
	pass := r.view.Look(r.passes, request.NamespacedName)
	r.noteIdle(request, pass)
	r.client.Begin(pass)
	result, err := r.process.Reconcile(ctx, request)
	if err != nil {
		r.last = err
	}
	switch {
	case r.client.IsDead():
		r.Crashes++
		faults := r.client.faults
		r.start()
		r.client.SetFaults(faults)
	case errors.Is(err, reconcile.TerminalError(nil)):
		r.queue.Forget(request)
	case err != nil:
		r.queue.AddRateLimited(request)
	default:
		r.queue.Forget(request)
		if result.RequeueAfter > 0 {
			r.queue.AddAfter(request, result.RequeueAfter)
		}
	}
	return true
}

// meantime lets some things happen while the controller is in the midst of a pass, and it may glance at them.
func (r *Rig) meantime(glance func()) {
	for range r.Rand.Intn(5) {
		if r.Rand.Intn(2) == 0 {
			r.age()
		} else {
			r.deliver()
		}
	}
	if r.Rand.Intn(2) == 0 {
		pass := r.client.pass
		r.client.Begin(r.view.Look(pass.Number, pass.Owner))
		glance()
		r.client.Begin(pass)
	}
}

// deliver lets the cache of a random kind take over some of what it has missed.
func (r *Rig) deliver() bool {
	lagging := r.view.Lagging()
	if len(lagging) == 0 {
		return false
	}
	kind := lagging[r.Rand.Intn(len(lagging))]
	r.process.Hear(r.view.Deliver(kind), r.queue)
	return true
}

func (r *Rig) relist() {
	if lagging := r.view.Lagging(); len(lagging) > 0 {
		r.relistKind(lagging[r.Rand.Intn(len(lagging))])
	}
}

func (r *Rig) relistKind(kind schema.GroupVersionKind) {
	for _, event := range r.view.Relist(kind) {
		r.process.Hear(event, r.queue)
	}
}

func (r *Rig) pods() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, object := range r.Cluster.Of(corev1.SchemeGroupVersion.WithKind("Pod")) {
		pods = append(pods, object.(*corev1.Pod))
	}
	return pods
}

// age moves a random Pod on.
func (r *Rig) age() {
	if pods := r.pods(); len(pods) > 0 {
		r.Kubelet.Step(pods[r.Rand.Intn(len(pods))])
	}
}

// disturb does something to a random Pod that nobody asked for.
func (r *Rig) disturb() {
	pods := r.pods()
	if len(pods) == 0 || r.Sound {
		return
	}
	p := pods[r.Rand.Intn(len(pods))]
	if r.Rand.Intn(4) == 0 {
		r.Kubelet.Evict(p)
		return
	}
	r.Kubelet.Restart(p)
}

// errRestless is what Settle returns of a cluster that does not come to rest.
var errRestless = errors.New("the cluster does not come to rest")

// Settle lets everything that is under way run to its end, without users and faults, and fails when there is none. An owner that asks for a
// look by the clock gets it; the end is when nobody asks for anything, or only for looks later than patience that change nothing.
func (r *Rig) Settle(ctx context.Context, patience time.Duration) error {
	r.client.SetFaults(Faults{})
	const most = 3000
	for range most {
		if r.calm(ctx) {
			continue
		}
		_, at, ok := r.queue.Next()
		if !ok || at.Sub(r.Cluster.now) > patience {
			return nil
		}
		r.Cluster.Sleep(max(at.Sub(r.Cluster.now), 0))
	}
	request, at, _ := r.queue.Next()
	return fmt.Errorf("%w: after %d rounds %s is to be looked at in %s again; the last error was: %w", errRestless, most, request,
		at.Sub(r.Cluster.now), r.last)
}

// calm does everything once that can be done without the clock moving on, and reports whether there was anything.
func (r *Rig) calm(ctx context.Context) bool {
	busy := r.client.LandLate()
	for _, p := range r.pods() {
		busy = r.Kubelet.Step(p) || busy
	}
	for _, other := range r.Others {
		busy = other() || busy
	}
	busy = r.Cluster.Housekeep() || busy
	for r.deliver() {
		busy = true
	}
	return r.look(ctx) || busy
}

// Ask asks for a look at an owner because of what no cache of the cluster tells.
func (r *Rig) Ask(owner types.NamespacedName) {
	r.queue.AddAfter(reconcile.Request{NamespacedName: owner}, gather)
}

// gather is for how long a controller gathers what it is asked for.
const gather = 15 * time.Millisecond

// Restart ends the controller and starts it again, with nothing in its memory.
func (r *Rig) Restart() { r.start() }
