package podunavailablebudget

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
)

// lists counts the lists that are read live.
type lists struct {
	client.Reader
	of int
}

func (l *lists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	l.of++
	return l.Reader.List(ctx, list, options...)
}

// views are a cache that is behind and what there is.
type views struct {
	cached client.Reader
	live   *lists
}

func viewsOf(behind, there []*corev1.Pod) views {
	reader := func(pods []*corev1.Pod) client.Reader {
		b := fake.NewClientBuilder().WithScheme(promises.Scheme(v1beta1.AddToScheme)).WithIndex(&corev1.Pod{}, byBudget, func(object client.Object) []string {
			return []string{disruption.Related(object.GetAnnotations())}
		})
		for _, p := range pods {
			b = b.WithObjects(p)
		}
		return b.Build()
	}
	return views{cached: reader(behind), live: &lists{Reader: reader(there)}}
}

func (v views) reads() loop.Reads {
	return loop.Reads{Reader: observe.Reader{Reader: v.cached, Indexed: true}, Tracked: v.live, Now: noon}
}

func podsOf(change func(int, *corev1.Pod)) []*corev1.Pod {
	var pods []*corev1.Pod
	for i, name := range []string{"p0", "p1", "p2", "p3"} {
		p := availablePod(name)
		p.Labels = map[string]string{"app": "web"}
		change(i, p)
		pods = append(pods, p)
	}
	return pods
}

// guard is a budget of all but one of 4 Pods, by whose status nothing is allowed.
func guard() *v1beta1.PodUnavailableBudget {
	b, total := seen(nil).Budget, int32(4)
	b.UID, b.Spec.ProtectTotalReplicas, b.Spec.Selector = "guard", &total, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	b.Status.ObservedGeneration, b.Status.DesiredAvailable = b.Generation, 3
	return b
}

func allowed(t *testing.T, s Snapshot, err error) int32 {
	t.Helper()
	counts, countErr := s.counts()
	if err != nil || countErr != nil {
		t.Fatal(err, countErr)
	}
	return counts.Allowed
}

// TestAPermissionThatEndsByTimeIsLookedAt: to a cache that is far behind, an update that takes long has not begun.
func TestAPermissionThatEndsByTimeIsLookedAt(t *testing.T) {
	available := podsOf(func(int, *corev1.Pod) {})
	updating := podsOf(func(i int, p *corev1.Pod) {
		if i == 1 {
			p.Status.Conditions[0].Status = corev1.ConditionFalse
		}
	})
	for name, tc := range map[string]struct {
		there []*corev1.Pod
		want  int32
	}{
		"the update is under way": {updating, 0}, "the Pod is gone": {append(available[:1:1], available[2:]...), 0}, "nothing was done": {available, 1},
	} {
		b := guard()
		b.Status.UnavailableAllowed = 1
		b.Status.UnavailablePods = map[string]metav1.Time{"p1": ago(disruption.UnavailableFor + time.Second)}
		s, err := Kind(Options{}).Read(t.Context(), viewsOf(available, tc.there).reads(), b)
		if got := allowed(t, s, err); got != tc.want {
			t.Errorf("%s: %d are allowed, want %d", name, got, tc.want)
		}
	}
}

// TestANewLeaderLooksBeforeItPermitsMore: its cache may be older than what the leader before it did by.
func TestANewLeaderLooksBeforeItPermitsMore(t *testing.T) {
	behind := podsOf(func(int, *corev1.Pod) {})
	k, v := Kind(Options{}), viewsOf(behind, behind[1:])
	s, err := k.Read(t.Context(), v.reads(), guard())
	if got := allowed(t, s, err); got != 0 || v.live.of == 0 {
		t.Errorf("%d are allowed after %d live lists", got, v.live.of)
	}
	v = viewsOf(behind, behind)
	s, err = k.Read(t.Context(), v.reads(), guard())
	if got := allowed(t, s, err); got != 1 || v.live.of != 0 {
		t.Errorf("once it has looked, %d are allowed after %d live lists", got, v.live.of)
	}
}

// TestWhatACacheMayNotKnowIsReadLive: the caches of Pods and workloads each lag for themselves, and not all disruptions are in the ledger.
func TestWhatACacheMayNotKnowIsReadLive(t *testing.T) {
	all := podsOf(func(int, *corev1.Pod) {})
	for name, tc := range map[string]struct {
		behind []*corev1.Pod
		change func(*v1beta1.PodUnavailableBudget)
		live   bool
	}{
		"the numbers are those of the status": {},
		"a Pod is back":                       {change: func(b *v1beta1.PodUnavailableBudget) { b.Status.UnavailableAllowed = 0 }},
		"a Pod is out of service":             {behind: all[1:]},
		"more Pods are to stay available":     {change: func(b *v1beta1.PodUnavailableBudget) { b.Status.DesiredAvailable, b.Status.UnavailableAllowed = 2, 2 }},
		"fewer Pods are":                      {change: func(b *v1beta1.PodUnavailableBudget) { b.Status.DesiredAvailable = 4 }, live: true},
		"fewer are, and the cache has none of them": {
			behind: all[:0], change: func(b *v1beta1.PodUnavailableBudget) { b.Status.DesiredAvailable = 4 }, live: true,
		},
		"none was needed, so none is in the ledger": {
			change: func(b *v1beta1.PodUnavailableBudget) { b.Status.DesiredAvailable, b.Status.UnavailableAllowed = 0, 0 }, live: true,
		},
		"none was needed, and fewer are allowed now": {
			change: func(b *v1beta1.PodUnavailableBudget) { b.Status.DesiredAvailable, b.Status.UnavailableAllowed = 0, 4 }, live: true,
		},
		"another spec guarded them": {change: func(b *v1beta1.PodUnavailableBudget) { b.Generation++ }, live: true},
	} {
		t.Run(name, func(t *testing.T) {
			k := Kind(Options{})
			b := guard()
			if s, err := k.Read(t.Context(), viewsOf(all, all).reads(), b); allowed(t, s, err) != 1 { // a leader who has looked before
				t.Fatal("1 is allowed of 4 with maxUnavailable 1")
			}
			b.Status.CurrentAvailable, b.Status.UnavailableAllowed = 4, 1
			if tc.change != nil {
				tc.change(b)
			}
			behind := all
			if tc.behind != nil {
				behind = tc.behind
			}
			v := viewsOf(behind, all)
			s, err := k.Read(t.Context(), v.reads(), b)
			if got := v.live.of > 0; got != tc.live || got != s.Live || err != nil {
				t.Errorf("%d live lists, error %v, want live: %t", v.live.of, err, tc.live)
			}
		})
	}
}

// TestALiveReadKeepsTheLedger: the next pass is by a cache to which a Pod that is gone may still be available.
func TestALiveReadKeepsTheLedger(t *testing.T) {
	all := podsOf(func(int, *corev1.Pod) {})
	b := guard()
	b.Generation++
	b.Status.DisruptedPods = map[string]metav1.Time{"p0": ago(time.Second)}
	s, err := Kind(Options{}).Read(t.Context(), viewsOf(all, all[1:]).reads(), b)
	if err != nil || !s.Live {
		t.Fatalf("live: %t, %v", s.Live, err)
	}
	decided := Plan(s)
	b.Status = Status(s, decided, apply.Outcome{})
	if _, kept := b.Status.DisruptedPods["p0"]; !kept || decided.Recheck > recheckLive || decided.Recheck == 0 {
		t.Fatalf("the ledger is %v, the next look in %s", b.Status.DisruptedPods, decided.Recheck)
	}
	s, err = Kind(Options{}).Read(t.Context(), viewsOf(all, all[1:]).reads(), b)
	if got := allowed(t, s, err); got != 0 {
		t.Errorf("by the cache %d are allowed, want 0", got)
	}
}

// TestAPermissionStaysWhileTheCacheHasThePod: also when its time is over, and the Pod is gone.
func TestAPermissionStaysWhileTheCacheHasThePod(t *testing.T) {
	all := podsOf(func(int, *corev1.Pod) {})
	b := guard()
	b.Status.DisruptedPods = map[string]metav1.Time{"p0": ago(time.Minute)}
	for range 2 {
		s, err := Kind(Options{}).Read(t.Context(), viewsOf(all, all[1:]).reads(), b)
		if got := allowed(t, s, err); got != 0 {
			t.Fatalf("%d are allowed, want 0", got)
		}
		b.Status = Status(s, Plan(s), apply.Outcome{})
	}
}
