package workloadspread

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	rules "github.com/seed-69ecc383/kruise/internal/rules/spread"
	"github.com/seed-69ecc383/kruise/internal/spread"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// TestPromises runs the controller and two replicas of the webhook in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(mistake{}).Hold(t) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(mistake{}).Repeat(t) }

// TestMistakesShow makes mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	t.Run("a replica gives room without writing so", func(t *testing.T) { suite(mistake{forgets: true}).Break(t, overfull) })
	t.Run("a replica counts Pods before it has seen those that left the ledger", func(t *testing.T) {
		suite(mistake{countsTooEarly: true}).Break(t, overfull)
	})
	t.Run("a replica gives room that it set aside long ago", func(t *testing.T) { suite(mistake{keepsLeases: true}).Break(t, overfull) })
	t.Run("the controller writes over room that was given meanwhile", func(t *testing.T) { suite(mistake{inexact: true}).Break(t, overfull) })
	t.Run("the controller lets a Pod through its gate before its room is in the ledger", func(t *testing.T) {
		suite(mistake{admitsTooEarly: true}).Break(t, overfull)
	})
	t.Run("the controller counts one too few", func(t *testing.T) { suite(mistake{lessLimits: true}).Break(t, "status") })
	t.Run("it does not hear of Pods", func(t *testing.T) {
		s := suite(mistake{})
		s.Mistake.IsDeaf = func(e simulate.Event) bool { return e.Key.Kind.Kind == "Pod" }
		s.Break(t, "status")
	})
}

const overfull = "a subset is over its limit"

func watched() []client.Object {
	return []client.Object{&v1beta1.WorkloadSpread{}, &corev1.Pod{}, &appsv1.ReplicaSet{}, &corev1.Node{}}
}

func suite(wrong mistake) promises.Suite {
	return promises.Suite{Scheme: promises.Scheme(), Watched: watched(), Populate: func(w *promises.World) promises.Scenario {
		s := newScenario(w, wrong)
		planner := promises.Planner[Snapshot, Snapshot]{
			Plan: Plan, Take: func(s Snapshot) Snapshot { return s }, Snapshot: func(s Snapshot) Snapshot { return s },
		}
		if wrong.admitsTooEarly {
			planner.Plan = planTooEarly
		}
		return promises.Scenario{
			Start: func(c promises.Connection) simulate.Process {
				k := Kind(Options{
					Targets: &spread.Targets{Cached: c.Cached.Reader, Now: c.Now},
					SeenPods: func(ctx context.Context) (string, error) {
						return c.Executor.Seen(ctx, corev1.SchemeGroupVersion.WithKind("Pod"))
					},
				})
				k.Plan, k.Exact = planner.In(w), !wrong.inexact
				if wrong.lessLimits {
					status := k.Status
					k.Status = func(s Snapshot, p plan.Plan, o apply.Outcome) v1beta1.WorkloadSpreadStatus {
						out := status(s, p, o)
						if len(out.SubsetStatuses) > 0 && out.SubsetStatuses[0].Replicas > 0 {
							out.SubsetStatuses[0].Replicas--
						}
						return out
					}
				}
				return promises.Start(k, c.Runtime(), c)
			},
			Act: s.act, Relent: s.relent, Others: []func() bool{s.catchUp, s.expire}, Check: s.check, Converged: s.converged,
		}
	}}
}

// planTooEarly admits Pods by room that no stored ledger has.
func planTooEarly(s Snapshot) plan.Plan {
	b := plan.For("too early")
	l := s.ledger()
	for i := range l.gated {
		l.gated[i].due = true
	}
	s.planGated(b, l)
	s.planPods(b, l.spread)
	b.Recheck(l.next, "an entry of the ledger ends")
	return b.Plan()
}

// inFlight is a Pod that was admitted and is not stored yet.
type inFlight struct {
	pod *corev1.Pod
	at  time.Time
}

// scenario is a ReplicaSet, whose Pods others make and delete, with a WorkloadSpread and two replicas of the webhook.
type scenario struct {
	promises.User
	wrong    mistake
	replicas []*replica
	// made is how many Pods were made, started how many replicas were: none has the name of another.
	made, started int
	under         []inFlight
}

const namespace = "default"

func newScenario(w *promises.World, wrong mistake) *scenario {
	s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}, wrong: wrong}
	w.Rig.Sound = true // Pods that fail of themselves come and go as well, but not by our doing
	replicas := int32(10)
	s.create(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas}})
	for i := range 16 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%x", i), Labels: map[string]string{"zone": string(rune('a' + i%3))}}}
		s.create(node)
	}
	ws := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	ws.Spec.TargetReference = &v1beta1.SpreadTargetReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web"}
	for i, name := range []string{"a", "b", "c"} {
		one := v1beta1.WorkloadSpreadSubset{Name: name}
		if i < 2 {
			one.MaxReplicas = new(intstr.FromInt32(int32(1 + s.Rand.Intn(8))))
		}
		ws.Spec.Subsets = append(ws.Spec.Subsets, one)
	}
	s.fill(ws)
	if s.Chance(30) {
		ws.Spec.Subsets[0].MaxReplicas = new(intstr.FromString(fmt.Sprintf("%d%%", 10*(1+s.Rand.Intn(9)))))
		ws.Spec.Subsets[1].MaxReplicas = nil
	}
	s.create(ws)
	for range 2 {
		s.replicas = append(s.replicas, s.startReplica())
	}
	return s
}

// fill has subsets filled in one of the ways that there are.
func (s *scenario) fill(ws *v1beta1.WorkloadSpread) {
	floors, weights := s.Chance(30), s.Chance(30)
	for i := range ws.Spec.Subsets {
		if floors {
			ws.Spec.Subsets[i].MinReplicas = new(intstr.FromInt32(int32(s.Rand.Intn(4))))
		}
		if weights {
			ws.Spec.Subsets[i].Weight = new(int32(1 + s.Rand.Intn(3)))
		}
	}
}

func (s *scenario) startReplica() *replica {
	s.started++
	return newReplica(s.Cluster, fmt.Sprint("replica", s.started), s)
}

func (s *scenario) create(o client.Object) {
	if _, err := s.Cluster.Create(promises.UserActor, o); err != nil {
		panic(err)
	}
}

func (s *scenario) owner() *appsv1.ReplicaSet {
	set, _ := s.Cluster.Get(simulate.Key{Kind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), Namespace: namespace, Name: "web"}).(*appsv1.ReplicaSet)
	return set
}

func (s *scenario) spread() *v1beta1.WorkloadSpread {
	ws, _ := s.Cluster.Get(simulate.Key{Kind: v1beta1.GroupVersion.WithKind("WorkloadSpread"), Namespace: namespace, Name: "web"}).(*v1beta1.WorkloadSpread)
	return ws
}

func (s *scenario) newPod() *corev1.Pod {
	s.made++
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: fmt.Sprintf("web-%d", s.made),
		Labels:          map[string]string{"pod-template-hash": fmt.Sprint("v", s.Rand.Intn(2))},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.owner(), appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
	}}
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: s.Image()}}
	return p
}

// act does what a workload controller, API servers and replicas do in a moment.
func (s *scenario) act() {
	for range 1 + s.Rand.Intn(12) {
		switch n := s.Rand.Intn(100); {
		case n < 45:
			s.makePod()
		case n < 60:
			s.land()
		case n < 75:
			s.replicas[s.Rand.Intn(2)].hear(s)
		case n < 88:
			s.deletePod()
		case n < 92:
			s.replicas[s.Rand.Intn(2)].assigner.Ledger.GiveBack(quiet())
		case n < 94: // one is killed
			s.replicas[s.Rand.Intn(2)] = s.startReplica()
		case n < 96:
			s.Cluster.Sleep(time.Duration(s.Rand.Intn(3000)) * time.Millisecond)
		case n < 98:
			simulate.Update(s.Cluster, promises.UserActor, s.owner(), func(set *appsv1.ReplicaSet) { *set.Spec.Replicas++ })
		default: // a Pod that no webhook was asked about, and which may wait for a subset
			p := s.newPod()
			if s.Chance(60) {
				p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: keys.SpreadGate}}
			}
			s.create(p)
		}
	}
}

// makePod has one of the replicas admit a Pod, which is stored at once, later or never.
func (s *scenario) makePod() {
	p := s.newPod()
	if s.replicas[s.Rand.Intn(2)].admit(p) != nil || s.Chance(8) {
		return
	}
	if s.Chance(60) {
		s.create(p)
		return
	}
	s.under = append(s.under, inFlight{p, s.Cluster.Now()})
}

// mostInFlight is how long an API server takes at most to store what it has asked about.
const mostInFlight = 20 * time.Second

// land stores a Pod that is under way.
func (s *scenario) land() {
	if len(s.under) == 0 {
		return
	}
	one := s.under[0]
	s.under = s.under[1:]
	if s.Cluster.Now().Sub(one.at) < mostInFlight {
		s.create(one.pod)
	}
}

func (s *scenario) deletePod() {
	if pods := s.Pods(); len(pods) > 0 {
		s.Cluster.Delete(promises.UserActor, pods[s.Rand.Intn(len(pods))])
	}
}

func (s *scenario) relent() {
	for len(s.under) > 0 {
		s.land()
	}
}

// catchUp lets the replicas come to rest.
func (s *scenario) catchUp() bool {
	did := false
	for _, r := range s.replicas {
		for _, kind := range r.view.Lagging() {
			for contains(r.view, kind) {
				r.note(r.view.Deliver(kind))
				did = true
			}
		}
		r.assigner.Ledger.GiveBack(quiet())
	}
	return did
}

// expire lets time go by while the ledger waits for something.
func (s *scenario) expire() bool {
	for _, one := range s.spread().Status.SubsetStatuses {
		if len(one.CreatingPods) > 0 {
			s.Cluster.Sleep(time.Second)
			return true
		}
	}
	return false
}

// check returns the Pods that were stored in a subset that was full.
func (s *scenario) check(history []simulate.Change) []invariant.Violation {
	var out []invariant.Violation
	pods, most := map[string]*corev1.Pod{}, int32(0)
	var ws *v1beta1.WorkloadSpread
	for _, c := range history {
		switch o := c.After.(type) {
		case *v1beta1.WorkloadSpread:
			ws = o
		case *appsv1.ReplicaSet:
			most = max(most, *o.Spec.Replicas)
		case *corev1.Pod:
			pods[o.Name] = o
		}
		if c.After == nil {
			delete(pods, c.Key.Name)
		}
		created, is := c.After.(*corev1.Pod)
		if !is {
			continue
		}
		m, ok := rules.MatchedOf(created)
		if before, was := c.Before.(*corev1.Pod); !ok || was && !isAdmitted(before, created) {
			continue
		}
		limits, err := rules.Limits(ws, most)
		if err != nil {
			panic(err)
		}
		if limit, n := limits[rules.IndexOf(ws, m.Subset)], given(pods, created, m); limit >= 0 && n > int(limit) {
			out = append(out, invariant.Violation{Rule: overfull, Revision: c.Revision, Text: fmt.Sprintf("%d Pods in %s, want %d at most", n, m.Subset, limit)})
		}
	}
	return out
}

// isAdmitted reports whether a Pod that waited was given room.
func isAdmitted(before, after *corev1.Pod) bool {
	return rules.IsGated(before) && !rules.IsGated(after)
}

// given returns how many active Pods of the version of one were given to its subset when they were made.
func given(pods map[string]*corev1.Pod, like *corev1.Pod, of rules.Matched) (n int) {
	kind := rules.Reference{GroupKind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet").GroupKind()}.GroupKind
	for _, p := range pods {
		m, ok := rules.MatchedOf(p)
		if ok && m.Subset == of.Subset && m.UID != "" && pod.IsActive(p) && rules.VersionOf(kind, p) == rules.VersionOf(kind, like) {
			n++
		}
	}
	return n
}

// converged returns what is not as it should be now that the cluster is at rest.
func (s *scenario) converged() []string {
	var problems []string
	ws := s.spread()
	want := ws.DeepCopy()
	fill, err := rules.FillOf(ws, *s.owner().Spec.Replicas)
	if err != nil {
		return []string{err.Error()}
	}
	rules.Expire(want, s.Cluster.Now().Add(time.Hour))
	rules.Recount(want, fill.Limits, s.Pods(), nil)
	rules.Tally(want, fill.Limits, s.Pods())
	if diff := cmp.Diff(want.Status, ws.Status); diff != "" {
		problems = append(problems, "the status (-want +got):\n"+diff)
	}
	costs := rules.Costs(ws, fill, s.Pods(), s.latest())
	for _, p := range s.Pods() {
		if !pod.IsActive(p) {
			continue
		}
		if rules.IsGated(p) {
			problems = append(problems, "Pod "+p.Name+" waits at its gate")
		}
		if _, claimed := rules.MatchedOf(p); !claimed && p.Spec.NodeName != "" {
			problems = append(problems, "Pod "+p.Name+" runs and is in no subset")
		}
		if cost, ok := rules.CostOf(p); !ok || cost != costs[p] {
			problems = append(problems, fmt.Sprintf("Pod %s costs %d, want %d", p.Name, cost, costs[p]))
		}
	}
	return problems
}

// latest is the version of the first Pod, as the controller has it of a ReplicaSet.
func (s *scenario) latest() string {
	var first *corev1.Pod
	for _, p := range s.Pods() {
		if first == nil || p.Name < first.Name {
			first = p
		}
	}
	if first == nil {
		return ""
	}
	return first.Labels["pod-template-hash"]
}

// quiet is a context whose logs nobody reads.
func quiet() context.Context { return logr.NewContext(context.Background(), logr.Discard()) }
