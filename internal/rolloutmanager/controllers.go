package rolloutmanager

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/controller/batchrelease"
	"github.com/seed-69ecc383/kruise/internal/controller/deployment"
	"github.com/seed-69ecc383/kruise/internal/controller/nativedaemonset"
	"github.com/seed-69ecc383/kruise/internal/controller/rollout"
	"github.com/seed-69ecc383/kruise/internal/controller/rollouthistory"
	"github.com/seed-69ecc383/kruise/internal/controller/trafficrouting"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/process"
	"github.com/seed-69ecc383/kruise/internal/statemetrics"
	"github.com/seed-69ecc383/kruise/internal/traffic"
)

// addControllers adds every controller.
func (s settings) addControllers(ctx context.Context) error {
	if err := apply.RegisterMetrics(); err != nil {
		return err
	}
	if err := observe.AddControllerIndex(ctx, s.mgr.GetFieldIndexer(),
		&corev1.Pod{}, &appsv1.ReplicaSet{}, &appsv1.ControllerRevision{}); err != nil {
		return err
	}
	counted, err := rollout.NewMetrics()
	if err != nil {
		return err
	}
	runner, err := s.measurements(ctx)
	if err != nil {
		return err
	}
	gates, err := s.gates()
	if err != nil {
		return err
	}
	ofRollouts := rollout.Options{
		Measurer: runner, Metrics: counted, KeepsFrozen: gates[keepPaused], Histories: gates[histories],
	}
	if !s.FilterWorkloadType {
		foreign := s.newWorkloads()
		ofRollouts.Foreign = foreign
		if err := s.mgr.Add(foreign); err != nil {
			return fmt.Errorf("watching kinds of workloads: %w", err)
		}
	}
	executor := process.Executors(s.mgr, s.live, s.clock.Now)
	for _, c := range s.controllers(ofRollouts) {
		runtime := loop.Runtime{Executor: executor(c.kind.EventSource()), Live: s.live, Workers: c.workers, Tracer: s.tracer}
		runtime.Executor.Timed = s.tracer != nil
		if err := c.kind.AddTo(s.mgr, runtime); err != nil {
			return fmt.Errorf("adding the controller %s: %w", c.kind.EventSource(), err)
		}
	}
	return s.StateMetrics.AddTo(s.mgr, s.clock.Now, map[string]statemetrics.Kind{"rollout": statemetrics.Rollouts()})
}

// controller is a kind that the manager reconciles.
type controller struct {
	kind    loop.Controllers
	workers int
}

// controllers is the one list of controllers.
func (s settings) controllers(ofRollouts rollout.Options) []controller {
	kinds := observe.NewHeldKinds(s.mgr.GetCache(), s.live)
	routing := rollout.Routing{Options: traffic.Options{Namespace: s.Webhook.PodNamespace, Kinds: kinds}, Listen: kinds.Listen}
	ofRollouts.Traffic = routing
	out := []controller{
		{rollout.Kind(ofRollouts), s.RolloutWorkers},
		{trafficrouting.Kind(trafficrouting.Options{Traffic: routing.Options, Listen: kinds.Listen}), s.TrafficRoutingWorkers},
		{batchrelease.Kind(batchrelease.Options{Foreign: ofRollouts.Foreign}), s.BatchReleaseWorkers},
		{deployment.Kind(), s.DeploymentWorkers},
		{nativedaemonset.Kind(), s.DaemonSetWorkers},
	}
	if ofRollouts.Histories {
		out = append(out, controller{rollouthistory.Kind(ofRollouts.Foreign), s.HistoryWorkers})
	}
	return out
}
