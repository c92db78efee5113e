package simulate

import (
	"context"
	"math/rand"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestALookAroundTheCacheBeginsWhenItsOwnerIsRead checks what time it is for a pass whose live reads take long. A controller reads its
// clock once it has the owner; what it reads afterwards, however long that takes, does not change what time it took it to be.
func TestALookAroundTheCacheBeginsWhenItsOwnerIsRead(t *testing.T) {
	c := newCluster()
	owner, other := podNamed("owner"), podNamed("other")
	create(t, c, owner)
	create(t, c, other)
	connection := c.Connect("controller", rand.New(rand.NewSource(1)))
	pass := c.NewView().Look(1, types.NamespacedName{Namespace: "default", Name: "owner"})
	connection.Begin(pass)
	began := c.Now()

	c.Sleep(4 * time.Second)
	if err := connection.Get(context.Background(), client.ObjectKeyFromObject(other), &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	if !pass.Time.Equal(began) {
		t.Errorf("a read of another object moves the time of the pass on by %s", pass.Time.Sub(began))
	}
	if err := connection.Get(context.Background(), client.ObjectKeyFromObject(owner), &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	c.Sleep(12 * time.Second)
	if err := connection.List(context.Background(), &corev1.PodList{}); err != nil {
		t.Fatal(err)
	}
	if took := pass.Time.Sub(began); took != 4*time.Second {
		t.Errorf("the look began %s after the pass, want 4s", took)
	}
}
