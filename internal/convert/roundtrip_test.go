package convert

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// seeds is how many objects of each kind are taken to the other version and back.
const seeds = 1000

// fromSeeds checks objects that the seeds give.
func fromSeeds(t *testing.T, check func(*testing.T, *randfill.Filler)) {
	t.Helper()
	for seed := range int64(seeds) {
		check(t, randfill.NewWithSeed(seed))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// fromBytes checks objects that any bytes give.
func fromBytes(f *testing.F, checks ...func(*testing.T, *randfill.Filler)) {
	f.Helper()
	f.Add([]byte("an object of any kind"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, check := range checks {
			check(t, randfill.NewFromGoFuzz(data))
		}
	})
}

// comesBack checks that an object comes back from the other version as it was, and that converting it leaves it alone. Settle makes of what
// was filled what can be stored.
func comesBack[A, B any](t *testing.T, from *randfill.Filler, there func(*A, *B), back func(*B, *A), settle ...func(*A)) {
	t.Helper()
	var want, got A
	var middle B
	from.Fill(&want)
	for _, settled := range settle {
		settled(&want)
	}
	before := any(&want).(interface{ DeepCopy() *A }).DeepCopy()
	there(&want, &middle)
	if diff := cmp.Diff(before, &want); diff != "" {
		t.Errorf("converting changed its source (-before +after):\n%s", diff)
	}
	back(&middle, &got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRoundTripsLoseNothing(t *testing.T) {
	fromSeeds(t, fromHub)
	fromSeeds(t, fromSpoke)
}

func FuzzRoundTrips(f *testing.F) { fromBytes(f, fromHub, fromSpoke) }

// fromHub checks that a spec of the hub version survives being read and written by a user of the older one.
func fromHub(t *testing.T, from *randfill.Filler) {
	t.Helper()
	var want, got v1beta1.CloneSet
	var middle v1alpha1.CloneSet
	filler(from).Fill(&want)
	before := want.DeepCopy()
	CloneSetFromHub(&want, &middle)
	if diff := cmp.Diff(before, &want); diff != "" {
		t.Errorf("converting changed its source (-before +after):\n%s", diff)
	}
	CloneSetToHub(&middle, &got)
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Status, got.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	for _, meta := range []*metav1.ObjectMeta{&want.ObjectMeta, &got.ObjectMeta} {
		forget(meta) // they stand for fields, which have been compared
	}
	if diff := cmp.Diff(want.ObjectMeta, got.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

func forget(meta *metav1.ObjectMeta) {
	for _, key := range fieldAnnotations() {
		meta.Annotations = without(meta.Annotations, key)
	}
	meta.Labels = without(meta.Labels, keys.ScalingExcludePreparingDelete)
}

func fieldAnnotations() []string {
	return []string{
		keys.ImagePreDownloadParallelism, keys.ImagePreDownloadTimeoutSeconds, keys.ImagePreDownloadMinUpdatedReadyPods, keys.OnDeletePodUpdatePolicy,
	}
}

// fromSpoke checks that an object of the older version comes back from storage as it was written, to the spelling of its annotations.
func fromSpoke(t *testing.T, from *randfill.Filler) {
	t.Helper()
	comesBack(t, filler(from), CloneSetToHub, CloneSetFromHub)
}

func filler(from *randfill.Filler) *randfill.Filler {
	return from.Funcs(rules()...).NilChance(0.4).NumElements(1, 3).MaxDepth(20)
}

// rules fill what has been through defaulting and validation; only such objects are stored.
func rules() []any {
	return []any{
		func(t *corev1.PodTemplateSpec, c randfill.Continue) { t.Spec.NodeName = c.String(8) },
		func(claim *corev1.PersistentVolumeClaim, c randfill.Continue) { claim.Name = c.String(8) },
		func(v *intstr.IntOrString, c randfill.Continue) { *v = intstr.FromInt32(c.Int31n(9)) },
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			c.FillNoCustom(m)
			for _, key := range fieldAnnotations() {
				m.Annotations = without(m.Annotations, key)
			}
		},
		func(s *v1beta1.CloneSetUpdateStrategy, c randfill.Continue) {
			c.FillNoCustom(s)
			policies := []v1beta1.CloneSetPodUpdatePolicyType{"", "ReCreate", "InPlaceIfPossible", "InPlaceOnly"}
			if s.Type = v1beta1.OnDeleteCloneSetStrategyType; c.Bool() {
				s.Type = v1beta1.RollingUpdateCloneSetStrategyType
				policies = policies[1:]
				if s.RollingUpdate == nil {
					s.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{}
				}
			}
			if s.RollingUpdate != nil {
				s.RollingUpdate.PodUpdatePolicy = policies[c.Intn(len(policies))]
			}
		},
		func(s *v1beta1.InPlaceUpdateStrategy, c randfill.Continue) {
			c.FillNoCustom(s)
			for _, n := range []**int32{&s.ImagePreDownloadTimeoutSeconds, &s.ImagePreDownloadMinUpdatedReadyPods} {
				if *n != nil {
					**n &= 0x7fffffff
				}
			}
		},
		fillSpoke,
	}
}

func fillSpoke(set *v1alpha1.CloneSet, c randfill.Continue) {
	c.FillNoCustom(set)
	set.TypeMeta = metav1.TypeMeta{} // who asks for a version names it
	types := []v1alpha1.CloneSetUpdateStrategyType{"ReCreate", "InPlaceIfPossible", "InPlaceOnly", "OnDelete"}
	set.Spec.UpdateStrategy.Type = types[c.Intn(len(types))]
	texts := []string{"", "5", "007", "0", "-3", "10%", "many", "99999999999"}
	parsed := false
	for _, key := range fieldAnnotations()[:3] {
		if c.Bool() {
			text := texts[c.Intn(len(texts))]
			set.Annotations = with(set.Annotations, key, text)
			parsed = parsed || parseInt32(text) != nil
		}
	}
	switch set.Spec.UpdateStrategy.Type {
	case "OnDelete":
		if c.Bool() {
			set.Annotations = with(set.Annotations, keys.OnDeletePodUpdatePolicy, "InPlaceOnly")
		}
		if s := set.Spec.UpdateStrategy.InPlaceUpdateStrategy; parsed && s != nil && s.GracePeriodSeconds == 0 {
			s.GracePeriodSeconds = 1
		}
	case "ReCreate": // an empty strategy beside annotations that fill it says nothing
		if s := set.Spec.UpdateStrategy.InPlaceUpdateStrategy; parsed && s != nil && s.GracePeriodSeconds == 0 {
			set.Spec.UpdateStrategy.InPlaceUpdateStrategy = nil
		}
	default: // in-place ways get an empty strategy by default
		if set.Spec.UpdateStrategy.InPlaceUpdateStrategy == nil {
			set.Spec.UpdateStrategy.InPlaceUpdateStrategy = &v1alpha1.InPlaceUpdateStrategy{}
		}
	}
	if c.Bool() {
		set.Labels = with(set.Labels, keys.ScalingExcludePreparingDelete, []string{"true", "false", ""}[c.Intn(3)])
	}
}
