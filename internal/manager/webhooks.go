package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/seed-69ecc383/kruise/internal/admission"
	"github.com/seed-69ecc383/kruise/internal/admission/pods"
	"github.com/seed-69ecc383/kruise/internal/admission/recreate"
	"github.com/seed-69ecc383/kruise/internal/admission/refusal"
	"github.com/seed-69ecc383/kruise/internal/admission/server"
	"github.com/seed-69ecc383/kruise/internal/admission/validating"
	"github.com/seed-69ecc383/kruise/internal/admission/webhookconfig"
	"github.com/seed-69ecc383/kruise/internal/clock"
	"github.com/seed-69ecc383/kruise/internal/controller/persistentpodstate"
	"github.com/seed-69ecc383/kruise/internal/defaults"
	"github.com/seed-69ecc383/kruise/internal/disruption"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/members"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/spread"
)

// settings are the options and the gates of one process.
type settings struct {
	Options
	gates features.Set
	// clock tells the API server's time, by which everything is judged that others write, too. What only this process knows, such as how
	// long a handler takes, goes by the clock of this machine.
	clock *clock.Clock
	// scales reads how many Pods workloads should have.
	scales *observe.Scales
	// evaluator evaluates PodUnavailableBudgets; nil if the gates leave them out.
	evaluator *disruption.Evaluator
	webhooks  *server.Server
	// spreads gives new Pods to the subsets of WorkloadSpreads; nil if the gates leave them out.
	spreads *spread.Assigner
	// seenPods returns the resource version up to which the cache has seen Pods.
	seenPods func(context.Context) (string, error)
	// copies know what ResourceDistributions have made; nil if the gate leaves them out.
	copies *copies
	// members are the clusters that subsets of UnitedDeployments are in, hubID the identity of this one; nil if the gate leaves them out.
	members *members.Members
	hubID   string
	// lacking are the rights that controllers lack, which are off for that, by the source of their events.
	lacking map[string][]string
	// configurations keeps the webhook configurations.
	configurations *webhookconfig.Reconciler
	// tracer is told what passes come to; nil if nobody asks.
	tracer loop.Tracer
	// served are the paths at which the webhook server has handlers.
	served map[string]bool
}

// off returns the first of the gates that is off; empty when all are on.
func (s settings) off(gates ...features.Gate) string {
	for _, gate := range gates {
		if !s.gates.Enabled(gate) {
			return string(gate)
		}
	}
	return ""
}

// disabledKinds says, for each kind of which no object is of any use, which feature gate is off.
func (s settings) disabledKinds() map[string]string {
	off := map[string]string{}
	for kind, gates := range map[string][]features.Gate{
		"NodeImage":            {features.KruiseDaemon},
		"ImagePullJob":         {features.KruiseDaemon, features.ImagePullJobGate},
		"ImageListPullJob":     {features.KruiseDaemon, features.ImagePullJobGate},
		"PodProbeMarker":       {features.KruiseDaemon, features.PodProbeMarkerGate},
		"ResourceDistribution": {features.ResourceDistributionGate},
		"PersistentPodState":   {features.PodWebhook},
	} {
		if gate := s.off(gates...); gate != "" {
			off[kind] = fmt.Sprintf("feature-gate %s is not enabled", gate)
		}
	}
	if why := s.spreadsOff(); why != "" {
		off["WorkloadSpread"] = why
	}
	if missing := s.lacking[distributionEvents]; len(missing) > 0 {
		off["ResourceDistribution"] = fmt.Sprintf("the manager may not %s: see config/resourcedistribution", strings.Join(missing, ", "))
	}
	if why := s.budgetsOff(); why != "" {
		off["PodUnavailableBudget"] = why
	}
	return off
}

// clients are who may ask for admission.
func (o Options) clients() server.Clients {
	return server.Clients{CAFile: o.WebhookClientCAFile, Names: list(o.WebhookClientNames)}
}

// list returns what is joined by commas.
func list(joined string) []string {
	return slices.DeleteFunc(strings.Split(joined, ","), func(name string) bool { return name == "" })
}

// addWebhooks serves admission and conversion on every replica, and keeps the webhook configurations.
func addWebhooks(ctx context.Context, mgr ctrlmanager.Manager, live client.Client, s settings) error {
	templates, err := validating.NewTemplateChecker(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("preparing the validation of templates: %w", err)
	}
	chain, err := podChain(ctx, mgr, live, s)
	if err != nil {
		return err
	}
	var admitted validating.OnAccept
	var spreadAdmitted validating.OnAcceptSpread
	if s.gates.Enabled(features.PodWebhook) {
		admitted, spreadAdmitted = s.configurations.Admit, s.configurations.AdmitSpread
	}
	refusals, err := refusal.OpenLog(s.ProtectionLogPath, log.Log.WithName("protection-log"))
	if err != nil {
		return err
	}
	budgets, err := budgetWebhook(mgr, live, s, refusals)
	if err != nil {
		return err
	}
	protected, err := protectionWebhooks(mgr, live, s, refusals)
	if err != nil {
		return err
	}
	admission.Register(servedPaths{Server: mgr.GetWebhookServer(), paths: s.served}, admission.Options{
		Pods:       chain,
		Budgets:    budgets,
		Protection: protected,
		Revisions:  live,
		Defaults:   s.defaults(),
		Validation: validating.Options{
			Live:           live,
			Templates:      templates,
			InPlace:        inPlaceOptions(s.gates),
			Namespace:      s.Webhook.PodNamespace,
			Accepted:       admitted,
			AcceptedSpread: spreadAdmitted,
			SpreadKinds:    s.spreadKinds(),
			Disabled:       s.disabledKinds(),
			Distributed:    s.distributed(),
			OtherClusters:  s.members != nil,
			ShortHash:      s.gates.Enabled(features.CloneSetShortHash),
			ClaimResize:    s.gates.Enabled(features.StatefulSetAutoResizePVCGate),
			AnyAnnotation:  s.gates.Enabled(features.SidecarSetPatchPodMetadataDefaultsAllowed),
		},
		ContainerRecreate: recreate.Options{Live: live, Disabled: !s.gates.Enabled(features.KruiseDaemon)},
		Now:               s.clock.Now,
	})
	return addConfigurations(mgr, s)
}

// addConfigurations keeps the webhook configurations, without which the manager is not ready.
func addConfigurations(mgr ctrlmanager.Manager, s settings) error {
	ready := func(r *http.Request) error {
		return errors.Join(s.webhooks.StartedChecker()(r), s.configurations.Serving.Check(r))
	}
	if err := errors.Join(
		mgr.AddReadyzCheck("webhook-ready", ready), mgr.AddHealthzCheck("webhooks-answer", s.webhooks.HungChecker()),
	); err != nil {
		return err
	}
	return s.configurations.Add(mgr)
}

func (s settings) defaults() defaults.Options {
	return defaults.Options{
		TemplateNoDefaults:   s.gates.Enabled(features.TemplateNoDefaults),
		HostNetworkHostPorts: s.gates.Enabled(features.DefaultHostNetworkHostPortsInPodTemplates),
		ClaimRetention:       s.gates.Enabled(features.StatefulSetAutoDeletePVC),
		ClaimResize:          s.gates.Enabled(features.StatefulSetAutoResizePVCGate),
	}
}

// servedPaths notes at which paths handlers are registered.
type servedPaths struct {
	webhook.Server
	paths map[string]bool
}

func (p servedPaths) Register(path string, handler http.Handler) {
	p.paths[path] = true
	p.Server.Register(path, handler)
}

// podChain returns what is done to new Pods, in this order; no steps where the gate of Pod webhooks is off.
func podChain(ctx context.Context, mgr ctrlmanager.Manager, live client.Client, s settings) (pods.Chain, error) {
	if !s.gates.Enabled(features.PodWebhook) {
		return pods.Chain{}, nil
	}
	counted, err := pods.NewMetrics(metrics.Registry)
	if err != nil {
		return pods.Chain{}, fmt.Errorf("making the metrics of Pod admission: %w", err)
	}
	catalog, err := pods.NewCatalog(ctx, mgr.GetCache(), pods.CatalogOptions{
		Live: live, RevisionNamespace: s.Webhook.PodNamespace, Metrics: counted,
	})
	if err != nil {
		return pods.Chain{}, err
	}
	if err := mgr.AddReadyzCheck("sidecarsets-known", catalog.Check); err != nil {
		return pods.Chain{}, err
	}
	await := webhookconfig.AwaitOptions{
		Configuration: mutatingConfiguration, Cached: mgr.GetCache(), Live: live, Known: catalog.Candidates,
	}
	var steps []pods.Step
	if s.spreads != nil {
		steps = append(steps, webhookconfig.AwaitSpreads(await), pods.Spread(s.spreads))
	}
	steps = append(steps,
		webhookconfig.Await(await),
		pods.Sidecars(pods.SidecarOptions{
			Facts:      catalog,
			SortByName: s.gates.Enabled(features.EnableSortSidecarContainerByName),
			Now:        s.clock.Now,
			Metrics:    counted,
		}),
		// After all that adds containers.
		pods.LaunchOrder(rand.String),
	)
	if s.bindsPods() {
		states, err := pods.NewCachedPodStateReader(ctx, mgr.GetCache())
		if err != nil {
			return pods.Chain{}, err
		}
		steps = append(steps, pods.PodStates(states))
	}
	if s.asksProviders() {
		markers, err := pods.NewCachedProbeReader(ctx, mgr.GetCache())
		if err != nil {
			return pods.Chain{}, err
		}
		steps = append(steps, pods.Probes(markers))
	}
	return pods.Chain{Within: s.Namespace, Metrics: counted, Steps: steps}, nil
}

// bindsPods reports whether new Pods are bound to where the Pods of their names ran, as PersistentPodStates have it.
func (s settings) bindsPods() bool {
	return s.gates.Enabled(features.PodWebhook) && len(s.lacking[persistentpodstate.EventSource]) == 0
}

// asksProviders reports whether the providers of virtual nodes are told what PodProbeMarkers ask.
func (s settings) asksProviders() bool {
	return s.off(features.KruiseDaemon, features.PodProbeMarkerGate, features.EnablePodProbeMarkerOnServerless) == ""
}
