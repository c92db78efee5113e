package defaults

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/convert"
)

// TestSidecarSetDefaultsOfTheOriginal fills in what users applied to a cluster of the original and compares with what was stored there, hashes
// included.
func TestSidecarSetDefaultsOfTheOriginal(t *testing.T) {
	data, err := os.ReadFile("../convert/testdata/sidecarsets.json")
	if err != nil {
		t.Fatal(err)
	}
	var stored []v1beta1.SidecarSet
	decode(t, data, &stored)
	for i := range stored {
		want := &stored[i]
		var got v1beta1.SidecarSet
		decode(t, []byte(want.Annotations[corev1.LastAppliedConfigAnnotation]), &got)
		got.Spec.Containers[0].Image = want.Spec.Containers[0].Image // the second was patched
		if err := SidecarSet(&got); err != nil {
			t.Fatal(err)
		}
		same(t, want.Spec, got.Spec)
		for _, key := range []string{"kruise.io/sidecarset-hash", "kruise.io/sidecarset-hash-without-image"} {
			if got.Annotations[key] != want.Annotations[key] {
				t.Errorf("%s is %s, want %s", key, got.Annotations[key], want.Annotations[key])
			}
		}
	}
	if len(stored) != 2 {
		t.Errorf("compared %d, want 2", len(stored))
	}
}

func TestSidecarsKeepWhatHasNeverHadDefaults(t *testing.T) {
	grpc := func() *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1}}}
	}
	set := &v1beta1.SidecarSet{}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{
		Name: "a", Image: "a", StartupProbe: grpc(), LivenessProbe: grpc(),
	}}}
	if err := SidecarSet(set); err != nil {
		t.Fatal(err)
	}
	got := set.Spec.Containers[0]
	if diff := cmp.Diff(grpc(), got.StartupProbe); diff != "" {
		t.Errorf("startup probe (-want +got):\n%s", diff)
	}
	if got.LivenessProbe.PeriodSeconds != 10 || got.LivenessProbe.GRPC.Service != nil {
		t.Errorf("liveness probe %+v", got.LivenessProbe)
	}
	if got.ImagePullPolicy != corev1.PullAlways {
		t.Errorf("an image without a tag is pulled %s, want Always", got.ImagePullPolicy)
	}
}

func TestTheFirstSpellingOfTheStrategy(t *testing.T) {
	limit := func(n int32) *intstr.IntOrString {
		if n == 0 {
			return nil
		}
		v := intstr.FromInt32(n)
		return &v
	}
	set := func(first, now int32) *v1alpha1.SidecarSet {
		s := &v1alpha1.SidecarSet{}
		if first != 0 {
			s.Spec.Strategy = &v1alpha1.SidecarSetDeprecatedStrategy{RollingUpdate: &v1alpha1.SidecarSetDeprecatedRollingUpdate{MaxUnavailable: limit(first)}}
		}
		s.Spec.UpdateStrategy.MaxUnavailable = limit(now)
		return s
	}
	for name, tc := range map[string]struct {
		old, new *v1alpha1.SidecarSet
		want     int
	}{
		"a new object has it alone":                  {nil, set(2, 0), 2},
		"a new object has both":                      {nil, set(2, 3), 3},
		"a new object has neither":                   {nil, set(0, 0), 1},
		"it was changed, its successor was not":      {set(2, 2), set(3, 2), 3},
		"both were changed":                          {set(2, 2), set(3, 4), 4},
		"its successor was changed":                  {set(2, 2), set(2, 5), 5},
		"neither was changed":                        {set(2, 5), set(2, 5), 5},
		"it was removed":                             {set(2, 5), set(0, 5), 5},
		"it was changed in an object replaced whole": {set(2, 2), set(3, 0), 3},
		"it came to an object that did not have it":  {set(0, 1), set(2, 1), 2},
	} {
		t.Run(name, func(t *testing.T) {
			SidecarSetFirstSpelling(tc.new, tc.old)
			var stored v1beta1.SidecarSet
			convert.SidecarSetToHub(tc.new, &stored)
			if err := SidecarSet(&stored); err != nil {
				t.Fatal(err)
			}
			if got := stored.Spec.UpdateStrategy.MaxUnavailable.IntValue(); got != tc.want {
				t.Errorf("maxUnavailable %d, want %d", got, tc.want)
			}
		})
	}
	yes, no := true, false
	paused := &v1alpha1.SidecarSet{Spec: v1alpha1.SidecarSetSpec{Paused: &yes}}
	SidecarSetFirstSpelling(paused, nil)
	if !paused.Spec.UpdateStrategy.Paused {
		t.Error("paused in the first spelling does not pause")
	}
	resumed := paused.DeepCopy()
	resumed.Spec.Paused = &no
	SidecarSetFirstSpelling(resumed, paused)
	if resumed.Spec.UpdateStrategy.Paused {
		t.Error("resuming in the first spelling does not resume")
	}
}
