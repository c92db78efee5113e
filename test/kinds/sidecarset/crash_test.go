package sidecarset

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestTheManagerIsKilled kills the manager again and again in the middle of a rollout. None of its Pods may pay for that: the limit holds, and no
// sidecar restarts twice.
func TestTheManagerIsKilled(t *testing.T) {
	const pods, limit, kills = 20, 3, 6
	e := newSerialEnv(t)
	e.newLog(fmt.Sprintf("{maxUnavailable: %d}", limit))
	e.newPods(pods)
	e.counts(pods, pods, pods, pods)
	stop := e.watchRollout()
	e.image("log:2")
	for range kills {
		time.Sleep(time.Duration(50+rand.IntN(400)) * time.Millisecond)
		e.CrashManager()
	}
	e.counts(pods, pods, pods, pods)
	if most := stop(); most > limit {
		t.Errorf("%d Pods were out of service at once, want at most %d", most, limit)
	}
	for _, p := range e.pods() {
		if restartsOf(p, "log") != 1 || restartsOf(p, "app") != 0 {
			t.Errorf("%s: the sidecar restarted %d times, the Pod's own container %d times", p.Name, restartsOf(p, "log"), restartsOf(p, "app"))
		}
	}
}
