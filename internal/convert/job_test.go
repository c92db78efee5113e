package convert

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func jobFiller(seed int64) *randfill.Filler {
	return randfill.New().RandSource(rand.NewSource(seed)).NilChance(0.3).NumElements(1, 3).MaxDepth(20).Funcs(
		func(t *corev1.PodTemplateSpec, c randfill.Continue) { t.Spec.NodeName = c.String(8) },
		func(t *batchv1.JobTemplateSpec, c randfill.Continue) {
			t.Labels = map[string]string{"a": c.String(3)}
			t.Spec.Template.Spec.NodeName = c.String(8)
		},
		func(*metav1.FieldsV1, randfill.Continue) {}, // raw JSON
		func(v *intstr.IntOrString, c randfill.Continue) {
			if *v = intstr.FromInt32(c.Int31n(9)); c.Bool() {
				*v = intstr.FromString("20%")
			}
		},
	)
}

func TestBroadcastJobRoundTripsLoseNothing(t *testing.T) {
	for seed := range int64(seeds) {
		var want, got v1beta1.BroadcastJob
		var middle v1alpha1.BroadcastJob
		jobFiller(seed).Fill(&want)
		want.TypeMeta = got.TypeMeta
		BroadcastJobFromHub(&want, &middle)
		BroadcastJobToHub(&middle, &got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

// TestAdvancedCronJobRoundTripsLoseNothing takes objects to the older version and back; a field that this build does not know is among them.
func TestAdvancedCronJobRoundTripsLoseNothing(t *testing.T) {
	for seed := range int64(seeds / 10) {
		var filled v1beta1.AdvancedCronJob
		jobFiller(seed).Fill(&filled)
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&filled)
		if err != nil {
			t.Fatal(err)
		}
		want := &unstructured.Unstructured{Object: object}
		want.SetAPIVersion("apps.kruise.io/v1beta1")
		want.SetKind("AdvancedCronJob")
		if err := unstructured.SetNestedField(object, "kept", "spec", "template", "ofTheFuture"); err != nil {
			t.Fatal(err)
		}
		before := want.DeepCopy()
		older, err := Object(want, "apps.kruise.io/v1alpha1")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, want); diff != "" {
			t.Fatalf("seed %d: converting changed its source (-before +after):\n%s", seed, diff)
		}
		if _, has, _ := unstructured.NestedFieldNoCopy(older.Object, "spec", "template", imageListTemplate); has {
			t.Fatalf("seed %d: the older version has the field %s", seed, imageListTemplate)
		}
		back, err := Object(older, "apps.kruise.io/v1beta1")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, back); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

func TestImageListPullJobTemplateInTheOlderVersion(t *testing.T) {
	for name, tc := range map[string]struct{ older, want string }{
		"a template": {
			`metadata: {name: a, annotations: {x: y, apps.kruise.io/image-list-pull-job-template: '{"spec":{"images":["nginx"]}}'}}`,
			`{metadata: {name: a, annotations: {x: y}}, spec: {template: {imageListPullJobTemplate: {spec: {images: [nginx]}}}}}`,
		},
		"nothing":                   {`metadata: {name: a}`, `{metadata: {name: a}, spec: {template: {}}}`},
		"what can't be read stays":  {`metadata: {name: a, annotations: {apps.kruise.io/image-list-pull-job-template: "{"}}`, `{metadata: {name: a, annotations: {apps.kruise.io/image-list-pull-job-template: "{"}}, spec: {template: {}}}`},
		"what is no template stays": {`metadata: {name: a, annotations: {apps.kruise.io/image-list-pull-job-template: "[]"}}`, `{metadata: {name: a, annotations: {apps.kruise.io/image-list-pull-job-template: "[]"}}, spec: {template: {}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(text, version string) *unstructured.Unstructured {
				o := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
					t.Fatal(err)
				}
				o.SetAPIVersion("apps.kruise.io/" + version)
				o.SetKind("AdvancedCronJob")
				return o
			}
			got, err := Object(read(tc.older+"\nspec: {template: {}}", "v1alpha1"), "apps.kruise.io/v1beta1")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(read(tc.want, "v1beta1"), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
