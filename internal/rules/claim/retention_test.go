package claim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/test/kit/build"
)

func TestDeletedWith(t *testing.T) {
	for name, tc := range map[string]struct {
		r               Retention
		live, condemned DeletedWith
	}{
		"retain always":              {Retention{}, DeletedWithNothing, DeletedWithNothing},
		"with the workload":          {Retention{WithWorkload: true}, DeletedWithWorkload, DeletedWithWorkload},
		"with a Pod that is removed": {Retention{WithPod: true}, DeletedWithNothing, DeletedWithPod},
		"with whichever goes first":  {Retention{WithWorkload: true, WithPod: true}, DeletedWithWorkload, DeletedWithPod},
	} {
		t.Run(name, func(t *testing.T) {
			if live, condemned := tc.r.DeletedWith(true), tc.r.DeletedWith(false); live != tc.live || condemned != tc.condemned {
				t.Errorf("live %v, condemned %v, want %v and %v", live, condemned, tc.live, tc.condemned)
			}
		})
	}
}

func reference(apiVersion, kind, name, uid string) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-" + uid), Controller: &yes, BlockOwnerDeletion: &yes}
}

func TestKept(t *testing.T) {
	set, pod := reference("apps.kruise.io/v1beta1", "StatefulSet", "web", "web"), reference("v1", "Pod", "web-3", "pod")
	older := set
	older.APIVersion = "apps.kruise.io/v1alpha1"
	formerSet, formerPod := reference("apps.kruise.io/v1beta1", "StatefulSet", "web", "former"), reference("v1", "Pod", "web-3", "former")
	other := reference("apps/v1", "StatefulSet", "web", "web")
	note := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "note", UID: "uid-note"}
	by := References{Workload: set, Pod: pod}
	for name, tc := range map[string]struct {
		have             []metav1.OwnerReference
		with             DeletedWith
		want             []metav1.OwnerReference
		changed, foreign bool
	}{
		"nothing to do":                         {with: DeletedWithNothing},
		"to the workload":                       {with: DeletedWithWorkload, want: []metav1.OwnerReference{set}, changed: true},
		"to the workload already":               {have: []metav1.OwnerReference{set}, with: DeletedWithWorkload, want: []metav1.OwnerReference{set}},
		"from the workload to the Pod":          {have: []metav1.OwnerReference{set}, with: DeletedWithPod, want: []metav1.OwnerReference{pod}, changed: true},
		"from the Pod back":                     {have: []metav1.OwnerReference{pod}, with: DeletedWithWorkload, want: []metav1.OwnerReference{set}, changed: true},
		"written in another version":            {have: []metav1.OwnerReference{older}, with: DeletedWithNothing, changed: true},
		"a former Pod of the name has no claim": {have: []metav1.OwnerReference{formerPod}, with: DeletedWithNothing, changed: true},
		"what others noted stays":               {have: []metav1.OwnerReference{note, set}, with: DeletedWithNothing, want: []metav1.OwnerReference{note}, changed: true},
		"a former workload is left to the garbage collector": {
			have: []metav1.OwnerReference{formerSet}, with: DeletedWithWorkload, want: []metav1.OwnerReference{formerSet},
		},
		"another controller keeps it": {
			have: []metav1.OwnerReference{other, pod}, with: DeletedWithWorkload, want: []metav1.OwnerReference{other}, changed: true, foreign: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			want, changed, foreign := OwnersFor(tc.have, tc.with, by)
			if diff := cmp.Diff(tc.want, want); diff != "" && len(tc.want)+len(want) > 0 {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if changed != tc.changed || foreign != tc.foreign {
				t.Errorf("changed %v, foreign %v, want %v and %v", changed, foreign, tc.changed, tc.foreign)
			}
		})
	}
}

func TestIsGarbage(t *testing.T) {
	by := References{Workload: reference("apps.kruise.io/v1beta1", "StatefulSet", "web", "web"), Pod: reference("v1", "Pod", "web-3", "")}
	for name, tc := range map[string]struct {
		have metav1.OwnerReference
		want bool
	}{
		"that of the workload":        {by.Workload, false},
		"that of a former workload":   {reference("apps.kruise.io/v1beta1", "StatefulSet", "web", "former"), true},
		"that of the Pod before":      {reference("v1", "Pod", "web-3", "pod"), true},
		"that of another Pod":         {reference("v1", "Pod", "web-4", "pod"), false},
		"that of Kubernetes' own":     {reference("apps/v1", "StatefulSet", "web", "former"), false},
		"that of another StatefulSet": {reference("apps.kruise.io/v1beta1", "StatefulSet", "shop", "shop"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsGarbage([]metav1.OwnerReference{tc.have}, by); got != tc.want {
				t.Errorf("doomed is %v", got)
			}
		})
	}
}

func TestNew(t *testing.T) {
	template := build.ClaimTemplate("data", "1Gi")
	template.Labels = map[string]string{"app": "template", "tier": "back"}
	template.Annotations = map[string]string{"note": "kept"}
	c := New(Owner{Name: "web", Namespace: "ns", SelectorMatchLabels: map[string]string{"app": "web"}}, "3", &template)
	want := metav1.ObjectMeta{
		Name: "data-web-3", Namespace: "ns",
		Labels: map[string]string{"app": "web", "tier": "back"}, Annotations: map[string]string{"note": "kept"},
	}
	if diff := cmp.Diff(want, c.ObjectMeta); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestResize(t *testing.T) {
	fast, slow := "fast", "slow"
	claim := func(asks, has string, change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := build.ClaimTemplate("data", asks)
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(has)}
		if change != nil {
			change(&c)
		}
		return &c
	}
	for name, tc := range map[string]struct {
		claim                       *corev1.PersistentVolumeClaim
		compatible, ready, expanded bool
	}{
		"like its template": {claim("2Gi", "2Gi", nil), true, true, true},
		"larger":            {claim("3Gi", "3Gi", nil), true, true, true},
		"too small":         {claim("1Gi", "1Gi", nil), false, true, false},
		"growing":           {claim("2Gi", "1Gi", nil), true, false, false},
		"grows when its Pod starts anew": {claim("2Gi", "1Gi", func(c *corev1.PersistentVolumeClaim) {
			c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue}}
		}), true, false, true},
		"of another class":     {claim("2Gi", "2Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &slow }), false, true, false},
		"of the default class": {claim("2Gi", "2Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }), true, true, true},
		"of another mode": {claim("2Gi", "2Gi", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		}), false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			template := build.ClaimTemplate("data", "2Gi")
			template.Spec.StorageClassName = &fast
			if c := tc.claim.Spec.StorageClassName; c == nil && name != "of the default class" {
				tc.claim.Spec.StorageClassName = &fast
			}
			compatible, ready, expanded := IsCompatible(tc.claim, &template), IsReady(tc.claim), IsExpanded(tc.claim, &template)
			if compatible != tc.compatible || ready != tc.ready || expanded != tc.expanded {
				t.Errorf("compatible %v, ready %v, expanded %v", compatible, ready, expanded)
			}
		})
	}
}
