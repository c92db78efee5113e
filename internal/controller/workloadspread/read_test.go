package workloadspread

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/spread"
)

// totals says that every workload has ten Pods.
type totals struct{ Targets }

func (totals) Total(context.Context, *v1beta1.WorkloadSpread) (int32, error) { return 10, nil }

func (totals) Fill(_ context.Context, s *v1beta1.WorkloadSpread, total int32) (fill spread.Fill, wrong, err error) {
	fill, wrong = spread.FillOf(s, total)
	return fill, wrong, nil
}

// reads is a pass over a cache that does not show a Pod which the API server has.
func reads(t *testing.T, entry string) loop.Reads {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(scheme).WithIndex(&corev1.Pod{}, observe.BySpread, observe.SpreadKeys).
			WithIndex(&corev1.Pod{}, observe.ByController, observe.ControllerKey)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Annotations: map[string]string{
		keys.MatchedWorkloadSpread: spread.Matched{Name: "web", Subset: "a", UID: entry}.String(),
	}}}
	return loop.Reads{Reader: observe.Reader{Reader: builder().Build(), Indexed: true}, Tracked: builder().WithObjects(p).Build(), Now: now}
}

// TestALateCacheLosesNoPod: before room counts as free because a Pod did not come, the API server is asked for it.
func TestALateCacheLosesNoPod(t *testing.T) {
	for name, tc := range map[string]struct {
		age  time.Duration
		want int
	}{"in time, nobody is asked": {29 * time.Second, 0}, "too late": {30 * time.Second, 1}} {
		t.Run(name, func(t *testing.T) {
			s := newSnapshot().Spread
			s.Status.VersionedSubsetStatuses = map[string][]v1beta1.WorkloadSpreadSubsetStatus{"versionIgnored": {{
				Name: "a", CreatingPods: map[string]metav1.Time{"e": metav1.NewTime(now.Add(-tc.age))},
			}}}
			got, err := Options{Targets: totals{}}.read(t.Context(), reads(t, "e"), s)
			if err != nil || len(got.Named) != tc.want {
				t.Fatalf("%d Pods are read, want %d, error %v", len(got.Named), tc.want, err)
			}
			if status := Status(got, Plan(got), apply.Outcome{}); status.SubsetStatuses[0].MissingReplicas != 1 {
				t.Errorf("there is room for %d, want 1", status.SubsetStatuses[0].MissingReplicas)
			}
		})
	}
}

// TestACacheThatHasSeenLessCountsNothing: Pods that have left the ledger would be counted nowhere.
func TestACacheThatHasSeenLessCountsNothing(t *testing.T) {
	s := newSnapshot().Spread
	s.Status.PodVersion = "12"
	for seen, want := range map[string]error{"11": observe.ErrOutdated, "12": nil} {
		o := Options{Targets: totals{}, SeenPods: func(context.Context) (string, error) { return seen, nil }}
		if _, err := o.read(t.Context(), reads(t, ""), s); !errors.Is(err, want) {
			t.Errorf("with Pods up to %s: %v, want %v", seen, err, want)
		}
	}
}
