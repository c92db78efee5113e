package build

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// AnyPods draws up to limit Pods, with names of their own, in all sorts of conditions: few nodes, revisions and labels, so that they often
// have something in common.
func AnyPods(limit int) *rapid.Generator[[]*corev1.Pod] {
	return rapid.Custom(func(t *rapid.T) []*corev1.Pod {
		var pods []*corev1.Pod
		for i := range rapid.IntRange(0, limit).Draw(t, "pods") {
			pods = append(pods, anyPod(t, fmt.Sprintf("web-%02d", i)))
		}
		return rapid.Permutation(pods).Draw(t, "order")
	})
}

func anyPod(t *rapid.T, name string) *corev1.Pod {
	b := Pod(name).
		Node(rapid.SampledFrom([]string{"", "n1", "n2", "n3"}).Draw(t, "node")).
		Revision(rapid.SampledFrom([]string{"web-old", "web-new"}).Draw(t, "revision")).
		State(rapid.SampledFrom([]pub.LifecycleStateType{
			"", pub.LifecycleStateNormal, pub.LifecycleStatePreparingUpdate, pub.LifecycleStatePreparingDelete,
		}).Draw(t, "state")).
		Restarts(rapid.SliceOfN(rapid.Int32Range(0, 3), 0, 2).Draw(t, "restarts")...).
		Created(After(rapid.IntRange(0, 3).Draw(t, "created"))).
		Phase(rapid.SampledFrom([]corev1.PodPhase{
			corev1.PodPending, corev1.PodRunning, corev1.PodUnknown, corev1.PodFailed, corev1.PodSucceeded,
		}).Draw(t, "phase"))
	if ready := rapid.IntRange(-1, 3).Draw(t, "ready"); ready >= 0 {
		b.Ready(After(ready))
	}
	if value := rapid.SampledFrom([]string{"", "a", "b", "sts-9", "sts-10"}).Draw(t, "label"); value != "" {
		b.Label("group", value)
	}
	if cost := rapid.SampledFrom([]string{"", "-1", "0", "100", "+5", "x"}).Draw(t, "cost"); cost != "" {
		b.Annotation(corev1.PodDeletionCost, cost)
	}
	if uid := rapid.SampledFrom([]types.UID{"", "uid-web", "uid-other"}).Draw(t, "controller"); uid != "" {
		b.Controller(uid)
	}
	if rapid.Bool().Draw(t, "deleting") {
		b.Deleting()
	}
	if id := rapid.SampledFrom([]string{"", "aaaaa", "bbbbb"}).Draw(t, "id"); id != "" {
		b.Instance(id)
	}
	p := b.Obj()
	if p.Labels[keys.LifecycleState] == "" {
		delete(p.Labels, keys.LifecycleState)
	}
	return p
}

// Names returns the names of Pods, in their order.
func Names(pods []*corev1.Pod) []string {
	names := make([]string, 0, len(pods))
	for _, p := range pods {
		names = append(names, p.Name)
	}
	return names
}
