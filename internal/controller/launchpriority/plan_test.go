package launchpriority

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/launch"
)

// held returns a Pod of the containers side, of priority 1, and main, of 0, of which those that are named are ready.
func held(ready ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "u"}}
	p.Spec.Containers = []corev1.Container{{Name: "side"}, {Name: "main"}}
	launch.SetBarrier(p, "web-barrier", []int32{1, 0})
	for _, c := range p.Spec.Containers {
		status := corev1.ContainerStatus{Name: c.Name}
		if strings.Contains(strings.Join(ready, " "), c.Name) {
			status.Ready = true
		} else {
			status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError"}
		}
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, status)
	}
	return p
}

func annotated(p *corev1.Pod, annotations map[string]string) *corev1.Pod {
	p.Annotations = annotations
	return p
}

// opened returns the barrier of the Pod u, as the cache has it: without data.
func opened(key string, change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	barrier := launch.NewBarrier(held(), "web-barrier", launch.Turn{})
	barrier.Data = nil
	barrier.Annotations[keys.ContainerLaunchPriorityCurrent] = key
	for _, f := range change {
		f(barrier)
	}
	return barrier
}

func TestPlan(t *testing.T) {
	completed := map[string]string{keys.ContainerLaunchPriorityCompleted: "true"}
	deleted := func(p *corev1.Pod) *corev1.Pod {
		p.DeletionTimestamp = &metav1.Time{}
		return p
	}
	former := func(barrier *corev1.ConfigMap) { barrier.OwnerReferences[0].UID = "earlier" }
	foreign := func(barrier *corev1.ConfigMap) { barrier.OwnerReferences = nil }
	unlabelled := func(barrier *corev1.ConfigMap) {
		barrier.Labels, barrier.Annotations = nil, nil
		barrier.Data = map[string]string{"p_1": "true", "p_0": "true"}
	}
	for name, tc := range map[string]struct {
		pod     *corev1.Pod
		barrier *corev1.ConfigMap
		want    string
	}{
		"a new Pod": {held(), nil, "create web-barrier (p_1)"},
		"the first group starts, and its kubelet is woken": {held(), opened("p_1"), "wake the kubelet of web"},
		"the kubelet has been woken":                       {annotated(held(), map[string]string{keys.ContainerLaunchPriorityCurrent: "p_1"}), opened("p_1"), ""},
		"the first group is ready":                         {held("side"), opened("p_1"), "open p_0 (p_1 p_0)"},
		"the last group may start":                         {held("side"), opened("p_0"), "mark web as completed"},
		"all of it is done":                                {annotated(held("side", "main"), completed), opened("p_0"), ""},
		"a container is not ready any more":                {annotated(held("main"), completed), opened("p_0"), ""},
		"a container is not ready while others start":      {held("main"), opened("p_0"), "mark web as completed"},
		"the barrier was deleted after all":                {annotated(held("side"), completed), nil, "create web-barrier (p_1 p_0)"},
		"the barrier was deleted before":                   {held("side"), nil, "create web-barrier (p_1 p_0)"},
		"the barrier of an earlier Pod":                    {held(), opened("p_0", former), "delete web-barrier; create web-barrier (p_1)"},
		"somebody else's ConfigMap":                        {held(), opened("p_0", foreign), "hold BarrierConflict"},
		"a barrier that other software made":               {annotated(held("side", "main"), completed), opened("", unlabelled), "open p_0 (p_1 p_0)"},
		"a late creation has made the barrier anew":        {annotated(held("side", "main"), completed), opened("p_1"), "open p_0 (p_1 p_0)"},
		"a Pod on its way out":                             {deleted(annotated(held(), completed)), opened("p_0"), "delete web-barrier"},
		"a Pod on its way out, and the next one's barrier": {deleted(held()), opened("p_1", func(c *corev1.ConfigMap) { c.OwnerReferences[0].UID = "next" }), ""},
		"a Pod that has ended":                             {func() *corev1.Pod { p := held(); p.Status.Phase = corev1.PodSucceeded; return p }(), nil, ""},
		"a Pod that is not held":                           {&corev1.Pod{}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.pod.DeepCopy()
			if got := told(Plan(Snapshot{Pod: tc.pod, Barrier: tc.barrier})); got != tc.want {
				t.Errorf("plan: %s\nwant: %s", got, tc.want)
			}
			if diff := cmp.Diff(before, tc.pod); diff != "" {
				t.Errorf("the Pod was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// told returns a plan's writes and holds in words, with the keys that are in the barrier then.
func told(p plan.Plan) string {
	var all []string
	for _, a := range p.Actions() {
		text := a.What
		if barrier, ok := a.After.(*corev1.ConfigMap); ok {
			var open []string
			for _, key := range []string{"p_1", "p_0"} {
				if barrier.Data[key] == "true" {
					open = append(open, key)
				}
			}
			text += " (" + strings.Join(open, " ") + ")"
		}
		all = append(all, text)
	}
	for _, h := range p.Holds {
		all = append(all, "hold "+h.Event)
	}
	return strings.Join(all, "; ")
}
