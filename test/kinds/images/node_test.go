package images

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

func metaOf(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
}

func TestNodeImagesFollowNodes(t *testing.T) {
	e := newEnv(t, 0)
	for name, labels := range map[string]map[string]string{
		e.Namespace + "-real": {"kruise.io/local-node": "simulated", pool: e.Namespace}, e.Namespace + "-virtual": {"kruise.io/local-node": "simulated", "type": "virtual-kubelet"},
	} {
		e.Must(e.Client.Create(e.Ctx, &corev1.Node{ObjectMeta: metaOf("", name, labels)}))
	}
	name := e.Namespace + "-real"
	created := &v1beta1.NodeImage{}
	e.Eventually("there is a NodeImage", func() error {
		created = e.nodeImage(name)
		if created.UID == "" {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	node := &corev1.Node{}
	e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Name: name}, node))
	for _, c := range node.Status.Conditions {
		if age := created.CreationTimestamp.Sub(c.LastTransitionTime.Time); c.Type == corev1.NodeReady && age < birth {
			t.Errorf("the NodeImage came %s after its node was ready, want %s at least", age, birth)
		}
	}
	e.EditNode(name, func(node *corev1.Node) {
		node.Labels["added"] = "yes"
		delete(node.Labels, pool)
	})
	e.Eventually("the NodeImage has the labels of the node", func() error {
		image := e.nodeImage(name)
		if _, still := image.Labels[pool]; still || image.Labels["added"] != "yes" {
			return fmt.Errorf("its labels are %v", image.Labels)
		}
		return nil
	})
	if image := e.nodeImage(e.Namespace + "-virtual"); image.UID != "" {
		t.Error("a node without a machine has a NodeImage")
	}
	e.Must(e.Client.Delete(e.Ctx, node))
	e.Eventually("the NodeImage is gone", func() error {
		if e.nodeImage(name).UID != "" {
			return fmt.Errorf("it is there")
		}
		return nil
	})
	e.Must(e.Client.Delete(e.Ctx, &corev1.Node{ObjectMeta: metaOf("", e.Namespace+"-virtual", nil)}))
}

func TestTagsOfUsersAreKeptForTheirTime(t *testing.T) {
	e := newEnv(t, 1)
	edit := func(spec string) error {
		return e.Client.Patch(e.Ctx, e.nodeImage(e.Nodes[0]), client.RawPatch("application/merge-patch+json", []byte(spec)))
	}
	if err := edit(`{"spec":{"images":{"nginx":{"tags":[{"tag":"by-hand"}]}}}}`); err == nil {
		t.Error("a tag without a time to live was taken")
	}
	begin := time.Now()
	e.Must(edit(`{"spec":{"images":{"nginx":{"tags":[{"tag":"z","pullPolicy":{"ttlSecondsAfterFinished":4}},{"tag":"by-hand","pullPolicy":{"ttlSecondsAfterFinished":4}}]}}}}`))
	if image := e.nodeImage(e.Nodes[0]).Spec.Images["nginx"]; image.Tags[0].Tag != "by-hand" || image.Tags[0].CreatedAt == nil {
		t.Errorf("the tags are %+v, want them sorted and with a time", image.Tags)
	}
	e.Eventually("the image is there", func() error {
		if got := e.tagStatuses(e.Nodes[0], "nginx")["by-hand"]; got.Phase != v1beta1.ImagePhaseSucceeded {
			return fmt.Errorf("the node says %+v", got)
		}
		return nil
	})
	e.Eventually("the tags are gone", func() error {
		if image := e.nodeImage(e.Nodes[0]); len(image.Spec.Images) > 0 || len(image.Status.ImageStatuses) > 0 {
			return fmt.Errorf("the NodeImage says %+v, %+v", image.Spec, image.Status)
		}
		return nil
	})
	if took := time.Since(begin); took < 4*time.Second {
		t.Errorf("the tags were gone after %s, want 4 s at least", took)
	}
}

// TestANodeImageOfNoNodeIsDeleted by the manager where no garbage collector does so, because it has no owner.
func TestANodeImageOfNoNodeIsDeleted(t *testing.T) {
	e := newEnv(t, 0)
	name := e.Namespace + "-ghost"
	e.Must(e.Client.Create(e.Ctx, &v1beta1.NodeImage{ObjectMeta: metaOf("", name, nil)}))
	e.Eventually("it is gone", func() error {
		if e.nodeImage(name).UID != "" {
			return fmt.Errorf("it is there")
		}
		return nil
	})
}

// TestANodeThatDoesNotAnswerFailsItsPulls: the manager says so in the status, in place of a daemon that there is not.
func TestANodeThatDoesNotAnswerFailsItsPulls(t *testing.T) {
	e := newEnv(t, 0)
	name := e.Namespace + "-silent"
	asked := metav1.NewTime(time.Now().Add(-24 * time.Hour))
	silent := &v1beta1.NodeImage{ObjectMeta: metaOf("", name, map[string]string{keys.FakeNodeImage: "true"})}
	policy := &v1beta1.ImageTagPullPolicy{TTLSecondsAfterFinished: new(int32(3600))}
	silent.Spec.Images = map[string]v1beta1.ImageSpec{
		"nginx": {Tags: []v1beta1.ImageTagSpec{{Tag: "1.27", CreatedAt: &asked, PullPolicy: policy}}},
	}
	e.CleanUp(silent)
	e.Must(e.Client.Create(e.Ctx, silent))
	e.Eventually("its pull has failed", func() error {
		image := e.nodeImage(name)
		for _, tag := range image.Status.ImageStatuses["nginx"].Tags {
			if tag.Phase == v1beta1.ImagePhaseFailed {
				return nil
			}
		}
		return fmt.Errorf("its status is %+v", image.Status)
	})
}

// TestAJobOfAnOlderInstallationCanGo: it has a finalizer that nobody else takes off.
func TestAJobOfAnOlderInstallationCanGo(t *testing.T) {
	e := newEnv(t, 0)
	job := e.Make(`{apiVersion: apps.kruise.io/v1beta1, kind: ImagePullJob, metadata: {name: old, finalizers: [` + keys.ImagePullJobFinalizer + `]},
spec: {image: "nginx:1.27", completionPolicy: {type: Never}}}`)
	e.Must(e.Client.Delete(e.Ctx, job))
	e.Eventually("it is gone", func() error {
		return e.isGone("old")
	})
}

// isGone returns an error as long as an ImagePullJob is there.
func (e *env) isGone(name string) error {
	err := e.Client.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, &v1beta1.ImagePullJob{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("it is there: %v", err) //nolint:errorlint // there may be no error
}
