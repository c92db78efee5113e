package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// limited is a budget that allows so many more Pods, and counts what it is asked and what it refuses.
type limited struct {
	mu                     sync.Mutex
	allows, asked, refused int
	// takes is how long it takes to answer, and exempt the Pod that need not ask.
	takes  time.Duration
	exempt string
	// deletions are answered by their webhook.
	deletions bool
}

func (l *limited) Asked(_ context.Context, chain plan.Chain) types.NamespacedName {
	if chain[0].Object().GetName() == l.exempt {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: "default", Name: "web"}
}

func (l *limited) Permit(_ context.Context, chain plan.Chain) (string, error) {
	if l.deletions || chain[0].Object().GetName() == l.exempt {
		return "", nil
	}
	return l.answer(), nil
}

func (l *limited) answer() string {
	time.Sleep(l.takes)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if l.allows <= 0 {
		l.refused++
		return "web"
	}
	l.allows--
	return ""
}

// blank is a writer that accepts everything.
type blank struct{ Writer }

func (blank) Patch(context.Context, plan.Object, string, types.PatchType, []byte) error { return nil }

func (blank) Delete(context.Context, plan.Object, metav1.Preconditions) (string, error) {
	return "", nil
}

// budgetOf is a budget that allows so many more.
func budgetOf(allowed int32) *v1beta1.PodUnavailableBudget {
	b := &v1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	b.Status.UnavailableAllowed = allowed
	return b
}

// waiting is a rollout of many Pods under one budget.
type waiting struct {
	*bench
	*limited
	stage plan.Stage
}

func newWaiting(t *testing.T, pods int, budget *limited) *waiting {
	t.Helper()
	w := &waiting{bench: newBench(t), limited: budget}
	w.Budgets = budget
	w.Writer = &watchedWriter{Writer: blank{}, bench: w.bench} // a simulated cluster takes one write at a time
	for i := range pods {
		p := w.stored(t, fmt.Sprintf("pod-%d", i))
		action := plan.Action{Verb: plan.Update, Before: p, After: withImage(p, "app:v2"), AnyVersion: true}
		if budget.deletions {
			action = plan.Action{Verb: plan.Delete, Concern: plan.Scale, Before: p}
		}
		w.stage = append(w.stage, plan.Chain{action})
	}
	if budget.deletions {
		w.before = func(string) error {
			if budget.answer() == "" {
				return nil
			}
			err := apierrors.NewForbidden(schema.GroupResource{Resource: keys.BudgetResource}, "web", errors.New("no"))
			err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
			return err
		}
	}
	return w
}

// pass runs a pass over what is left, and returns how long until the next one.
func (w *waiting) pass(t *testing.T) time.Duration {
	t.Helper()
	outcome := w.run(t, w.stage)
	if err := outcome.Err(); err != nil {
		t.Fatal(err)
	}
	var left plan.Stage
	for i, r := range outcome.Results {
		if IsWaiting(r.Err) {
			left = append(left, w.stage[i])
		}
	}
	w.stage = left
	wait, _ := outcome.WaitFor()
	return wait
}

// TestAThousandPodsAskTheirBudgetOnce: those that wait are no questions, whatever is written at once.
func TestAThousandPodsAskTheirBudgetOnce(t *testing.T) {
	for name, deletions := range map[string]bool{"updates": false, "deletions": true} {
		for _, parallel := range []int{1, 128} {
			t.Run(fmt.Sprintf("%s, %d at once", name, parallel), func(t *testing.T) {
				w := newWaiting(t, 1000, &limited{allows: 10, deletions: deletions, takes: 100 * time.Microsecond})
				w.Parallel = parallel
				began := w.cluster.Now()
				for w.cluster.Now().Sub(began) < 2*time.Minute {
					w.cluster.Sleep(w.pass(t))
				}
				if len(w.stage) != 990 {
					t.Errorf("%d wait, want 990", len(w.stage))
				}
				// After the first pass it is asked after 1, 2, 4, 8, 16, 30 seconds and so on.
				if most := 10 + 11 + 9; w.asked > most || w.refused < 5 {
					t.Errorf("asked %d times, refused %d times in two minutes, want %d at most", w.asked, w.refused, most)
				}
				t.Logf("asked %d times, refused %d times in two minutes", w.asked, w.refused)
			})
		}
	}
}

// TestABudgetThatAllowsMoreIsAskedAtOnce: its change wakes those who wait, and they need not sit out the pause.
func TestABudgetThatAllowsMoreIsAskedAtOnce(t *testing.T) {
	w := newWaiting(t, 20, &limited{})
	for range 6 {
		w.cluster.Sleep(w.pass(t))
	}
	if wait := w.pass(t); wait != maxPause {
		t.Errorf("it waits for %s", wait)
	}
	w.allows = 3
	for _, change := range []struct {
		what          string
		before, after *v1beta1.PodUnavailableBudget
		wakes         bool
	}{
		{"it allows as little as before", budgetOf(0), budgetOf(0), false},
		{"it allows more", budgetOf(0), budgetOf(3), true},
		{"nobody waits any more", budgetOf(0), budgetOf(3), false},
	} {
		owners, err := w.BudgetChanged(t.Context(), change.before, change.after)
		if woken := len(owners) == 1; woken != change.wakes || err != nil {
			t.Errorf("%s: it wakes %v, %v", change.what, owners, err)
		}
	}
	w.pass(t)
	if len(w.stage) != 17 {
		t.Errorf("%d Pods wait, want 17", len(w.stage))
	}
	if wait := w.pass(t); wait != firstPause {
		t.Errorf("it waits for %s again", wait)
	}
}

// TestWhatMayWakeThoseWhoWait are the changes of a budget after which it may allow what it refused.
func TestWhatMayWakeThoseWhoWait(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1beta1.PodUnavailableBudget)
		want   bool
	}{
		"its ledger":      {func(b *v1beta1.PodUnavailableBudget) { b.Status.DisruptedPods = map[string]metav1.Time{"a": {}} }, false},
		"fewer available": {func(b *v1beta1.PodUnavailableBudget) { b.Status.CurrentAvailable = 3 }, false},
		"its spec":        {func(b *v1beta1.PodUnavailableBudget) { b.Generation++ }, true},
		"in force":        {func(b *v1beta1.PodUnavailableBudget) { b.Status.ObservedGeneration++ }, true},
		"fewer replicas":  {func(b *v1beta1.PodUnavailableBudget) { b.Status.TotalReplicas++ }, true},
		"fewer desired":   {func(b *v1beta1.PodUnavailableBudget) { b.Status.DesiredAvailable++ }, true},
		"surplus": {func(b *v1beta1.PodUnavailableBudget) {
			b.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSurplusPods, Status: metav1.ConditionTrue}}
		}, true},
	} {
		after := budgetOf(0)
		tc.change(after)
		if got := mayAllowMore(budgetOf(0), after); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !mayAllowMore(budgetOf(0), nil) {
		t.Error("no budget any more: it waits on")
	}
}

// TestABudgetThatChangesWhileItIsAsked is asked again soon: its event has come already.
func TestABudgetThatChangesWhileItIsAsked(t *testing.T) {
	var q questions
	web, owner := types.NamespacedName{Name: "web"}, types.NamespacedName{Name: "owner"}
	now := time.Unix(1_800_000_000, 0)
	for range 5 {
		end, wait := q.begin(web, owner, now)
		if wait > 0 {
			t.Fatalf("it waits for %s", wait)
		}
		end(&Waiting{}, now)
		_, wait = q.begin(web, owner, now)
		now = now.Add(wait)
	}
	end, _ := q.begin(web, owner, now)
	q.change(web)
	end(&Waiting{}, now)
	if _, wait := q.begin(web, owner, now); wait != firstPause {
		t.Errorf("it waits for %s", wait)
	}
	now = now.Add(firstPause)
	end, _ = q.begin(web, owner, now)
	end(nil, now)
	end(nil, now) // once counts
	if len(q.of) != 0 {
		t.Errorf("%d budgets are remembered that have not refused", len(q.of))
	}
}

// TestWhatNoBudgetHoldsGoesOn: a Pod that is not available needs none, whoever else waits.
func TestWhatNoBudgetHoldsGoesOn(t *testing.T) {
	w := newWaiting(t, 5, &limited{exempt: "pod-0"})
	w.pass(t)
	if len(w.writes) != 1 {
		t.Errorf("writes %v", w.writes)
	}
}

// TestAWriteThatBacksOffAsksNoBudget: a permission that is not used keeps others waiting.
func TestAWriteThatBacksOffAsksNoBudget(t *testing.T) {
	b, budget := newBench(t), &limited{allows: 5}
	b.Budgets = budget
	b.before = func(string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "spare", errors.New("no"))
	}
	for range 3 {
		b.run(t, plan.Stage{{{Verb: plan.Create, After: b.pod("spare"), Optional: true}, {Verb: plan.Update, Before: &corev1.Pod{}}}})
	}
	if budget.asked != 1 {
		t.Errorf("asked %d times for a write that is tried once", budget.asked)
	}
}

// timed notes how long each write may take.
type timed struct {
	blank
	may []time.Duration
}

func (w *timed) Patch(ctx context.Context, _ plan.Object, _ string, _ types.PatchType, _ []byte) error {
	deadline, _ := ctx.Deadline()
	w.may = append(w.may, time.Until(deadline).Round(time.Second))
	return nil
}

// TestAPermissionIsUsedSoonOrNotAtAll: a write that takes longer could disrupt a Pod that counts as available again.
func TestAPermissionIsUsedSoonOrNotAtAll(t *testing.T) {
	for name, tc := range map[string]struct {
		budget *limited
		first  time.Duration
	}{
		"it was asked for":     {&limited{allows: 1}, permittedFor},
		"none has to be asked": {&limited{allows: 1, exempt: "a"}, writeTimeout},
	} {
		b, w := newBench(t), &timed{}
		b.Budgets, b.Writer = tc.budget, w
		p := b.stored(t, "a")
		updating := withPhase(p, corev1.PodRunning, "updating")
		b.run(t, plan.Stage{{{Verb: plan.UpdateStatus, Before: p, After: updating}, {Verb: plan.Update, Before: updating, After: withImage(updating, "app:v2")}}})
		if len(w.may) < 2 || w.may[0] != tc.first || w.may[len(w.may)-1] != writeTimeout {
			t.Errorf("%s: writes may take %v", name, w.may)
		}
	}
}

// TestOwnersThatAreGoneWaitForNoBudget: nothing is kept of them, nor of a budget that nobody else waits for.
func TestOwnersThatAreGoneWaitForNoBudget(t *testing.T) {
	w := newWaiting(t, 2, &limited{})
	w.pass(t)
	w.Forget(w.owner)
	if owners, err := w.BudgetChanged(t.Context(), budgetOf(0), budgetOf(1)); len(owners) > 0 || len(w.questions.of) > 0 || err != nil {
		t.Errorf("a change of the budget wakes %v (%v), and %d budgets are remembered", owners, err, len(w.questions.of))
	}
}
