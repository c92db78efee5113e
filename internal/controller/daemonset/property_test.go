package daemonset

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/simulate"
	"github.com/seed-69ecc383/kruise/test/invariant"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can, and checks what it promises over all that
// happened. KRUISE_SEEDS is the number of clusters, KRUISE_SEED a single one to run again.
func TestPromises(t *testing.T) {
	scheme := testScheme(t)
	if text := os.Getenv("KRUISE_SEED"); text != "" {
		seed, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("reading KRUISE_SEED: %v", err)
		}
		w := newWorld(scheme, seed)
		problems := w.run(t.Context())
		t.Log(w.story())
		if problems != nil {
			t.Errorf("seed %d: %s", seed, strings.Join(problems, "\n"))
		}
		return
	}
	const fewBroken = 5
	most := seeds(t)
	var next, broken atomic.Int64
	var running sync.WaitGroup
	for range goruntime.GOMAXPROCS(0) {
		running.Go(func() {
			for seed := next.Add(1) - 1; seed < most && broken.Load() < fewBroken; seed = next.Add(1) - 1 {
				if problems := newWorld(scheme, seed).run(t.Context()); problems != nil {
					broken.Add(1)
					t.Errorf("KRUISE_SEED=%d: %s", seed, strings.Join(problems, "\n"))
				}
			}
		})
	}
	running.Wait()
}

// TestRunsRepeat checks that a seed tells the whole story: else a failure could not be repeated.
func TestRunsRepeat(t *testing.T) {
	scheme := testScheme(t)
	for seed := range int64(20) {
		first, second := newWorld(scheme, seed), newWorld(scheme, seed)
		first.run(t.Context())
		second.run(t.Context())
		if diff := cmp.Diff(first.story(), second.story()); diff != "" {
			t.Fatalf("seed %d goes another way the second time (-first +second):\n%s", seed, diff)
		}
	}
}

func seeds(t *testing.T) int64 {
	t.Helper()
	text := os.Getenv("KRUISE_SEEDS")
	if text == "" {
		return 300
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("reading KRUISE_SEEDS: %v", err)
	}
	return n
}

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// world is a simulated cluster with a scenario in it and our controller beside it.
type world struct {
	scheme   *runtime.Scheme
	seed     int64
	cluster  *simulate.Cluster
	rig      *simulate.Rig
	scenario *scenario
	problems []string
	options  Options
	// mistake changes what the planner goes by, and reports whether it did; nil for none.
	mistake func(*Survey) bool
	// made is how often the mistake was made.
	made int
	// told is what was planned and when, for a story worth reading.
	told map[int64][]string
}

func newWorld(scheme *runtime.Scheme, seed int64) *world {
	r := rand.New(rand.NewSource(seed))
	cluster := simulate.NewCluster(scheme, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	w := &world{scheme: scheme, seed: seed, cluster: cluster, scenario: newScenario(cluster, r), told: map[int64][]string{}}
	w.options = w.scenario.options()
	w.rig = &simulate.Rig{
		Cluster: cluster,
		Kubelet: simulate.NewKubelet(cluster),
		Rand:    r,
		Watched: []client.Object{&v1beta1.DaemonSet{}, &appsv1.ControllerRevision{}, &corev1.Pod{}, &corev1.Node{}},
		Start:   w.start,
		Faults:  simulate.Faults{Crash: 0.01, Lost: 0.02, Dropped: 0.02, Late: 0.02, Conflict: 0.02, Denied: 0.03},
		User:    w.scenario.act,
		Others:  []func() bool{w.scenario.answerHooks},
	}
	if seed%3 == 0 {
		// Mistakes that faults would excuse must show as well.
		w.rig.Faults = simulate.Faults{}
	}
	return w
}

// run lets the cluster live and returns what went wrong.
func (w *world) run(ctx context.Context) []string {
	const turmoil, patience = 250, time.Hour
	ctx = logr.NewContext(ctx, logr.Discard())
	w.rig.Turmoil(ctx, turmoil)
	w.rig.LandAll()
	w.scenario.relent()
	if err := w.rig.Settle(ctx, patience); err != nil {
		w.problems = append(w.problems, err.Error())
	}
	for _, violation := range invariant.CheckDaemonSet(w.cluster.History()) {
		w.problems = append(w.problems, violation.String())
	}
	w.problems = append(w.problems, invariant.DaemonsConverged(w.cluster, w.scenario.set())...)
	at := w.cluster.Revision()
	w.cluster.Sleep(time.Minute)
	w.rig.Restart()
	if err := w.rig.Settle(ctx, patience); err != nil {
		w.problems = append(w.problems, "after a restart: "+err.Error())
	}
	for _, change := range w.cluster.History() {
		if change.Revision > at && change.Pass != nil {
			w.problems = append(w.problems, "a restart makes the controller write: "+describe(change))
		}
	}
	return w.problems
}

func (w *world) start(connection *simulate.Client, view *simulate.View) simulate.Process {
	if err := observe.AddIndexes(context.Background(), view); err != nil {
		panic(err)
	}
	executor := &apply.Executor{Config: apply.Config{
		Writer: connection, Scheme: w.scheme, Consistency: apply.NewConsistency(view.Seen, w.cluster.Now),
		Events: apply.NewEvents(&record.FakeRecorder{}), Parallel: 1,
	}}
	l := NewLoop(Config{Options: w.options, Executor: executor, Live: connection, Workers: 1, Now: w.cluster.Now},
		observe.Reader{Reader: view, Indexed: true}, observe.Reader{Reader: connection})
	l.Plan = w.plan
	sets := Sets{Reader: view}
	return &process{
		Reconciler: l, sets: loop.OwnerEvents[*v1beta1.DaemonSet](l.Forget), pods: loop.OwnedEvents[*corev1.Pod](kind().GroupKind()),
		orphans: loop.AffectedEvents(sets.OfOrphan), nodes: loop.AffectedEvents(sets.OfNode),
	}
}

// plan plans, and checks that planning is pure: the same survey gives the same plan, and nothing that was read is changed.
func (w *world) plan(v Survey) plan.Plan {
	w.tell(v)
	if w.mistake != nil {
		if w.mistake(&v) {
			w.made++
		}
		return Plan(v)
	}
	const thorough = 10
	if w.seed%thorough != 0 {
		return Plan(v)
	}
	before := encoded(v.Snapshot)
	first := Plan(Take(v.Snapshot)).String()
	if second := Plan(Take(v.Snapshot)).String(); first != second {
		w.problems = append(w.problems, "planning twice differs:\n"+cmp.Diff(first, second))
	}
	p := Plan(v)
	if after := encoded(v.Snapshot); before != after {
		w.problems = append(w.problems, "planning changes what was read:\n"+cmp.Diff(before, after))
	}
	return p
}

func (w *world) tell(v Survey) {
	if os.Getenv("KRUISE_SEED") != "" {
		at := w.cluster.Revision()
		w.told[at] = append(w.told[at], fmt.Sprintf("   %s plans: %s", w.cluster.Now().Format("15:04:05.000"), Plan(Take(v.Snapshot))))
	}
}

func encoded(s Snapshot) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// process hears of events through the same handlers as in a manager.
type process struct {
	reconcile.Reconciler
	sets          handler.TypedEventHandler[*v1beta1.DaemonSet, reconcile.Request]
	pods, orphans handler.TypedEventHandler[*corev1.Pod, reconcile.Request]
	nodes         handler.TypedEventHandler[*corev1.Node, reconcile.Request]
}

func (p *process) Hear(e simulate.Event, queue *simulate.Queue) {
	switch e.Key.Kind.Kind {
	case "DaemonSet":
		hear(p.sets, e, queue)
	case "Pod":
		hear(p.pods, e, queue)
		hear(p.orphans, e, queue)
	case "Node":
		hear(p.nodes, e, queue)
	}
}

func hear[T client.Object](h handler.TypedEventHandler[T, reconcile.Request], e simulate.Event, queue *simulate.Queue) {
	before, existed := e.Old.(T)
	after, exists := e.New.(T)
	switch ctx := context.Background(); {
	case existed && exists:
		h.Update(ctx, event.TypedUpdateEvent[T]{ObjectOld: before, ObjectNew: after}, queue)
	case exists:
		h.Create(ctx, event.TypedCreateEvent[T]{Object: after}, queue)
	case existed:
		h.Delete(ctx, event.TypedDeleteEvent[T]{Object: before}, queue)
	}
}

// story tells everything that happened, a line for each change.
func (w *world) story() string {
	var out strings.Builder
	for _, change := range w.cluster.History() {
		out.WriteString(describe(change))
		out.WriteByte('\n')
		for _, planned := range w.told[change.Revision] {
			out.WriteString(planned)
		}
	}
	return out.String()
}

func describe(c simulate.Change) string {
	what := "changes"
	switch {
	case c.Before == nil:
		what = "creates"
	case c.After == nil:
		what = "removes"
	case c.Before.GetDeletionTimestamp() == nil && c.After.GetDeletionTimestamp() != nil:
		what = "deletes"
	}
	pass := ""
	if c.Pass != nil {
		pass = fmt.Sprintf(" pass %d, had seen %s", c.Pass.Number, seen(c.Pass))
	}
	detail := ""
	if c.Before != nil && c.After != nil {
		for line := range strings.Lines(cmp.Diff(flat(c.Before), flat(c.After))) {
			if strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
				detail += "\n      " + strings.TrimSpace(line)
			}
		}
	}
	return fmt.Sprintf("%d %s %s%s %s %s %s%s", c.Revision, c.Time.Format("15:04:05.000"), c.Actor, pass, what, c.Key.Kind.Kind, c.Key.Name, detail)
}

// flat is an object as lines that can be compared.
func flat(object client.Object) []string {
	text, err := json.MarshalIndent(object, "", " ")
	if err != nil {
		panic(err)
	}
	return strings.Split(string(text), "\n")
}

func seen(p *simulate.Pass) string {
	var kinds []string
	for kind, revision := range p.Seen {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind.Kind, revision))
	}
	slices.Sort(kinds)
	return strings.Join(kinds, " ")
}
