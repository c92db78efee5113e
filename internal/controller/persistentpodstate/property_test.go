package persistentpodstate

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/podstate"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	ruleSpec    = "the spec is its user's"
	ruleDeleted = "a Pod is only deleted that was bound by a record which is gone, and that has no node"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestWhatBrokeOnceHolds lets clusters live again in which a controller began to lead with a cache that was older than what the one before it had done.
func TestWhatBrokeOnceHolds(t *testing.T) { suite(Plan).Again(t, 2694, 19244, 20229) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// TestMistakesShow has the planner make mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistake func(*Snapshot)
		want    string
	}{
		"it deletes a Pod before its record": {func(s *Snapshot) {
			s.State = s.State.DeepCopy()
			s.State.Status.PodStates = nil
		}, ruleDeleted},
		"it never gives a Pod up": {func(s *Snapshot) {
			s.State = s.State.DeepCopy()
			s.State.Spec.Fallback = nil
		}, "waits for its place though"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(func(s Snapshot) plan.Plan { tc.mistake(&s); return Plan(s) }).Break(t, tc.want)
		})
	}
	t.Run("it does not hear of Pods", func(t *testing.T) {
		t.Parallel()
		deaf := suite(Plan)
		deaf.Mistake.IsDeaf = func(e simulate.Event) bool { _, of := e.New.(*corev1.Pod); return of }
		deaf.Break(t, "is recorded as")
	})
}

// suite is the controller, with a planner that may be mistaken, in clusters in which a StatefulSet and its Pods come and go.
func suite(planned func(Snapshot) plan.Plan) promises.Suite {
	return promises.Suite{
		Scheme:  promises.Scheme(),
		Watched: []client.Object{&v1beta1.PersistentPodState{}, &corev1.Pod{}, &corev1.Node{}, &appsv1.StatefulSet{}, &v1beta1.StatefulSet{}, &v1beta1.CloneSet{}},
		Populate: func(w *promises.World) promises.Scenario {
			s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}}
			for i := range 10 {
				s.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", i), Labels: map[string]string{host: fmt.Sprint("node-", i)}}})
			}
			s.createState()
			for range 10 {
				s.act()
			}
			same := func(v Snapshot) Snapshot { return v }
			planner := promises.Planner[Snapshot, Snapshot]{Plan: planned, Take: same, Snapshot: same}
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					k := Kind(Options{StartOrdinal: true})
					k.Plan = planner.In(w)
					return promises.Start(k, c.Runtime(), c)
				},
				Act: s.act, Relent: func() {}, Others: []func() bool{s.schedule}, Check: check, Converged: s.converged,
			}
		},
	}
}

// check returns the promises that the controller has broken in a history.
func check(history []simulate.Change) []invariant.Violation {
	var out []invariant.Violation
	recorded := map[string]bool{}
	broken := func(c simulate.Change, rule, text string) {
		out = append(out, invariant.Violation{Rule: rule, Revision: c.Revision, Text: text})
	}
	for _, c := range history {
		switch before := c.Before.(type) {
		case *v1beta1.PersistentPodState:
			after, still := c.After.(*v1beta1.PersistentPodState)
			if c.Pass != nil && (!still || !equality.Semantic.DeepEqual(before.Spec, after.Spec)) {
				broken(c, ruleSpec, before.Name)
			}
			if still {
				clear(recorded)
				for name := range after.Status.PodStates {
					recorded[name] = true
				}
			}
		case *corev1.Pod:
			after, still := c.After.(*corev1.Pod)
			deletes := !still || after.DeletionTimestamp != nil && before.DeletionTimestamp == nil
			if c.Pass != nil && (!deletes || before.Spec.NodeName != "" || before.Annotations[keys.InjectedPodState] == "" || recorded[before.Name]) {
				broken(c, ruleDeleted, before.Name)
			}
		}
	}
	return out
}

// scenario is users with a StatefulSet, whose Pods they make and delete themselves, and a scheduler that finds a node for some.
type scenario struct{ promises.User }

func (s *scenario) create(object client.Object) {
	_, _ = s.Cluster.Create(promises.UserActor, object) // the name may be taken
}

func (s *scenario) createState() {
	state := &v1beta1.PersistentPodState{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pps"}}
	state.Spec.TargetRef = v1beta1.PersistentPodStateTarget{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}
	state.Spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: []string{host}}
	state.Spec.Fallback = &v1beta1.PersistentPodStateFallback{AfterSeconds: 5, Action: v1beta1.PersistentPodStateFallbackDelete}
	if s.Chance(30) {
		state.Spec.PersistentPodStateRetentionPolicy = v1beta1.PersistentPodStateRetentionWhenDeleted
	}
	if s.Chance(30) {
		state.Spec.MaxAgeSeconds = new(int32(20))
	}
	s.create(state)
}

func (s *scenario) state() *v1beta1.PersistentPodState {
	for _, object := range s.Cluster.Of(v1beta1.GroupVersion.WithKind("PersistentPodState")) {
		return object.(*v1beta1.PersistentPodState)
	}
	return nil
}

func (s *scenario) set() *appsv1.StatefulSet {
	for _, object := range s.Cluster.Of(appsv1.SchemeGroupVersion.WithKind("StatefulSet")) {
		return object.(*appsv1.StatefulSet)
	}
	return nil
}

// act does something that a user might do at any moment.
func (s *scenario) act() {
	pods, set := s.Pods(), s.set()
	switch n := s.Rand.Intn(100); {
	case set == nil:
		s.create(&appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))},
		})
	case n < 45 || len(pods) == 0:
		s.createPod(set)
	case n < 70:
		s.Cluster.Delete(promises.UserActor, pods[s.Rand.Intn(len(pods))])
	case n < 85:
		replicas := int32(s.Rand.Intn(5))
		simulate.Update(s.Cluster, promises.UserActor, set, func(set *appsv1.StatefulSet) { set.Spec.Replicas = &replicas })
	case n < 90:
		s.Cluster.Delete(promises.UserActor, set)
	default:
		s.Meddle(pods[s.Rand.Intn(len(pods))])
	}
}

// createPod makes a Pod of the set, which has a place on a node, or else finds none where it was bound to.
func (s *scenario) createPod(set *appsv1.StatefulSet) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("web-", s.Rand.Intn(5)), OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set.Name, UID: set.UID, Controller: new(true)},
	}}}
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: s.Image()}}
	if state := s.state(); state != nil && s.Chance(40) {
		podstate.Inject(p, state, func(string, string) bool { return true }, func() *corev1.Pod { return p })
		if p.Annotations[keys.InjectedPodState] != "" {
			nodefit.Pin(&p.Spec, "nowhere") // the place is taken
		}
	}
	s.create(p)
}

// schedule says, once, that there is no node for a Pod that is bound to its place. All others get nodes from the kubelet of the simulation.
func (s *scenario) schedule() bool {
	for _, p := range s.Pods() {
		if p.Annotations[keys.InjectedPodState] == "" || p.Spec.NodeName != "" || p.DeletionTimestamp != nil ||
			pod.Condition(p, corev1.PodScheduled) != nil {
			continue
		}
		simulate.Update(s.Cluster, "scheduler", p, func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
				LastTransitionTime: metav1.NewTime(s.Cluster.Now()),
			})
		})
		return true
	}
	return false
}

// converged returns what is left undone when the cluster is at rest.
func (s *scenario) converged() []string {
	var out []string
	state, set := s.state(), s.set()
	var owner types.UID
	if set != nil {
		owner = set.UID
	}
	known := map[string]bool{}
	for _, p := range s.Pods() {
		if c := metav1.GetControllerOfNoCopy(p); c == nil || c.UID != owner {
			continue
		}
		known[p.Name] = true
		if record := state.Status.PodStates[p.Name]; pod.IsReady(p) && record.NodeName != p.Spec.NodeName {
			out = append(out, fmt.Sprintf("Pod %s on %s is recorded as %+v", p.Name, p.Spec.NodeName, record))
		}
		if _, _, waits := podstate.Unscheduled(state, p); waits {
			out = append(out, fmt.Sprintf("Pod %s waits for its place though that is given up after 5 seconds", p.Name))
		}
	}
	for name, record := range state.Status.PodStates {
		_, n, _ := podName(name)
		keeps := state.Spec.PersistentPodStateRetentionPolicy == v1beta1.PersistentPodStateRetentionWhenDeleted
		if set == nil || !known[name] && !keeps && n >= *set.Spec.Replicas {
			out = append(out, fmt.Sprintf("%s is still recorded as %+v", name, record))
		}
	}
	if state.Status.ObservedGeneration != state.Generation || int(state.Status.Recorded) != len(state.Status.PodStates) {
		out = append(out, fmt.Sprintf("the status says %+v", state.Status))
	}
	return out
}

func podName(name string) (set string, n int32, err error) {
	_, err = fmt.Sscanf(name, "web-%d", &n)
	return "web", n, err
}
