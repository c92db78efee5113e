package jobs

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// TestDeadlineOutlivesTheManager: no event comes that could remind a manager of it.
func TestDeadlineOutlivesTheManager(t *testing.T) {
	e := newSerialEnv(t, 2)
	e.create(e.broadcast("completionPolicy: {activeDeadlineSeconds: 10}"))
	started := e.reaches(tally{v1beta1.BroadcastJobRunning, 2, 2, 0, 0}).Status.StartTime.Time
	time.Sleep(time.Until(started.Add(5 * time.Second)))
	killed := time.Now()
	e.CrashManager()
	job := e.reaches(tally{v1beta1.BroadcastJobFailed, 2, 0, 0, 2})
	if took := job.Status.CompletionTime.Sub(started); took < 10*time.Second {
		t.Errorf("the job failed after %s, its deadline is 10s", took)
	}
	if took := job.Status.CompletionTime.Sub(killed); took >= 10*time.Second {
		t.Errorf("the job failed %s after another manager was started, as if that had begun its deadline of 10s anew", took)
	}
	want := fmt.Sprintf("Job %s/patch was active longer than specified deadline", e.Namespace)
	if got := job.Status.Conditions; len(got) != 1 || got[0].Type != "Failed" || got[0].Message != want {
		t.Errorf("conditions: %+v", got)
	}
	e.Eventually("the Pods are gone", func() error {
		if n := len(e.pods()); n != 0 {
			return fmt.Errorf("%d are there", n)
		}
		return nil
	})
	e.Eventually("the event is there", func() error {
		if got := e.events("patch"); got["DeadlineExceeded"] != 1 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

// TestKilledManagers: whenever the manager is killed, a node gets one Pod.
func TestKilledManagers(t *testing.T) {
	e := newSerialEnv(t, 20)
	most := e.followActive()
	created := map[string][]string{}
	stop, err := e.Follow(e.Ctx, &corev1.PodList{}, e.Namespace, func(event watch.Event) {
		if p := event.Object.(*corev1.Pod); event.Type == watch.Added {
			created[nodeOf(p)] = append(created[nodeOf(p)], p.Name)
		}
	})
	e.Must(err)
	e.create(e.broadcastRunning("700ms", "parallelism: 5"))
	for range 4 {
		time.Sleep(1500 * time.Millisecond)
		e.CrashManager()
	}
	e.reaches(tally{v1beta1.BroadcastJobCompleted, 20, 0, 20, 0})
	e.Must(stop())
	for _, node := range e.Nodes {
		if got := created[node]; len(got) != 1 {
			t.Errorf("node %s had the Pods %v", node, got)
		}
	}
	if n := most(); n > 5 {
		t.Errorf("%d Pods were active, parallelism is 5", n)
	}
}
