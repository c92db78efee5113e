package sidecarset

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/inject"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
)

// TestARefusedWriteDelaysNoOtherSidecarSet has the API server refuse what one SidecarSet writes to a Pod, as a policy on its image does. The
// other SidecarSet of that Pod goes on.
func TestARefusedWriteDelaysNoOtherSidecarSet(t *testing.T) {
	ctx := context.Background()
	one := snapshotOf(t, 1, func(int) bool { return false })
	p, first := one.Pods[0], one.Set
	p.UID, first.UID = "pod", "first"
	second := first.DeepCopy()
	second.Name, second.UID = "metrics", "second"
	second.Spec.Containers[0].Name, second.Spec.Containers[0].Image = "metrics", "metrics:1"
	compiled, err := inject.Compile(second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inject.Into(p, []*inject.Sidecars{compiled}, inject.Options{Now: one.Now}); err != nil {
		t.Fatal(err)
	}
	status := p.Status.ContainerStatuses[0]
	status.Name, status.Image, status.ImageID = "metrics", "metrics:1", "metrics:1"
	p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, status)
	second.Spec.Containers[0].Image = "metrics:2"

	stored := fake.NewClientBuilder().WithScheme(promises.Scheme()).WithObjects(first, second, p).Build()
	reads := loop.Reads{Reader: observe.Reader{Reader: stored}, Live: stored, Tracked: stored, Now: one.Now}
	kind := Kind(Options{Namespace: "kruise-system"})
	waits := func(set *v1beta1.SidecarSet) string {
		t.Helper()
		v, err := kind.Read(ctx, reads, set)
		if err != nil || len(v.matched) != 1 {
			t.Fatalf("SidecarSet %s has the Pods %v: %v", set.Name, v.matched, err)
		}
		return v.matched[0].Waits
	}
	v, err := kind.Read(ctx, reads, first)
	if err != nil {
		t.Fatal(err)
	}
	kind.Remember(v, apply.Outcome{Results: []apply.Result{{
		Action: plan.Action{Verb: plan.Update, Concern: plan.Rollout, Before: p},
		Err:    apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, p.Name, nil),
	}}})
	for set, want := range map[*v1beta1.SidecarSet]string{first: "its update was refused", second: ""} {
		if got := waits(set); got != want {
			t.Errorf("SidecarSet %s waits because %q, want %q", set.Name, got, want)
		}
	}
	reads.Now = reads.Now.Add(time.Minute)
	if got := waits(first); got != "" {
		t.Errorf("SidecarSet %s still waits because %q", first.Name, got)
	}
}
