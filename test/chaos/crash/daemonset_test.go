package crash

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

const (
	daemonNodes = 20
	// daemonLimit is the maxUnavailable of one DaemonSet and the maxSurge of the other.
	daemonLimit = 3
)

func TestManagerIsKilledDuringRolloutsOverNodes(t *testing.T) {
	w := newWorld(t, daemonNodes)
	manager := w.start()
	w.Must(w.Client.Create(w.Ctx, daemonSet("replacer", daemonLimit, 0)))
	w.Must(w.Client.Create(w.Ctx, daemonSet("surger", 0, daemonLimit)))
	w.daemonsSettled("replacer")
	w.daemonsSettled("surger")
	h := &nodeHistory{pods: map[types.UID]*corev1.Pod{}}
	stop, err := w.Follow(w.Ctx, &corev1.PodList{}, namespace, h.see)
	w.Must(err)
	h.forget() // the first ones came one by one

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for n := range kills / 2 {
		if n%5 == 0 {
			w.setDaemonImage("replacer", fmt.Sprintf("nginx:1.%d", n))
			w.setDaemonImage("surger", fmt.Sprintf("nginx:1.%d", n))
		}
		time.Sleep(time.Duration(random.IntN(1200)) * time.Millisecond)
		manager.Kill()
		manager = w.start()
	}
	defer func() { manager.Stop() }()
	w.daemonsSettled("replacer")
	w.daemonsSettled("surger")
	w.Must(stop())
	h.judge(t)
}

func daemonSet(name string, unavailable, surge int32) *v1beta1.DaemonSet {
	labels := map[string]string{"app": name}
	maxUnavailable, maxSurge := intstr.FromInt32(unavailable), intstr.FromInt32(surge)
	return &v1beta1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1beta1.DaemonSetSpec{
			DaemonSetBaseSpec: v1beta1.DaemonSetBaseSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx:alpine"}}},
				},
			},
			UpdateStrategy: v1beta1.DaemonSetUpdateStrategy{RollingUpdate: &v1beta1.RollingUpdateDaemonSet{RollingUpdateDaemonSetBase: v1beta1.RollingUpdateDaemonSetBase{MaxUnavailable: &maxUnavailable, MaxSurge: &maxSurge}}},
		},
	}
}

func (w *world) setDaemonImage(name, image string) {
	w.Helper()
	patience := wait.Backoff{Duration: 20 * time.Millisecond, Factor: 1.2, Jitter: 0.5, Steps: 30}
	w.Must(retry.OnError(patience, func(error) bool { return true }, func() error {
		var s v1beta1.DaemonSet
		if err := w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, &s); err != nil {
			return err
		}
		s.Spec.Template.Spec.Containers[0].Image = image
		return w.Client.Update(w.Ctx, &s)
	}))
}

func (w *world) daemonsSettled(name string) {
	w.Helper()
	var s v1beta1.DaemonSet
	w.await(name, &s, func() (int64, []int32) {
		return s.Status.ObservedGeneration, []int32{
			s.Status.DesiredNumberScheduled - daemonNodes, s.Status.UpdatedNumberScheduled - daemonNodes, s.Status.NumberAvailable - daemonNodes,
		}
	})
}

// nodeHistory judges Pods node by node as their events come in.
type nodeHistory struct {
	mu     sync.Mutex
	pods   map[types.UID]*corev1.Pod
	wrong  []string
	events int
}

func (h *nodeHistory) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong, h.events = nil, 0
}

func (h *nodeHistory) see(event watch.Event) {
	p, ok := event.Object.(*corev1.Pod)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events++
	h.pods[p.UID] = p
	if event.Type == watch.Deleted || p.DeletionTimestamp != nil {
		delete(h.pods, p.UID)
	}
	app := p.Labels["app"]
	live, ready := map[string]int{}, map[string]bool{}
	for _, other := range h.pods {
		if other.Labels["app"] != app {
			continue
		}
		node := scene.PinnedTo(other)
		live[node]++
		ready[node] = ready[node] || scene.IsReady(other)
	}
	pairs, served := 0, 0
	for node, n := range live {
		if n > 1 {
			pairs++
		}
		if ready[node] {
			served++
		}
	}
	most := map[string]struct{ down, pairs int }{"replacer": {daemonLimit, 0}, "surger": {0, daemonLimit}}[app]
	if down := daemonNodes - served; down > most.down || pairs > most.pairs {
		h.wrong = append(h.wrong, fmt.Sprintf("%s had %d nodes without a ready Pod, and %d with two", app, down, pairs))
	}
}

func (h *nodeHistory) judge(t *testing.T) {
	t.Helper()
	t.Logf("%d events of Pods", h.events)
	if h.events < 4*daemonNodes {
		t.Errorf("only %d events: nothing was rolled out", h.events)
	}
	for _, wrong := range h.wrong[:min(10, len(h.wrong))] {
		t.Error(wrong)
	}
}
