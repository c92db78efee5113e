package rollout

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/test/kit/build"
)

func TestWaiting(t *testing.T) {
	now := build.Start().Add(time.Hour)
	ready := func(name string) *build.PodBuilder {
		return build.Pod(name).Created(build.Start()).Ready(build.Start())
	}
	broken := ready("web-b").NotReady()
	broken.Obj().Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}},
	}
	held := ready("web-a").State(pub.LifecycleStatePreparingDelete)
	late := ready("web-c").NotReady().Annotation(keys.LifecycleTimestamp, now.Add(-4*time.Second).Format(time.RFC3339))
	budget := plan.Hold{Code: reason.WaitPUB, Why: "PodUnavailableBudget web lets no more of its Pods become unavailable now", Event: apply.EventWaits}
	for name, tc := range map[string]struct {
		pods    []*build.PodBuilder
		holds   []plan.Hold
		results []apply.Result
		want    string
		recheck time.Duration
	}{
		"all is well":              {pods: []*build.PodBuilder{ready("web-a")}, want: "False Nothing "},
		"a hook holds a Pod":       {pods: []*build.PodBuilder{held}, want: "True WaitLifecycleHook web-a: its preDelete hook holds it"},
		"a container cannot start": {pods: []*build.PodBuilder{broken}, want: "True WaitImagePull web-b: container app waits with ImagePullBackOff"},
		"of several the first by name": {
			pods: []*build.PodBuilder{broken, held}, want: "True WaitLifecycleHook web-a: its preDelete hook holds it; 1 more Pod is not in service",
		},
		"of three the first by name": {
			pods: []*build.PodBuilder{broken, held, broken}, want: "True WaitLifecycleHook web-a: its preDelete hook holds it; 2 more Pods are not in service",
		},
		"something happened a moment ago": {pods: []*build.PodBuilder{broken, late}, want: "False Nothing ", recheck: 6 * time.Second},
		"something is written":            {pods: []*build.PodBuilder{broken}, results: []apply.Result{{}}, want: "False Nothing "},
		"a budget lets none go": {
			pods: []*build.PodBuilder{ready("web-a")}, holds: []plan.Hold{budget}, want: "True WaitPUB " + budget.Why,
		},
		"the user has ordered it": {
			pods: []*build.PodBuilder{ready("web-a")}, holds: []plan.Hold{{Why: "the update is paused: 1 Pods are not at web-2"}}, want: "False Nothing ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := Workload{Now: now, Object: &metav1.ObjectMeta{}}
			w.History.Update = build.Revision("web-new", 1, "{}")
			w.History.Current = w.History.Update
			var members []*Member
			for _, p := range tc.pods {
				m := w.Classify(p.Obj())
				members = append(members, &m)
			}
			p := plan.Plan{Holds: tc.holds}
			c := w.Waiting(members, p, apply.Outcome{Results: tc.results})
			if got := string(c.Status) + " " + c.Reason + " " + c.Message; got != tc.want {
				t.Errorf("Waiting is %q, want %q", got, tc.want)
			}
			if got := w.RecheckWaiting(members, p).Recheck; got != tc.recheck {
				t.Errorf("the plan looks again after %s, want %s", got, tc.recheck)
			}
		})
	}
}
