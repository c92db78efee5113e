// Package operation runs managers as an operator does: in clusters that they can't work in, several at once, behind a Service, and not at
// all.
package operation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// site is a cluster for one test.
type site struct{ *scene.Stage }

func newSite(t *testing.T, o cluster.Options) *site {
	t.Helper()
	return &site{scene.NewStage(t, o)}
}

// says checks that an error is there and holds every one of the texts.
func (s *site) says(err error, texts ...string) {
	s.Helper()
	if err == nil {
		s.Errorf("there is no error, want one that says %q", texts)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			s.Errorf("the error is %q, want it to say %q", err, text)
		}
	}
}

// cloneSet returns a CloneSet of the default namespace.
func cloneSet(name string, replicas int32) *v1beta1.CloneSet {
	labels := map[string]string{"app": name}
	return &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: v1beta1.CloneSetSpec{
			CloneSetBaseSpec: v1beta1.CloneSetBaseSpec{
				Replicas: &replicas,
				Selector: &metav1.LabelSelector{MatchLabels: maps.Clone(labels)},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:alpine"}}},
				},
			},
		},
	}
}

// pods returns the Pods of an application that are not being deleted, by name.
func (s *site) pods(app string) []corev1.Pod {
	s.Helper()
	var list corev1.PodList
	s.Must(s.Client.List(s.Ctx, &list, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": app}))
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// webhooks are the objects that tell the API server where a manager is.
type webhooks struct {
	mutating   admissionv1.MutatingWebhookConfiguration
	validating admissionv1.ValidatingWebhookConfiguration
	conversion *apiextensionsv1.WebhookClientConfig
}

func (s *site) webhooks() (w webhooks, err error) {
	var crd apiextensionsv1.CustomResourceDefinition
	err = errors.Join(
		s.Client.Get(s.Ctx, client.ObjectKey{Name: "kruise-mutating-webhook-configuration"}, &w.mutating),
		s.Client.Get(s.Ctx, client.ObjectKey{Name: "kruise-validating-webhook-configuration"}, &w.validating),
		s.Client.Get(s.Ctx, client.ObjectKey{Name: "clonesets.apps.kruise.io"}, &crd),
	)
	if err == nil && (crd.Spec.Conversion == nil || crd.Spec.Conversion.Webhook == nil || crd.Spec.Conversion.Webhook.ClientConfig == nil) {
		err = errors.New("the CRD names no conversion webhook")
	}
	if err == nil {
		w.conversion = crd.Spec.Conversion.Webhook.ClientConfig
	}
	return w, err
}

// addresses returns where the API server reaches the manager: for each webhook and for the conversion, a URL or a Service.
func (s *site) addresses() ([]string, error) {
	w, err := s.webhooks()
	if err != nil {
		return nil, err
	}
	var out []string
	add := func(name string, c admissionv1.WebhookClientConfig) {
		if c.Service != nil {
			out = append(out, fmt.Sprintf("%s %s/%s%s", name, c.Service.Namespace, c.Service.Name, *c.Service.Path))
		}
		if c.URL != nil {
			out = append(out, name+" "+*c.URL)
		}
	}
	for _, hook := range w.mutating.Webhooks {
		add(hook.Name, hook.ClientConfig)
	}
	for _, hook := range w.validating.Webhooks {
		add(hook.Name, hook.ClientConfig)
	}
	conversion := admissionv1.WebhookClientConfig{URL: w.conversion.URL}
	if service := w.conversion.Service; service != nil {
		conversion.Service = &admissionv1.ServiceReference{Namespace: service.Namespace, Name: service.Name, Path: service.Path}
	}
	add("conversion", conversion)
	slices.Sort(out)
	return out, nil
}

// addressesAt is what addresses returns when everything is reached at base.
func addressesAt(base string) []string {
	out := []string{
		"conversion " + base + "/convert",
		"mdeletionreport.kb.io " + base + "/mutate-deletion-report",
		"mpodlaunch.kb.io " + base + "/mutate-pod",
		"vcustomresourcedefinition.kb.io " + base + "/validate-customresourcedefinition",
		"vnamespace.kb.io " + base + "/validate-namespace",
		"vnamespacecontents.kb.io " + base + "/validate-namespace",
		"vpod.kb.io " + base + "/validate-pod",
		"vpodunavailablebudget.kb.io " + base + "/validate-policy-kruise-io-podunavailablebudget",
	}
	for verb, kinds := range map[string][]string{
		"mutate": {
			"advancedcronjob", "broadcastjob", "cloneset", "containerrecreaterequest", "daemonset", "nodeimage", "sidecarset", "statefulset",
			"uniteddeployment",
		},
		"validate": {
			"advancedcronjob", "broadcastjob", "cloneset", "daemonset", "ephemeraljob", "imagelistpulljob", "imagepulljob", "nodeimage",
			"persistentpodstate", "podprobemarker", "resourcedistribution", "sidecarset", "statefulset", "uniteddeployment", "workloadspread",
		},
	} {
		for _, kind := range kinds {
			out = append(out, fmt.Sprintf("%c%s.kb.io %s/%s-apps-kruise-io-%s", verb[0], kind, base, verb, kind))
		}
	}
	slices.Sort(out)
	return out
}

// caBundles returns the CAs that the API server trusts, by webhook.
func (s *site) caBundles() (map[string][]byte, error) {
	w, err := s.webhooks()
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{"conversion": w.conversion.CABundle}
	for _, hook := range w.mutating.Webhooks {
		out[hook.Name] = hook.ClientConfig.CABundle
	}
	for _, hook := range w.validating.Webhooks {
		out[hook.Name] = hook.ClientConfig.CABundle
	}
	return out, nil
}
