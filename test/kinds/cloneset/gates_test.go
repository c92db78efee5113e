package cloneset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

func TestRaisedPartitionTakesPodsBackOnlyWithItsGate(t *testing.T) {
	for name, tc := range map[string]struct {
		where   *scene.Site
		updated int32
	}{
		"with the gate, no Pod stays updated":    {where: gated, updated: 0},
		"without the gate, updated Pods stay so": {where: usual, updated: 2},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnvAt(t, tc.where)
			set := e.plain("back", 5)
			set.Spec.UpdateStrategy.RollingUpdate.Partition = number(5)
			e.Must(e.Client.Create(e.Ctx, set))
			e.settled("back", 5, 5)
			h := e.record("back")
			e.edit("back", image("nginx:mainline"))
			e.settled("back", 5, 0)
			e.edit("back", partition(3))
			e.settled("back", 5, 2)
			between := uids(e.pods("back"))
			e.edit("back", partition(5))
			e.settled("back", 5, tc.updated)
			e.Always(time.Second, "it stays so", func() error {
				if got := e.cloneSet("back").Status.UpdatedReplicas; got != tc.updated {
					return fmt.Errorf("%d Pods are updated", got)
				}
				return nil
			})
			kept := 0
			for _, uid := range uids(e.pods("back")) {
				if slices.Contains(between, uid) {
					kept++
				}
			}
			if want := int(3 + tc.updated); kept != want {
				t.Errorf("%d Pods were left alone when the partition was raised, want %d", kept, want)
			}
			h.read(func(h *history) {
				if h.fewestAvailable < 4 {
					t.Errorf("as few as %d Pods were available, want 4", h.fewestAvailable)
				}
			})
		})
	}
}

func TestClaimTemplatesChangeRecreatesWithItsGate(t *testing.T) {
	e := newEnvAt(t, gated)
	set := e.inPlace("bigger", 2)
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-vol"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data-vol", MountPath: "/data"}}
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("bigger", 2, 2)
	first := e.pods("bigger")

	t.Log("an image alone changes in place")
	e.edit("bigger", image("nginx:1.27"))
	e.settled("bigger", 2, 2)
	if after := e.pods("bigger"); !slices.Equal(uids(after), uids(first)) {
		t.Errorf("Pods are %v, were %v", names(after), names(first))
	}

	t.Log("with other claim templates, new Pods come with new claims")
	e.edit("bigger", func(set *v1beta1.CloneSet) {
		set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = quantity("2Gi")
		image("nginx:mainline")(set)
	})
	e.settled("bigger", 2, 2)
	for _, name := range names(e.pods("bigger")) {
		if slices.Contains(names(first), name) {
			t.Errorf("Pod %s was not recreated", name)
		}
	}
	e.claimPerPod("bigger", 2)
	for _, c := range e.claims("bigger") {
		if got := c.Spec.Resources.Requests.Storage().String(); got != "2Gi" {
			t.Errorf("claim %s asks for %s, want 2Gi", c.Name, got)
		}
	}
}

func TestShortHashLeavesRoomForLongNames(t *testing.T) {
	e := newEnvAt(t, gated)
	name := strings.Repeat("long-", 11) + "name" // 59 characters: with a hash behind it, it is too long for the value of a label
	set := e.plain(name, 2)
	set.Spec.Selector.MatchLabels, set.Spec.Template.Labels = map[string]string{"app": "long"}, map[string]string{"app": "long"}
	e.Must(e.Client.Create(e.Ctx, set))
	hash, ok := strings.CutPrefix(e.settled(name, 2, 2).Status.UpdateRevision, name+"-")
	if !ok {
		t.Errorf("the update revision is not named after the CloneSet and a hash")
	}
	for _, p := range e.pods(name) {
		if got := p.Labels["controller-revision-hash"]; got != hash {
			t.Errorf("Pod %s is labelled with revision %s, want %s", p.Name, got, hash)
		}
	}
}

func TestPodLostWhileAnotherWaitsForItsUpdateComesBackOldWithItsGate(t *testing.T) {
	for name, tc := range map[string]struct {
		where *scene.Site
		old   int
	}{
		"with the gate, the waiting Pod counts as updated": {where: gated, old: 3},
		"without the gate, the new Pod is the updated one": {where: usual, old: 2},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnvAt(t, tc.where)
			set := e.inPlace("waits", 3)
			set.Spec.UpdateStrategy.RollingUpdate.Partition = number(2)
			set.Spec.Lifecycle = &pub.Lifecycle{InPlaceUpdate: &pub.LifecycleHook{LabelsHandler: map[string]string{"example.io/hold": "true"}}}
			set.Spec.Template.Labels["example.io/hold"] = "true"
			e.Must(e.Client.Create(e.Ctx, set))
			before := e.settled("waits", 3, 3).Status.UpdateRevision
			e.edit("waits", image("nginx:mainline"))
			e.Eventually("one Pod waits for its hook", func() error {
				if n := len(e.inState("waits", pub.LifecycleStatePreparingUpdate)); n != 1 {
					return fmt.Errorf("%d do", n)
				}
				return nil
			})
			waiting := e.inState("waits", pub.LifecycleStatePreparingUpdate)[0]
			others := slices.DeleteFunc(e.pods("waits"), func(p corev1.Pod) bool { return p.Name == waiting })
			e.Must(e.Client.Delete(e.Ctx, &others[0]))
			e.Eventually("another Pod is ready in the place of the one that is gone", func() error {
				pods := e.allPods("waits")
				if len(pods) != 3 || slices.Contains(uids(pods), string(others[0].UID)) {
					return fmt.Errorf("Pods are %v", names(pods))
				}
				for i := range pods {
					if !scene.IsReady(&pods[i]) {
						return fmt.Errorf("Pod %s is not", pods[i].Name)
					}
				}
				return nil
			})
			old := 0
			for _, p := range e.pods("waits") {
				if hash := p.Labels["controller-revision-hash"]; strings.HasSuffix(before, hash) {
					old++
				}
			}
			if old != tc.old {
				t.Errorf("%d Pods are at the old revision, want %d\n%s", old, tc.old, e.describe())
			}
			for _, p := range e.pods("waits") {
				e.patchPod(p.Name, func(p *corev1.Pod) { delete(p.Labels, "example.io/hold") })
			}
		})
	}
}

// inState returns the names of a CloneSet's Pods that are in a lifecycle state.
func (e *env) inState(name string, state pub.LifecycleStateType) []string {
	e.Helper()
	return names(slices.DeleteFunc(e.pods(name), func(p corev1.Pod) bool { return p.Labels[keys.LifecycleState] != string(state) }))
}
