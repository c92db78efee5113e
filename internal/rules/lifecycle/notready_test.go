package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

const (
	byUpdate = `{"userAgent":"Lifecycle","key":"preUpdateHook"}`
	byDelete = `{"userAgent":"Lifecycle","key":"preDeleteHook"}`
	byOther  = `{"userAgent":"Other","key":"x"}`
)

func TestMarks(t *testing.T) {
	marking := &pub.Lifecycle{
		PreDelete:     &pub.LifecycleHook{MarkPodNotReady: true},
		InPlaceUpdate: &pub.LifecycleHook{MarkPodNotReady: true},
	}
	silent := &pub.Lifecycle{PreDelete: &pub.LifecycleHook{}, InPlaceUpdate: &pub.LifecycleHook{}}
	cases := map[string]struct {
		from, to  pub.LifecycleStateType
		lifecycle *pub.Lifecycle
		message   string // before
		want      string // after
		ready     corev1.ConditionStatus
	}{
		"an update is awaited":                  {"Normal", "PreparingUpdate", marking, "", "[" + byUpdate + "]", "False"},
		"an update is awaited, without a mark":  {"Normal", "PreparingUpdate", silent, "", "", "True"},
		"an update is awaited, without hooks":   {"Normal", "PreparingUpdate", nil, "", "", "True"},
		"a deletion is awaited":                 {"Normal", "PreparingDelete", marking, "[]", "[" + byDelete + "]", "False"},
		"a deletion is awaited, without a mark": {"Normal", "PreparingDelete", silent, "[]", "[]", "True"},
		"the list is sorted": {
			"Normal",
			"PreparingUpdate",
			marking,
			"[" + byOther + "]",
			"[" + byUpdate + "," + byOther + "]",
			"False",
		},
		"a mark is not made twice": {
			"Updated",
			"PreparingUpdate",
			marking,
			"[" + byUpdate + "]",
			"[" + byUpdate + "]",
			"False",
		},
		"a deletion while an update is awaited": {
			"PreparingUpdate",
			"PreparingDelete",
			marking,
			"[" + byUpdate + "]",
			"[" + byDelete + "," + byUpdate + "]",
			"False",
		},
		"the update starts": {
			"PreparingUpdate",
			"Updating",
			marking,
			"[" + byUpdate + "]",
			"[" + byUpdate + "]",
			"False",
		},
		"the update is done":                        {"Updating", "Updated", marking, "[" + byUpdate + "]", "[]", "True"},
		"the update is done, straight into service": {"Updating", "Normal", marking, "[" + byUpdate + "]", "[]", "True"},
		"the update is not wanted any more":         {"PreparingUpdate", "Normal", marking, "[" + byUpdate + "]", "[]", "True"},
		"the update is not wanted, nor the hook":    {"PreparingUpdate", "Normal", nil, "[" + byUpdate + "]", "[]", "True"},
		"the deletion is not wanted any more": {
			"PreparingDelete",
			"PreparingNormal",
			marking,
			"[" + byDelete + "," + byUpdate + "]",
			"[]",
			"True",
		},
		"others still keep it out of service": {
			"Updating",
			"Updated",
			marking,
			"[" + byUpdate + "," + byOther + "]",
			"[" + byOther + "]",
			"False",
		},
		"others keep it out of service all along": {
			"PreparingNormal",
			"Normal",
			marking,
			"[" + byOther + "]",
			"[" + byOther + "]",
			"False",
		},
		"what can't be read is written over": {
			"Normal",
			"PreparingUpdate",
			marking,
			"closed for lunch",
			"[" + byUpdate + "]",
			"False",
		},
		"what can't be read is left alone": {"Updating", "Normal", marking, "closed for lunch", "closed for lunch", "False"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := podIn(tc.from, nil)
			c := pod.Condition(p, pub.KruisePodReady)
			if c.Message = tc.message; tc.message != "" && tc.message != "[]" {
				c.Status = corev1.ConditionFalse
			}
			Enter(p, tc.to, tc.lifecycle, at(1))
			if diff := cmp.Diff(tc.want, c.Message); diff != "" {
				t.Error(diff)
			}
			if c.Status != tc.ready {
				t.Errorf("KruisePodReady is %s, want %s", c.Status, tc.ready)
			}
		})
	}
}

func TestAMarkTakesThePodOutOfServiceAtOnce(t *testing.T) {
	lc := &pub.Lifecycle{InPlaceUpdate: &pub.LifecycleHook{MarkPodNotReady: true}}
	p := podIn(pub.LifecycleStateNormal, nil)
	Enter(p, pub.LifecycleStatePreparingUpdate, lc, at(1))
	want := []corev1.PodCondition{
		{Type: pub.KruisePodReady, Status: corev1.ConditionFalse, Message: "[" + byUpdate + "]", LastTransitionTime: metav1.NewTime(at(1))},
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(0))},
		{
			Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ReadinessGatesNotReady",
			Message:            `the status of pod readiness gate "KruisePodReady" is not "True", but False`,
			LastTransitionTime: metav1.NewTime(at(1)),
		},
	}
	if diff := cmp.Diff(want, p.Status.Conditions); diff != "" {
		t.Error(diff)
	}

	ungated := podIn(pub.LifecycleStateNormal, nil)
	ungated.Spec.ReadinessGates = nil
	before := ungated.Status.DeepCopy()
	Enter(ungated, pub.LifecycleStatePreparingUpdate, lc, at(1))
	if diff := cmp.Diff(before, &ungated.Status); diff != "" {
		t.Errorf("a Pod without the gate was marked: %s", diff)
	}
}

func TestFirstReady(t *testing.T) {
	p := podIn("", nil)
	if NeedsFirstReady(p) {
		t.Error("a Pod whose gate is open needs its first readiness")
	}
	p.Status.Conditions = nil
	if !NeedsFirstReady(p) {
		t.Fatal("a new Pod does not need its first readiness")
	}
	FirstReady(p, at(1))
	want := []corev1.PodCondition{{Type: pub.KruisePodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(1))}}
	if diff := cmp.Diff(want, p.Status.Conditions); diff != "" {
		t.Error(diff)
	}
	pod.Condition(p, pub.KruisePodReady).Status = corev1.ConditionFalse
	if NeedsFirstReady(p) {
		t.Error("a gate that was closed on purpose would be opened")
	}
	if NeedsFirstReady(&corev1.Pod{}) {
		t.Error("a Pod without the gate needs its first readiness")
	}
}

func FuzzMarks(f *testing.F) {
	f.Add("[" + byUpdate + "," + byOther + "]")
	f.Add(`[{"userAgent":"Lifecycle"},{}]`)
	f.Add(`null`)
	f.Add(`{"userAgent":`)
	f.Fuzz(func(t *testing.T, message string) {
		lc := &pub.Lifecycle{InPlaceUpdate: &pub.LifecycleHook{MarkPodNotReady: true}}
		p := podIn(pub.LifecycleStateNormal, nil)
		pod.Condition(p, pub.KruisePodReady).Message = message
		before := marksOn(p)
		Enter(p, pub.LifecycleStatePreparingUpdate, lc, at(1))
		c := pod.Condition(p, pub.KruisePodReady)
		if c.Status != corev1.ConditionFalse || len(marksOn(p)) < len(before) {
			t.Fatalf("of %q the mark made %s %q", message, c.Status, c.Message)
		}
		Enter(p, pub.LifecycleStateNormal, lc, at(2))
		for _, left := range marksOn(p) {
			if left.UserAgent == userAgent && (left.Key == preUpdateKey || left.Key == preDeleteKey) {
				t.Fatalf("of %q the mark stays: %q", message, c.Message)
			}
		}
	})
}
