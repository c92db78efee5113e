package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// crowdNamespaces is how many namespaces have Pods that are not Kruise's, crowdReplicas how many of them each ReplicaSet has.
	crowdNamespaces, crowdReplicas = 20, 10
	// crowdWorkers is how many requests there are at a time while the Pods are created.
	crowdWorkers = 32
)

// atOnce calls a function for each number below a bound, some of them at a time; a worker goes on until its first error.
func atOnce(workers, bound int, do func(number int) error) error {
	var running sync.WaitGroup
	problems := make([]error, workers)
	for worker := range workers {
		running.Go(func() {
			for number := worker; number < bound && problems[worker] == nil; number += workers {
				problems[worker] = do(number)
			}
		})
	}
	running.Wait()
	return errors.Join(problems...)
}

// crowd makes the Pods that are not Kruise's, as their controllers and kubelets leave them. Nobody looks after them: it is for control
// planes without controllers.
type crowd struct {
	client.Client
	nodes int
	// replicaSets is how many of them are there already.
	replicaSets int
}

func nodeName(number int) string { return fmt.Sprintf("node-%04d", number) }
func crowdNamespace(replicaSet int) string {
	return fmt.Sprintf("crowd-%02d", replicaSet%crowdNamespaces)
}

// prepare makes the namespaces, and nodes that say about themselves what nodes say.
func (c *crowd) prepare(ctx context.Context) error {
	for i := range crowdNamespaces {
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: crowdNamespace(i)}}); err != nil {
			return err
		}
	}
	return atOnce(crowdWorkers, c.nodes, func(number int) error {
		node := nodeOf(number)
		status := node.Status
		if err := c.Create(ctx, node); err != nil {
			return err
		}
		node.Spec.Taints = nil // the API server has a new node not ready, which a controller would change
		if err := c.Update(ctx, node); err != nil {
			return err
		}
		node.Status = status
		return c.Status().Update(ctx, node)
	})
}

// grow makes ReplicaSets with their Pods until there are so many Pods, which run and are ready.
func (c *crowd) grow(ctx context.Context, pods int) error {
	first, all := c.replicaSets, (pods+crowdReplicas-1)/crowdReplicas
	err := atOnce(crowdWorkers, all-first, func(i int) error {
		number := first + i
		set := crowdSet(number)
		if err := c.Create(ctx, set); err != nil {
			return fmt.Errorf("creating ReplicaSet %s: %w", set.Name, err)
		}
		for replica := range min(crowdReplicas, pods-number*crowdReplicas) {
			serial := number*crowdReplicas + replica
			p := crowdPod(set, serial, c.nodes)
			if err := c.Create(ctx, p); err != nil {
				return fmt.Errorf("creating Pod %s: %w", p.Name, err)
			}
			if err := c.run(ctx, p, serial); err != nil {
				return err
			}
		}
		return nil
	})
	c.replicaSets = max(first, all)
	return err
}

// run has a Pod run, as its kubelet would. Conditions that others write stay as they are.
func (c *crowd) run(ctx context.Context, p *corev1.Pod, serial int) error {
	before := client.StrategicMergeFrom(p.DeepCopy())
	setRunning(p, serial)
	if err := c.Status().Patch(ctx, p, before); err != nil {
		return fmt.Errorf("writing the status of Pod %s: %w", p.Name, err)
	}
	return nil
}
