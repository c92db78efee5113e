package convert

import (
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

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func jobFiller(from *randfill.Filler) *randfill.Filler {
	return from.NilChance(0.3).NumElements(1, 3).MaxDepth(20).Funcs(
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
	fromSeeds(t, broadcastJobRoundTrip)
}

func FuzzBroadcastJobRoundTrips(f *testing.F) { fromBytes(f, broadcastJobRoundTrip) }

func broadcastJobRoundTrip(t *testing.T, from *randfill.Filler) {
	t.Helper()
	var filled v1beta1.BroadcastJob
	jobFiller(from).Fill(&filled)
	survives(t, "BroadcastJob", &filled)
}

// survives takes an object to the older version and back, with a field that this build does not know, and returns what it is in between.
func survives(t *testing.T, kind string, filled any) *unstructured.Unstructured {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(filled)
	if err != nil {
		t.Fatal(err)
	}
	want := &unstructured.Unstructured{Object: object}
	want.SetAPIVersion(hubVersion)
	want.SetKind(kind)
	if err := unstructured.SetNestedField(object, "kept", "spec", "template", "ofTheFuture"); err != nil {
		t.Fatal(err)
	}
	before := want.DeepCopy()
	older, err := Object(want, spokeVersion)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, want); diff != "" {
		t.Errorf("converting changed its source (-before +after):\n%s", diff)
	}
	if older.GetAPIVersion() != spokeVersion {
		t.Errorf("converted to %s", older.GetAPIVersion())
	}
	back, err := Object(older, hubVersion)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	return older
}

func TestAdvancedCronJobRoundTripsLoseNothing(t *testing.T) {
	fromSeeds(t, advancedCronJobRoundTrip)
}

func FuzzAdvancedCronJobRoundTrips(f *testing.F) { fromBytes(f, advancedCronJobRoundTrip) }

func advancedCronJobRoundTrip(t *testing.T, from *randfill.Filler) {
	t.Helper()
	var filled v1beta1.AdvancedCronJob
	jobFiller(from).Fill(&filled)
	older := survives(t, "AdvancedCronJob", &filled)
	if _, has, _ := unstructured.NestedFieldNoCopy(older.Object, "spec", "template", imageListTemplate); has {
		t.Errorf("the older version has the field %s", imageListTemplate)
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
