// Package dispatch tells which webhooks an API server would call for a Pod, by the API server's own code.
package dispatch

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	celplugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Webhook is a webhook that an API server has read.
type Webhook struct {
	webhook.WebhookAccessor
	// By is who creates the Pods; nil for somebody in no group.
	By         user.Info
	conditions matchconditions.Matcher
}

// Read returns a webhook as an API server sees it.
func Read(hook *admissionv1.MutatingWebhook) Webhook {
	return of(webhook.NewMutatingWebhookAccessor("", "", hook))
}

// ReadValidating does the same for a validating webhook.
func ReadValidating(hook *admissionv1.ValidatingWebhook) Webhook {
	return of(webhook.NewValidatingWebhookAccessor("", "", hook))
}

func of(read webhook.WebhookAccessor) Webhook {
	compiler := celplugin.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	return Webhook{WebhookAccessor: read, conditions: read.GetCompiledMatcher(compiler)}
}

// Calls reports whether the webhook is called when a Pod is created in a namespace of this name and these labels. An error is what the user
// who creates the Pod would see, of an expression that does not compile as well.
func (w Webhook) Calls(p *corev1.Pod, namespace string, ofNamespace map[string]string) (bool, error) {
	selector, err := w.GetParsedNamespaceSelector()
	if err != nil {
		return false, fmt.Errorf("reading the namespace selector: %w", err)
	}
	if w.GetNamespaceSelector() != nil && !selector.Matches(labels.Set(ofNamespace)) {
		return false, nil
	}
	return w.match(admission.NewAttributesRecord(p, nil, podKind(), namespace, p.Name, podResource(), "", admission.Create, nil, false,
		w.By))
}

// CallsForUpdate reports whether the match conditions have the webhook called when a Pod is updated.
func (w Webhook) CallsForUpdate(before, after *corev1.Pod) (bool, error) {
	return w.match(admission.NewAttributesRecord(after, before, podKind(), before.Namespace, before.Name, podResource(), "",
		admission.Update, nil, false, nil))
}

// CallsForDeletion reports whether the match conditions have the webhook called when a Pod is deleted.
func (w Webhook) CallsForDeletion(p *corev1.Pod) (bool, error) {
	return w.match(admission.NewAttributesRecord(nil, p, podKind(), p.Namespace, p.Name, podResource(), "", admission.Delete, nil, false,
		nil))
}

func podKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Pod") }

func podResource() schema.GroupVersionResource { return corev1.SchemeGroupVersion.WithResource("pods") }

func (w Webhook) match(a admission.Attributes) (bool, error) {
	request := &admission.VersionedAttributes{
		Attributes: a, VersionedObject: a.GetObject(), VersionedOldObject: a.GetOldObject(), VersionedKind: a.GetKind(),
	}
	result := w.conditions.Match(context.Background(), request, nil, nil)
	return result.Matches, result.Error
}
