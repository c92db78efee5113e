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

// guard is a budget of all but one of 4 Pods.
func guard() *v1beta1.PodUnavailableBudget {
	b, total := seen(nil).Budget, int32(4)
	b.UID, b.Spec.ProtectTotalReplicas, b.Spec.Selector = "guard", &total, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
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
