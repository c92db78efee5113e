package statefulset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// TestAWriteInTheOlderVersionKeepsEveryField labels a StatefulSet in v1alpha1 that has all that this version once could not say.
func TestAWriteInTheOlderVersionKeepsEveryField(t *testing.T) {
	e := newEnv(t)
	limit := intstr.FromString("50%")
	e.create(replicas(0), claims("data"), retain("Delete", "Retain"), reserve(intstr.FromInt32(3), intstr.FromString("5-7")), grows, func(set *v1beta1.StatefulSet) {
		set.Spec.Lifecycle = &pub.Lifecycle{
			PreDelete: &pub.LifecycleHook{LabelsHandler: map[string]string{"a": "b"}, MarkPodNotReady: true},
			PreNormal: &pub.LifecycleHook{FinalizersHandler: []string{"example.com/warm"}},
		}
		set.Spec.ScaleStrategy = &v1beta1.StatefulSetScaleStrategy{MaxUnavailable: &limit}
		set.Spec.Ordinals = &v1beta1.StatefulSetOrdinals{Start: 2}
		deadline := int32(600)
		set.Spec.ProgressDeadlineSeconds = &deadline
	})
	before := e.set().Spec
	scene.Edit(e.Env, "web", &v1alpha1.StatefulSet{}, func(older *v1alpha1.StatefulSet) {
		older.Labels = map[string]string{"written": "older"}
	})
	after := e.set()
	if after.Labels["written"] != "older" {
		t.Errorf("its labels are %v", after.Labels)
	}
	if diff := cmp.Diff(before, after.Spec); diff != "" {
		t.Errorf("the spec (-before +after):\n%s", diff)
	}
}
