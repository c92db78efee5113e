package recreate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// world is a node with a kubelet that restarts containers, a daemon that may be killed at any point, and an API server that keeps the request.
type world struct {
	rand    *rand.Rand
	request *v1beta1.ContainerRecreateRequest
	pod     *corev1.Pod
	runtime map[string]Container
	lives   map[string]int
	stops   []string // identities of containers that were stopped by the daemon while they ran, in order
	hooks   []string // identities whose hook ran to its end
	now     time.Time
}

func newWorld(seed uint64) *world {
	w := &world{rand: rand.New(rand.NewPCG(seed, 1)), runtime: map[string]Container{}, lives: map[string]int{}, now: noon()}
	names := []string{"a", "b", "c"}[:1+w.rand.IntN(3)]
	w.request = asked(
		strategyOf{OrderedRecreate: w.rand.IntN(2) == 0, ForceRecreate: w.rand.IntN(2) == 0, FailurePolicy: ignore}, nil, names...,
	)
	identities := map[string]string{}
	for _, name := range names {
		w.runtime[name], identities[name] = runs(name+"0", time.Hour), name+"0"
	}
	w.pod = ready(corev1.RestartPolicyAlways, identities)
	return w
}

// live lets something happen to the containers that is none of the daemon's doing.
func (w *world) live() {
	w.now = w.now.Add(time.Second)
	for _, c := range w.request.Spec.Containers {
		now := w.runtime[c.Name]
		switch {
		case now.State == Exited && w.rand.IntN(2) == 0:
			w.lives[c.Name]++
			w.runtime[c.Name] = Container{
				ID: fmt.Sprintf("c://%s%d", c.Name, w.lives[c.Name]), RestartCount: now.RestartCount + 1, State: Running, StartedAt: w.now,
			}
		case now.State == Running && w.rand.IntN(12) == 0:
			now.State = Exited
			w.runtime[c.Name] = now
		}
		if w.rand.IntN(2) == 0 { // the kubelet reports late
			status := pod.LastingStatus(w.pod, c.Name)
			status.ContainerID, status.Ready = w.runtime[c.Name].ID, w.runtime[c.Name].State == Running
		}
	}
}

// act does one pass of the daemon, which may be killed at each "dies".
func (w *world) act() (done bool) {
	dies := func() bool { return w.rand.IntN(6) == 0 }
	step := Next(Observed{Request: w.request, Containers: w.runtime, Pod: w.pod, Now: w.now})
	if dies() {
		return false
	}
	w.request.Status.ContainerRecreateStates = step.States
	if dies() || step.Kill == nil {
		return step.Complete
	}
	if !step.Kill.SkipPreStop {
		if dies() {
			return false // in the middle of the hook
		}
		w.hooks = append(w.hooks, step.Kill.ID)
		i := slices.IndexFunc(step.States, func(s State) bool { return s.Name == step.Kill.Name })
		at := w.request.CreationTimestamp
		w.request.Status.ContainerRecreateStates[i].PreStopTime = &at
		if dies() {
			return false
		}
	}
	if now := w.runtime[step.Kill.Name]; now.ID == step.Kill.ID && now.State == Running {
		w.stops = append(w.stops, now.ID)
		now.State = Exited
		w.runtime[step.Kill.Name] = now
	}
	return false
}

// TestNoContainerIsStoppedTwice kills the daemon wherever it hurts, and has containers end by themselves at any time.
func TestNoContainerIsStoppedTwice(t *testing.T) {
	for seed := range uint64(3000) {
		w := newWorld(seed)
		done := false
		for pass := 0; pass < 500 && !done; pass++ {
			w.live()
			done = w.act()
		}
		if !done {
			t.Fatalf("seed %d: the request does not end: %v", seed, w.request.Status.ContainerRecreateStates)
		}
		for _, c := range w.request.Spec.Containers {
			of := func(id string) bool { return id[len("c://"):len("c://")+1] == c.Name }
			var stops, hooks []string
			for _, id := range w.stops {
				if of(id) {
					stops = append(stops, id)
				}
			}
			for _, id := range w.hooks {
				if of(id) {
					hooks = append(hooks, id)
				}
			}
			if len(stops) > 1 || len(hooks) > 1 {
				t.Fatalf("seed %d: container %s was stopped as %v, and its hook ran in %v", seed, c.Name, stops, hooks)
			}
			if !w.request.Spec.Strategy.ForceRecreate && len(stops) == 1 && stops[0] != "c://"+c.Name+"0" {
				t.Fatalf("seed %d: %s was stopped, which is not the one that ran when the request was made", seed, stops[0])
			}
			if w.lives[c.Name] == 0 {
				t.Fatalf("seed %d: container %s counts as recreated in its first life", seed, c.Name)
			}
		}
	}
}
