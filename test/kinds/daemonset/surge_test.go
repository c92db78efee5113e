package daemonset

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// handover is when the new Pod of a node got ready, and when its old one was told to go.
type handover struct{ ready, left time.Time }

// handovers notes them for every node from now on, by the clock of the API, which has seconds only.
func (e *env) handovers(old string) func() map[string]*handover {
	e.Helper()
	seen := map[string]*handover{}
	stop, err := e.Follow(e.Ctx, &corev1.PodList{}, e.Namespace, func(event watch.Event) {
		p, ok := event.Object.(*corev1.Pod)
		if !ok {
			return
		}
		at := seen[nodeOf(p)]
		if at == nil {
			at = &handover{}
			seen[nodeOf(p)] = at
		}
		switch isOld := p.Spec.Containers[0].Image == old; {
		case isOld && p.DeletionTimestamp != nil && at.left.IsZero():
			at.left = p.DeletionTimestamp.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
		case !isOld && scene.IsReady(p) && at.ready.IsZero():
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodReady {
					at.ready = c.LastTransitionTime.Time
				}
			}
		}
	})
	e.Must(err)
	return func() map[string]*handover {
		e.Must(stop())
		return seen
	}
}

// TestASurgeHandsOverOnceTheNewPodIsAvailable: no node is ever without, one at a time has two, and the old one goes when the new one has been ready
// for minReadySeconds, which nothing but the clock tells.
func TestASurgeHandsOverOnceTheNewPodIsAvailable(t *testing.T) {
	e := newEnv(t, 4)
	const minReady = 3 * time.Second
	e.Make(e.manifest(`{maxUnavailable: 0, maxSurge: 1}`, "minReadySeconds: 3"))
	e.settled(4, 4)
	r := e.watch()
	handovers := e.handovers("nginx:1.27")
	e.edit(image("nginx:1.28"))
	e.settled(4, 4)
	r.most(e, 0, 1)
	for node, at := range handovers() {
		if wait := at.left.Sub(at.ready); at.ready.IsZero() || wait < minReady || wait > minReady+20*time.Second {
			t.Errorf("the old Pod of %s went %s after the new one got ready, want %s", node, wait, minReady)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// One more than nodes, and the one that is just being deleted.
	if r.total > 4+2 {
		t.Errorf("there were %d Pods at a time", r.total)
	}
}

// TestAPauseLetsASurgeFinishItsPairs pauses while a node has two Pods, and takes another one away meanwhile.
func TestAPauseLetsASurgeFinishItsPairs(t *testing.T) {
	e := newEnv(t, 4)
	e.Make(e.manifest(`{maxUnavailable: 0, maxSurge: 1}`, "minReadySeconds: 8"))
	e.settled(4, 4)
	e.edit(image("nginx:1.28"))
	last := e.Nodes[3]
	e.Eventually("the last node has two Pods", func() error {
		if pods := e.pods(); len(pods) != 5 || len(e.updatedNodes("nginx:1.28")) != 1 {
			return fmt.Errorf("%d Pods are there", len(pods))
		}
		return nil
	})
	e.edit(strategy(`{paused: true}`))
	e.settled(4, 1)
	e.same("updated nodes", []string{last}, e.updatedNodes("nginx:1.28"))
	e.Always(time.Second, "no other node is updated", func() error {
		if got := e.updatedNodes("nginx:1.28"); len(got) != 1 {
			return fmt.Errorf("%v are", got)
		}
		return nil
	})
	e.Must(e.Client.Delete(e.Ctx, e.podOn(e.Nodes[0])))
	e.settled(4, 2)
	e.edit(strategy(`{paused: false}`))
	e.settled(4, 4)
}
