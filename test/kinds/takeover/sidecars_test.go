package takeover

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// hashWithoutImage is that of the recorded SidecarSet.
const hashWithoutImage = "6842f858x77v9c4f929ccvcvc9zbc94d5d5fx6425cfx25wv5dd77xc97bxx9w95"

// TestTakeoverOfSidecars finds Pods in which the original updated a sidecar, one with the annotations of its first releases, which noted bare hashes
// (written from one of the others), and one like it that it could not update: none of them is written to, and all count as they did. A new image reaches those that can take it.
func TestTakeoverOfSidecars(t *testing.T) {
	w := newWorld(t, "sidecars.json")
	before := w.versions("v1", "Pod")
	manager, err := w.StartManager(w.Ctx, cluster.ManagerOptions{Dir: filepath.Join(w.Dir, "manager")})
	w.Must(err)
	defer manager.Stop()
	w.sidecarsCount(v1beta1.SidecarSetStatus{MatchedPods: 4, UpdatedPods: 3, ReadyPods: 4, UpdatedReadyPods: 3, NotUpgradablePods: 1, LatestRevision: "log-sidecar-9b4977fbf"})
	time.Sleep(3 * time.Second)
	w.unchanged("Pod", before, w.versions("v1", "Pod"))

	w.Must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		set := w.sidecarSet()
		set.Spec.Containers[0].Image = "busybox:1.36"
		return w.Client.Update(w.Ctx, set)
	}))
	w.Eventually("all Pods but one are updated", func() error {
		w.playKubelet()
		for _, p := range w.pods() {
			want := "busybox:1.36"
			if p.Name == "other-sidecar" {
				want = "busybox:1.35"
			}
			got, runs := pod.Container(&p, "log").Image, pod.ContainerStatus(&p, "log").Image
			if got != want || !strings.HasSuffix(runs, want) || !pod.IsReady(&p) {
				return fmt.Errorf("Pod %s is to run %s, runs %s, ready %t", p.Name, got, runs, pod.IsReady(&p))
			}
		}
		return nil
	})
	w.sidecarsCount(v1beta1.SidecarSetStatus{MatchedPods: 4, UpdatedPods: 3, ReadyPods: 4, UpdatedReadyPods: 3, NotUpgradablePods: 1, LatestRevision: w.sidecarSet().Status.LatestRevision})
	w.isInPresentForm("first-form", w.sidecarSet().Annotations[keys.SidecarSetHash])
	if t.Failed() {
		t.Log(manager.Tail(40))
	}
}

func (w *world) sidecarSet() *v1beta1.SidecarSet {
	w.Helper()
	set := &v1beta1.SidecarSet{}
	w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Name: "log-sidecar"}, set))
	return set
}

// sidecarsCount waits until the status of the SidecarSet has these numbers.
func (w *world) sidecarsCount(want v1beta1.SidecarSetStatus) {
	w.Helper()
	w.Eventually("the SidecarSet counts its Pods", func() error {
		set := w.sidecarSet()
		got := v1beta1.SidecarSetStatus{
			MatchedPods: set.Status.MatchedPods, UpdatedPods: set.Status.UpdatedPods, ReadyPods: set.Status.ReadyPods,
			UpdatedReadyPods: set.Status.UpdatedReadyPods, NotUpgradablePods: set.Status.NotUpgradablePods, LatestRevision: set.Status.LatestRevision,
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || set.Status.ObservedGeneration != set.Generation || len(set.Status.Conditions) == 0 {
			return fmt.Errorf("of generation %d it says %+v", set.Generation, set.Status)
		}
		return nil
	})
}

// isInPresentForm checks that both annotations of a Pod hold records, and not bare hashes, and that the Pod has the sidecar of a hash.
func (w *world) isInPresentForm(name, hash string) {
	w.Helper()
	p := &corev1.Pod{}
	w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, p))
	for key, hash := range map[string]string{keys.SidecarSetHash: hash, keys.SidecarSetHashWithoutImage: hashWithoutImage} {
		records, err := sidecar.RecordsIn(p, key)
		w.Must(err)
		if r := records["log-sidecar"]; r.Hash != hash || !strings.Contains(p.Annotations[key], `"sidecarSetName":"log-sidecar"`) {
			w.Errorf("annotation %s of %s is %s", key, name, p.Annotations[key])
		}
	}
}
