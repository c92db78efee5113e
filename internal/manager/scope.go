package manager

import (
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seed-69ecc383/kruise/internal/admission/pods"
	"github.com/seed-69ecc383/kruise/internal/admission/scoping"
	"github.com/seed-69ecc383/kruise/internal/admission/validating"
	"github.com/seed-69ecc383/kruise/internal/features"
)

// ourWebhooks is the name of the mutating webhook configuration.
const ourWebhooks = "kruise-mutating-webhook-configuration"

// learned is how long API servers may take to learn of a change of a webhook configuration; mostly it is milliseconds.
const learned = time.Second

// scoped keeps the webhooks for Pods true to the SidecarSets, and returns what the admission of SidecarSets has to do for it. Where there are no
// Pod webhooks there is nothing to do.
func scoped(mgr ctrlmanager.Manager, live client.Client, s settings) (validating.OnAccept, error) {
	if !s.gates.Enabled(features.PodWebhook) {
		return nil, nil
	}
	mutating, _, err := configurations(s.Webhook.PodNamespace)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(mutating.Webhooks, func(w admissionv1.MutatingWebhook) bool { return w.Name == scoping.LaunchOrder })
	if i < 0 || mutating.Name != ourWebhooks {
		return nil, fmt.Errorf("%s %s, as it is shipped, has no webhook %s", mutating.Kind, mutating.Name, scoping.LaunchOrder)
	}
	keeper := &scoping.Keeper{
		Client: live, Configuration: mutating.Name, Shipped: mutating.Webhooks[i], Settle: learned, Pause: 10 * time.Millisecond, Now: time.Now,
		Markers: s.asksProviders(),
	}
	return keeper.Accept, keeper.Add(mgr)
}

// asksProviders reports whether the providers of virtual nodes are told what PodProbeMarkers ask.
func (s settings) asksProviders() bool {
	return s.off(features.KruiseDaemon, features.PodProbeMarkerGate, features.EnablePodProbeMarkerOnServerless) == ""
}

// awaited is the step that holds new Pods back until the SidecarSets before them are known.
func awaited(mgr ctrlmanager.Manager, live client.Reader, catalog *pods.Catalog) pods.Step {
	return scoping.Await(scoping.AwaitOptions{Configuration: ourWebhooks, Cached: mgr.GetCache(), Live: live, Known: catalog.Candidates})
}
