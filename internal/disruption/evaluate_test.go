package disruption

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	rules "github.com/seed-69ecc383/kruise/internal/rules/disruption"
)

func TestPermit(t *testing.T) {
	refuses := Decision{Refused: Budget}
	type outcome struct {
		decision              Decision
		reads, writes, counts int
	}
	for name, tc := range map[string]struct {
		budget  func(*v1beta1.PodUnavailableBudget)
		allowed int32
		request Request
		setup   func(*setup)
		want    outcome
	}{
		"one is allowed": {allowed: 1, request: Request{Operation: v1beta1.PubDeleteOperation}, want: outcome{writes: 1}},
		"none is": {
			request: Request{Operation: v1beta1.PubEvictOperation}, want: outcome{decision: refuses, reads: 1},
		},
		"the cache says none, and is behind": {
			request: Request{Operation: v1beta1.PubEvictOperation},
			setup: func(c *setup) {
				c.put(budget(2))
				c.cache.behind = func() int { return 1 }
			},
			want: outcome{reads: 1, writes: 1},
		},
		"a dry run is not recorded":       {allowed: 1, request: Request{Operation: v1beta1.PubDeleteOperation, DryRun: true}},
		"a dry run is evaluated":          {request: Request{Operation: v1beta1.PubEvictOperation, DryRun: true}, want: outcome{decision: refuses, reads: 1}},
		"a user who is exempt":            {request: Request{Operation: v1beta1.PubDeleteOperation, User: "admin"}},
		"a Pod that is freed":             {request: Request{Operation: v1beta1.PubDeleteOperation, Pod: guarded(1, func(p *corev1.Pod) { p.Annotations[keys.NoProtect] = "T" })}},
		"a Pod that is freed by no truth": {request: Request{Operation: v1beta1.PubEvictOperation, Pod: guarded(1, func(p *corev1.Pod) { p.Annotations[keys.NoProtect] = "yes" })}, want: outcome{decision: refuses, reads: 1}},
		"a Pod that is not ready":         {request: Request{Operation: v1beta1.PubDeleteOperation, Pod: guarded(1, func(p *corev1.Pod) { p.Status.Conditions = nil })}},
		"a Pod that is marked already":    {request: Request{Operation: v1beta1.PubDeleteOperation, Pod: guarded(1, func(p *corev1.Pod) { p.Labels[keys.UnavailablePrefix+"x"] = "" })}},
		"the namespace is being deleted":  {request: Request{Operation: v1beta1.PubDeleteOperation}, setup: func(c *setup) { c.cache.ending = began }},
		"a namespace of this name was deleted before the Pod was created": {
			request: Request{Operation: v1beta1.PubEvictOperation}, setup: func(c *setup) { c.cache.ending = began.Add(-2 * time.Hour) },
			want: outcome{decision: refuses, reads: 1},
		},
		"a Pod of no budget": {request: Request{Operation: v1beta1.PubDeleteOperation, Pod: guarded(1, func(p *corev1.Pod) { p.Annotations = nil })}},
		"a Pod of a budget that is gone": {
			request: Request{Operation: v1beta1.PubDeleteOperation, Pod: guarded(1, func(p *corev1.Pod) { p.Annotations[keys.RelatedBudget] = "gone" })},
			want:    outcome{reads: 1},
		},
		"the first spelling of the annotation": {
			request: Request{Operation: v1beta1.PubEvictOperation, Pod: guarded(1, func(p *corev1.Pod) {
				p.Annotations = map[string]string{keys.RelatedBudgetOld: "web"}
			})},
			want: outcome{decision: refuses, reads: 1},
		},
		"the budget ignores the Pod": {
			budget: func(b *v1beta1.PodUnavailableBudget) {
				b.Spec.IgnoredPodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
			},
			request: Request{Operation: v1beta1.PubDeleteOperation},
		},
		"the budget wants no Pods": {budget: func(b *v1beta1.PodUnavailableBudget) { b.Status.DesiredAvailable = 0 }, request: Request{Operation: v1beta1.PubDeleteOperation}, want: outcome{reads: 1}},
		"the cache says that the budget wants no Pods, and is behind": {
			request: Request{Operation: v1beta1.PubEvictOperation},
			setup: func(c *setup) {
				c.put(budget(0))
				c.versions[0].Status.DesiredAvailable = 0
				c.cache.behind = func() int { return 1 }
			},
			want: outcome{decision: refuses, reads: 1},
		},
		"the budget guards only against evictions": {budget: func(b *v1beta1.PodUnavailableBudget) {
			b.Spec.ProtectOperations = []v1beta1.PubOperation{v1beta1.PubEvictOperation}
		}, request: Request{Operation: v1beta1.PubDeleteOperation}},
		"a resize is free unless it is said":        {request: Request{Operation: v1beta1.PubResizeOperation}},
		"a resize is guarded where it is an update": {request: Request{Operation: v1beta1.PubResizeOperation}, setup: func(c *setup) { c.Resizing = rules.ResizeIsUpdate }, want: outcome{decision: refuses, reads: 1}},
		"the Pod is in the ledger":                  {budget: func(b *v1beta1.PodUnavailableBudget) { b.Status.UnavailablePods = ledger(began, "web-1") }, request: Request{Operation: v1beta1.PubDeleteOperation}},
		"a former Pod of the name is in the ledger": {
			budget: func(b *v1beta1.PodUnavailableBudget) {
				b.Status.DisruptedPods = ledger(began.Add(-2*time.Hour), "web-1")
			},
			request: Request{Operation: v1beta1.PubEvictOperation}, want: outcome{decision: refuses, reads: 1},
		},
		"the cache has the Pod in a ledger whose time is over": {
			budget: func(b *v1beta1.PodUnavailableBudget) {
				b.Status.UnavailablePods = ledger(began.Add(-12*time.Second), "web-1")
			},
			request: Request{Operation: v1beta1.PubEvictOperation}, want: outcome{decision: refuses, reads: 1},
		},
		"the ledger is full": {
			allowed: 1, budget: func(b *v1beta1.PodUnavailableBudget) {
				b.Status.DisruptedPods = map[string]metav1.Time{}
				for i := range 2001 {
					b.Status.DisruptedPods[fmt.Sprintf("other-%d", i)] = metav1.NewTime(began)
				}
			},
			request: Request{Operation: v1beta1.PubDeleteOperation}, want: outcome{decision: Decision{Refused: LedgerFull}, reads: 1},
		},
		"the workload wants fewer by now": {
			request: Request{Operation: v1beta1.PubDeleteOperation},
			setup: func(c *setup) {
				c.numbers = rules.Numbers{Counts: rules.Counts{Total: 10, Desired: 9, Current: 20, Allowed: 11}}
			},
			want: outcome{reads: 1, writes: 1, counts: 1},
		},
		"the workload is gone and minAvailable is a number": {
			request: Request{Operation: v1beta1.PubDeleteOperation},
			setup: func(c *setup) {
				c.numbers = rules.Numbers{Counts: rules.Counts{Total: 0, Desired: 20, Current: 20}, Surplus: true}
			},
			want: outcome{reads: 1, counts: 1},
		},
		"the workload wants as many as before": {
			request: Request{Operation: v1beta1.PubDeleteOperation},
			setup:   func(c *setup) { c.numbers = rules.Numbers{Counts: rules.Counts{Total: 20, Desired: 20, Current: 20}} },
			want:    outcome{decision: refuses, reads: 1, counts: 1},
		},
		"the workload wants fewer by now, and the cache of Pods is behind": {
			request: Request{Operation: v1beta1.PubDeleteOperation},
			setup: func(c *setup) {
				c.numbers = rules.Numbers{Counts: rules.Counts{Total: 19, Desired: 18, Current: 19, Allowed: 1}}
				c.live = &rules.Numbers{Counts: rules.Counts{Total: 19, Desired: 18, Current: 18}}
			},
			want: outcome{decision: refuses, reads: 1, counts: 1},
		},
		"a budget whose numbers were never computed": {
			budget: func(b *v1beta1.PodUnavailableBudget) { b.Status = v1beta1.PodUnavailableBudgetStatus{} }, request: Request{Operation: v1beta1.PubUpdateOperation},
			setup: func(c *setup) { c.numbers = rules.Numbers{Counts: rules.Counts{Total: 3, Desired: 3, Current: 3}} },
			want:  outcome{decision: refuses, reads: 1, counts: 1},
		},
		"a budget that changed": {
			budget: func(b *v1beta1.PodUnavailableBudget) { b.Generation = 2 }, request: Request{Operation: v1beta1.PubUpdateOperation},
			setup: func(c *setup) {
				c.numbers = rules.Numbers{Counts: rules.Counts{Total: 3, Desired: 1, Current: 3, Allowed: 2}}
			},
			want: outcome{reads: 1, writes: 1, counts: 1},
		},
		"somebody else was first": {
			allowed: 2, request: Request{Operation: v1beta1.PubUpdateOperation},
			setup: func(c *setup) {
				c.meddle = func(s *store) { s.meddle = nil; s.put(s.last()) }
			},
			want: outcome{reads: 1, writes: 1},
		},
		"somebody else took the last one": {
			allowed: 1, request: Request{Operation: v1beta1.PubUpdateOperation},
			setup: func(c *setup) {
				c.meddle = func(s *store) { s.meddle = nil; s.put(budget(0)) }
			},
			want: outcome{decision: refuses, reads: 1},
		},
		"somebody else is always first": {
			allowed: 9, request: Request{Operation: v1beta1.PubUpdateOperation},
			setup: func(c *setup) { c.meddle = func(s *store) { s.put(s.last()) } },
			want:  outcome{decision: Decision{Refused: Contended}, reads: 4},
		},
		"Kubernetes would refuse the eviction": {
			allowed: 1, request: Request{Operation: v1beta1.PubEvictOperation}, setup: func(c *setup) { c.cache.pdbs = []policyv1.PodDisruptionBudget{pdb("k", 0)} },
			want: outcome{decision: Decision{Refused: Kubernetes, PodDisruptionBudget: "k"}},
		},
		"Kubernetes would let the Pod be evicted":       {allowed: 1, request: Request{Operation: v1beta1.PubEvictOperation}, setup: func(c *setup) { c.cache.pdbs = []policyv1.PodDisruptionBudget{pdb("k", 1)} }, want: outcome{writes: 1}},
		"Kubernetes asks nobody else about a deletion":  {allowed: 1, request: Request{Operation: v1beta1.PubDeleteOperation}, setup: func(c *setup) { c.cache.pdbs = []policyv1.PodDisruptionBudget{pdb("k", 0)} }, want: outcome{writes: 1}},
		"Kubernetes evicts no Pod that has two budgets": {allowed: 1, request: Request{Operation: v1beta1.PubEvictOperation}, setup: func(c *setup) { c.cache.pdbs = []policyv1.PodDisruptionBudget{pdb("k", 1), pdb("l", 1)} }, want: outcome{decision: Decision{Refused: Kubernetes, PodDisruptionBudget: "l"}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := budget(tc.allowed)
			if tc.budget != nil {
				tc.budget(b)
			}
			c := newSetup(b)
			if tc.setup != nil {
				tc.setup(c)
			}
			if tc.request.Pod == nil {
				tc.request.Pod = guarded(1)
			}
			decision, err := c.Evaluate(t.Context(), tc.request)
			if err != nil {
				t.Fatal(err)
			}
			decision.Budget = nil
			if got := (outcome{decision, c.reads, c.writes, c.counts}); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if recorded := rules.LedgerOf(&c.last().Status).Holds(tc.request.Pod); tc.want.writes > 0 && !recorded {
				t.Errorf("the Pod is not in the ledger: %+v", c.last().Status)
			}
		})
	}
}

func ledger(at time.Time, names ...string) map[string]metav1.Time {
	out := map[string]metav1.Time{}
	for _, name := range names {
		out[name] = metav1.NewTime(at)
	}
	return out
}

func pdb(name string, allowed int32) policyv1.PodDisruptionBudget {
	return policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}

// TestAResizeAndAnUpdateAreBackSoon: no deletion is waited for.
func TestAResizeAndAnUpdateAreBackSoon(t *testing.T) {
	for operation, deleted := range map[v1beta1.PubOperation]bool{
		v1beta1.PubUpdateOperation: false, v1beta1.PubResizeOperation: false, v1beta1.PubDeleteOperation: true, v1beta1.PubEvictOperation: true,
	} {
		b := budget(1)
		b.Spec.ProtectOperations = []v1beta1.PubOperation{operation}
		c := newSetup(b)
		if _, err := c.Evaluate(t.Context(), Request{Pod: guarded(1), Operation: operation}); err != nil {
			t.Fatal(err)
		}
		_, disrupted := c.last().Status.DisruptedPods["web-1"]
		_, unavailable := c.last().Status.UnavailablePods["web-1"]
		if disrupted != deleted || unavailable == deleted {
			t.Errorf("%s: disrupted %t, unavailable %t", operation, disrupted, unavailable)
		}
	}
}

// TestAFailureIsNoPermission: an error of the API server is passed on.
func TestAFailureIsNoPermission(t *testing.T) {
	c := newSetup(budget(1))
	c.Live = failing{c.store}
	if decision, err := c.Evaluate(t.Context(), Request{Pod: guarded(1), Operation: v1beta1.PubDeleteOperation}); err == nil || !apierrors.IsInternalError(err) {
		t.Errorf("decision %v, error %v", decision, err)
	}
}

type failing struct{ *store }

func (f failing) Status() client.SubResourceWriter { return failingStatus{} }

type failingStatus struct{ client.SubResourceWriter }

func (failingStatus) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return apierrors.NewInternalError(errors.New("etcd is away"))
}

func countOf(_ context.Context, b *v1beta1.PodUnavailableBudget) (rules.Numbers, error) {
	return rules.Numbers{Counts: rules.CountsOf(&b.Status)}, nil
}

// TestNeverMoreThanAllowed: evaluators of several processes, each with a cache that is behind, are asked all at once.
func TestNeverMoreThanAllowed(t *testing.T) {
	const evaluators, pods = 3, 40
	for round := range 20 {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		allowed := int32(random.IntN(6))
		s := newStore(budget(allowed))
		var setup []*Evaluator
		for range evaluators {
			lag := random.IntN(4)
			setup = append(setup, New(Config{
				Cached: &cache{store: s, behind: func() int { return lag }}, Live: s, Now: func() time.Time { return began }, Pause: time.Millisecond,
				Count: countOf, CountLive: countOf,
			}))
		}
		granted := make([]bool, pods)
		contended := make([]bool, pods)
		var asking sync.WaitGroup
		for n := range pods {
			evaluator := setup[random.IntN(evaluators)]
			operation := []v1beta1.PubOperation{v1beta1.PubDeleteOperation, v1beta1.PubEvictOperation, v1beta1.PubUpdateOperation}[random.IntN(3)]
			asking.Go(func() {
				decision, err := evaluator.Evaluate(context.Background(), Request{Pod: guarded(n), Operation: operation})
				if err != nil {
					t.Errorf("Pod %d: %v", n, err)
				}
				granted[n], contended[n] = decision.Allowed() && err == nil, decision.Refused == Contended
			})
		}
		asking.Wait()
		got, gaveUp := int32(0), false
		for n := range pods {
			if granted[n] {
				got++
			}
			gaveUp = gaveUp || contended[n]
			if inLedger := rules.LedgerOf(&s.last().Status).Holds(guarded(n)); inLedger != granted[n] {
				t.Errorf("round %d, seed %d: Pod %d is granted: %t, in the ledger: %t", round, seed, n, granted[n], inLedger)
			}
		}
		if got > allowed || got < allowed && !gaveUp {
			t.Errorf("round %d, seed %d: %d were granted, %d are allowed", round, seed, got, allowed)
		}
		if left := s.last().Status.UnavailableAllowed; left != allowed-got {
			t.Errorf("round %d, seed %d: %d are left, want %d", round, seed, left, allowed-got)
		}
	}
}

// TestARequestThatIsMadeUpUsesNoBudget: of what a request says only what the API server says as well counts.
func TestARequestThatIsMadeUpUsesNoBudget(t *testing.T) {
	for name, tc := range map[string]struct {
		there  *corev1.Pod
		writes int
	}{
		"the Pod is as the request says": {there: guarded(1), writes: 1},
		"there is no such Pod":           {},
		"the Pod is another one":         {there: guarded(1, func(p *corev1.Pod) { p.UID = "another" })},
		"the Pod is being deleted":       {there: guarded(1, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: began} })},
		"the Pod is not ready":           {there: guarded(1, unready)},
		"the Pod has no budget":          {there: guarded(1, unguarded)},
		"the Pod has another budget":     {there: guarded(1, func(p *corev1.Pod) { p.Annotations[keys.RelatedBudget] = "other" })},
		"the Pod is freed":               {there: guarded(1, func(p *corev1.Pod) { p.Annotations[keys.NoProtect] = "true" })},
	} {
		t.Run(name, func(t *testing.T) {
			for _, allowed := range []int32{0, 1} {
				c := newSetup(budget(allowed))
				if tc.there != nil {
					c.pods = append(c.pods, tc.there)
				}
				decision, err := c.Evaluate(t.Context(), Request{Pod: guarded(1), Unverified: true, Operation: v1beta1.PubEvictOperation})
				if refused := tc.writes > 0 && allowed == 0; err != nil || decision.Allowed() == refused || c.writes != min(tc.writes, int(allowed)) || c.looks != 1 {
					t.Errorf("%d allowed: decision %+v, error %v, %d writes, %d looks at the Pod", allowed, decision, err, c.writes, c.looks)
				}
			}
		})
	}
}

// TestAMadeUpRequestIsVerifiedAfterAllReads: a cache that is behind must not take it past the look at the Pod.
func TestAMadeUpRequestIsVerifiedAfterAllReads(t *testing.T) {
	c := newSetup(budget(1))
	c.put(budget(1))
	c.versions[0].Status.DesiredAvailable = 0
	c.cache.behind = func() int { return 1 }
	decision, err := c.Evaluate(t.Context(), Request{Pod: guarded(1), Unverified: true, Operation: v1beta1.PubEvictOperation})
	if err != nil || !decision.Allowed() || c.writes > 0 || c.looks != 1 {
		t.Errorf("decision %+v, error %v, %d writes, %d looks at the Pod", decision, err, c.writes, c.looks)
	}
}
