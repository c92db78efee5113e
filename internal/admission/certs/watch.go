package certs

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watched is one object, whose changes are looked at when they happen.
type watched struct {
	list client.ObjectList
	name string
	// namespace is empty for kinds without.
	namespace string
}

// watch wakes the loop when an object that it compares is no longer as it left it, until the context ends. What a broken watch misses, the next look
// at everything finds.
func (r *Rotator) watch(ctx context.Context) {
	objects := []watched{
		{list: &admissionv1.MutatingWebhookConfigurationList{}, name: r.Targets.Mutating.Name},
		{list: &admissionv1.ValidatingWebhookConfigurationList{}, name: r.Targets.Validating.Name},
	}
	for _, name := range r.Targets.CRDs {
		objects = append(objects, watched{list: &apiextensionsv1.CustomResourceDefinitionList{}, name: name})
	}
	if store, ok := r.Store.(SecretStore); ok {
		objects = append(objects, watched{list: &corev1.SecretList{}, name: store.Name.Name, namespace: store.Name.Namespace})
	}
	c, ok := r.Targets.Client.(client.WithWatch)
	if !ok {
		return
	}
	for _, o := range objects {
		go wait.JitterUntilWithContext(ctx, func(ctx context.Context) { r.follow(ctx, c, o) }, retryMost, 1, true)
	}
}

func (r *Rotator) follow(ctx context.Context, c client.WithWatch, o watched) {
	w, err := c.Watch(ctx, o.list, client.MatchingFields{"metadata.name": o.name}, client.InNamespace(o.namespace))
	if err != nil {
		r.Log.V(1).Info("Watching failed", "object", o.name, "reason", err.Error())
		return
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return
		}
		if event.Type != watch.Deleted && r.isAsLeft(event.Object) {
			continue
		}
		select {
		case r.poke <- struct{}{}:
		default: // the loop has been woken already
		}
	}
}

// isAsLeft reports whether an object has changed in nothing that the loop would see to. Others write to the configurations, too: with each new
// SidecarSet the webhooks for Pods change, and a look at every CRD because of that would keep the manager busy with nothing.
func (r *Rotator) isAsLeft(object runtime.Object) bool {
	left := r.left.Load()
	if left == nil {
		return false // there is something to be done or waited for, which any change may end
	}
	bundles, asWired := r.Targets.look(object, r.wiring(left.material, r.Now()))
	return asWired && trustedBy(bundles, left.leaf, r.policy.hosts[:1], r.Now())
}
