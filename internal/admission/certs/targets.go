package certs

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conversionPath is where conversion between versions of a kind is served.
const conversionPath = "/convert"

// Targets are the objects by which the API server knows the managers.
type Targets struct {
	// Client must read without a cache.
	Client client.Client
	// Mutating and Validating are the configurations as they are shipped. Webhooks that the cluster lacks are taken from here.
	Mutating   *admissionv1.MutatingWebhookConfiguration
	Validating *admissionv1.ValidatingWebhookConfiguration
	// CRDs are the names of the kinds that the managers convert.
	CRDs []string
}

// sync fills the wiring in, and returns the CAs that each webhook of ours then trusts. It writes only what differs, on top of the version
// that it read.
func (t Targets) sync(ctx context.Context, w wiring) ([][]byte, error) {
	var all [][]byte
	for _, one := range t.each() {
		bundles, err := one(ctx, t.Client, w)
		if err != nil {
			return nil, err
		}
		all = append(all, bundles...)
	}
	return all, nil
}

// look reports whether an object is one of the targets as the wiring has it, and returns the CAs that it trusts. It reads and writes nothing.
func (t Targets) look(object runtime.Object, w wiring) (bundles [][]byte, asWired bool) {
	switch live := object.(type) {
	case *admissionv1.MutatingWebhookConfiguration:
		out := arrange(live.DeepCopy().Webhooks, t.Mutating.DeepCopy().Webhooks, mutatingEntry(), w)
		return out.bundles, !out.changed
	case *admissionv1.ValidatingWebhookConfiguration:
		out := arrange(live.DeepCopy().Webhooks, t.Validating.DeepCopy().Webhooks, validatingEntry(), w)
		return out.bundles, !out.changed
	case *apiextensionsv1.CustomResourceDefinition:
		if !isConverted(live, w) {
			return nil, true
		}
		next, bundle := crd(live.Name).wired(live, w)
		return [][]byte{bundle}, equality.Semantic.DeepEqual(live, next)
	default:
		return nil, false
	}
}

type target func(context.Context, client.Client, wiring) ([][]byte, error)

func (t Targets) each() []target {
	targets := []target{t.syncMutating, t.syncValidating}
	for _, name := range t.CRDs {
		targets = append(targets, crd(name).sync)
	}
	return targets
}

//nolint:dupl // the two types have the same fields, and nothing in Go's eyes in common
func (t Targets) syncMutating(ctx context.Context, c client.Client, w wiring) ([][]byte, error) {
	live := &admissionv1.MutatingWebhookConfiguration{}
	err := c.Get(ctx, client.ObjectKeyFromObject(t.Mutating), live)
	if apierrors.IsNotFound(err) {
		missing := t.Mutating.DeepCopy()
		out := arrange(nil, missing.Webhooks, mutatingEntry(), w)
		missing.Webhooks = out.webhooks
		return out.bundles, created(c.Create(ctx, missing), missing)
	} else if err != nil {
		return nil, fmt.Errorf("reading MutatingWebhookConfiguration %s: %w", t.Mutating.Name, err)
	}
	out := arrange(live.DeepCopy().Webhooks, t.Mutating.DeepCopy().Webhooks, mutatingEntry(), w)
	if !out.changed {
		return out.bundles, nil
	}
	next := live.DeepCopy()
	next.Webhooks = out.webhooks
	return out.bundles, patched(ctx, c, live, next)
}

//nolint:dupl // as above
func (t Targets) syncValidating(ctx context.Context, c client.Client, w wiring) ([][]byte, error) {
	live := &admissionv1.ValidatingWebhookConfiguration{}
	err := c.Get(ctx, client.ObjectKeyFromObject(t.Validating), live)
	if apierrors.IsNotFound(err) {
		missing := t.Validating.DeepCopy()
		out := arrange(nil, missing.Webhooks, validatingEntry(), w)
		missing.Webhooks = out.webhooks
		return out.bundles, created(c.Create(ctx, missing), missing)
	} else if err != nil {
		return nil, fmt.Errorf("reading ValidatingWebhookConfiguration %s: %w", t.Validating.Name, err)
	}
	out := arrange(live.DeepCopy().Webhooks, t.Validating.DeepCopy().Webhooks, validatingEntry(), w)
	if !out.changed {
		return out.bundles, nil
	}
	next := live.DeepCopy()
	next.Webhooks = out.webhooks
	return out.bundles, patched(ctx, c, live, next)
}

// crd is the name of a CRD.
type crd string

// sync makes a kind of several served versions be converted by the managers; a kind of one version needs no conversion.
func (name crd) sync(ctx context.Context, c client.Client, w wiring) ([][]byte, error) {
	live := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(ctx, types.NamespacedName{Name: string(name)}, live); err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
	}
	if !isConverted(live, w) {
		return nil, nil
	}
	next, bundle := name.wired(live, w)
	return [][]byte{bundle}, patched(ctx, c, live, next)
}

// isConverted reports whether there is anything to convert, and somebody to do it.
func isConverted(live *apiextensionsv1.CustomResourceDefinition, w wiring) bool {
	return len(live.Spec.Versions) >= 2 && w.serves(conversionPath)
}

// wired returns the CRD as it is to be, and the CAs that its conversion then trusts.
func (crd) wired(live *apiextensionsv1.CustomResourceDefinition, w wiring) (next *apiextensionsv1.CustomResourceDefinition, bundle []byte) {
	next = live.DeepCopy()
	conversion := &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{}, ConversionReviewVersions: []string{"v1"},
		},
	}
	if old := live.Spec.Conversion; old != nil && old.Webhook != nil {
		conversion.Webhook.ConversionReviewVersions = old.Webhook.ConversionReviewVersions
		if old.Webhook.ClientConfig != nil {
			conversion.Webhook.ClientConfig.CABundle = old.Webhook.ClientConfig.CABundle
		}
	}
	where := w.endpoint.at(conversionPath)
	config := conversion.Webhook.ClientConfig
	config.URL = where.url
	if where.service != nil {
		config.Service = &apiextensionsv1.ServiceReference{
			Namespace: where.service.Namespace, Name: where.service.Name, Path: where.service.Path, Port: where.service.Port,
		}
	}
	config.CABundle = w.caBundle(config.CABundle)
	next.Spec.Conversion = conversion
	return next, config.CABundle
}

// patched writes the difference of two versions of an object, if there is one, on top of the version that was read.
func patched(ctx context.Context, c client.Client, live, next client.Object) error {
	if equality.Semantic.DeepEqual(live, next) {
		return nil
	}
	err := c.Patch(ctx, next, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return errChanged
	}
	if err != nil {
		return fmt.Errorf("writing %T %s: %w", live, live.GetName(), err)
	}
	return nil
}

func created(err error, o client.Object) error {
	switch {
	case apierrors.IsAlreadyExists(err):
		return errChanged
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%T %s is missing and this manager may not create it, install it with: kubectl apply --server-side -k config/default: %w",
			o, o.GetName(), err)
	case err != nil:
		return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
	}
	return nil
}
