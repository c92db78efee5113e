// Package images runs the jobs that pull images ahead of Pods on a real control plane with simulated nodes: one cluster and one manager for all tests,
// and for each a namespace and nodes of its own.
package images

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// pool is the label by which a test's nodes are known.
const pool = scene.Pool

// birth is how long a node must have been ready before it gets a NodeImage.
const birth = 2 * time.Second

// fleet is the number of nodes of the tests of many nodes.
var fleet = flag.Int("fleet", 60, "nodes of the tests of many nodes")

// shared is the cluster of all tests.
var shared = &scene.Site{Name: "images", Options: cluster.Options{Args: []string{"--sim-pull", "1s"}}, Args: []string{
	"--feature-gates=ImagePullJobGate=true,PreDownloadImageForInPlaceUpdate=true,PreDownloadImageForDaemonSetUpdate=true",
	"--nodeimage-creation-delay=" + birth.String(),
}}

func TestMain(m *testing.M) {
	scene.ParseFlags()
	shared.Options.Nodes = 80 + *fleet
	scene.Main(m, shared)
}

// env is a namespace and some nodes, for one test.
type env struct{ *scene.Env }

func newEnv(t *testing.T, nodes int) *env {
	t.Helper()
	t.Parallel()
	return newSerialEnv(t, nodes)
}

// newSerialEnv is for a test that no other may run beside.
func newSerialEnv(t *testing.T, nodes int) *env {
	t.Helper()
	e := &env{shared.Enter(t)}
	e.Describe = e.describe
	e.Timeout = max(e.Timeout, time.Minute+time.Duration(*fleet)*300*time.Millisecond) // many nodes take longer
	for range nodes {
		e.AddNode()
	}
	e.Eventually("the nodes have NodeImages", func() error {
		for _, name := range e.Nodes {
			if image := e.nodeImage(name); image.Labels[pool] != e.Namespace {
				return fmt.Errorf("NodeImage %s has labels %v", name, image.Labels)
			}
		}
		return nil
	})
	return e
}

// describe prints what is in the namespace, for the reader of a failure.
func (e *env) describe() string {
	var out strings.Builder
	var jobs v1beta1.ImagePullJobList
	var lists v1beta1.ImageListPullJobList
	err := errors.Join(e.Client.List(context.Background(), &jobs, client.InNamespace(e.Namespace)), e.Client.List(context.Background(), &lists, client.InNamespace(e.Namespace)))
	if err != nil {
		return err.Error()
	}
	for i := range lists.Items {
		fmt.Fprintf(&out, "ImageListPullJob %s: %+v\n", lists.Items[i].Name, lists.Items[i].Status)
	}
	for i := range jobs.Items {
		fmt.Fprintf(&out, "ImagePullJob %s %s: %+v\n", jobs.Items[i].Name, jobs.Items[i].Spec.Image, jobs.Items[i].Status)
	}
	for _, name := range e.Nodes {
		text, err := yaml.Marshal(e.nodeImage(name))
		fmt.Fprintf(&out, "%s%v\n", text, err)
	}
	return out.String()
}

// nodeImage reads the NodeImage of a node; an empty one where there is none.
func (e *env) nodeImage(name string) *v1beta1.NodeImage {
	e.Helper()
	image := &v1beta1.NodeImage{}
	if err := client.IgnoreNotFound(e.Client.Get(context.Background(), client.ObjectKey{Name: name}, image)); err != nil {
		e.Fatal(err)
	}
	return image
}

// create makes an object of the group from its spec, as YAML. It returns the answer of the API server.
func (e *env) create(kind, name, spec string) error {
	e.Helper()
	object := &unstructured.Unstructured{}
	e.Must(yaml.Unmarshal([]byte(spec), &object.Object))
	object.Object = map[string]any{"spec": object.Object}
	object.SetAPIVersion("apps.kruise.io/v1beta1")
	object.SetKind(kind)
	object.SetName(name)
	if kind != "NodeImage" {
		object.SetNamespace(e.Namespace)
	}
	return e.Client.Create(e.Ctx, object)
}

// pull creates an ImagePullJob on the nodes of the test, with further fields of the spec.
func (e *env) pull(name, image string, more ...string) {
	e.Helper()
	e.Must(e.create("ImagePullJob", name, e.spec(image, more...)))
}

func (e *env) spec(image string, more ...string) string {
	return fmt.Sprintf("image: %q\nselector: {matchLabels: {%s: %s}}\n%s", image, pool, e.Namespace, strings.Join(more, "\n"))
}

func (e *env) job(name string) *v1beta1.ImagePullJob {
	e.Helper()
	job := &v1beta1.ImagePullJob{}
	e.Read(name, job)
	return job
}

// editJob changes the spec of a job by a merge patch, as YAML.
func (e *env) editJob(name, spec string) error {
	e.Helper()
	patch, err := yaml.YAMLToJSON([]byte("spec: " + spec))
	e.Must(err)
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}
	return e.Client.Patch(e.Ctx, job, client.RawPatch("application/merge-patch+json", patch))
}

func (e *env) deleteJob(name string) {
	e.Helper()
	e.Must(e.Client.Delete(e.Ctx, &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}))
}

// completed waits until a job is over, and returns it.
func (e *env) completed(name string) *v1beta1.ImagePullJob {
	e.Helper()
	var job *v1beta1.ImagePullJob
	e.Eventually("job "+name+" is over", func() error {
		if job = e.job(name); job.Status.CompletionTime == nil {
			return fmt.Errorf("it is not: %s", job.Status.Message)
		}
		return nil
	})
	return job
}

// tags returns the tags of a repository that a node is asked for, by name.
func (e *env) tags(node, repository string) map[string]v1beta1.ImageTagSpec {
	e.Helper()
	out := map[string]v1beta1.ImageTagSpec{}
	for _, tag := range e.nodeImage(node).Spec.Images[repository].Tags {
		out[tag.Tag] = tag
	}
	return out
}

// tagStatuses returns the answers of a node about a repository, by tag.
func (e *env) tagStatuses(node, repository string) map[string]v1beta1.ImageTagStatus {
	e.Helper()
	out := map[string]v1beta1.ImageTagStatus{}
	for _, tag := range e.nodeImage(node).Status.ImageStatuses[repository].Tags {
		out[tag.Tag] = tag
	}
	return out
}
