package podunavailablebudget

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can, beside a judge who gives permissions all the time.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestWhatBrokeOnceHolds lets clusters live again in which a controller began to lead with a cache that was older than what the one before it had done.
func TestWhatBrokeOnceHolds(t *testing.T) { suite(Plan).Again(t, 4429, 4674, 11669) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// TestMistakesShow makes mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	t.Run("it writes over what has been permitted meanwhile", func(t *testing.T) {
		suiteWith(Plan, false).Break(t, ruleLedger)
	})
	t.Run("it does not hear of Pods", func(t *testing.T) {
		s := suite(Plan)
		s.Mistake.IsDeaf = func(e simulate.Event) bool { _, is := e.New.(*corev1.Pod); return is }
		s.Break(t, "budget")
	})
	t.Run("it links nothing", func(t *testing.T) {
		suite(func(s Snapshot) plan.Plan { s.Links = nil; return Plan(s) }).Break(t, "is linked to")
	})
}

// suite is the controller in clusters with up to two budgets, one CloneSet and Pods that others make and delete.
func suite(planned func(Snapshot) plan.Plan) promises.Suite {
	return suiteWith(planned, Kind(Options{}).Exact)
}

func suiteWith(planned func(Snapshot) plan.Plan, isExact bool) promises.Suite {
	watched := []client.Object{
		&policyv1beta1.PodUnavailableBudget{}, &corev1.Pod{}, &v1beta1.CloneSet{}, &appsv1.ReplicaSet{},
	}
	return promises.Suite{Scheme: promises.Scheme(policyv1beta1.AddToScheme), Watched: watched, Populate: func(w *promises.World) promises.Scenario {
		s := newScenario(w)
		planner := promises.Planner[Snapshot, Snapshot]{
			Plan: planned, Take: func(s Snapshot) Snapshot { return s }, Snapshot: func(s Snapshot) Snapshot { return s },
		}
		return promises.Scenario{
			Start: func(c promises.Connection) simulate.Process {
				k := Kind(Options{})
				k.Plan, k.Exact = planner.In(w), isExact
				return promises.Start(k, c.Runtime(), c)
			},
			Act: s.act, Relent: func() {}, Others: []func() bool{s.expire}, Check: checkLedger, Converged: s.converged,
		}
	}}
}

const ruleLedger = "a permission is lost"

// checkLedger returns the permissions that the controller took out of a ledger although they stood: none may be lost of a Pod that is still there, active
// and has been for longer, before its time is over.
func checkLedger(history []simulate.Change) []invariant.Violation {
	var out []invariant.Violation
	pods := map[string][]simulate.Change{}
	for _, c := range history {
		if c.Key.Kind.Kind == "Pod" {
			pods[c.Key.Name] = append(pods[c.Key.Name], c)
			continue
		}
		before, _ := c.Before.(*policyv1beta1.PodUnavailableBudget)
		after, _ := c.After.(*policyv1beta1.PodUnavailableBudget)
		if before == nil || after == nil || c.Pass == nil {
			continue
		}
		check := func(was, is map[string]metav1.Time, lasts time.Duration) {
			for name, at := range was {
				if _, kept := is[name]; kept || c.Pass.Time.Sub(at.Time) >= lasts || hasEnded(pods[name], at) {
					continue
				}
				out = append(out, invariant.Violation{Revision: c.Revision, Rule: ruleLedger, Text: fmt.Sprintf("of %s, given at %s", name, at)})
			}
		}
		check(before.Status.DisruptedPods, after.Status.DisruptedPods, disruption.DisruptedFor)
		check(before.Status.UnavailablePods, after.Status.UnavailablePods, disruption.UnavailableFor)
	}
	return out
}

// hasEnded reports whether the Pod that a permission was for was ever gone, on its way, without the budget's label, or replaced since.
func hasEnded(changes []simulate.Change, at metav1.Time) bool {
	for _, c := range changes {
		p, _ := c.After.(*corev1.Pod)
		if c.Time.Before(at.Time) && c.Revision != changes[len(changes)-1].Revision {
			continue
		}
		if p == nil || !pod.IsActive(p) || p.Labels["app"] != "web" {
			return true
		}
	}
	return false
}

// scenario is a user with one CloneSet of whose Pods somebody else takes care, and with budgets that come and go.
type scenario struct {
	promises.User
	pods int
}

func newScenario(w *promises.World) *scenario {
	s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}}
	replicas := int32(2 + w.Rand.Intn(4))
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	set.Spec.Replicas = &replicas
	set.Spec.Template.Labels = map[string]string{"app": "web"}
	s.create(set)
	for range replicas {
		s.addPod()
	}
	s.addBudget()
	return s
}

func (s *scenario) create(object client.Object) client.Object {
	made, err := s.Cluster.Create(promises.UserActor, object)
	if err != nil {
		return nil // the name is taken
	}
	return made
}

func (s *scenario) set() *v1beta1.CloneSet {
	set, _ := s.Cluster.Get(simulate.Key{Kind: v1beta1.GroupVersion.WithKind("CloneSet"), Namespace: "default", Name: "web"}).(*v1beta1.CloneSet)
	return set
}

func (s *scenario) addPod() {
	s.pods++
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("web-%d", s.Rand.Intn(8)), Labels: map[string]string{"app": "web"}}}
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: s.Image()}}
	if set := s.set(); set != nil {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, v1beta1.GroupVersion.WithKind("CloneSet"))}
	}
	s.create(p)
}

func (s *scenario) addBudget() {
	b := &policyv1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: []string{"a", "b"}[s.Rand.Intn(2)]}}
	if b.Spec.TargetReference = (&policyv1beta1.TargetReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web"}); s.Chance(50) {
		b.Spec.TargetReference, b.Spec.Selector = nil, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	}
	if b.Spec.MaxUnavailable = s.Amount(3); s.Chance(40) {
		b.Spec.MinAvailable, b.Spec.MaxUnavailable = b.Spec.MaxUnavailable, nil
	}
	s.create(b)
}

func (s *scenario) budgets() []*policyv1beta1.PodUnavailableBudget {
	var out []*policyv1beta1.PodUnavailableBudget
	for _, object := range s.Cluster.Of(policyv1beta1.GroupVersion.WithKind("PodUnavailableBudget")) {
		out = append(out, object.(*policyv1beta1.PodUnavailableBudget))
	}
	return out
}

// act does something that users, workload controllers or the judge might do at any moment.
func (s *scenario) act() {
	pods, budgets := s.Pods(), s.budgets()
	switch n := s.Rand.Intn(100); {
	case n < 40 && len(budgets) > 0:
		s.permit(budgets[s.Rand.Intn(len(budgets))])
	case n < 60:
		s.addPod()
	case n < 70 && len(pods) > 0:
		s.Meddle(pods[s.Rand.Intn(len(pods))])
	case n < 75 && len(pods) > 0:
		s.label(pods[s.Rand.Intn(len(pods))])
	case n < 85 && s.set() != nil:
		replicas := int32(s.Rand.Intn(6))
		simulate.Update(s.Cluster, promises.UserActor, s.set(), func(set *v1beta1.CloneSet) { set.Spec.Replicas = &replicas })
	case n < 90 && len(budgets) > 0:
		b := budgets[s.Rand.Intn(len(budgets))]
		if s.Chance(50) {
			s.Cluster.Delete(promises.UserActor, b)
			return
		}
		simulate.Update(s.Cluster, promises.UserActor, b, func(b *policyv1beta1.PodUnavailableBudget) {
			b.Spec.MaxUnavailable, b.Spec.MinAvailable = s.Amount(3), nil
		})
	default:
		s.addBudget()
	}
}

func (s *scenario) label(p *corev1.Pod) {
	simulate.Update(s.Cluster, promises.UserActor, p, func(p *corev1.Pod) {
		switch {
		case s.Chance(50):
			p.Labels["unavailable-pod.kruise.io/drain"] = "true"
		case p.Labels["app"] == "web":
			p.Labels["app"] = "other"
		default:
			p.Labels["app"] = "web"
			delete(p.Labels, "unavailable-pod.kruise.io/drain")
		}
	})
}

// permit is the judge: of a Pod that counts it writes down that it may go, if one may, and mostly it goes.
func (s *scenario) permit(b *policyv1beta1.PodUnavailableBudget) {
	if b.Status.UnavailableAllowed <= 0 || b.Status.ObservedGeneration != b.Generation {
		return
	}
	for _, p := range s.Pods() {
		if disruption.Related(p.Annotations) != b.Name || !disruption.Available(p) || disruption.LedgerOf(&b.Status).Holds(p) {
			continue
		}
		operation := policyv1beta1.PubDeleteOperation
		if s.Chance(40) {
			operation = policyv1beta1.PubUpdateOperation
		}
		simulate.Update(s.Cluster, "judge", b, func(b *policyv1beta1.PodUnavailableBudget) {
			ledger := disruption.LedgerOf(&b.Status).With(p.Name, operation, s.Cluster.Now())
			b.Status.DisruptedPods, b.Status.UnavailablePods = ledger.Disrupted, ledger.Unavailable
			b.Status.UnavailableAllowed--
		})
		switch {
		case s.Chance(30): // nobody uses it
		case operation == policyv1beta1.PubDeleteOperation:
			s.Cluster.Delete(promises.UserActor, p)
		default:
			simulate.Update(s.Cluster, promises.UserActor, p, func(p *corev1.Pod) { p.Spec.Containers[0].Image = s.Image() })
		}
		return
	}
}

// expire lets the time of a permission go by, and reports whether there was one.
func (s *scenario) expire() bool {
	for _, b := range s.budgets() {
		if disruption.LedgerOf(&b.Status).Len() > 0 {
			s.Cluster.Sleep(time.Second)
			return true
		}
	}
	return false
}

// converged returns what the budgets and the Pods do not say as they should.
func (s *scenario) converged() []string {
	var problems []string
	budgets := s.budgets()
	set := s.set()
	for _, b := range budgets {
		var mine []*corev1.Pod
		owners := map[types.UID]bool{}
		for _, p := range s.Pods() {
			candidate := disruption.Candidate{Labels: labels.Set(p.Labels), Owners: ownersOf(p)}
			if pod.IsActive(p) && candidate.IsGuardedBy(b) {
				mine = append(mine, p)
				owners[metav1.GetControllerOf(p).UID] = true
			}
		}
		total := int32(0)
		if set != nil && (b.Spec.TargetReference != nil || owners[set.UID]) {
			total = *set.Spec.Replicas
		}
		want, err := disruption.Count(b, mine, total, disruption.LedgerOf(&b.Status))
		if got := disruption.CountsOf(&b.Status); err != nil || got != want || b.Status.ObservedGeneration != b.Generation {
			problems = append(problems, fmt.Sprintf("budget %s says %+v of generation %d, want %+v (%v)", b.Name, got, b.Status.ObservedGeneration, want, err))
		}
	}
	for _, p := range s.Pods() {
		if !pod.IsActive(p) {
			continue
		}
		want := disruption.Choose(budgets, disruption.Candidate{Labels: p.Labels, Owners: ownersOf(p)})
		got := disruption.Related(p.Annotations)
		if want != nil && (got == "" || !guards(budgets, got, p)) {
			problems = append(problems, fmt.Sprintf("Pod %s is linked to %q, want %q", p.Name, got, want.Name))
		}
	}
	return problems
}

// guards reports whether a budget of that name is there and wants the Pod.
func guards(budgets []*policyv1beta1.PodUnavailableBudget, name string, p *corev1.Pod) bool {
	for _, b := range budgets {
		if b.Name == name {
			return (disruption.Candidate{Labels: p.Labels, Owners: ownersOf(p)}).IsGuardedBy(b)
		}
	}
	return false
}

func ownersOf(p *corev1.Pod) []disruption.Reference {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return nil
	}
	return []disruption.Reference{{GroupKind: v1beta1.GroupVersion.WithKind(owner.Kind).GroupKind(), Name: owner.Name}}
}
