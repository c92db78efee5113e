package broadcastjob

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/simulate"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can, and checks what it promises over all that
// happened. KRUISE_SEEDS is the number of clusters, KRUISE_SEED a single one to run again.
func TestPromises(t *testing.T) {
	scheme := testScheme(t)
	first, most := int64(0), int64(300)
	for name, into := range map[string]*int64{"KRUISE_SEEDS": &most, "KRUISE_SEED": &first} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatalf("reading %s: %v", name, err)
			}
			*into = n
		}
	}
	if first > 0 {
		most = first + 1
	}
	ended := map[v1beta1.BroadcastJobPhase]int{}
	for seed := first; seed < most; seed++ {
		w := newWorld(scheme, seed)
		if problems := w.run(t.Context()); problems != nil {
			t.Fatalf("KRUISE_SEED=%d: %s\n%s", seed, strings.Join(problems, "\n"), w.story())
		}
		if job := w.scenario.job(); job != nil {
			ended[job.Status.Phase]++
		}
	}
	if first == 0 && most >= 300 && (ended[v1beta1.BroadcastJobCompleted] == 0 || ended[v1beta1.BroadcastJobFailed] == 0 || ended[v1beta1.BroadcastJobRunning] == 0) {
		t.Errorf("the scenarios do not show all that can become of a job: %v", ended)
	}
}

// TestMistakesShow has the planner make mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	scheme := testScheme(t)
	for name, tc := range map[string]struct {
		mistake func(*Survey)
		want    string
	}{
		"it forgets parallelism":          {func(v *Survey) { v.limit = 100 }, ruleParallelism},
		"it forgets Pods that have ended": {forgetEnded, ruleOnce},
		"it deletes what has ended": {func(v *Survey) {
			for _, m := range v.members {
				if m.class == succeeded {
					m.unfit = "mistake"
				}
			}
		}, ruleEnded},
		"it forgets the taints": {func(v *Survey) {
			for _, node := range v.Nodes {
				if !slices.ContainsFunc(v.places, func(p *place) bool { return p.name == node.Name }) {
					v.places = append(v.places, &place{name: node.Name, node: node, fits: true})
				}
			}
		}, ruleNode},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range int64(200) {
				w := newWorld(scheme, seed)
				w.mistake = tc.mistake
				if strings.Contains(strings.Join(w.run(t.Context()), "\n"), tc.want) {
					return
				}
			}
			t.Errorf("the mistake broke no promise: %s", tc.want)
		})
	}
}

// forgetEnded would run a job twice on a node, were it not for the names of the Pods: so it forgets these as well.
func forgetEnded(v *Survey) {
	for _, p := range v.places {
		p.members = slices.DeleteFunc(p.members, func(m *member) bool { return m.class == succeeded || m.class == failed })
	}
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
	// mistake changes what the planner goes by; nil for none.
	mistake func(*Survey)
}

func newWorld(scheme *runtime.Scheme, seed int64) *world {
	r := rand.New(rand.NewSource(seed))
	cluster := simulate.NewCluster(scheme, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	w := &world{scheme: scheme, seed: seed, cluster: cluster, scenario: newScenario(cluster, r)}
	w.rig = &simulate.Rig{
		Cluster: cluster, Kubelet: simulate.NewKubelet(cluster), Rand: r,
		Watched: []client.Object{&v1beta1.BroadcastJob{}, &corev1.Pod{}, &corev1.Node{}},
		Start:   w.start,
		Faults:  simulate.Faults{Crash: 0.01, Lost: 0.02, Dropped: 0.02, Late: 0.02, Conflict: 0.02, Denied: 0.03},
		User:    w.scenario.act,
		Others:  []func() bool{w.scenario.runPods, w.scenario.goOn},
	}
	if seed%3 == 0 {
		w.rig.Faults = simulate.Faults{} // mistakes that faults would excuse must show as well
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
	l := ledger{jobs: map[types.UID]*account{}}
	for _, change := range w.cluster.History() {
		l.record(change)
	}
	w.problems = append(append(w.problems, l.violations...), w.converged()...)
	at := w.cluster.Revision()
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

// converged says what a job at rest has left undone.
func (w *world) converged() []string {
	job := w.scenario.job()
	if job == nil {
		return nil
	}
	var out []string
	pods := map[string]int{}
	for _, p := range w.scenario.pods() {
		if metav1.IsControlledBy(p, job) {
			pods[nodefit.NodeOf(p)]++
			if isFinished(job) && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
				out = append(out, fmt.Sprintf("Pod %s runs on after the job", p.Name))
			}
		}
	}
	if isFinished(job) {
		if len(job.Status.Conditions) != 1 || job.Status.CompletionTime == nil || job.Status.Active != 0 {
			out = append(out, fmt.Sprintf("the job is over with the status %+v", job.Status))
		}
		return out
	}
	if ends(job) && job.Status.Desired > 0 {
		out = append(out, fmt.Sprintf("nothing happens any more, and the job is not over: %+v", job.Status))
	}
	for _, object := range w.cluster.Of(corev1.SchemeGroupVersion.WithKind("Node")) {
		if node := object.(*corev1.Node); nodefit.OfJob(&job.Spec.Template.Spec).On(node).Run && pods[node.Name] != 1 {
			out = append(out, fmt.Sprintf("node %s has %d Pods", node.Name, pods[node.Name]))
		}
	}
	return out
}

// What a controller of BroadcastJobs promises.
const (
	ruleOnce        = "a node gets no second Pod while it has one"
	ruleParallelism = "no Pod is created beyond parallelism"
	ruleOver        = "a job that is over creates nothing and keeps its status"
	ruleEnded       = "a Pod that has ended is not deleted"
	ruleNode        = "no Pod for a node that its template does not fit"
)

// ledger is the history of all jobs up to a change.
type ledger struct {
	jobs       map[types.UID]*account
	nodes      []simulate.Change
	violations []string
}

// account is what happened to one job.
type account struct {
	versions []simulate.Change
	pods     map[string]*corev1.Pod
	limits   []int
}

func (l *ledger) record(c simulate.Change) {
	object := c.After
	if object == nil {
		object = c.Before
	}
	switch c.Key.Kind.Kind {
	case "Node":
		l.nodes = append(l.nodes, c)
	case "BroadcastJob":
		a := l.jobs[object.GetUID()]
		if a == nil {
			a = &account{pods: map[string]*corev1.Pod{}}
			l.jobs[object.GetUID()] = a
		}
		a.versions = append(a.versions, c)
		if c.Before != nil && c.After != nil {
			before, after := c.Before.(*v1beta1.BroadcastJob), c.After.(*v1beta1.BroadcastJob)
			if isFinished(before) && cmp.Diff(before.Status, after.Status) != "" {
				l.breaks(ruleOver, c)
			}
		}
	case "Pod":
		if owner := metav1.GetControllerOfNoCopy(object); owner != nil && l.jobs[owner.UID] != nil {
			l.recordPod(c, l.jobs[owner.UID])
		}
	}
}

func (l *ledger) recordPod(c simulate.Change, a *account) {
	ours := c.Pass != nil && !c.Late
	if before, ok := c.Before.(*corev1.Pod); ok && ours && (before.Status.Phase == corev1.PodSucceeded || before.Status.Phase == corev1.PodFailed) {
		l.breaks(ruleEnded, c)
	}
	after, exists := c.After.(*corev1.Pod)
	if c.Before == nil && ours {
		l.created(c, a)
	}
	if exists {
		a.pods[c.Key.Name] = after
	} else {
		delete(a.pods, c.Key.Name)
	}
}

// created checks the creation of a Pod against what the controller had seen of the job and of the nodes, and against all Pods that there are.
func (l *ledger) created(c simulate.Change, a *account) {
	seen := seenOf(a.versions, c.Pass.Seen[kind()])
	if seen == nil {
		return
	}
	job := seen.(*v1beta1.BroadcastJob)
	if isFinished(job) || job.DeletionTimestamp != nil {
		l.breaks(ruleOver, c)
	}
	node, under := nodefit.NodeOf(c.After.(*corev1.Pod)), 1
	for _, p := range a.pods {
		if nodefit.NodeOf(p) == node {
			l.breaks(ruleOnce, c)
		}
		if classOf(p, job) == active {
			under++
		}
	}
	known := l.nodesSeen(c.Pass.Seen[corev1.SchemeGroupVersion.WithKind("Node")])
	fit := nodefit.OfJob(&job.Spec.Template.Spec)
	if known[node] == nil || !fit.On(known[node]).Run {
		l.breaks(ruleNode, c)
	}
	if job.Spec.Parallelism == nil {
		return
	}
	places := map[string]bool{}
	for name, n := range known {
		places[name] = fit.On(n).Run
	}
	for _, p := range a.pods {
		places[nodefit.NodeOf(p)] = true
	}
	desired := 0
	for _, counts := range places {
		if counts {
			desired++
		}
	}
	if limit, err := budget.Scaled(job.Spec.Parallelism, desired, budget.Up); err == nil && under > limit {
		l.breaks(ruleParallelism, c)
	}
}

func (l *ledger) nodesSeen(revision int64) map[string]*corev1.Node {
	out := map[string]*corev1.Node{}
	for _, c := range l.nodes {
		if c.Revision > revision {
			break
		}
		delete(out, c.Key.Name)
		if node, ok := c.After.(*corev1.Node); ok {
			out[c.Key.Name] = node
		}
	}
	return out
}

func seenOf(versions []simulate.Change, revision int64) client.Object {
	var out client.Object
	for _, c := range versions {
		if c.Revision <= revision {
			out = c.After
		}
	}
	return out
}

func (l *ledger) breaks(rule string, c simulate.Change) {
	l.violations = append(l.violations, fmt.Sprintf("%s: %s", rule, describe(c)))
}

func (w *world) start(connection *simulate.Client, view *simulate.View) simulate.Process {
	if err := observe.AddIndexes(context.Background(), view); err != nil {
		panic(err)
	}
	executor := &apply.Executor{Config: apply.Config{
		Writer: connection, Scheme: w.scheme, Consistency: apply.NewConsistency(view.Seen, w.cluster.Now),
		Events: apply.NewEvents(&record.FakeRecorder{}), Parallel: 1,
	}}
	l := NewLoop(Config{Executor: executor, Live: connection, Workers: 1, Now: w.cluster.Now},
		observe.Reader{Reader: view, Indexed: true}, observe.Reader{Reader: connection})
	l.Plan = w.plan
	return &process{
		Reconciler: l, jobs: loop.OwnerEvents[*v1beta1.BroadcastJob](l.Forget), pods: loop.OwnedEvents[*corev1.Pod](kind().GroupKind()),
		nodes: loop.AffectedEvents(Jobs{Reader: view}.OfNode),
	}
}

// plan plans, and checks that planning is pure: the same snapshot gives the same plan, and nothing that was read is changed.
func (w *world) plan(v Survey) plan.Plan {
	if w.mistake != nil {
		w.mistake(&v)
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
	jobs  handler.TypedEventHandler[*v1beta1.BroadcastJob, reconcile.Request]
	pods  handler.TypedEventHandler[*corev1.Pod, reconcile.Request]
	nodes handler.TypedEventHandler[*corev1.Node, reconcile.Request]
}

func (p *process) Hear(e simulate.Event, queue *simulate.Queue) {
	switch e.Key.Kind.Kind {
	case "BroadcastJob":
		hear(p.jobs, e, queue)
	case "Pod":
		hear(p.pods, e, queue)
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
		out.WriteString(describe(change) + "\n")
	}
	return out.String()
}

func describe(c simulate.Change) string {
	text := func(object client.Object) string {
		switch o := object.(type) {
		case *v1beta1.BroadcastJob:
			return fmt.Sprintf("parallelism %v, paused %v, %+v", o.Spec.Parallelism, o.Spec.Paused, o.Status)
		case *corev1.Pod:
			return fmt.Sprintf("for %s on %q, %s, restarts %v, deleted %v", nodefit.NodeOf(o), o.Spec.NodeName, o.Status.Phase, o.Status.ContainerStatuses != nil, o.DeletionTimestamp)
		case *corev1.Node:
			return fmt.Sprintf("taints %v, cordoned %v", o.Spec.Taints, o.Spec.Unschedulable)
		}
		return "gone"
	}
	pass := ""
	if c.Pass != nil {
		pass = fmt.Sprintf(" in pass %d, late %v", c.Pass.Number, c.Late)
	}
	return fmt.Sprintf("%d %s %s%s: %s %s: %s", c.Revision, c.Time.Format("15:04:05.000"), c.Actor, pass, c.Key.Kind.Kind, c.Key.Name, text(c.After))
}
