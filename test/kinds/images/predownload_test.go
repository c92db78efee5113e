package images

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// workload creates a workload named web whose Pods run on the nodes of the test. The strategy is the rolling update, as YAML in one line.
func (e *env) workload(kind, strategy string, replicas int, annotations ...string) {
	e.Helper()
	number := fmt.Sprintf("replicas: %d\n", replicas)
	if kind == "DaemonSet" {
		number = ""
	}
	e.Must(e.create(kind, "web", fmt.Sprintf(`%sselector: {matchLabels: {app: web}}
template:
  metadata: {labels: {app: web}, annotations: {sandbox: "yes"}}
  spec:
    nodeSelector: {%s: %s}
    imagePullSecrets: [{name: reg}]
    containers: [{name: app, image: "nginx:v1"}, {name: side, image: "redis:v1"}]
updateStrategy: {rollingUpdate: %s}
`, number, pool, e.Namespace, strategy)))
	if len(annotations) > 0 {
		e.patch(kind, "metadata: {annotations: {"+strings.Join(annotations, ", ")+"}}")
	}
}

func newWorkload(kind string) client.Object {
	switch kind {
	case "CloneSet":
		return &v1beta1.CloneSet{}
	case "StatefulSet":
		return &v1beta1.StatefulSet{}
	default:
		return &v1beta1.DaemonSet{}
	}
}

// patch changes the workload by a merge patch, as YAML.
func (e *env) patch(kind, text string) {
	e.Helper()
	patch, err := yaml.YAMLToJSON([]byte(text))
	e.Must(err)
	set := newWorkload(kind)
	set.SetNamespace(e.Namespace)
	set.SetName("web")
	e.Must(e.Client.Patch(e.Ctx, set, client.RawPatch(types.MergePatchType, patch)))
}

func (e *env) image(kind, version string) {
	e.Helper()
	e.patch(kind, fmt.Sprintf(`spec: {template: {spec: {containers: [{name: app, image: "nginx:%s"}, {name: side, image: "redis:v1"}]}}}`, version))
}

// ready waits until as many Pods are ready with an image.
func (e *env) ready(want int, image string) {
	e.Helper()
	e.Eventually(fmt.Sprintf("%d Pods are ready with %s", want, image), func() error {
		var pods corev1.PodList
		e.Must(e.Client.List(e.Ctx, &pods, client.InNamespace(e.Namespace)))
		n := 0
		for _, p := range pods.Items {
			for _, c := range p.Status.ContainerStatuses {
				if c.Name == "app" && strings.HasSuffix(c.Image, image) && c.Ready {
					n++
				}
			}
		}
		if n != want {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
}

func (e *env) jobs() []v1beta1.ImagePullJob {
	e.Helper()
	var jobs v1beta1.ImagePullJobList
	e.Must(e.Client.List(e.Ctx, &jobs, client.InNamespace(e.Namespace)))
	return jobs.Items
}

func (e *env) hasJobs(want int) func() error {
	return func() error {
		if jobs := e.jobs(); len(jobs) != want {
			return fmt.Errorf("there are %d jobs, want %d", len(jobs), want)
		}
		return nil
	}
}

func (e *env) noted(label string) func() error {
	return func() error {
		var revisions appsv1.ControllerRevisionList
		e.Must(e.Client.List(e.Ctx, &revisions, client.InNamespace(e.Namespace)))
		for _, rev := range revisions.Items {
			if label == "" && (rev.Labels[keys.RevisionPreDownloadCreated] != "" || rev.Labels[keys.RevisionPreDownloadIgnored] != "") {
				return fmt.Errorf("revision %s has labels %v", rev.Name, rev.Labels)
			}
			if label != "" && rev.Labels[label] == "true" {
				return nil
			}
		}
		if label != "" {
			return fmt.Errorf("no revision is labelled %s", label)
		}
		return nil
	}
}

func TestImagesComeBeforeTheUpdateOfCloneSets(t *testing.T) {
	e := newEnv(t, 3)
	e.workload("CloneSet", "{podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 1, partition: 8}", 10)
	e.ready(10, "nginx:v1")
	e.Always(time.Second, "the first revision needs no job", e.hasJobs(0))
	e.image("CloneSet", "v2")
	e.Eventually("there is a job", e.hasJobs(1))
	job := e.jobs()[0]
	set := &v1beta1.CloneSet{}
	e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "web"}, set))
	values := job.Spec.PodSelector.MatchExpressions[0].Values
	if job.Name != set.Status.UpdateRevision+"-app" || job.Spec.Image != "nginx:v2" || !slices.Contains(values, set.Status.UpdateRevision) || job.Spec.PodSelector.MatchLabels["app"] != "web" {
		t.Errorf("the job is %s: %+v", job.Name, job.Spec)
	}
	if *job.Spec.PullPolicy.TimeoutSeconds != 300 || *job.Spec.PullPolicy.BackoffLimit != 1 || *job.Spec.CompletionPolicy.TTLSecondsAfterFinished != 600 ||
		job.Spec.SandboxConfig.Annotations["sandbox"] != "yes" || !slices.Equal(job.Spec.PullSecrets, []string{"reg"}) {
		t.Errorf("the job is %+v", job.Spec)
	}
	e.Eventually("an event tells of it", func() error {
		var events corev1.EventList
		e.Must(e.Client.List(e.Ctx, &events, client.InNamespace(e.Namespace), client.MatchingFields{"reason": "CreatedImagePullJob"}))
		if len(events.Items) != 1 {
			return fmt.Errorf("there are %d", len(events.Items))
		}
		return nil
	})
	e.Eventually("the decision is noted", e.noted(keys.RevisionPreDownloadCreated))
	e.completed(job.Name)
	e.ready(2, "nginx:v2")
	e.patch("CloneSet", "spec: {updateStrategy: {rollingUpdate: {partition: 0, maxUnavailable: 5}}}")
	e.ready(10, "nginx:v2")
	e.Eventually("the job goes with the rollout", e.hasJobs(0))
	e.Eventually("nothing is noted any more", e.noted(""))
	e.patch("CloneSet", "spec: {updateStrategy: {rollingUpdate: {partition: 8, maxUnavailable: 1}}}")
	e.image("CloneSet", "v1")
	e.Eventually("going back pulls too", e.hasJobs(1))
	if job := e.jobs()[0]; job.Spec.Image != "nginx:v1" {
		t.Errorf("the job is %+v", job.Spec)
	}
}

func TestSmallRolloutsAreNotPulledFor(t *testing.T) {
	e := newEnv(t, 1)
	e.workload("CloneSet", "{podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 1, partition: 3}", 3)
	e.ready(3, "nginx:v1")
	e.image("CloneSet", "v2")
	e.Eventually("the decision is noted", e.noted(keys.RevisionPreDownloadIgnored))
	e.Always(time.Second, "there is no job", e.hasJobs(0))
	e.patch("CloneSet", "spec: {replicas: 6, updateStrategy: {rollingUpdate: {partition: 6}}}")
	e.Eventually("it grows, and there is a job", e.hasJobs(1))
	e.Eventually("the decision is noted anew", e.noted(keys.RevisionPreDownloadCreated))
}

func TestSomePodsAreUpdatedBeforeAnythingIsPulled(t *testing.T) {
	annotation := keys.ImagePreDownloadMinUpdatedReadyPods + `: "2"`
	for kind, tc := range map[string]struct {
		strategy, next string
		annotations    []string
		nodes          int
	}{
		"CloneSet": {
			"{podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 1, partition: 4, inPlaceUpdateStrategy: {imagePreDownloadMinUpdatedReadyPods: 2, imagePreDownloadParallelism: 7}}",
			"spec: {updateStrategy: {rollingUpdate: {partition: 3}}}", nil, 1,
		},
		"StatefulSet": {"{podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 1, partition: 4}", "spec: {updateStrategy: {rollingUpdate: {partition: 3}}}",
			[]string{annotation, keys.ImagePreDownloadParallelism + `: "7"`}, 1},
		"DaemonSet": {"{rollingUpdateType: InPlaceIfPossible, partition: 4}", "spec: {updateStrategy: {rollingUpdate: {partition: 3}}}",
			[]string{annotation, keys.ImagePreDownloadParallelism + `: "7"`}, 5},
	} {
		t.Run(kind, func(t *testing.T) {
			e := newEnv(t, tc.nodes)
			e.workload(kind, tc.strategy, 5, tc.annotations...)
			e.ready(5, "nginx:v1")
			e.image(kind, "v2")
			e.ready(1, "nginx:v2")
			e.Always(time.Second, "one Pod is not enough", e.hasJobs(0))
			e.patch(kind, tc.next)
			e.Eventually("two are", e.hasJobs(1))
			if job := e.jobs()[0]; job.Spec.Image != "nginx:v2" || job.Spec.Parallelism.IntValue() != 7 {
				t.Errorf("the job is %+v", job.Spec)
			}
			e.patch(kind, "spec: {updateStrategy: {rollingUpdate: {partition: 0}}}")
			e.ready(5, "nginx:v2")
			e.Eventually("the job goes with the rollout", e.hasJobs(0))
		})
	}
}

func TestDaemonSetThatWaitsForDeletions(t *testing.T) {
	e := newEnv(t, 2)
	e.workload("DaemonSet", "{}", 0)
	e.ready(2, "nginx:v1")
	e.patch("DaemonSet", "spec: {updateStrategy: {type: OnDelete, rollingUpdate: null}}")
	e.image("DaemonSet", "v2")
	e.Eventually("there is a job", e.hasJobs(1))
	var pods corev1.PodList
	e.Must(e.Client.List(e.Ctx, &pods, client.InNamespace(e.Namespace)))
	for i := range pods.Items {
		e.Must(e.Client.Delete(e.Ctx, &pods.Items[i]))
	}
	e.ready(2, "nginx:v2")
	e.Eventually("the job goes with the rollout", e.hasJobs(0))
}
