package disruptions

import (
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	rules "github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// TestPromises runs all controllers under one budget in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(mistake{}).Hold(t) }

// TestWhatBrokeOnceHolds lets clusters live again in which budgets were overspent: by numbers of a cache that did not know all Pods yet, and by
// Pods that no budget needed a moment before. In 5055 and 5722 a Pod was gone before the cache had heard of its creation; in 496 the controller
// knew of a change of replicas, and not of a Pod that was created before it.
func TestWhatBrokeOnceHolds(t *testing.T) {
	suite(mistake{}).Again(t, 1370, 2158, 2433, 3200, 3283, 5632, 5055, 5722, 496)
}

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(mistake{}).Repeat(t) }

// TestMistakesShow makes mistakes on purpose: the check must see each of them.
func TestMistakesShow(t *testing.T) {
	t.Run("it permits by Pods of a cache that is behind", func(t *testing.T) { suite(mistake{countsByCache: true}).Break(t, overspent) })
	t.Run("it records no permission", func(t *testing.T) { suite(mistake{forgets: true}).Break(t, overspent) })
	t.Run("its clock is an hour behind", func(t *testing.T) { suite(mistake{late: time.Hour}).Break(t, overspent) })
}

func suite(wrong mistake) promises.Suite {
	return promises.Suite{Scheme: promises.Scheme(policyv1beta1.AddToScheme), Watched: watched(), Populate: func(w *promises.World) promises.Scenario {
		s := newScenario(w, wrong)
		return promises.Scenario{
			Start: s.start, Act: s.act, Relent: s.relent, Others: []func() bool{s.catchUp}, Check: check, Converged: s.converged,
		}
	}}
}

const overspent = "the budget is overspent"

// ledger is a history up to a change.
type ledger struct {
	pods     map[string]*corev1.Pod
	budget   *policyv1beta1.PodUnavailableBudget
	replicas map[string]int32
	// totals are the numbers of Pods that there should have been, from a revision on.
	totals []total
	// floor is how many Pods have to stay available: the least that was desired since there were as many, or that the controller can have
	// taken for it.
	floor int32
	// seen is the revision up to which the controller had seen the workloads when it last computed the numbers, and counted the number of
	// Pods that it took for wanted then. It may be one that never was: Pods of one revision, and workloads of another.
	seen    int64
	counted int32
	// serving remembers which versions of Pods are available: most do not change from one write to the next.
	serving map[*corev1.Pod]bool
}

// total is how many Pods there should be from a revision on, by workload: of those that have Pods.
type total struct {
	revision int64
	replicas map[string]int32
	known    map[string]bool
}

// pods returns the total of all workloads.
func (t total) pods() (sum int32) {
	for of := range t.known {
		sum += t.replicas[of]
	}
	return sum
}

// check returns the writes that took more Pods out of service than the budget allows, whoever made them. No Pod fails by itself here.
func check(history []simulate.Change) []invariant.Violation {
	l := &ledger{pods: map[string]*corev1.Pod{}, replicas: map[string]int32{}, serving: map[*corev1.Pod]bool{}}
	var out []invariant.Violation
	for _, c := range history {
		before := l.available(nil)
		l.record(c)
		if l.budget == nil {
			continue
		}
		desired := l.desired(l.total().pods())
		if l.available(l.budget) >= desired {
			l.floor = desired
		}
		l.floor = min(l.floor, desired, l.desired(l.counted))
		for i, t := range l.totals {
			if i+1 == len(l.totals) || l.totals[i+1].revision > l.seen {
				l.floor = min(l.floor, l.desired(t.pods()))
			}
		}
		if now := l.available(nil); now < before && now < l.floor && !c.Late {
			out = append(out, invariant.Violation{
				Rule: overspent, Revision: c.Revision, Text: fmt.Sprintf("%d Pods are available after %s has written %s, want %d", now, c.Actor, c.Key.Name, l.floor),
			})
		}
	}
	return out
}

func (l *ledger) record(c simulate.Change) {
	switch o := c.After.(type) {
	case *v1beta1.CloneSet:
		l.replicas[o.Name] = *o.Spec.Replicas
	case *v1beta1.StatefulSet:
		l.replicas[o.Name] = *o.Spec.Replicas
	case *policyv1beta1.PodUnavailableBudget:
		l.budget = o
		if c.Pass != nil && c.Pass.Owner.Name == o.Name {
			l.count(c.Pass.Seen)
		}
	case *corev1.Pod:
		l.pods[o.Name] = o
	case nil:
		if c.Key.Kind.Kind == "Pod" {
			delete(l.pods, c.Key.Name)
		}
	}
	now, last := l.total(), l.totalAt(c.Revision)
	if !maps.Equal(now.replicas, last.replicas) || !maps.Equal(now.known, last.known) {
		now.revision = c.Revision
		l.totals = append(l.totals, now)
	}
}

// count notes what the controller computes that has seen each kind up to a revision.
func (l *ledger) count(seen map[schema.GroupVersionKind]int64) {
	pods := seen[corev1.SchemeGroupVersion.WithKind("Pod")]
	clonesSeen, statefulSeen := seen[v1beta1.GroupVersion.WithKind("CloneSet")], seen[v1beta1.GroupVersion.WithKind("StatefulSet")]
	l.seen = min(clonesSeen, statefulSeen, pods)
	l.counted = total{known: l.totalAt(pods).known, replicas: map[string]int32{
		clones: l.totalAt(clonesSeen).replicas[clones], stateful: l.totalAt(statefulSeen).replicas[stateful],
	}}.pods()
}

// totalAt returns the total as it was at a revision.
func (l *ledger) totalAt(revision int64) (at total) {
	for _, t := range l.totals {
		if t.revision <= revision {
			at = t
		}
	}
	return at
}

// total returns how many Pods there should be of the workloads that have any: of others a budget that selects Pods does not know.
func (l *ledger) total() total {
	t := total{replicas: maps.Clone(l.replicas), known: map[string]bool{}}
	for _, p := range l.pods {
		if pod.IsActive(p) {
			t.known[p.Labels["of"]] = true
		}
	}
	return t
}

// desired returns how many of a total are to stay available.
func (l *ledger) desired(total int32) int32 {
	desired, err := rules.Desired(l.budget, total)
	if err != nil {
		panic(err)
	}
	return min(desired, total)
}

// available returns how many Pods are available, less those whose disruption a budget has permitted.
func (l *ledger) available(less *policyv1beta1.PodUnavailableBudget) (n int32) {
	for _, p := range l.pods {
		is, known := l.serving[p]
		if !known {
			is = rules.Available(p)
			l.serving[p] = is
		}
		if is && (less == nil || !rules.LedgerOf(&less.Status).Holds(p)) {
			n++
		}
	}
	return n
}
