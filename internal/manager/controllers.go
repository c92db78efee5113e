package manager

import (
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/controller/cloneset"
	"github.com/seed-69ecc383/kruise/internal/controller/containerrecreate"
	"github.com/seed-69ecc383/kruise/internal/controller/daemonset"
	"github.com/seed-69ecc383/kruise/internal/controller/imagelistpulljob"
	"github.com/seed-69ecc383/kruise/internal/controller/launchpriority"
	"github.com/seed-69ecc383/kruise/internal/controller/nodepodprobe"
	"github.com/seed-69ecc383/kruise/internal/controller/podprobemarker"
	"github.com/seed-69ecc383/kruise/internal/controller/sidecarset"
	"github.com/seed-69ecc383/kruise/internal/controller/sidecarterminator"
	"github.com/seed-69ecc383/kruise/internal/controller/statefulset"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

// parallelWrites is the number of writes under way at the same time for one workload: enough to hide the latency of the API server, which sets
// the pace beyond that.
const parallelWrites = 128

// launchPriorityWorkers is the number of Pods whose containers are started in order at the same time.
const launchPriorityWorkers = 4

// addControllers adds every controller, with the options that flags and gates give it.
func addControllers(mgr ctrlmanager.Manager, live client.Client, s settings) error {
	o, gates := s.Options, s.gates
	if err := apply.RegisterMetrics(); err != nil {
		return err
	}
	executor := executors(mgr, live)
	for _, c := range s.controllers() {
		e := executor(c.kind.EventSource())
		if c.guarded {
			e.Guard = s.guardOf()
		}
		if err := c.kind.AddTo(mgr, loop.Runtime{Executor: e, Live: live, Workers: c.workers, Now: time.Now}); err != nil {
			return err
		}
	}
	return errors.Join(addNodeControllers(mgr, live, o, gates), addJobControllers(mgr, live, o), launchpriority.Add(mgr, launchpriority.Config{
		Executor: executor(launchpriority.EventSource),
		Live:     live,
		Workers:  launchPriorityWorkers,
		Now:      time.Now,
	}))
}

// controller is a kind that the manager reconciles.
type controller struct {
	kind    loop.Controllers
	workers int
	// guarded ones ask the PodUnavailableBudgets before they take a Pod out of service.
	guarded bool
}

// controllers is the one list of controllers, with the options that flags and gates give them.
func (s settings) controllers() []controller {
	all := []controller{
		{kind: cloneset.Kind(s.cloneSet()), workers: s.CloneSetWorkers, guarded: true},
		{kind: statefulset.Kind(s.statefulSet()), workers: s.StatefulSetWorkers, guarded: true},
		{kind: daemonset.Kind(s.daemonSet()), workers: s.DaemonSetWorkers, guarded: true},
		{kind: sidecarset.Kind(sidecarset.Options{Namespace: s.Webhook.PodNamespace}), workers: s.SidecarSetWorkers, guarded: true},
	}
	if daemon := s.gates.Enabled(features.KruiseDaemon); daemon && s.gates.Enabled(features.ImagePullJobGate) {
		all = append(all, controller{kind: imagelistpulljob.Kind(), workers: s.ImagePullJobWorkers})
	}
	return all
}

func (s settings) cloneSet() cloneset.Options {
	return cloneset.Options{
		ShortHash:               s.gates.Enabled(features.CloneSetShortHash),
		PartitionRollback:       s.gates.Enabled(features.CloneSetPartitionRollback),
		PreparingUpdateAsUpdate: s.gates.Enabled(features.PreparingUpdateAsUpdate),
		RecreateOnClaimChange:   s.gates.Enabled(features.RecreatePodWhenChangeVCTInCloneSetGate),
		ExcludePreparingDelete:  s.ExcludePreparingDelete,
		PreDownload:             s.gates.Enabled(features.PreDownloadImageForInPlaceUpdate),
		InPlace:                 inPlaceOptions(s.gates),
	}
}

func (s settings) statefulSet() statefulset.Options {
	return statefulset.Options{
		PreparingUpdateAsUpdate: s.gates.Enabled(features.PreparingUpdateAsUpdate),
		ClaimRetention:          s.gates.Enabled(features.StatefulSetAutoDeletePVC),
		ClaimResize:             s.gates.Enabled(features.StatefulSetAutoResizePVCGate),
		StartOrdinal:            s.gates.Enabled(features.StatefulSetStartOrdinal),
		PreDownload:             s.gates.Enabled(features.PreDownloadImageForInPlaceUpdate),
		InPlace:                 inPlaceOptions(s.gates),
	}
}

func (s settings) daemonSet() daemonset.Options {
	return daemonset.Options{
		BindPods:    !s.AssignPodsByScheduler,
		PreDownload: s.gates.Enabled(features.PreDownloadImageForDaemonSetUpdate),
		InPlace:     inPlaceOptions(s.gates),
	}
}

// addNodeControllers adds those whose work the daemons of the nodes do.
func addNodeControllers(mgr ctrlmanager.Manager, live client.Client, o Options, gates features.Set) error {
	if !gates.Enabled(features.KruiseDaemon) {
		return nil
	}
	executor := executors(mgr, live)
	all := []error{containerrecreate.Add(mgr, containerrecreate.Config{
		Executor: executor(containerrecreate.EventSource),
		Live:     live,
		Workers:  o.ContainerRecreateWorkers,
		Now:      time.Now,
	})}
	if gates.Enabled(features.SidecarTerminator) {
		all = append(all, sidecarterminator.Add(mgr, sidecarterminator.Config{
			Executor: executor(sidecarterminator.EventSource),
			Live:     live,
			Workers:  o.SidecarTerminatorWorkers,
			Now:      time.Now,
		}))
	}
	if gates.Enabled(features.PodProbeMarkerGate) {
		all = append(all, podprobemarker.Add(mgr, podprobemarker.Config{
			Executor: executor(podprobemarker.EventSource),
			Live:     live,
			Workers:  o.PodProbeMarkerWorkers,
			Now:      time.Now,
		}), nodepodprobe.Add(mgr, nodepodprobe.Config{
			Options:  nodepodprobe.Options{Virtual: gates.Enabled(features.EnablePodProbeMarkerOnServerless)},
			Executor: executor(nodepodprobe.EventSource),
			Live:     live,
			Workers:  o.NodePodProbeWorkers,
			Now:      time.Now,
		}))
	}
	return errors.Join(all...)
}

// executors returns how the executor of a controller is made, which is known by the source of its events.
func executors(mgr ctrlmanager.Manager, live client.Client) func(eventSource string) *apply.Executor {
	return func(eventSource string) *apply.Executor {
		return &apply.Executor{Config: apply.Config{
			Writer: apply.NewWriter(live, mgr.GetConfig(), mgr.GetHTTPClient()),
			Scheme: mgr.GetScheme(),
			Seen:   apply.SeenBy(mgr.GetCache()), Now: time.Now,
			Events:   mgr.GetEventRecorderFor(eventSource), //nolint:staticcheck // events of core/v1 are what users' tools read
			Parallel: parallelWrites,
		}}
	}
}

func inPlaceOptions(gates features.Set) inplace.Options {
	return inplace.Options{
		EnvFromMetadata: gates.Enabled(features.InPlaceUpdateEnvFromMetadata),
		VerticalScaling: gates.Enabled(features.InPlaceWorkloadVerticalScaling),
	}
}
