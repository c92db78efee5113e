package promises

import (
	"context"
	"math/rand"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	// turmoil is the number of steps in which things go wrong.
	turmoil = 250
	// lagging is how many clusters there are for each in which the controller often starts again with caches that lag behind.
	lagging = 5
	// overloaded is how many clusters there are for each whose API server is overloaded now and then.
	overloaded = 13
	// patience is how long the controller may take to come to rest.
	patience = time.Hour
)

// World is a simulated cluster with a scenario in it and our controller beside it.
type World struct {
	// Seed says all that happens; the same seed, the same story.
	Seed    int64
	Rand    *rand.Rand
	Cluster *simulate.Cluster
	Rig     *simulate.Rig

	suite    Suite
	scenario Scenario
	problems []string
	// told is what was planned and when, for a story worth reading.
	told map[int64][]string
}

// World returns the cluster of a seed as it is at first.
func (s Suite) World(seed int64) *World {
	r := rand.New(rand.NewSource(seed))
	cluster := simulate.NewCluster(s.Scheme, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	w := &World{Seed: seed, Rand: r, Cluster: cluster, suite: s, told: map[int64][]string{}}
	w.Rig = &simulate.Rig{Cluster: cluster, Kubelet: simulate.NewKubelet(cluster), Rand: r, Watched: s.Watched, Start: w.start}
	if seed%3 != 0 {
		// In the others, mistakes that faults would excuse must show as well.
		w.Rig.Faults = simulate.Faults{Crash: 0.01, Lost: 0.02, Dropped: 0.02, Late: 0.02, Conflict: 0.02, Denied: 0.03}
	}
	if seed%lagging == lagging-1 {
		w.Rig.Faults.Crash, w.Rig.Faults.Behind = 0.05, 20
	}
	if seed%overloaded == overloaded-1 {
		w.Rig.Faults.Overload = 0.05
	}
	w.scenario = s.Populate(w)
	w.Rig.User, w.Rig.Others = w.scenario.Act, w.scenario.Others
	return w
}

// Live lets the cluster live and returns what went wrong.
func (w *World) Live(ctx context.Context) []string {
	ctx = logr.NewContext(ctx, logr.Discard())
	w.Rig.Turmoil(ctx, turmoil)
	w.Rig.LandAll()
	w.scenario.Relent()
	return w.end(ctx)
}

// end lets the cluster come to rest and returns what went wrong.
func (w *World) end(ctx context.Context) []string {
	w.settle(ctx, "")
	for _, violation := range w.scenario.Check(w.Cluster.History()) {
		w.problems = append(w.problems, violation.String())
	}
	w.problems = append(w.problems, w.scenario.Converged()...)
	at := w.Cluster.Revision()
	w.Cluster.Sleep(time.Minute)
	w.Rig.Restart()
	w.settle(ctx, "after a restart: ")
	w.problems = append(w.problems, w.Rig.Restless...)
	for _, change := range w.Cluster.History() {
		if change.Revision > at && change.Pass != nil {
			w.problems = append(w.problems, "a restart makes the controller write: "+describe(change))
		}
	}
	if w.scenario.Restarted != nil {
		w.problems = append(w.problems, w.scenario.Restarted()...)
	}
	return w.problems
}

func (w *World) settle(ctx context.Context, when string) {
	if err := w.Rig.Settle(ctx, patience); err != nil {
		w.problems = append(w.problems, when+err.Error())
	}
}

func (w *World) start(connection *simulate.Client, view *simulate.View) simulate.Process {
	if err := observe.AddIndexes(context.Background(), view); err != nil {
		panic(err)
	}
	mistake := w.suite.Mistake
	var report func(string)
	if w.Seed%thorough == 0 {
		report = func(problem string) { w.problems = append(w.problems, problem) }
	}
	started := w.scenario.Start(Connection{
		Report: report,
		Cached: observe.Reader{Reader: view, Indexed: true}, Live: observe.Reader{Reader: connection}, Now: w.Cluster.Now,
		Glance: mistake.glance(glance{w.Cluster}, view), Between: connection.Between, TrustsPast: mistake.TrustsPast,
		Executor: &apply.Executor{Config: apply.Config{
			Writer: mistake.writer(connection), Scheme: w.suite.Scheme, Seen: mistake.seen(view.Seen), Now: w.Cluster.Now,
			Events: &record.FakeRecorder{}, Parallel: 1,
		}},
	})
	if mistake.IsDeaf != nil {
		return deaf{Process: started, to: mistake.IsDeaf}
	}
	return started
}

// Connection is what one run of a controller reads and writes through, until it crashes.
type Connection struct {
	// Executor writes one thing at a time, such that a seed tells the whole story.
	Executor *apply.Executor
	Cached   observe.Reader
	Live     observe.Reader
	// Glance reads around the cache without counting as a look at the cluster: what it shows can only keep the controller from something.
	Glance client.Reader
	// Between lets the controller look at what a pass has created so far, between its creations (loop.Loop.BetweenCreates).
	Between func(look func()) (over func())
	Now     func() time.Time
	// TrustsPast is a mistake that is made on purpose.
	TrustsPast bool
	// Report is told what is wrong with how the controller computes a status; nil where that is not looked at.
	Report func(problem string)
}
