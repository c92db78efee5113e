package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// gatesKind measures what a readiness gate costs a creation, whoever opens it: a Pod of a CloneSet has such gates, one of a Deployment has
// none. What lies between a Deployment without and with one is the price of a second write for each Pod; what lies beyond it is the
// CloneSet's own.
const gatesKind = "gates"

// benchGate is the gate that the bench itself opens.
const benchGate corev1.PodConditionType = "bench.example.com/open"

// gateWriters is how many Pods have their gate opened at a time.
const gateWriters = 32

// gatedDeployment is a Deployment whose Pods have a readiness gate.
func gatedDeployment(namespace string) workload {
	w := deployment(namespace)
	w.object.(*appsv1.Deployment).Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: benchGate}}
	return w
}

// openGates opens the gate of each Pod once it has a node, as early as a CloneSet does, until it is stopped.
func (b *bench) openGates(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	free := make(chan struct{}, gateWriters)
	var writing sync.WaitGroup
	open := func(object any) {
		p := object.(*corev1.Pod)
		isDue := pod.HasReadinessGate(p, benchGate) && pod.Condition(p, benchGate) == nil
		if !isDue || p.Spec.NodeName == "" || p.DeletionTimestamp != nil {
			return
		}
		free <- struct{}{}
		writing.Go(func() {
			defer func() { <-free }()
			patch := client.RawPatch(types.StrategicMergePatchType,
				fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":"True"}]}}`, benchGate))
			if err := client.IgnoreNotFound(b.hub().Client.Status().Patch(ctx, p.DeepCopy(), patch)); err != nil && ctx.Err() == nil {
				fmt.Fprintf(os.Stderr, "opening the gate of %s/%s: %v\n", p.Namespace, p.Name, err)
			}
		})
	}
	factory, err := followPods(ctx, b.hub(), "", cache.ResourceEventHandlerFuncs{
		AddFunc:    open,
		UpdateFunc: func(_, object any) { open(object) },
	})
	return func() {
		cancel()
		factory.Shutdown()
		writing.Wait()
	}, err
}
