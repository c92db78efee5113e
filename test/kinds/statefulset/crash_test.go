package statefulset

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-69ecc383/kruise/test/kit/scene"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// fleet is a StatefulSet that is updated while the manager is killed.
type fleet struct {
	replicas, unavailable int
	change                []func(*v1beta1.StatefulSet)
	// keepsPods means that its Pods are updated in place.
	keepsPods bool
}

func fleets() map[string]fleet {
	return map[string]fleet{
		"keeper":  {40, 8, []func(*v1beta1.StatefulSet){policy(v1beta1.InPlaceIfPossiblePodUpdateStrategyType)}, true},
		"changer": {40, 8, nil, false},
		"orderly": {4, 1, []func(*v1beta1.StatefulSet){ordered}, false},
	}
}

// TestManagerIsKilledDuringRollouts kills the manager again and again, and judges every version of every Pod and claim that the API server told of
// meanwhile. The other tests wait until it is over.
func TestManagerIsKilledDuringRollouts(t *testing.T) {
	e := newSerialEnv(t)
	for name, f := range fleets() {
		labels := map[string]string{"app": name}
		change := append([]func(*v1beta1.StatefulSet){claims("data"), replicas(int32(f.replicas)), unavailable(intstr.FromInt32(int32(f.unavailable)))}, f.change...)
		e.create(append(change, func(set *v1beta1.StatefulSet) {
			set.Name, set.Spec.Selector.MatchLabels, set.Spec.Template.Labels = name, labels, labels
		})...)
	}
	for name := range fleets() {
		e.rolledOut(name)
	}
	h := e.record()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const kills = 12
	for n := range kills {
		if n%4 == 0 {
			for name := range fleets() {
				e.setImage(name, fmt.Sprintf("nginx:1.%d", n))
			}
		}
		time.Sleep(time.Duration(random.IntN(1200)) * time.Millisecond)
		e.CrashManager()
	}
	for name := range fleets() {
		e.rolledOut(name)
	}
	h.judge(t)
}

func (e *env) named(name string) *v1beta1.StatefulSet {
	e.Helper()
	set := &v1beta1.StatefulSet{}
	e.Must(e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, set))
	return set
}

func (e *env) rolledOut(name string) {
	e.Helper()
	n := int32(fleets()[name].replicas)
	e.Eventually(name+" is rolled out", func() error {
		set := e.named(name)
		s := set.Status
		if got := []int32{s.Replicas, s.UpdatedReplicas, s.UpdatedAvailableReplicas}; s.ObservedGeneration != set.Generation || !slices.Equal(got, []int32{n, n, n}) {
			return fmt.Errorf("replicas, updated, available are %v, generation %d of %d, conditions %v", got, s.ObservedGeneration, set.Generation, s.Conditions)
		}
		return nil
	})
}

func (e *env) setImage(name, to string) {
	e.Helper()
	// While the manager is down, its webhooks do not answer.
	patience := wait.Backoff{Duration: 20 * time.Millisecond, Factor: 1.2, Jitter: 0.5, Steps: 30}
	e.Must(retry.OnError(patience, func(error) bool { return true }, func() error {
		set := e.named(name)
		image(to)(set)
		return e.Update(e.Ctx, set)
	}))
}

// history judges Pods and claims as their events come in.
type history struct {
	mu     sync.Mutex
	ready  map[string]map[string]bool
	wrong  []string
	events int
	stop   func() error
}

func (e *env) record() *history {
	e.Helper()
	h := &history{ready: map[string]map[string]bool{"keeper": {}, "changer": {}, "orderly": {}}}
	follow := func(list client.ObjectList, see func(watch.Event)) func() error {
		stop, err := shared.Follow(e.Ctx, list, e.Namespace, func(event watch.Event) {
			h.mu.Lock()
			defer h.mu.Unlock()
			see(event)
		})
		e.Must(err)
		return stop
	}
	stopPods := follow(&corev1.PodList{}, func(event watch.Event) { h.seePod(event.Type, event.Object.(*corev1.Pod)) })
	h.mu.Lock()
	h.wrong = nil // the first ones came one by one
	h.mu.Unlock()
	stopClaims := follow(&corev1.PersistentVolumeClaimList{}, func(event watch.Event) {
		if c := event.Object.(*corev1.PersistentVolumeClaim); event.Type == watch.Deleted || c.DeletionTimestamp != nil {
			h.wrong = append(h.wrong, "claim "+c.Name+" was lost")
		}
	})
	h.stop = func() error { return errors.Join(stopPods(), stopClaims()) }
	return h
}

func (h *history) seePod(t watch.EventType, p *corev1.Pod) {
	h.events++
	name := p.Labels["app"]
	f := fleets()[name]
	h.ready[name][p.Name] = t != watch.Deleted && p.DeletionTimestamp == nil && scene.IsReady(p)
	if f.keepsPods && (t == watch.Deleted || p.DeletionTimestamp != nil) {
		h.wrong = append(h.wrong, "Pod "+p.Name+" was deleted, although it could be updated in place")
	}
	ready := 0
	for _, isReady := range h.ready[name] {
		if isReady {
			ready++
		}
	}
	if ready < f.replicas-f.unavailable {
		h.wrong = append(h.wrong, fmt.Sprintf("%s had only %d ready Pods", name, ready))
	}
	if len(h.ready[name]) > f.replicas {
		h.wrong = append(h.wrong, fmt.Sprintf("%s has had %d Pod names", name, len(h.ready[name])))
	}
}

func (h *history) judge(t *testing.T) {
	t.Helper()
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	t.Logf("%d events of Pods", h.events)
	if h.events < 2*fleets()["keeper"].replicas {
		t.Errorf("only %d events: nothing was rolled out", h.events)
	}
	for _, wrong := range h.wrong[:min(10, len(h.wrong))] {
		t.Error(wrong)
	}
}
