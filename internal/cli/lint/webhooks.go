package lint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	rollouts "github.com/seed-69ecc383/kruise/config/rollouts/webhook"
	suite "github.com/seed-69ecc383/kruise/config/webhook"
	"github.com/seed-69ecc383/kruise/internal/admission"
	"github.com/seed-69ecc383/kruise/internal/admission/validating"
	"github.com/seed-69ecc383/kruise/internal/defaults"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/rules/distribution"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

// hook is a webhook that is asked about the creation of a kind.
type hook struct {
	name    string
	handler ctrladmission.Handler
	rules   []admissionregistrationv1.RuleWithOperations
	// exact means that it is asked only about the versions that it lists.
	exact bool
}

// hooks are the webhooks in the order in which they are asked.
type hooks struct{ mutating, validating []hook }

// paths collects handlers by their paths.
type paths map[string]ctrladmission.Handler

// Register implements admission.Server.
func (p paths) Register(path string, served http.Handler) {
	if handler, ok := served.(*webhook.Admission); ok {
		p[path] = handler.Handler
	}
}

// handlers returns what the managers serve with the default feature gates. Those that only say something of an object as it is in a cluster
// are left out: that of ContainerRecreateRequests goes by the Pod.
func handlers(live client.Reader, now func() time.Time) (paths, error) {
	gates, err := features.Parse(features.Sources{})
	if err != nil {
		return nil, err
	}
	kinds, err := distribution.Served(nil)
	if err != nil {
		return nil, err
	}
	out := paths{}
	admission.Register(out, admission.Options{
		Revisions: live, Now: now,
		Defaults: defaults.Options{
			TemplateNoDefaults:   gates.Enabled(features.TemplateNoDefaults),
			HostNetworkHostPorts: gates.Enabled(features.DefaultHostNetworkHostPortsInPodTemplates),
			ClaimRetention:       gates.Enabled(features.StatefulSetAutoDeletePVC),
			ClaimResize:          gates.Enabled(features.StatefulSetAutoResizePVCGate),
		},
		Validation: validating.Options{
			Live: live, Templates: templates{}, Namespace: "kruise-system", Distributed: kinds,
			InPlace: inplace.Options{
				EnvFromMetadata: gates.Enabled(features.InPlaceUpdateEnvFromMetadata),
				VerticalScaling: gates.Enabled(features.InPlaceWorkloadVerticalScaling),
			},
			ShortHash: gates.Enabled(features.CloneSetShortHash), ClaimResize: gates.Enabled(features.StatefulSetAutoResizePVCGate),
			AnyAnnotation: gates.Enabled(features.SidecarSetPatchPodMetadataDefaultsAllowed),
		},
	})
	delete(out, "/mutate-apps-kruise-io-containerrecreaterequest")
	out["/validate-rollouts-kruise-io-rollout"] = validating.Rollout(validating.RolloutOptions{
		Live: live, PartitionPercentLimit: partitionPercentLimit,
	})
	out["/validate-rollouts-kruise-io-trafficrouting"] = validating.TrafficRouting()
	return out, nil
}

// readHooks returns the webhooks of the shipped configurations that have a handler.
func readHooks(at paths) (hooks, error) {
	var out hooks
	for _, manifests := range [][]byte{suite.Manifests, rollouts.Manifests} {
		documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
		var mutates admissionregistrationv1.MutatingWebhookConfiguration
		if err := documents.Decode(&mutates); err != nil {
			return out, fmt.Errorf("reading the mutating webhooks: %w", err)
		}
		var validates admissionregistrationv1.ValidatingWebhookConfiguration
		if err := documents.Decode(&validates); err != nil && !errors.Is(err, io.EOF) {
			return out, fmt.Errorf("reading the validating webhooks: %w", err)
		}
		for _, w := range mutates.Webhooks {
			if handler, served := at[*w.ClientConfig.Service.Path]; served {
				out.mutating = append(out.mutating, hook{w.Name, handler, w.Rules, *w.MatchPolicy == admissionregistrationv1.Exact})
			}
		}
		for _, w := range validates.Webhooks {
			if handler, served := at[*w.ClientConfig.Service.Path]; served {
				out.validating = append(out.validating, hook{w.Name, handler, w.Rules, *w.MatchPolicy == admissionregistrationv1.Exact})
			}
		}
	}
	return out, nil
}

// version returns the version in which the webhook is asked about a new object; false if it is not.
func (h hook) version(of schema.GroupVersionResource) (string, bool) {
	for _, rule := range h.rules {
		if !slices.Contains(rule.Operations, admissionregistrationv1.Create) || !slices.Contains(rule.APIGroups, of.Group) ||
			!slices.Contains(rule.Resources, of.Resource) {
			continue
		}
		if slices.Contains(rule.APIVersions, of.Version) {
			return of.Version, true
		}
		if !h.exact {
			return rule.APIVersions[0], true
		}
	}
	return "", false
}
