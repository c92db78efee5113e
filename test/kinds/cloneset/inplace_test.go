package cloneset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-69ecc383/kruise/test/kit/scene"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

func TestInPlaceKeepsPods(t *testing.T) {
	e := newEnv(t)
	e.Must(e.Client.Create(e.Ctx, e.inPlace("steady", 5)))
	e.settled("steady", 5, 5)
	before := e.pods("steady")
	h := e.record("steady")
	e.edit("steady", image("nginx:mainline"))
	e.settled("steady", 5, 5)
	after := e.pods("steady")
	for i := range before {
		e.sameButImage(&before[i], &after[i], "nginx:mainline")
	}
	h.read(func(h *history) {
		if h.fewestAvailable < 4 {
			t.Errorf("as few as %d Pods were available, want 4", h.fewestAvailable)
		}
		for name, states := range h.states {
			if !slices.Equal(states, []string{"Updating", "Normal"}) && !slices.Equal(states, []string{"Normal", "Updating", "Normal"}) {
				t.Errorf("Pod %s went through %v", name, states)
			}
		}
	})

	t.Log("a change that can't go in place recreates")
	e.edit("steady", func(set *v1beta1.CloneSet) {
		set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	})
	e.settled("steady", 5, 5)
	for _, name := range names(e.pods("steady")) {
		if slices.Contains(names(before), name) {
			t.Errorf("Pod %s was not recreated", name)
		}
	}
}

// sameButImage checks that a Pod was updated in place: all that makes it itself is the same, its container restarted once with the image.
func (e *env) sameButImage(before, after *corev1.Pod, image string) {
	e.Helper()
	if before.UID != after.UID || before.Status.PodIP != after.Status.PodIP || before.Spec.NodeName != after.Spec.NodeName {
		e.Errorf("Pod %s: UID, IP, node were %s, %s, %s and are %s, %s, %s", before.Name,
			before.UID, before.Status.PodIP, before.Spec.NodeName, after.UID, after.Status.PodIP, after.Spec.NodeName)
	}
	was, is := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]
	if after.Spec.Containers[0].Image != image || is.RestartCount != was.RestartCount+1 || is.ImageID == was.ImageID {
		e.Errorf("Pod %s: image %s, restarts %d after %d, imageID %s after %s", after.Name,
			after.Spec.Containers[0].Image, is.RestartCount, was.RestartCount, is.ImageID, was.ImageID)
	}
	state := after.Annotations[keys.InPlaceUpdateState]
	for _, want := range []string{`"updateImages":true`, was.ImageID} {
		if !strings.Contains(state, want) {
			e.Errorf("Pod %s: in-place record %s lacks %s", after.Name, state, want)
		}
	}
	if _, grace := after.Annotations[keys.InPlaceUpdateGrace]; grace {
		e.Errorf("Pod %s still has the record of a planned update", after.Name)
	}
}

func TestInPlaceWithGrace(t *testing.T) {
	e := newEnv(t)
	text := strings.Replace(e.manifest("cloneset-inplace-grace.yaml"), "gracePeriodSeconds: 10", "gracePeriodSeconds: 5", 1)
	e.Make(strings.Replace(text, "replicas: 5", "replicas: 1", 1))
	e.settled("graceful", 1, 1)
	before := e.pods("graceful")[0]
	e.edit("graceful", image("nginx:mainline"))
	pod := func() *corev1.Pod { return &e.pods("graceful")[0] }
	var began time.Time
	e.Eventually("the Pod is NotReady with its old image and a planned update", func() error {
		p := pod()
		_, planned := p.Annotations[keys.InPlaceUpdateGrace]
		if !planned || p.Spec.Containers[0].Image != "nginx:alpine" || scene.IsReady(p) {
			return fmt.Errorf("planned %v, image %s, ready %v", planned, p.Spec.Containers[0].Image, scene.IsReady(p))
		}
		began = time.Now()
		return nil
	})
	e.Eventually("the image changes", func() error {
		if got := pod().Spec.Containers[0].Image; got != "nginx:mainline" {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
	if waited := time.Since(began); waited < 4*time.Second {
		t.Errorf("the image changed after %s, want 5 s of grace", waited)
	}
	e.settled("graceful", 1, 1)
	after := e.pods("graceful")[0]
	e.sameButImage(&before, &after, "nginx:mainline")

	t.Log("rolled back during the grace period, the Pod keeps its image, restarts nothing and is ready again")
	e.edit("graceful", image("nginx:alpine"))
	e.Eventually("the next update is planned", func() error {
		if _, planned := pod().Annotations[keys.InPlaceUpdateGrace]; !planned {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	e.edit("graceful", image("nginx:mainline"))
	e.settled("graceful", 1, 1)
	if p := pod(); p.Spec.Containers[0].Image != "nginx:mainline" || !scene.IsReady(p) || p.UID != before.UID {
		t.Errorf("image %s, ready %v, UID %s, was %s", p.Spec.Containers[0].Image, scene.IsReady(p), p.UID, before.UID)
	}
	if is, was := pod().Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]; is.RestartCount != was.RestartCount || is.ContainerID != was.ContainerID {
		t.Errorf("the container was restarted for a change that was taken back: %d restarts after %d", is.RestartCount, was.RestartCount)
	}
}

func TestMetadataChangesRestartNothing(t *testing.T) {
	e := newEnv(t)
	set := e.inPlace("labelled", 3)
	set.Spec.Template.Annotations = map[string]string{"config": "1", "obsolete": "x"}
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("labelled", 3, 3)
	before := e.pods("labelled")
	e.edit("labelled", func(set *v1beta1.CloneSet) {
		set.Spec.Template.Annotations = map[string]string{"config": "2"}
		set.Spec.Template.Labels["tier"] = "web"
	})
	updated := e.settled("labelled", 3, 3)
	after := e.pods("labelled")
	for i := range after {
		p := &after[i]
		if p.UID != before[i].UID || p.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("Pod %s was recreated or restarted", p.Name)
		}
		if p.Annotations["config"] != "2" || p.Annotations["obsolete"] != "" || p.Labels["tier"] != "web" ||
			p.Labels["controller-revision-hash"] != updated.Status.UpdateRevision {
			t.Errorf("Pod %s has labels %v, annotations %v", p.Name, p.Labels, p.Annotations)
		}
	}
}

func TestInPlaceOnly(t *testing.T) {
	e := newEnv(t)
	set := e.plain("strict", 3)
	set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("strict", 3, 3)
	before := uids(e.pods("strict"))
	e.refused(e.tryEdit("strict", func(set *v1beta1.CloneSet) {
		set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	}), "spec.template", "InPlaceOnly")
	e.refused(e.tryEdit("strict", func(set *v1beta1.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = number(1)
	}), "maxSurge", "InPlaceOnly")
	e.edit("strict", image("nginx:mainline"))
	e.settled("strict", 3, 3)
	if after := uids(e.pods("strict")); !slices.Equal(before, after) {
		t.Errorf("Pods are %v, were %v", after, before)
	}
}
