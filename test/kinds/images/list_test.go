package images

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func (e *env) list(name string) *v1beta1.ImageListPullJob {
	e.Helper()
	list := &v1beta1.ImageListPullJob{}
	e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, list))
	return list
}

// children returns the jobs of a list by image.
func (e *env) children(name string) map[string]*v1beta1.ImagePullJob {
	e.Helper()
	var jobs v1beta1.ImagePullJobList
	e.Must(e.Client.List(e.Ctx, &jobs, client.InNamespace(e.Namespace)))
	out := map[string]*v1beta1.ImagePullJob{}
	for i := range jobs.Items {
		if owner := metav1.GetControllerOf(&jobs.Items[i]); owner != nil && owner.Name == name && jobs.Items[i].DeletionTimestamp == nil {
			out[jobs.Items[i].Spec.Image] = &jobs.Items[i]
		}
	}
	return out
}

// pullList creates an ImageListPullJob on the nodes of the test.
func (e *env) pullList(name, images string, more ...string) {
	e.Helper()
	e.Must(e.create("ImageListPullJob", name, fmt.Sprintf("images: %s\nselector: {matchLabels: {%s: %s}}\n%s", images, pool, e.Namespace, strings.Join(more, "\n"))))
}

func (e *env) editList(name, spec string) {
	e.Helper()
	patch, err := yaml.YAMLToJSON([]byte("spec: " + spec))
	e.Must(err)
	e.Must(e.Client.Patch(e.Ctx, e.list(name), client.RawPatch(types.MergePatchType, patch)))
}

func TestListPullsEveryImage(t *testing.T) {
	e := newEnv(t, 2)
	created := map[string]int{}
	stop, err := e.Follow(e.Ctx, &v1beta1.ImagePullJobList{}, e.Namespace, func(event watch.Event) {
		if job, ok := event.Object.(*v1beta1.ImagePullJob); ok && event.Type == watch.Added {
			created[job.Spec.Image]++
		}
	})
	e.Must(err)
	e.pullList("list", "[nginx:list, redis:no-such]", "parallelism: 2", "pullPolicy: {backoffLimit: 1}",
		"completionPolicy: {ttlSecondsAfterFinished: 10}")
	e.Eventually("there are two jobs", func() error {
		if children := e.children("list"); len(children) != 2 || e.list("list").Status.Desired != 2 {
			return fmt.Errorf("there are %d, status is %+v", len(children), e.list("list").Status)
		}
		return nil
	})
	var status v1beta1.ImageListPullJobStatus
	e.Eventually("the list is over", func() error {
		if status = e.list("list").Status; status.CompletionTime == nil {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	})
	failed := e.children("list")["redis:no-such"]
	want := []*v1beta1.FailedImageStatus{{
		ImagePullJob: failed.Name, Name: "redis:no-such",
		Message: "Please check for details which nodes failed by 'kubectl get ImagePullJob " + failed.Name + "'.",
	}}
	if diff := cmp.Diff(want, status.FailedImageStatuses); diff != "" || status.Completed != 2 || status.Succeeded != 1 || status.Active != 0 {
		t.Errorf("status is %+v, failed images (-want +got):\n%s", status, diff)
	}
	e.Eventually("the list and its jobs are gone", func() error {
		var lists v1beta1.ImageListPullJobList
		e.Must(e.Client.List(e.Ctx, &lists, client.InNamespace(e.Namespace)))
		if children := e.children("list"); len(lists.Items) > 0 || len(children) > 0 {
			return fmt.Errorf("there are %d lists and %d jobs", len(lists.Items), len(children))
		}
		return nil
	})
	e.Must(stop())
	if diff := cmp.Diff(map[string]int{"nginx:list": 1, "redis:no-such": 1}, created); diff != "" {
		t.Errorf("jobs that were created (-want +got):\n%s", diff)
	}
}

func TestListIsChanged(t *testing.T) {
	e := newEnv(t, 1)
	e.pullList("list", "[nginx:hang-pull, redis:hang-pull]")
	images := func(want ...string) func() error {
		return func() error {
			var got []string
			for image := range e.children("list") {
				got = append(got, image)
			}
			slices.Sort(got)
			if !slices.Equal(want, got) {
				return fmt.Errorf("there are jobs for %v, want %v", got, want)
			}
			return nil
		}
	}
	e.Eventually("there is a job for each image", images("nginx:hang-pull", "redis:hang-pull"))
	kept := e.children("list")["redis:hang-pull"].UID
	e.editList("list", "{images: [busybox:hang-pull, redis:hang-pull]}")
	e.Eventually("one job gives way to another", images("busybox:hang-pull", "redis:hang-pull"))
	if e.children("list")["redis:hang-pull"].UID != kept {
		t.Error("the job of an image that stayed was replaced")
	}
	hash := e.list("list").Labels["controller-revision-hash"]
	e.editList("list", "{pullPolicy: {timeoutSeconds: 77}}")
	e.Eventually("all jobs are replaced", func() error {
		for image, job := range e.children("list") {
			if job.UID == kept || *job.Spec.PullPolicy.TimeoutSeconds != 77 {
				return fmt.Errorf("job %s for %s is %+v", job.Name, image, job.Spec)
			}
		}
		return images("busybox:hang-pull", "redis:hang-pull")()
	})
	e.Eventually("the list says what its jobs are made from", func() error {
		now := e.list("list").Labels["controller-revision-hash"]
		for _, job := range e.children("list") {
			if now == hash || now == "" || job.Labels["controller-revision-hash"] != now {
				return fmt.Errorf("the hash was %q and is %q, that of job %s is %q", hash, now, job.Name, job.Labels["controller-revision-hash"])
			}
		}
		return nil
	})
}
