package rollout

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// rev returns a revision of a template with containers, each as name=image.
func rev(t *testing.T, set string, containers ...string) *appsv1.ControllerRevision {
	t.Helper()
	template := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"a": "b"}},
	}
	template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "reg"}}
	for _, c := range containers {
		name, image, _ := strings.Cut(c, "=")
		template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: name, Image: image})
	}
	out, err := revision.New(revision.Owner{Name: set, Namespace: "ns"}, template, 0)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func good() string { return "" }

func TestDecide(t *testing.T) {
	v1, v2 := rev(t, "web", "app=nginx:1", "side=redis:1"), rev(t, "web", "app=nginx:2", "side=redis:1", "more=busybox:1")
	for name, tc := range map[string]struct {
		update  *appsv1.ControllerRevision
		rollout PreDownload
		ignore  string
		wait    bool
		pulls   []string
	}{
		"an image changes, and a container is new": {update: v2, rollout: PreDownload{Old: []*appsv1.ControllerRevision{v1}, Pointless: good}, pulls: []string{"nginx:2", "busybox:1"}},
		"a container is gone":                      {update: v1, rollout: PreDownload{Old: []*appsv1.ControllerRevision{v2}, Pointless: good}, pulls: []string{"nginx:1"}},
		"one of several revisions differs":         {update: v2, rollout: PreDownload{Old: []*appsv1.ControllerRevision{v2, v1}, Pointless: good}, pulls: []string{"nginx:2", "busybox:1"}},
		"no image changes":                         {update: v1, rollout: PreDownload{Old: []*appsv1.ControllerRevision{v1}, Pointless: good}, ignore: "no image changes"},
		"the first revision ever":                  {update: v1, rollout: PreDownload{Pointless: good}, wait: true},
		"nothing would be gained":                  {update: v2, rollout: PreDownload{Old: []*appsv1.ControllerRevision{v1}, Pointless: func() string { return "why" }}, ignore: "why"},
		"too few updated Pods are ready":           {update: v2, rollout: PreDownload{Old: []*appsv1.ControllerRevision{v1}, Pointless: good, UpdatedReady: 1, Tuning: Tuning{MinUpdatedReady: 2}}, wait: true},
		"enough are": {update: v2, rollout: PreDownload{Old: []*appsv1.ControllerRevision{v1}, Pointless: good, UpdatedReady: 2, Tuning: Tuning{MinUpdatedReady: 2}},
			pulls: []string{"nginx:2", "busybox:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decide(tc.update, tc.rollout)
			if err != nil {
				t.Fatal(err)
			}
			var pulls []string
			for _, c := range got.containers {
				pulls = append(pulls, c.Image)
			}
			if diff := cmp.Diff(tc.pulls, pulls); diff != "" || got.ignore != tc.ignore || got.wait != tc.wait {
				t.Errorf("wait %t, ignore %q, images (-want +got):\n%s", got.wait, got.ignore, diff)
			}
		})
	}
}

func TestPace(t *testing.T) {
	for name, tc := range map[string]struct {
		pace Pace
		want string
	}{
		"some Pods after the others":   {Pace{InPlace: true, Replicas: 10, MaxUnavailable: 1}, ""},
		"a partition leaves some":      {Pace{InPlace: true, Replicas: 10, Partition: 1, MaxUnavailable: 10}, ""},
		"Pods are recreated":           {Pace{Replicas: 10, MaxUnavailable: 1}, "Pods are not updated in place"},
		"three replicas":               {Pace{InPlace: true, Replicas: 3, MaxUnavailable: 1}, "there are few replicas"},
		"all Pods at the same moment":  {Pace{InPlace: true, Replicas: 10, MaxUnavailable: 10}, "all Pods are updated at once"},
		"four replicas, one by one":    {Pace{InPlace: true, Replicas: 4, MaxUnavailable: 1}, ""},
		"more may fail than there are": {Pace{InPlace: true, Replicas: 4, MaxUnavailable: 9}, "all Pods are updated at once"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.pace.Pointless(); got != tc.want {
				t.Errorf("pointless because %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTuning(t *testing.T) {
	number := func(n int32) *intstr.IntOrString { return ptr.To(intstr.FromInt32(n)) }
	annotations := func(parallelism, timeout, ready string) map[string]string {
		return map[string]string{
			keys.ImagePreDownloadParallelism: parallelism, keys.ImagePreDownloadTimeoutSeconds: timeout, keys.ImagePreDownloadMinUpdatedReadyPods: ready,
		}
	}
	for name, tc := range map[string]struct {
		annotations map[string]string
		fields      *v1beta1.InPlaceUpdateStrategy
		want        Tuning
	}{
		"nothing":                       {want: Tuning{}},
		"annotations":                   {annotations: annotations("5", "60", "2"), want: Tuning{Parallelism: number(5), TimeoutSeconds: ptr.To(int32(60)), MinUpdatedReady: 2}},
		"a percentage, rounded up":      {annotations: annotations("", "", "25%"), want: Tuning{MinUpdatedReady: 3}},
		"what can't be read":            {annotations: annotations("50%", "-1", "many"), want: Tuning{}},
		"fields count more":             {annotations: annotations("5", "60", "2"), fields: &v1beta1.InPlaceUpdateStrategy{ImagePreDownloadParallelism: number(7), ImagePreDownloadTimeoutSeconds: ptr.To(int32(70)), ImagePreDownloadMinUpdatedReadyPods: ptr.To(int32(0))}, want: Tuning{Parallelism: number(7), TimeoutSeconds: ptr.To(int32(70))}},
		"fields that are not set don't": {annotations: annotations("5", "", ""), fields: &v1beta1.InPlaceUpdateStrategy{}, want: Tuning{Parallelism: number(5)}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Annotated(tc.annotations, 10).Over(tc.fields)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestJobs(t *testing.T) {
	update := rev(t, "web", "app=nginx:2", "side=redis:1")
	verdict, err := decide(
		update,
		PreDownload{Old: []*appsv1.ControllerRevision{rev(t, "web", "app=nginx:1", "side=redis:1")}, Pointless: good},
	)
	if err != nil {
		t.Fatal(err)
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	w := Workload{Object: set, Kind: schema.GroupVersionKind{Kind: "Set"}, Selector: selector, History: revision.History{Update: update}}
	jobs := w.newPullJobs(verdict, Tuning{})
	if len(jobs) != 1 {
		t.Fatalf("there are %d jobs", len(jobs))
	}
	hash := revision.ShortHash(update.Name)
	want := &v1beta1.ImagePullJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: update.Name + "-app", Labels: map[string]string{"app": "web", keys.RevisionHash: hash}, OwnerReferences: []metav1.OwnerReference{w.Owner()},
		},
		Spec: v1beta1.ImagePullJobSpec{Image: "nginx:2", ImagePullJobTemplate: v1beta1.ImagePullJobTemplate{
			PullSecrets: []string{"reg"},
			PodSelector: &v1beta1.ImagePullJobPodSelector{LabelSelector: metav1.LabelSelector{
				MatchLabels: map[string]string{"app": "web"},
				MatchExpressions: []metav1.LabelSelectorRequirement{{
					Key: "controller-revision-hash", Operator: metav1.LabelSelectorOpNotIn, Values: []string{update.Name, hash},
				}},
			}},
			Parallelism:      ptr.To(intstr.FromInt32(1)),
			PullPolicy:       &v1beta1.PullPolicy{TimeoutSeconds: ptr.To(int32(300)), BackoffLimit: ptr.To(int32(1))},
			CompletionPolicy: v1beta1.CompletionPolicy{Type: v1beta1.AlwaysComplete, TTLSecondsAfterFinished: ptr.To(int32(600))},
			SandboxConfig: &v1beta1.SandboxConfig{
				Labels:      map[string]string{"app": "web", keys.RevisionHash: hash},
				Annotations: map[string]string{"a": "b"},
			},
			ImagePullPolicy: v1beta1.PullIfNotPresent,
		}},
	}
	if diff := cmp.Diff(want, jobs[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(selector.MatchExpressions) > 0 {
		t.Error("the selector of the workload was changed")
	}
	// The value of a label has 63 characters at most: a longer name would make the selector invalid.
	long := rev(t, strings.Repeat("w", 80), "app=nginx:2")
	if got := outdated(selector, long.Name).MatchExpressions[0].Values; len(got) != 1 || got[0] != revision.ShortHash(long.Name) {
		t.Errorf("Pods are selected by %v", got)
	}
}
