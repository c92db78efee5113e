package images

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

func TestWhatIsRefused(t *testing.T) {
	e := newEnv(t, 0)
	images := make([]string, 256)
	for i := range images {
		images[i] = fmt.Sprintf("a:%d", i)
	}
	for name, tc := range map[string]struct{ kind, spec, want string }{
		"names and labels":            {"ImagePullJob", "{image: a, selector: {names: [a], matchLabels: {a: b}}}", "can not set both names and labelSelector in this spec.selector"},
		"nodes and Pods":              {"ImagePullJob", "{image: a, selector: {names: [a]}, podSelector: {matchLabels: {a: b}}}", "can not set both selector and podSelector"},
		"a name twice":                {"ImagePullJob", "{image: a, selector: {names: [a, b, a]}}", "duplicated name in selector names"},
		"a selector without sense":    {"ImagePullJob", "{image: a, podSelector: {matchExpressions: [{key: a, operator: Near}]}}", "Near"},
		"no image":                    {"ImagePullJob", "{}", "spec.image"},
		"an empty image":              {"ImagePullJob", "{image: ''}", "spec.image"},
		"an image without sense":      {"ImagePullJob", "{image: 'A b'}", "invalid image A b: "},
		"a share of the nodes":        {"ImagePullJob", "{image: a, parallelism: 50%}", "parallelism does not support percentage value"},
		"a negative number":           {"ImagePullJob", "{image: a, parallelism: -1}", "parallelism must be non-negative"},
		"a deadline before a timeout": {"ImagePullJob", "{image: a, completionPolicy: {activeDeadlineSeconds: 599}}", "completionPolicy.activeDeadlineSeconds must be greater than pullPolicy.timeoutSeconds(default 600)"},
		"a life after no end":         {"ImagePullJob", "{image: a, completionPolicy: {type: Never, ttlSecondsAfterFinished: 1}}", "activeDeadlineSeconds and ttlSecondsAfterFinished can only work with Always CompletionPolicyType"},
		"an unknown end":              {"ImagePullJob", "{image: a, completionPolicy: {type: Sometimes}}", "Sometimes"},
		"an unknown pull policy":      {"ImagePullJob", "{image: a, imagePullPolicy: Never}", "Never"},
		"no images":                   {"ImageListPullJob", "{images: []}", "spec.images"},
		"an image twice":              {"ImageListPullJob", "{images: [a, b, a]}", "images cannot have duplicate values"},
		"256 images":                  {"ImageListPullJob", "{images: ['" + strings.Join(images, "', '") + "']}", "255"},
		"a list's deadline":           {"ImageListPullJob", "{images: [a], completionPolicy: {activeDeadlineSeconds: 599}}", "must be greater than pullPolicy.timeoutSeconds"},
		"a tag twice":                 {"NodeImage", "{images: {a: {tags: [{tag: a, pullPolicy: {ttlSecondsAfterFinished: 1}}, {tag: a, pullPolicy: {ttlSecondsAfterFinished: 1}}]}}}", "Duplicate"},
		"a tag without an end":        {"NodeImage", "{images: {a: {tags: [{tag: a}]}}}", "ttlSecondsAfterFinished is required"},
		"a tag without a name":        {"NodeImage", "{images: {a: {tags: [{tag: '', pullPolicy: {ttlSecondsAfterFinished: 1}}]}}}", "tags"},
		"a negative version":          {"NodeImage", "{images: {a: {tags: [{tag: a, version: -1, pullPolicy: {ttlSecondsAfterFinished: 1}}]}}}", "version"},
	} {
		t.Run(name, func(t *testing.T) {
			err := e.create(tc.kind, e.Namespace+"-refused", tc.spec)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !apierrors.IsInvalid(err) {
				t.Errorf("creating: %v, want it refused as invalid because of %q", err, tc.want)
			}
		})
	}
}

func TestPullSecretsCannotBeChanged(t *testing.T) {
	e := newEnv(t, 0)
	e.pull("job", "nginx:1", "pullSecrets: [a]", "parallelism: 0")
	if err := e.editJob("job", "{pullSecrets: [b]}"); err == nil || !strings.Contains(err.Error(), "spec.pullSecrets is immutable") {
		t.Errorf("changing pullSecrets: %v", err)
	}
}

// TestBothVersions writes NodeImages and jobs in one version and reads them in the other.
func TestBothVersions(t *testing.T) {
	e := newEnv(t, 0)
	older := func(kind, name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("apps.kruise.io/v1alpha1")
		o.SetKind(kind)
		o.SetName(name)
		if kind != "NodeImage" {
			o.SetNamespace(e.Namespace)
		}
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(o), o))
		return o
	}
	e.pull("job", "nginx:1", "parallelism: 0", "sandboxConfig: {annotations: {a: b}}")
	job := older("ImagePullJob", "job")
	if image, _, _ := unstructured.NestedString(job.Object, "spec", "image"); image != "nginx:1" {
		t.Errorf("the older version reads %v", job.Object["spec"])
	}
	name := e.Namespace + "-versions"
	secrets := []v1beta1.ReferenceObject{{Namespace: "a", Name: "b", Mode: "batch"}}
	tags := []v1beta1.ImageTagSpec{{Tag: "1", PullPolicy: &v1beta1.ImageTagPullPolicy{TTLSecondsAfterFinished: new(int32(1))}}}
	hub := &v1beta1.NodeImage{Spec: v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{"nginx": {PullSecrets: secrets, Tags: tags}}}}
	hub.Name, hub.Labels = name, map[string]string{keys.FakeNodeImage: "true"} // kept although there is no node of that name
	e.Must(e.Client.Create(e.Ctx, hub))
	image := older("NodeImage", name)
	if image.GetAnnotations()[keys.NodeImageSecretModes] == "" {
		t.Errorf("the older version lacks the mode: %v", image.Object)
	}
	scene.Edit(e.Env, name, image, func(image *unstructured.Unstructured) {
		image.SetLabels(map[string]string{keys.FakeNodeImage: "true", "written": "older"})
	})
	if hub := e.nodeImage(name); hub.Labels["written"] != "older" || hub.Spec.Images["nginx"].PullSecrets[0].Mode != "batch" {
		t.Errorf("the older version wrote, and the stored one reads labels %v and spec %+v", hub.Labels, hub.Spec)
	}
}

// TestExamples: what is shipped to start from works.
func TestExamples(t *testing.T) {
	e := newSerialEnv(t, 0)
	root, err := cluster.Root()
	e.Must(err)
	files, err := filepath.Glob(filepath.Join(root, "examples", "image*.yaml"))
	e.Must(err)
	if len(files) != 3 {
		t.Fatalf("there are %d examples", len(files))
	}
	for _, file := range files {
		e.Must(e.ApplyFileIn(e.Ctx, file, e.Namespace))
	}
	e.Eventually("images are pulled", func() error {
		if job := e.job("nginx"); job.Status.Succeeded == 0 {
			return fmt.Errorf("status is %+v", job.Status)
		}
		if job := e.job("base"); job.Status.Succeeded == 0 || job.Status.CompletionTime != nil {
			return fmt.Errorf("status is %+v", job.Status)
		}
		if list := e.list("release"); list.Status.Active != 2 && list.Status.Completed == 0 {
			return fmt.Errorf("status is %+v", list.Status)
		}
		return nil
	})
	for _, kind := range []client.Object{&v1beta1.ImagePullJob{}, &v1beta1.ImageListPullJob{}} {
		e.Must(e.Client.DeleteAllOf(e.Ctx, kind, client.InNamespace(e.Namespace)))
	}
	e.Eventually("nothing is left of them", func() error {
		var all v1beta1.NodeImageList
		e.Must(e.Client.List(e.Ctx, &all))
		for _, image := range all.Items {
			if len(image.Spec.Images) > 0 || len(image.Status.ImageStatuses) > 0 {
				return fmt.Errorf("NodeImage %s lists %v", image.Name, image.Spec.Images)
			}
		}
		return nil
	})
}
