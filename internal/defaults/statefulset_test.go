package defaults

import (
	"encoding/json"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// TestStatefulSetDefaultsOfTheOriginal fills in what a user applied to a cluster of the original and compares with what was stored there.
func TestStatefulSetDefaultsOfTheOriginal(t *testing.T) {
	data, err := os.ReadFile("../convert/testdata/statefulsets.json")
	if err != nil {
		t.Fatal(err)
	}
	var objects []json.RawMessage
	decode(t, data, &objects)
	compared := 0
	for _, raw := range objects {
		var want, got v1beta1.StatefulSet
		decode(t, raw, &want)
		if want.Generation != 1 {
			continue
		}
		compared++
		decode(t, []byte(want.Annotations[corev1.LastAppliedConfigAnnotation]), &got)
		StatefulSet(&got, nil, Options{ClaimRetention: true, ClaimResize: true})
		same(t, want.Spec, got.Spec)
	}
	if compared != 1 {
		t.Errorf("compared %d recorded objects, want 1", compared)
	}
}

func TestStatefulSet(t *testing.T) {
	zero, one := int32(0), intstr.FromInt32(1)
	rolling := func(change func(*v1beta1.RollingUpdateStatefulSetStrategy)) v1beta1.StatefulSetUpdateStrategy {
		r := &v1beta1.RollingUpdateStatefulSetStrategy{Partition: &zero, MaxUnavailable: &one, MinReadySeconds: &zero, PodUpdatePolicy: "ReCreate"}
		if change != nil {
			change(r)
		}
		return v1beta1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: r}
	}
	gate := []corev1.PodReadinessGate{{ConditionType: pub.InPlaceUpdateReady}}
	inPlace := v1beta1.StatefulSetUpdateStrategy{RollingUpdate: &v1beta1.RollingUpdateStatefulSetStrategy{PodUpdatePolicy: "InPlaceIfPossible"}}
	for name, tc := range map[string]struct {
		in    v1beta1.StatefulSetUpdateStrategy
		old   *v1beta1.StatefulSet
		want  v1beta1.StatefulSetUpdateStrategy
		gates []corev1.PodReadinessGate
	}{
		"nothing said means recreating one by one": {want: rolling(nil)},
		"what is said stays": {
			in:   v1beta1.StatefulSetUpdateStrategy{RollingUpdate: &v1beta1.RollingUpdateStatefulSetStrategy{Paused: true}},
			want: rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) { r.Paused = true }),
		},
		"nothing is added that OnDelete would not take": {
			in:   v1beta1.StatefulSetUpdateStrategy{Type: "OnDelete"},
			want: v1beta1.StatefulSetUpdateStrategy{Type: "OnDelete"},
		},
		"a new object that updates in place gets the gate for it": {
			in:    inPlace,
			want:  rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) { r.PodUpdatePolicy = "InPlaceIfPossible" }),
			gates: gate,
		},
		"an old one does not: that would recreate its Pods": {
			in:   inPlace,
			old:  &v1beta1.StatefulSet{},
			want: rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) { r.PodUpdatePolicy = "InPlaceIfPossible" }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := v1beta1.StatefulSet{Spec: v1beta1.StatefulSetSpec{UpdateStrategy: *tc.in.DeepCopy()}}
			StatefulSet(&set, tc.old, Options{TemplateNoDefaults: true})
			same(t, tc.want, set.Spec.UpdateStrategy)
			same(t, tc.gates, set.Spec.Template.Spec.ReadinessGates)
			again := *set.DeepCopy()
			StatefulSet(&again, &set, Options{TemplateNoDefaults: true})
			same(t, set, again)
		})
	}
}

func TestStatefulSetClaimTemplatesGetTheirModeAsInKubernetes(t *testing.T) {
	set := &v1beta1.StatefulSet{}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	StatefulSet(set, nil, Options{})
	claim := set.Spec.VolumeClaimTemplates[0]
	if claim.Spec.VolumeMode == nil || *claim.Spec.VolumeMode != corev1.PersistentVolumeFilesystem || claim.Status.Phase != corev1.ClaimPending {
		t.Errorf("the claim template is %+v", claim)
	}
}
