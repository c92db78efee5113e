package images

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func TestJobPullsOneNodeAfterTheOther(t *testing.T) {
	e := newEnv(t, 3)
	pulling, most := map[string]bool{}, 0
	stop, err := e.Follow(e.Ctx, &v1beta1.NodeImageList{}, "", func(event watch.Event) {
		image, ok := event.Object.(*v1beta1.NodeImage)
		if !ok || image.Labels[pool] != e.Namespace {
			return
		}
		delete(pulling, image.Name)
		for _, tag := range image.Spec.Images["nginx"].Tags {
			i := slices.IndexFunc(image.Status.ImageStatuses["nginx"].Tags, func(s v1beta1.ImageTagStatus) bool { return s.Tag == tag.Tag && s.CompletionTime != nil })
			if i < 0 {
				pulling[image.Name] = true
			}
		}
		most = max(most, len(pulling))
	})
	e.Must(err)
	e.pull("job", "nginx:1.9.1", "parallelism: 1")
	e.Eventually("the job counts its nodes", func() error {
		if desired := e.job("job").Status.Desired; desired != 3 {
			return fmt.Errorf("desired is %d", desired)
		}
		return nil
	})
	status := e.completed("job").Status
	if status.Succeeded != 3 || status.Failed != 0 || status.Active != 0 || status.Message != "job has completed" {
		t.Errorf("status is %+v", status)
	}
	e.Must(stop())
	if most != 1 {
		t.Errorf("%d nodes pulled at the same time, want 1", most)
	}
	for _, node := range e.Nodes {
		got := e.tagStatuses(node, "nginx")["1.9.1"]
		if got.Phase != v1beta1.ImagePhaseSucceeded || got.Progress != 100 || !strings.HasPrefix(got.ImageID, "docker.io/library/nginx@sha256:") {
			t.Errorf("node %s says %+v", node, got)
		}
	}
}

func TestImageThatDoesNotExistFails(t *testing.T) {
	e := newEnv(t, 2)
	e.pull("job", "reg.example/a/b:no-such", "parallelism: 2", "pullPolicy: {backoffLimit: 1, timeoutSeconds: 5}")
	status := e.completed("job").Status
	if diff := cmp.Diff(e.Nodes, status.FailedNodes); diff != "" || status.Failed != 2 {
		t.Errorf("failed %d, nodes (-want +got):\n%s", status.Failed, diff)
	}
	if got := e.tagStatuses(e.Nodes[0], "reg.example/a/b")["no-such"]; !strings.Contains(got.Message, "not found") {
		t.Errorf("the node says %+v, want the words of the registry", got)
	}
}

func TestDigest(t *testing.T) {
	e := newEnv(t, 1)
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	e.pull("job", "reg.example:5000/a/b:1@"+digest)
	if status := e.completed("job").Status; status.Succeeded != 1 {
		t.Errorf("status is %+v", status)
	}
	if got := e.tagStatuses(e.Nodes[0], "reg.example:5000/a/b")[digest]; got.ImageID != "reg.example:5000/a/b@"+digest {
		t.Errorf("the node says %+v", got)
	}
}

func TestTwoJobsForTheSameTag(t *testing.T) {
	e := newEnv(t, 1)
	e.pull("one", "nginx:1", "pullPolicy: {timeoutSeconds: 60}")
	e.completed("one")
	e.pull("two", "docker.io/library/nginx:1", "imagePullPolicy: Always", "pullPolicy: {timeoutSeconds: 40, backoffLimit: 7}")
	e.completed("two")
	tag := e.tags(e.Nodes[0], "nginx")["1"]
	if len(tag.OwnerReferences) != 2 || tag.Version != 1 || tag.ImagePullPolicy != v1beta1.PullAlways {
		t.Errorf("the tag is %+v, want two owners and a second round", tag)
	}
	if *tag.PullPolicy.TimeoutSeconds != 60 || *tag.PullPolicy.BackoffLimit != 7 {
		t.Errorf("its limits are %d s, %d retries, want the longer time and the retries of the last job", *tag.PullPolicy.TimeoutSeconds, *tag.PullPolicy.BackoffLimit)
	}
	e.deleteJob("one")
	e.Eventually("one owner is left", func() error {
		if tag := e.tags(e.Nodes[0], "nginx")["1"]; len(tag.OwnerReferences) != 1 || tag.OwnerReferences[0].Name != "two" || tag.Version != 1 {
			return fmt.Errorf("the tag is %+v", tag)
		}
		return nil
	})
	e.deleteJob("two")
	e.Eventually("nothing is left", func() error {
		if image := e.nodeImage(e.Nodes[0]); len(image.Spec.Images) > 0 || len(image.Status.ImageStatuses) > 0 || image.Status.Desired != 0 {
			return fmt.Errorf("the NodeImage says %+v, %+v", image.Spec, image.Status)
		}
		return nil
	})
}

func TestJobThatNeverCompletes(t *testing.T) {
	e := newEnv(t, 1)
	node := e.Nodes[0]
	e.pull("job", "nginx:never", "completionPolicy: {type: Never}")
	succeeded := func(want int32) func() error {
		return func() error {
			if status := e.job("job").Status; status.Succeeded != want || status.CompletionTime != nil {
				return fmt.Errorf("status is %+v", status)
			}
			return nil
		}
	}
	e.Eventually("the node has the image", succeeded(1))
	ttl := *e.tags(node, "nginx")["never"].PullPolicy.TTLSecondsAfterFinished
	if ttl < 86400-600 || ttl > 86400+600 {
		t.Errorf("the tag is kept for %d s, want about a day", ttl)
	}
	e.AddNode()
	e.Eventually("the new node has the image", succeeded(2))
	// The tag is kept for a second instead of a day.
	e.Must(e.Client.Patch(e.Ctx, e.nodeImage(node), client.RawPatch("application/json-patch+json",
		[]byte(`[{"op":"replace","path":"/spec/images/nginx/tags/0/pullPolicy/ttlSecondsAfterFinished","value":1}]`))))
	e.Eventually("the node pulls again", func() error {
		tag := e.tags(node, "nginx")["never"]
		if status := e.tagStatuses(node, "nginx")["never"]; tag.Version != 1 || status.Version != 1 || status.Phase != v1beta1.ImagePhaseSucceeded {
			return fmt.Errorf("the tag is %+v, %+v", tag, status)
		}
		return nil
	})
}

func TestDeadline(t *testing.T) {
	e := newEnv(t, 3)
	begin := time.Now()
	e.pull("job", "nginx:hang-pull", "parallelism: 1", "pullPolicy: {timeoutSeconds: 5}", "completionPolicy: {activeDeadlineSeconds: 5}")
	status := e.completed("job").Status
	if took := time.Since(begin); took < 4*time.Second {
		t.Errorf("the job was over after %s, want 5 s", took)
	}
	if diff := cmp.Diff(e.Nodes, status.FailedNodes); diff != "" || status.Failed != 3 || status.Active != 0 || status.Message != "job exceeds activeDeadlineSeconds" {
		t.Errorf("status is %+v, nodes (-want +got):\n%s", status, diff)
	}
}

func TestParallelism(t *testing.T) {
	e := newEnv(t, 4)
	e.pull("job", "nginx:paused", "parallelism: 0")
	e.Eventually("the job has been looked at", func() error {
		if e.job("job").Status.Desired != 4 {
			return fmt.Errorf("it has not")
		}
		return nil
	})
	e.Always(time.Second, "a paused job does nothing", func() error {
		for _, node := range e.Nodes {
			if tags := e.tags(node, "nginx"); len(tags) > 0 {
				return fmt.Errorf("node %s is asked for %v", node, tags)
			}
		}
		return nil
	})
	e.Must(e.editJob("job", `{parallelism: "2"}`))
	if status := e.completed("job").Status; status.Succeeded != 4 {
		t.Errorf("status is %+v", status)
	}
}

func TestImageOfARunningJobChanges(t *testing.T) {
	e := newEnv(t, 2)
	e.pull("job", "nginx:hang-pull", "parallelism: 2")
	e.Eventually("the nodes pull", func() error {
		if status := e.job("job").Status; status.Active != 2 {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	})
	e.Must(e.editJob("job", `{image: "redis:7"}`))
	if status := e.completed("job").Status; status.Succeeded != 2 {
		t.Errorf("status is %+v", status)
	}
	for _, node := range e.Nodes {
		if tags := e.tags(node, "nginx"); len(tags) > 0 {
			t.Errorf("node %s is still asked for %+v", node, tags)
		}
	}
	err := e.editJob("job", `{image: "redis:8"}`)
	if err == nil || !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "create a new one") {
		t.Errorf("changing a completed job: %v, want it refused", err)
	}
}

func TestJobLivesAsLongAsItIsToLive(t *testing.T) {
	e := newEnv(t, 1)
	e.pull("job", "nginx:short", "completionPolicy: {ttlSecondsAfterFinished: 1}")
	e.Eventually("the job is gone", func() error {
		job := &v1beta1.ImagePullJob{}
		err := e.Client.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "job"}, job)
		if err == nil {
			return fmt.Errorf("it is there: %+v", job.Status)
		}
		return client.IgnoreNotFound(err)
	})
}

func TestNodesThatAreNotReadyDelayNobody(t *testing.T) {
	e := newEnv(t, 4)
	dark := e.Nodes[0]
	e.stopNode(dark, true)
	e.pull("job", "nginx:dark", "parallelism: 1")
	e.Eventually("the other nodes have the image", func() error {
		status := e.job("job").Status
		if status.Succeeded != 3 || status.Active != 1 || !strings.HasSuffix(status.Message, "; not ready: "+dark) {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	})
	e.stopNode(dark, false)
	if status := e.completed("job").Status; status.Succeeded != 4 || status.Message != "job has completed" {
		t.Errorf("once it is back: %+v", status)
	}
}

// stopNode has the kubelet and the daemon of a node fall silent, or come back, and waits until the node is known not to be Ready, or to be.
func (e *env) stopNode(name string, stopped bool) {
	e.Helper()
	e.EditNode(name, func(node *corev1.Node) {
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		node.Annotations["sim.kruise.io/stopped"] = fmt.Sprint(stopped)
	})
	e.Eventually("the node has changed", func() error {
		node := &corev1.Node{}
		e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Name: name}, node))
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && (c.Status != corev1.ConditionTrue) == stopped {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", node.Status.Conditions)
	})
}

func TestJobOnTheNodesOfPods(t *testing.T) {
	e := newEnv(t, 3)
	for i, node := range e.Nodes[:2] {
		e.Must(e.Client.Create(e.Ctx, &corev1.Pod{
			ObjectMeta: metaOf(e.Namespace, fmt.Sprintf("pod-%d", i), map[string]string{"app": "web"}),
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "app", Image: "busybox:1"}}},
		}))
	}
	e.Must(e.create("ImagePullJob", "job", "image: nginx:pods\npodSelector: {matchLabels: {app: web}}"))
	if status := e.completed("job").Status; status.Succeeded != 2 {
		t.Errorf("status is %+v", status)
	}
	if tags := e.tags(e.Nodes[2], "nginx"); len(tags) > 0 {
		t.Errorf("a node without such Pods is asked for %v", tags)
	}
}

func TestJobWaitsForWhatItNames(t *testing.T) {
	e := newEnv(t, 1)
	e.Must(e.create("ImagePullJob", "pods", "image: nginx:waits\npodSelector: {matchLabels: {app: later}}"))
	e.Must(e.create("ImagePullJob", "names", fmt.Sprintf("image: nginx:waits\nselector: {names: [%s, no-such-node]}", e.Nodes[0])))
	if status := e.completed("names").Status; status.Succeeded != 1 || status.Desired != 1 || !strings.Contains(status.Message, "no such node: no-such-node") {
		t.Errorf("status is %+v", status)
	}
	e.Eventually("a job that selects no Pod yet says that it runs", func() error {
		if status := e.job("pods").Status; status.CompletionTime != nil || status.Message != "job is running, no progress" {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	})
	e.Must(e.Client.Create(e.Ctx, &corev1.Pod{
		ObjectMeta: metaOf(e.Namespace, "pod", map[string]string{"app": "later"}),
		Spec:       corev1.PodSpec{NodeName: e.Nodes[0], Containers: []corev1.Container{{Name: "app", Image: "busybox:1"}}},
	}))
	e.completed("pods")
}
