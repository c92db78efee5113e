package simulate

import (
	"context"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func newCluster() *Cluster { return NewCluster(clientgoscheme.Scheme, time.Unix(1_800_000_000, 0)) }

func create[T client.Object](t *testing.T, c *Cluster, object T) T {
	t.Helper()
	stored, err := c.Create("test", object)
	if err != nil {
		t.Fatal(err)
	}
	return stored.(T)
}

func podNamed(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PodSpec{
			Containers:     []corev1.Container{{Name: "app", Image: "app:v1"}},
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "example.com/Gate"}},
		},
	}
}

func (c *Cluster) pod(name string) *corev1.Pod {
	p, _ := c.Get(c.KeyOf(podNamed(name))).(*corev1.Pod)
	return p
}

// settlePod moves a Pod on until nothing is due.
func settlePod(k *Kubelet, c *Cluster, name string) *corev1.Pod {
	for c.pod(name) != nil && k.Step(c.pod(name)) {
	}
	return c.pod(name)
}

func isReady(p *corev1.Pod) bool {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func TestAPodsLife(t *testing.T) {
	c := newCluster()
	k := NewKubelet(c)
	create(t, c, podNamed("a"))
	p := settlePod(k, c, "a")
	if p.Spec.NodeName == "" || p.Status.Phase != corev1.PodRunning || isReady(p) {
		t.Fatalf("node %q, phase %s, ready %v before its gate is open", p.Spec.NodeName, p.Status.Phase, isReady(p))
	}
	open := corev1.PodCondition{Type: "example.com/Gate", Status: corev1.ConditionTrue}
	Update(c, "test", p, func(p *corev1.Pod) { p.Status.Conditions = append(p.Status.Conditions, open) })
	if p = settlePod(k, c, "a"); !isReady(p) {
		t.Fatal("not ready although its gate is open")
	}
	was := p.Status.ContainerStatuses[0]
	Update(c, "test", p, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:v2" })
	k.Step(c.pod("a"))
	if isReady(c.pod("a")) {
		t.Error("ready while its container starts anew")
	}
	p = settlePod(k, c, "a")
	is := p.Status.ContainerStatuses[0]
	if is.Image != "app:v2" || is.RestartCount != 1 || is.ContainerID == was.ContainerID || p.Status.ObservedGeneration != p.Generation || !isReady(p) {
		t.Errorf("after a change of image: %+v, observed generation %d of %d", is, p.Status.ObservedGeneration, p.Generation)
	}
	c.Delete("test", p)
	if p = c.pod("a"); p == nil || p.DeletionTimestamp == nil {
		t.Fatal("a running Pod is gone without its grace period")
	}
	if settlePod(k, c, "a") != nil {
		t.Error("the Pod is there after its end")
	}
}

func TestDeletionWaits(t *testing.T) {
	mounting := podNamed("a")
	mounting.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	held := podNamed("a")
	held.Finalizers = []string{"example.com/held"}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}}
	cases := map[string]struct {
		happens func(*testing.T, *Cluster)
		want    []string
	}{
		"a Pod without a node is gone at once": {
			happens: func(t *testing.T, c *Cluster) { c.Delete("test", create(t, c, podNamed("a"))) },
		},
		"a finalizer keeps it": {
			happens: func(t *testing.T, c *Cluster) { c.Delete("test", create(t, c, held)) },
			want:    []string{"a"},
		},
		"until it is removed": {
			happens: func(t *testing.T, c *Cluster) {
				c.Delete("test", create(t, c, held))
				Update(c, "test", c.pod("a"), func(p *corev1.Pod) { p.Finalizers = nil })
			},
		},
		"a claim is kept while a Pod mounts it": {
			happens: func(t *testing.T, c *Cluster) {
				create(t, c, mounting)
				c.Delete("test", create(t, c, claim))
				c.Housekeep()
			},
			want: []string{"a", "data"},
		},
		"and is gone after it": {
			happens: func(t *testing.T, c *Cluster) {
				create(t, c, mounting)
				c.Delete("test", create(t, c, claim))
				c.Delete("test", c.pod("a"))
				c.Housekeep()
			},
		},
		"what a deleted object owned goes with it": {
			happens: func(t *testing.T, c *Cluster) {
				owner := create(t, c, podNamed("owner"))
				owned := podNamed("a")
				owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "owner", UID: owner.UID}}
				create(t, c, owned)
				if c.Housekeep() {
					t.Error("something was collected while its owner was there")
				}
				c.Delete("test", owner)
				c.Housekeep()
			},
		},
		"unless it is left behind": {
			happens: func(t *testing.T, c *Cluster) {
				owner := create(t, c, podNamed("owner"))
				owned := podNamed("a")
				owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "owner", UID: owner.UID}}
				create(t, c, owned)
				c.Orphan("test", owner)
				if c.pod("owner") == nil {
					t.Error("the owner is gone before what it owns is let go of")
				}
				for c.Housekeep() {
				}
				if p := c.pod("a"); p == nil || len(p.OwnerReferences) > 0 {
					t.Errorf("what it owned is %v", p)
				}
			},
			want: []string{"a"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			tc.happens(t, c)
			var got []string
			for _, kind := range []string{"Pod", "PersistentVolumeClaim"} {
				for _, object := range c.Of(corev1.SchemeGroupVersion.WithKind(kind)) {
					got = append(got, object.GetName())
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAViewLagsBehind(t *testing.T) {
	c := newCluster()
	v := c.NewView()
	v.Watch(&corev1.Pod{})
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	names := func() []string {
		t.Helper()
		var list corev1.PodList
		if err := v.List(t.Context(), &list, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range list.Items {
			names = append(names, p.Name)
		}
		return names
	}
	a := create(t, c, podNamed("a"))
	create(t, c, podNamed("b"))
	c.Delete("test", a)
	create(t, c, podNamed("c"))
	var got [][]string
	got = append(got, names())
	v.Deliver(kind)
	got = append(got, names())
	events := v.Relist(kind)
	got = append(got, names())
	if diff := cmp.Diff([][]string{nil, {"a"}, {"b", "c"}}, got); diff != "" {
		t.Errorf("what the cache shows (-want +got):\n%s", diff)
	}
	var heard []string
	for _, event := range events {
		heard = append(heard, event.Key.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, heard); diff != "" {
		t.Errorf("what the relist tells of (-want +got):\n%s", diff)
	}
}

func TestFaults(t *testing.T) {
	cases := map[string]struct {
		faults       Faults
		happens      bool
		happensLater bool
		fails        bool
	}{
		"a write without faults happens":                       {Faults{}, true, true, false},
		"a lost answer is an error of a write that happened":   {Faults{Lost: 1}, true, true, true},
		"a lost request does not happen":                       {Faults{Dropped: 1}, false, false, true},
		"a late one happens when nobody waits for it any more": {Faults{Late: 1}, false, true, true},
		"a refused one never happens":                          {Faults{Denied: 1}, false, false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			connection := c.Connect("controller", rand.New(rand.NewSource(1)))
			connection.SetFaults(tc.faults)
			err := connection.Create(context.Background(), podNamed("a"))
			if (err != nil) != tc.fails || (c.pod("a") != nil) != tc.happens {
				t.Errorf("error %v, happened %v", err, c.pod("a") != nil)
			}
			connection.LandLate()
			if (c.pod("a") != nil) != tc.happensLater {
				t.Errorf("happened in the end: %v", c.pod("a") != nil)
			}
		})
	}
}

// TestAnOverloadedServer refuses requests or takes seconds to answer them, reads included, until it is over.
func TestAnOverloadedServer(t *testing.T) {
	c := newCluster()
	connection := c.Connect("controller", rand.New(rand.NewSource(1)))
	connection.SetFaults(Faults{Overload: 1})
	seen := map[string]int{}
	for i := range 100 {
		before := c.Now()
		pod := podNamed(fmt.Sprint("pod-", i))
		err := connection.Create(t.Context(), pod)
		if readErr := connection.Read(t.Context(), podNamed("none")); apierrors.IsTooManyRequests(readErr) {
			seen["a read is refused"]++
		}
		if happened := c.pod(pod.Name) != nil; happened == (err != nil) {
			t.Errorf("error %v, happened %v", err, happened)
		}
		switch {
		case apierrors.IsTooManyRequests(err):
			seen["too many requests"]++
		case apierrors.IsServiceUnavailable(err):
			seen["unavailable"]++
		case err == nil && c.Now().Sub(before) > time.Second:
			seen["slow"]++
		}
	}
	for _, answer := range []string{"a read is refused", "too many requests", "unavailable", "slow"} {
		if seen[answer] < 10 {
			t.Errorf("of 100 writes and reads %v, want some of %q", seen, answer)
		}
	}
	connection.SetFaults(Faults{})
	if err := connection.Create(t.Context(), podNamed("after")); err != nil {
		t.Errorf("when it is over: %v", err)
	}
}

func TestADeadProcessWritesNothing(t *testing.T) {
	c := newCluster()
	connection := c.Connect("controller", rand.New(rand.NewSource(1)))
	connection.SetFaults(Faults{Crash: 1})
	_ = connection.Create(t.Context(), podNamed("a")) // before or after it the process dies
	if !connection.IsDead() {
		t.Fatal("the process lives")
	}
	if err := connection.Create(t.Context(), podNamed("b")); err == nil || c.pod("b") != nil {
		t.Errorf("a write after the crash: error %v, happened %v", err, c.pod("b") != nil)
	}
}
