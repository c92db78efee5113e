package pulls

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// TestARegistryThatHangs: the job is over at its deadline, and every node has failed once, those that pull and those that were not asked yet.
func TestARegistryThatHangs(t *testing.T) {
	w := newWorld(t, 3, `{image: "nginx:hangs", parallelism: 2, pullPolicy: {timeoutSeconds: 30}, completionPolicy: {activeDeadlineSeconds: 30}}`)
	w.takes["nginx:hangs"] = 24 * time.Hour
	w.run(time.Minute, time.Second)
	s := w.job().Status
	if took := w.since(s.CompletionTime); took < 30*time.Second || took > 35*time.Second {
		t.Errorf("the job was over after %s, its deadline is 30 s", took)
	}
	if diff := cmp.Diff([]string{"n0", "n1", "n2"}, s.FailedNodes); diff != "" || s.Failed != 3 || s.Active != 0 || s.Message != "job exceeds activeDeadlineSeconds" {
		t.Errorf("status %+v, nodes (-want +got):\n%s", s, diff)
	}
	if n := len(w.image("n2").Spec.Images); n > 0 {
		t.Error("a node was asked after the end")
	}
}

// TestANodeThatIsSilent: it has failed after ten minutes, delays no other, and pulls nothing when it comes back.
func TestANodeThatIsSilent(t *testing.T) {
	for name, darken := range map[string]func(*world){
		"because it is not Ready": func(w *world) {
			w.setReady(w.Cluster.Get(simulate.Key{Kind: corev1.SchemeGroupVersion.WithKind("Node"), Name: "n0"}).(*corev1.Node), corev1.ConditionUnknown)
		},
		"because its daemon is gone": func(w *world) {
			for _, node := range []string{"n1", "n2", "n3"} {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "daemon-" + node, Labels: map[string]string{"control-plane": "daemon"}}}
				p.Spec.NodeName, p.Spec.Containers = node, []corev1.Container{{Name: "daemon", Image: "daemon"}}
				w.store(p)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4)
			w.dark["n0"] = true
			darken(w)
			w.run(2*time.Second, time.Second)
			w.create(`{image: "nginx:1", parallelism: 1}`)
			w.run(3*20*time.Second+10*time.Second, time.Second)
			if s := w.job().Status; s.Succeeded != 3 || s.Active != 1 {
				t.Errorf("after the time of three pulls the status is %+v", s)
			}
			w.run(8*time.Minute+40*time.Second, time.Second)
			if s := w.job().Status; s.CompletionTime != nil || s.Failed != 0 {
				t.Errorf("before the ten minutes are over the status is %+v", s)
			}
			told(w.ofJobs, "")
			told(w.ofImages, "")
			w.run(2*time.Minute, time.Second)
			s := w.job().Status
			if diff := cmp.Diff([]string{"n0"}, s.FailedNodes); diff != "" || s.CompletionTime == nil || s.Succeeded != 3 || s.Message != "job has completed" {
				t.Errorf("status %+v, failed (-want +got):\n%s", s, diff)
			}
			if said := w.says("n0", "nginx", "1"); said.Phase != v1beta1.ImagePhaseFailed || said.Message != "node has not responded for a long time" {
				t.Errorf("the node is said to have come to %+v", said)
			}
			if got := told(w.ofJobs, "PullImageFailed"); len(got) != 1 {
				t.Errorf("events of the job: %v", got)
			}
			if got := told(w.ofImages, "PullImageFailed"); len(got) != 1 {
				t.Errorf("events of the NodeImage: %v", got)
			}
			w.dark["n0"] = false
			at := w.Cluster.Revision()
			w.run(10*time.Minute, time.Second)
			if w.Cluster.Revision() != at {
				t.Errorf("once the node is back: %+v", w.says("n0", "nginx", "1"))
			}
		})
	}
}

// TestImagesThatWaitForOthers: however long the one before them takes, none has failed by it.
func TestImagesThatWaitForOthers(t *testing.T) {
	w := newWorld(t, 1)
	w.slots = 1
	w.takes["nginx:slow"] = 12 * time.Minute
	created := metav1.NewTime(w.Cluster.Now())
	simulate.Update(w.Cluster, promises.UserActor, w.image("n0"), func(n *v1beta1.NodeImage) {
		ttl := int32(3600)
		policy := &v1beta1.ImageTagPullPolicy{TTLSecondsAfterFinished: &ttl}
		tag := func(name string, after time.Duration) v1beta1.ImageTagSpec {
			at := metav1.NewTime(created.Add(after))
			return v1beta1.ImageTagSpec{Tag: name, CreatedAt: &at, PullPolicy: policy}
		}
		n.Spec.Images = map[string]v1beta1.ImageSpec{"nginx": {Tags: []v1beta1.ImageTagSpec{tag("b", time.Second), tag("c", 2*time.Second), tag("slow", 0)}}}
	})
	phases := func() map[string]v1beta1.ImagePullPhase {
		out := map[string]v1beta1.ImagePullPhase{}
		for _, tag := range []string{"slow", "b", "c"} {
			out[tag] = w.says("n0", "nginx", tag).Phase
		}
		return out
	}
	expect := func(slow, b, c v1beta1.ImagePullPhase) {
		t.Helper()
		if diff := cmp.Diff(map[string]v1beta1.ImagePullPhase{"slow": slow, "b": b, "c": c}, phases()); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", w.Cluster.Now().Sub(w.began), diff)
		}
	}
	const waiting, pulling, succeeded = v1beta1.ImagePhaseWaiting, v1beta1.ImagePhasePulling, v1beta1.ImagePhaseSucceeded
	w.run(time.Second, time.Second)
	expect(pulling, waiting, waiting)
	w.run(11*time.Minute, time.Second)
	expect(pulling, waiting, waiting)
	w.run(time.Minute+10*time.Second, time.Second)
	expect(succeeded, pulling, waiting)
	w.run(time.Minute, time.Second)
	expect(succeeded, succeeded, succeeded)
}

// TestAJobThatNeverCompletesPullsOnceADay: a new round on each node, and all at their own time.
func TestAJobThatNeverCompletesPullsOnceADay(t *testing.T) {
	w := newWorld(t, 2, `{image: "nginx:daily", completionPolicy: {type: Never}}`)
	version := func() [2]int64 {
		return [2]int64{w.says("n0", "nginx", "daily").Version, w.says("n1", "nginx", "daily").Version}
	}
	w.run(23*time.Hour+40*time.Minute, time.Minute)
	if got := version(); got != [2]int64{0, 0} {
		t.Errorf("within a day the rounds are %v", got)
	}
	w.addNode("n2")
	w.run(time.Hour, time.Minute)
	if got := version(); got != [2]int64{1, 1} {
		t.Errorf("after a day the rounds are %v, want the next on each node", got)
	}
	if s := w.says("n2", "nginx", "daily"); s.Phase != v1beta1.ImagePhaseSucceeded || s.Version != 0 {
		t.Errorf("the node that came later says %+v", s)
	}
	if s := w.job().Status; s.CompletionTime != nil || s.Succeeded != 3 || s.Failed != 0 {
		t.Errorf("status %+v", s)
	}
}
