package disruption

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

// budgetOf reads the spec of a budget.
func budgetOf(t *testing.T, spec string) *v1beta1.PodUnavailableBudget {
	t.Helper()
	b := &v1beta1.PodUnavailableBudget{}
	if err := yaml.UnmarshalStrict([]byte(spec), &b.Spec); err != nil {
		t.Fatal(err)
	}
	return b
}

func podNamed(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, CreationTimestamp: ago(time.Hour), Labels: map[string]string{}, Annotations: map[string]string{},
	}}
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "web:1"}}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Image: "web:1", ImageID: "web@sha256:aa", ContainerID: "c1", Ready: true}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func TestOperations(t *testing.T) {
	cases := map[string]struct {
		field      []v1beta1.PubOperation
		annotation string
		want       []v1beta1.PubOperation
		resizes    bool // guarded where a resize is an update, and where it is not
		resizesOwn bool
	}{
		"nothing said":                       {want: []v1beta1.PubOperation{"DELETE", "UPDATE", "EVICT"}, resizes: true},
		"by the field":                       {field: []v1beta1.PubOperation{"EVICT"}, annotation: "DELETE", want: []v1beta1.PubOperation{"EVICT"}},
		"by the annotation":                  {annotation: "EVICT, UPDATE ", want: []v1beta1.PubOperation{"EVICT", "UPDATE"}, resizes: true},
		"an annotation that is blank":        {annotation: " ", want: []v1beta1.PubOperation{"DELETE", "UPDATE", "EVICT"}, resizes: true},
		"an annotation that can't be read":   {annotation: "EVICT,REBOOT", want: []v1beta1.PubOperation{"DELETE", "UPDATE", "EVICT"}, resizes: true},
		"resizes by themselves":              {annotation: "RESIZE", want: []v1beta1.PubOperation{"RESIZE"}, resizes: true, resizesOwn: true},
		"deletions only, resizes are free":   {annotation: "DELETE", want: []v1beta1.PubOperation{"DELETE"}},
		"a trailing comma names nothing new": {annotation: "DELETE,", want: []v1beta1.PubOperation{"DELETE", "UPDATE", "EVICT"}, resizes: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &v1beta1.PodUnavailableBudget{}
			b.Spec.ProtectOperations = tc.field
			if tc.annotation != "" {
				b.Annotations = map[string]string{keys.ProtectOperations: tc.annotation}
			}
			if diff := cmp.Diff(tc.want, Operations(b)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := Protects(b, v1beta1.PubResizeOperation, ResizeIsUpdate); got != tc.resizes {
				t.Errorf("a resize that is an update is guarded: %v", got)
			}
			if got := Protects(b, v1beta1.PubResizeOperation, ResizeIsOwn); got != tc.resizesOwn {
				t.Errorf("a resize of its own is guarded: %v", got)
			}
		})
	}
}

func TestProtectedTotal(t *testing.T) {
	cases := map[string]struct {
		field      int32
		annotation string
		want       int32
		said       bool
	}{
		"nothing said":                     {},
		"by the field":                     {field: 3, annotation: "4", want: 3, said: true},
		"by the annotation":                {annotation: " 4", want: 4, said: true},
		"an annotation that can't be read": {annotation: "four"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &v1beta1.PodUnavailableBudget{}
			if b.Annotations = map[string]string{keys.ProtectTotalReplicas: tc.annotation}; tc.field != 0 {
				b.Spec.ProtectTotalReplicas = &tc.field
			}
			if got, said := ProtectedTotal(b); said != tc.said || said && got != tc.want {
				t.Errorf("got %d, %v, want %d, %v", got, said, tc.want, tc.said)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	cases := map[string]struct {
		spec           string
		total, current int32
		want           Counts
		surplus        int32 // allowed for a deletion while there are more Pods than there should be
	}{
		"60% of 5":                       {"maxUnavailable: 60%", 5, 5, Counts{5, 2, 5, 3}, 3},
		"25% of 10 is rounded up":        {"maxUnavailable: 25%", 10, 10, Counts{10, 7, 10, 3}, 3},
		"at least 25% of 10":             {"minAvailable: 25%", 10, 10, Counts{10, 3, 10, 7}, 7},
		"1 of 4":                         {"maxUnavailable: 1", 4, 4, Counts{4, 3, 4, 1}, 1},
		"more than there are":            {"maxUnavailable: 9", 4, 4, Counts{4, 0, 4, 4}, 4},
		"more are down than may be":      {"maxUnavailable: 1", 4, 1, Counts{4, 3, 1, 0}, 0},
		"a surplus may go":               {"maxUnavailable: 1", 6, 7, Counts{6, 5, 7, 2}, 2},
		"a surplus may go one by one":    {"maxUnavailable: 1\ncapToMaxUnavailable: true", 6, 7, Counts{6, 5, 7, 1}, 2},
		"a cap says nothing to a least":  {"minAvailable: 5\ncapToMaxUnavailable: true", 6, 7, Counts{6, 5, 7, 2}, 2},
		"a capped percentage":            {"maxUnavailable: 25%\ncapToMaxUnavailable: true", 10, 20, Counts{10, 7, 20, 3}, 13},
		"scaled in from 100 to 50":       {"maxUnavailable: 10%", 50, 100, Counts{50, 45, 100, 55}, 55},
		"the workload is gone":           {"maxUnavailable: 1", 0, 4, Counts{0, 0, 4, 4}, 4},
		"gone, and 3 were to stay":       {"minAvailable: 3", 0, 3, Counts{0, 3, 3, 0}, 3},
		"scaled in below what is wanted": {"minAvailable: 5", 2, 3, Counts{2, 5, 3, 0}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := budgetOf(t, tc.spec)
			desired, err := Desired(b, tc.total)
			if err != nil {
				t.Fatal(err)
			}
			got := Counts{Total: tc.total, Desired: desired, Current: tc.current}
			if got.Allowed, err = Allowed(b, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := (Numbers{Counts: got, Surplus: true}).For(v1beta1.PubDeleteOperation).Allowed; got != tc.surplus {
				t.Errorf("%d may be deleted for the surplus, want %d", got, tc.surplus)
			}
		})
	}
}

func TestWhatCannotBeReadIsTold(t *testing.T) {
	for spec, want := range map[string]string{
		"{}":                      "neither maxUnavailable nor minAvailable is set",
		"maxUnavailable: -1":      "spec.maxUnavailable: -1 is negative: use 0 or more",
		"minAvailable: some":      `spec.minAvailable: "some" is neither a number nor a percentage such as "20%"`,
		"maxUnavailable: '1e9 %'": `spec.maxUnavailable: "1e9 %" is neither a number nor a percentage such as "20%"`,
	} {
		if _, err := Desired(budgetOf(t, spec), 4); err == nil || err.Error() != want {
			t.Errorf("%s: the error is %v, want %s", spec, err, want)
		}
	}
}

func TestAllowedIsNeverNegativeAndKeepsWhatIsDesired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := intstr.FromInt32(rapid.Int32Range(0, 200).Draw(t, "value"))
		if rapid.Bool().Draw(t, "percent") {
			value = intstr.FromString(rapid.StringMatching(`[0-9]{1,2}%`).Draw(t, "text"))
		}
		b := &v1beta1.PodUnavailableBudget{}
		if b.Spec.MaxUnavailable = &value; rapid.Bool().Draw(t, "least") {
			b.Spec.MaxUnavailable, b.Spec.MinAvailable = nil, &value
		}
		b.Spec.CapToMaxUnavailable = rapid.Bool().Draw(t, "cap")
		total, current := rapid.Int32Range(0, 300).Draw(t, "total"), rapid.Int32Range(0, 300).Draw(t, "current")
		allowed := func(current int32) int32 {
			desired, err := Desired(b, total)
			if err != nil {
				t.Fatal(err)
			}
			n, err := Allowed(b, Counts{Total: total, Desired: desired, Current: current})
			if err != nil {
				t.Fatal(err)
			}
			if n < 0 || n > 0 && current-n < desired {
				t.Fatalf("%d of %d may go where %d are desired", n, current, desired)
			}
			if b.Spec.MaxUnavailable != nil && total-desired > total {
				t.Fatalf("%d are desired of %d", desired, total)
			}
			return n
		}
		if less, more := allowed(current), allowed(current+1); more < less || more > less+1 {
			t.Fatalf("%d may go of %d, %d of one more", less, current, more)
		}
	})
}

func TestCountLeavesOutTheLedger(t *testing.T) {
	b := budgetOf(t, "maxUnavailable: 1")
	pods := []*corev1.Pod{podNamed("p1"), podNamed("p2"), podNamed("p3"), podNamed("p4")}
	got, err := Count(b, pods, 4, Ledger{}.With("p1", v1beta1.PubEvictOperation, noon))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Counts{Total: 4, Desired: 3, Current: 3, Allowed: 0}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
