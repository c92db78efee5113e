package manager

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seed-69ecc383/kruise/internal/admission/pods"
	"github.com/seed-69ecc383/kruise/internal/admission/webhookconfig"
	"github.com/seed-69ecc383/kruise/internal/features"
)

// podChain returns what is done to new Pods, in this order; no steps where the gate of Pod webhooks is off.
func podChain(ctx context.Context, mgr ctrlmanager.Manager, live client.Client, s settings) (pods.Chain, error) {
	if !s.gates.Enabled(features.PodWebhook) {
		return pods.Chain{}, nil
	}
	counted, err := pods.NewMetrics(metrics.Registry)
	if err != nil {
		return pods.Chain{}, fmt.Errorf("making the metrics of Pod admission: %w", err)
	}
	catalog, err := pods.NewCatalog(ctx, mgr.GetCache(), live, s.Webhook.PodNamespace)
	if err != nil {
		return pods.Chain{}, err
	}
	if err := mgr.AddReadyzCheck("sidecarsets-known", catalog.Check); err != nil {
		return pods.Chain{}, err
	}
	steps := []pods.Step{
		webhookconfig.Await(webhookconfig.AwaitOptions{
			Configuration: mutatingConfiguration, Cached: mgr.GetCache(), Live: live, Known: catalog.Candidates,
		}),
		pods.Sidecars(pods.SidecarOptions{
			Facts:      catalog,
			SortByName: s.gates.Enabled(features.EnableSortSidecarContainerByName),
			Now:        time.Now,
			Metrics:    counted,
		}),
		// After all that adds containers.
		pods.LaunchOrder(rand.String),
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

// asksProviders reports whether the providers of virtual nodes are told what PodProbeMarkers ask.
func (s settings) asksProviders() bool {
	return s.off(features.KruiseDaemon, features.PodProbeMarkerGate, features.EnablePodProbeMarkerOnServerless) == ""
}
