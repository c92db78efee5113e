// Package crash kills the manager again and again in the middle of rollouts, and judges every version of every Pod and claim that the API
// server told of meanwhile.
package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

const (
	namespace = "crash"
	kills     = 20
	// replicas of each of the two CloneSets, and how many of them may be unavailable, and above.
	replicas, maxUnavailable, maxSurge = 40, 5, 3
)

func TestManagerIsKilledDuringRollouts(t *testing.T) {
	w := newWorld(t, 10)
	manager := w.start()
	w.Must(w.Client.Create(w.Ctx, inPlaceWithClaims()))
	w.Must(w.Client.Create(w.Ctx, recreateWithSurge()))
	w.settled("keeper")
	w.settled("changer")
	h := w.record()

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for n := range kills {
		if n%5 == 0 {
			image := fmt.Sprintf("nginx:1.%d", n)
			w.setImage("keeper", image)
			w.setImage("changer", image)
		}
		time.Sleep(time.Duration(random.IntN(1200)) * time.Millisecond)
		manager.Kill()
		manager = w.start()
	}
	defer func() { manager.Stop() }()
	w.settled("keeper")
	w.settled("changer")
	h.judge(t)
}

func set(name string) *v1beta1.CloneSet {
	labels := map[string]string{"app": name}
	n := int32(replicas)
	unavailable := intstr.FromInt32(maxUnavailable)
	return &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1beta1.CloneSetSpec{
			CloneSetBaseSpec: v1beta1.CloneSetBaseSpec{
				Replicas: &n,
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx:alpine"}}},
				},
			},
			UpdateStrategy: v1beta1.CloneSetUpdateStrategy{RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{MaxUnavailable: &unavailable}},
		},
	}
}

func inPlaceWithClaims() *v1beta1.CloneSet {
	s := set("keeper")
	s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType
	s.Spec.ScaleStrategy.EnablePVCReuse = true
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	return s
}

func recreateWithSurge() *v1beta1.CloneSet {
	s := set("changer")
	surge := intstr.FromInt32(maxSurge)
	s.Spec.UpdateStrategy.RollingUpdate.MaxSurge = &surge
	return s
}

// world is a cluster of one test's own, and a namespace of it.
type world struct{ *scene.Stage }

func newWorld(t *testing.T, nodes int) *world {
	t.Helper()
	w := &world{scene.NewStage(t, cluster.Options{Nodes: nodes})}
	w.Must(w.Client.Create(w.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	return w
}

// start starts a manager, and waits until it is ready.
func (w *world) start() *cluster.Manager {
	w.Helper()
	// One process at a time needs no election, and a killed leader's Lease would only make the next one wait.
	m, err := w.StartManager(w.Ctx, cluster.ManagerOptions{Dir: filepath.Join(w.Dir, "manager"), Args: []string{"--enable-leader-election=false"}})
	w.Must(err)
	return m
}

func (w *world) setImage(name, image string) {
	w.Helper()
	// The manager writes the status meanwhile, and while it is down, its webhooks do not answer.
	patience := wait.Backoff{Duration: 20 * time.Millisecond, Factor: 1.2, Jitter: 0.5, Steps: 30}
	w.Must(retry.OnError(patience, func(error) bool { return true }, func() error {
		var s v1beta1.CloneSet
		if err := w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, &s); err != nil {
			return err
		}
		s.Spec.Template.Spec.Containers[0].Image = image
		return w.Client.Update(w.Ctx, &s)
	}))
}

func (w *world) settled(name string) {
	w.Helper()
	var s v1beta1.CloneSet
	w.await(name, &s, func() (int64, []int32) {
		return s.Status.ObservedGeneration, []int32{s.Status.Replicas - replicas, s.Status.UpdatedReplicas - replicas, s.Status.UpdatedAvailableReplicas - replicas}
	})
}

// await reads an object again and again until its status speaks of its newest spec and lacks nothing.
func (w *world) await(name string, object client.Object, status func() (observed int64, lacks []int32)) {
	w.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, object))
		observed, lacks := status()
		if observed == object.GetGeneration() && !slices.ContainsFunc(lacks, func(n int32) bool { return n != 0 }) {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("%s does not settle: its numbers are off by %v, generation %d of %d", name, lacks, observed, object.GetGeneration())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// history judges Pods and claims as their events come in.
type history struct {
	mu     sync.Mutex
	pods   map[string]map[string]bool
	wrong  []string
	events int
	stop   func() error
}

func (w *world) record() *history {
	w.Helper()
	h := &history{pods: map[string]map[string]bool{"keeper": {}, "changer": {}}}
	follow := func(list client.ObjectList, see func(watch.Event)) func() error {
		stop, err := w.Follow(w.Ctx, list, namespace, func(event watch.Event) {
			h.mu.Lock()
			defer h.mu.Unlock()
			see(event)
		})
		w.Must(err)
		return stop
	}
	stopPods := follow(&corev1.PodList{}, func(e watch.Event) { h.seePod(e.Type, e.Object.(*corev1.Pod)) })
	h.mu.Lock()
	h.wrong = nil // the first ones came one by one
	h.mu.Unlock()
	stopClaims := follow(&corev1.PersistentVolumeClaimList{}, func(e watch.Event) {
		if claim := e.Object.(*corev1.PersistentVolumeClaim); e.Type == watch.Deleted || claim.DeletionTimestamp != nil {
			h.wrong = append(h.wrong, "claim "+claim.Name+" was lost")
		}
	})
	h.stop = func() error { return errors.Join(stopPods(), stopClaims()) }
	return h
}

func (h *history) seePod(t watch.EventType, p *corev1.Pod) {
	h.events++
	name := p.Labels["app"]
	fleet := h.pods[name]
	delete(fleet, p.Name)
	if t != watch.Deleted && p.DeletionTimestamp == nil {
		fleet[p.Name] = scene.IsReady(p)
	} else if name == "keeper" {
		h.wrong = append(h.wrong, "Pod "+p.Name+" was deleted, although it could be updated in place")
	}
	ready := 0
	for _, isReady := range fleet {
		if isReady {
			ready++
		}
	}
	surge := map[string]int{"changer": maxSurge}[name]
	if ready < replicas-maxUnavailable {
		h.wrong = append(h.wrong, fmt.Sprintf("%s had only %d ready Pods", name, ready))
	}
	if len(fleet) > replicas+surge {
		h.wrong = append(h.wrong, fmt.Sprintf("%s had %d Pods", name, len(fleet)))
	}
}

func (h *history) judge(t *testing.T) {
	t.Helper()
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	t.Logf("%d events of Pods", h.events)
	if h.events < 2*replicas {
		t.Errorf("only %d events: nothing was rolled out", h.events)
	}
	for _, wrong := range h.wrong[:min(10, len(h.wrong))] {
		t.Error(wrong)
	}
}
