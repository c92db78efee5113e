package manager

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/controller/advancedcronjob"
	"github.com/seed-69ecc383/kruise/internal/controller/broadcastjob"
	"github.com/seed-69ecc383/kruise/internal/controller/cloneset"
	"github.com/seed-69ecc383/kruise/internal/controller/containerrecreate"
	"github.com/seed-69ecc383/kruise/internal/controller/daemonset"
	"github.com/seed-69ecc383/kruise/internal/controller/ephemeraljob"
	"github.com/seed-69ecc383/kruise/internal/controller/imagelistpulljob"
	"github.com/seed-69ecc383/kruise/internal/controller/imagepulljob"
	"github.com/seed-69ecc383/kruise/internal/controller/launchpriority"
	"github.com/seed-69ecc383/kruise/internal/controller/nodeimage"
	"github.com/seed-69ecc383/kruise/internal/controller/nodepodprobe"
	"github.com/seed-69ecc383/kruise/internal/controller/persistentpodstate"
	"github.com/seed-69ecc383/kruise/internal/controller/podprobemarker"
	"github.com/seed-69ecc383/kruise/internal/controller/podunavailablebudget"
	"github.com/seed-69ecc383/kruise/internal/controller/pullsecret"
	"github.com/seed-69ecc383/kruise/internal/controller/resourcedistribution"
	"github.com/seed-69ecc383/kruise/internal/controller/sidecarset"
	"github.com/seed-69ecc383/kruise/internal/controller/sidecarterminator"
	"github.com/seed-69ecc383/kruise/internal/controller/statefulset"
	"github.com/seed-69ecc383/kruise/internal/controller/uniteddeployment"
	"github.com/seed-69ecc383/kruise/internal/controller/workloadspread"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/members"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/process"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/seal"
	"github.com/seed-69ecc383/kruise/internal/statemetrics"
)

// The numbers of workers that no flag sets.
const (
	launchPriorityWorkers = 4
	ephemeralJobWorkers   = 3
)

// addControllers adds every controller, with the options that flags and gates give it.
func addControllers(mgr ctrlmanager.Manager, live client.Client, s settings) error {
	if err := apply.RegisterMetrics(); err != nil {
		return err
	}
	if err := s.tellLacking(); err != nil {
		return err
	}
	executor := process.Executors(mgr, live, s.clock.Now)
	inCache := map[string]statemetrics.Kind{}
	for _, c := range s.controllers(live) {
		if len(s.lacking[c.kind.EventSource()]) > 0 {
			continue
		}
		if kind, ok := statemetrics.Apps()[c.kind.EventSource()]; ok {
			inCache[c.kind.EventSource()] = kind
		}
		e := executor(c.kind.EventSource())
		if c.seen != nil {
			e.Seen = c.seen
		}
		if c.guarded {
			e.Budgets = s.askBudgets()
		}
		if c.elsewhere != nil {
			e.Elsewhere = c.elsewhere.Send
		}
		e.Timed = s.tracer != nil
		if err := c.kind.AddTo(mgr, loop.Runtime{Executor: e, Live: live, Workers: c.workers, Tracer: s.tracer}); err != nil {
			return err
		}
	}
	return s.StateMetrics.AddTo(mgr, s.clock.Now, inCache)
}

// tellLacking says which controllers are off because the manager's account lacks their rights: an operator has narrowed its role.
func (s settings) tellLacking() error {
	off := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kruise_controller_off", Help: "Controllers that are off because the manager's account lacks rights that they need.",
	}, []string{"controller"})
	for name, rights := range s.lacking {
		off.WithLabelValues(name).Set(1)
		log.Log.Info("Controller is off: the manager's account lacks rights", "controller", name, "rights", strings.Join(rights, ", "))
	}
	return metrics.Registry.Register(off)
}

// controller is a kind that the manager reconciles.
type controller struct {
	kind    loop.Controllers
	workers int
	// guarded ones ask the PodUnavailableBudgets before they take a Pod out of service.
	guarded bool
	// seen tells how far its caches have come; nil for the cache of the manager.
	seen apply.Seen
	// elsewhere writes in other clusters; nil for a controller that does not.
	elsewhere *members.Members
	// needs are the rights without which it is off.
	needs []need
}

// controllers is the one list of controllers, with the options that flags and gates give them.
func (s settings) controllers(live client.Reader) []controller {
	sidecarSets := sidecarset.Options{Namespace: s.Webhook.PodNamespace}
	broadcastJobs := broadcastjob.Options{BindPods: !s.AssignBroadcastJobPodsByScheduler}
	all := []controller{
		{kind: cloneset.Kind(s.cloneSet()), workers: s.CloneSetWorkers, needs: s.cloneSetNeeds(), guarded: true},
		{kind: statefulset.Kind(s.statefulSet()), workers: s.StatefulSetWorkers, needs: s.statefulSetNeeds(), guarded: true},
		{kind: daemonset.Kind(s.daemonSet()), workers: s.DaemonSetWorkers, needs: s.daemonSetNeeds(), guarded: true},
		{kind: sidecarset.Kind(sidecarSets), workers: s.SidecarSetWorkers, needs: sidecarSetNeeds(), guarded: true},
		{kind: broadcastjob.Kind(broadcastJobs), workers: s.BroadcastJobWorkers, needs: broadcastJobNeeds()},
		{kind: advancedcronjob.Kind(), workers: s.AdvancedCronJobWorkers, needs: advancedCronJobNeeds()},
		{
			kind: uniteddeployment.Kind(s.unitedDeployment()), workers: s.UnitedDeploymentWorkers, needs: unitedDeploymentNeeds(),
			elsewhere: s.members,
		},
		{kind: ephemeraljob.Kind(), workers: ephemeralJobWorkers, needs: ephemeralJobNeeds()},
		{kind: launchpriority.Kind(), workers: launchPriorityWorkers, needs: launchPriorityNeeds()},
	}
	all = append(all, s.daemonControllers(live)...)
	if s.gates.Enabled(features.WorkloadSpread) {
		all = append(all, controller{kind: workloadspread.Kind(s.spreadOptions()), workers: s.WorkloadSpreadWorkers, needs: spreadNeeds()})
	}
	if s.gates.Enabled(features.PodWebhook) { // without it, nothing would come of the records
		states := persistentpodstate.Options{Scales: s.scales, StartOrdinal: s.gates.Enabled(features.StatefulSetStartOrdinal)}
		workers, needs := s.PersistentPodStateWorkers, podStateNeeds()
		all = append(all, controller{kind: persistentpodstate.Kind(states), workers: workers, needs: needs},
			controller{kind: persistentpodstate.Generator(), workers: workers, needs: needs},
			controller{kind: persistentpodstate.NativeGenerator(), workers: workers, needs: needs})
	}
	if s.gates.Enabled(features.ResourceDistributionGate) {
		one := controller{
			kind:    resourcedistribution.Kind(resourcedistribution.Options{Copies: s.copies, Kinds: s.distributed()}),
			workers: s.ResourceDistributionWorkers, needs: s.distributionNeeds(),
		}
		if s.copies != nil {
			one.seen = s.copies.seen
		}
		all = append(all, one)
	}
	if s.budgetsOff() == "" {
		budgets := podunavailablebudget.Kind(s.budgets())
		all = append(all, controller{kind: budgets, workers: s.PodUnavailableBudgetWorkers, needs: budgetNeeds()})
	}
	return all
}

// daemonControllers are the controllers whose work the daemons of the nodes do.
func (s settings) daemonControllers(live client.Reader) []controller {
	if !s.gates.Enabled(features.KruiseDaemon) {
		return nil
	}
	sources := observe.NewSources(live, time.Now)
	images := s.nodeImages(sources)
	all := []controller{
		{kind: containerrecreate.Kind(), workers: s.ContainerRecreateWorkers, needs: recreateNeeds()},
		{kind: nodeimage.CreationKind(images), workers: s.NodeImageWorkers, needs: s.nodeImageNeeds()},
		{kind: nodeimage.Kind(images), workers: s.NodeImageWorkers, needs: s.nodeImageNeeds()},
	}
	if s.gates.Enabled(features.SidecarTerminator) {
		all = append(all, controller{kind: sidecarterminator.Kind(), workers: s.SidecarTerminatorWorkers, needs: recreateNeeds()})
	}
	if s.gates.Enabled(features.PodProbeMarkerGate) {
		virtual := nodepodprobe.Options{Virtual: s.gates.Enabled(features.EnablePodProbeMarkerOnServerless)}
		all = append(all, controller{kind: podprobemarker.Kind(), workers: s.PodProbeMarkerWorkers, needs: probeNeeds()},
			controller{kind: nodepodprobe.Kind(virtual), workers: s.NodePodProbeWorkers, needs: probeNeeds()})
	}
	if images.Jobs {
		needs := s.pullJobNeeds()
		all = append(all,
			controller{kind: imagepulljob.Kind(s.imagePullJobs(sources)), workers: s.ImagePullJobWorkers, needs: needs},
			controller{kind: imagelistpulljob.Kind(), workers: s.ImagePullJobWorkers, needs: needs},
			controller{kind: pullsecret.Kind(), workers: 1, needs: s.pullSecretNeeds()})
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

func (s settings) nodeImages(sources *observe.Sources) nodeimage.Options {
	return nodeimage.Options{
		CreationDelay:   s.NodeImageCreationDelay,
		Jobs:            s.gates.Enabled(features.ImagePullJobGate),
		Namespace:       s.Namespace,
		ConfigNamespace: s.DaemonConfigNamespace,
		Sources:         sources,
		Seal:            seal.Seal,
	}
}

func (s settings) imagePullJobs(sources *observe.Sources) imagepulljob.Options {
	return imagepulljob.Options{
		Sources:         sources,
		Seal:            seal.Seal,
		SystemNamespace: s.Webhook.PodNamespace,
		Extra:           time.Duration(s.NodeImageExtraTTL) * time.Second,
	}
}

func (s settings) budgets() podunavailablebudget.Options {
	options := podunavailablebudget.Options{Scales: s.scales}
	if s.gates.Enabled(features.PodUnavailableBudgetDeleteGate) {
		options.InForce = s.configurations.EvictionsSentIn
	}
	return options
}

func inPlaceOptions(gates features.Set) inplace.Options {
	return inplace.Options{
		EnvFromMetadata: gates.Enabled(features.InPlaceUpdateEnvFromMetadata),
		VerticalScaling: gates.Enabled(features.InPlaceWorkloadVerticalScaling),
	}
}
