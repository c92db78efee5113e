package webhookconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/authentication/user"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	installed "github.com/seed-69ecc383/kruise/config/webhook"
	"github.com/seed-69ecc383/kruise/internal/admission/certs"
	"github.com/seed-69ecc383/kruise/test/kit/dispatch"
)

// world is an API server in memory, with a clock.
type world struct {
	t rapid.TB
	// client is the users'; the managers' goes through what the test puts between.
	client client.Client
	// managers is the client of the managers, of which leader leads.
	managers client.WithWatch
	leader   *Reconciler
	known    Manifests
	now      time.Time
	writes   int
	// caReads counts the managers' reads of the stored CA.
	caReads int
	// read are the webhooks that have been read before, which takes a while, by their conditions.
	read map[string]dispatch.Webhook
	// by is who creates Pods.
	by user.Info
	// between runs before every call of a manager's.
	between func()
	// unconverted is the error of every list of a kind that managers convert; nil while one of them does.
	unconverted error
}

// emptyWorld is an API server in memory without managers.
func emptyWorld(t rapid.TB, known Manifests) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, admissionv1.AddToScheme, apiextensionsv1.AddToScheme,
		v1alpha1.AddToScheme, v1beta1.AddToScheme, policyv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := &world{t: t, known: known, now: now, read: map[string]dispatch.Webhook{}, between: func() {}}
	stored := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(known.Mutating.DeepCopy(), known.Validating.DeepCopy(), convertedCRD()).Build()
	w.client = stored
	w.managers = interceptor.NewClient(stored, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			w.between()
			if key == secretName() {
				w.caReads++
			}
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			w.between()
			return errors.Join(w.unconverted, c.List(ctx, list, options...))
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			w.writes++
			return c.Create(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			w.between()
			w.writes++
			return c.Patch(ctx, o, p, options...)
		},
	})
	return w
}

// newWorld is an API server in memory where one manager leads and serves.
func newWorld(t rapid.TB) *world {
	t.Helper()
	w := emptyWorld(t, manifests(t))
	w.leader = w.manager(0, closed())
	// As soon as the certificate is served only SidecarSets are a reason to write.
	for range 2 {
		w.reconcile(w.leader, allParts)
		w.now = w.now.Add(2 * time.Second)
	}
	w.must(w.leader.Serving.Check(nil))
	w.writes = 0
	return w
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// manager returns a manager whose clock is ahead by some time.
func (w *world) manager(ahead time.Duration, elected <-chan struct{}) *Reconciler {
	now := func() time.Time { return w.now.Add(ahead) }
	endpoint := Endpoint{Service: types.NamespacedName{Namespace: "kruise-system", Name: "kruise-webhook-service"}}
	known := w.known
	known.Endpoint, known.Serves = endpoint, func(string) bool { return true }
	return New(Options{
		Manifests: known,
		Client:    w.managers, CRDs: []string{crdName},
		Issuer: certs.Issuer{
			Store: certs.SecretStore{Client: w.managers,
				Name: secretName()}, Hosts: endpoint.Hosts(), RenewBefore: certs.DefaultRenewBefore,
			Log: logr.Discard(), Now: now,
		},
		Serving: certs.NewServing(certs.ServingOptions{Hosts: endpoint.Hosts(), Parts: Parts(), Log: logr.Discard(), Now: now}),
		Elected: elected, Pods: true, Evictions: true, Now: now,
	})
}

const crdName = "clonesets.apps.kruise.io"

func secretName() types.NamespacedName {
	return types.NamespacedName{Namespace: "kruise-system", Name: "kruise-webhook-certs"}
}

func convertedCRD() *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdName}}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1"}, {Name: "v1beta1"}}
	return crd
}

func isLaunchOrder(w admissionv1.MutatingWebhook) bool { return w.Name == LaunchOrderWebhook }

// manifests returns the configurations as they are installed.
func manifests(t rapid.TB) Manifests {
	t.Helper()
	out := Manifests{Mutating: &admissionv1.MutatingWebhookConfiguration{}, Validating: &admissionv1.ValidatingWebhookConfiguration{}}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(installed.Manifests), 4096)
	if err := errors.Join(documents.Decode(out.Mutating), documents.Decode(out.Validating)); err != nil {
		t.Fatal(err)
	}
	return out
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) configuration() *admissionv1.MutatingWebhookConfiguration {
	w.t.Helper()
	out := &admissionv1.MutatingWebhookConfiguration{}
	w.must(w.client.Get(context.Background(), client.ObjectKey{Name: "kruise-mutating-webhook-configuration"}, out))
	return out
}

// lead has the leader reconcile the mutating configuration.
func (w *world) lead() reconcile.Result {
	w.t.Helper()
	return w.reconcile(w.leader, mutatingPart)
}

func (w *world) reconcile(manager *Reconciler, part string) reconcile.Result {
	w.t.Helper()
	result, err := manager.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Name: part}})
	w.must(err)
	return result
}

// sent returns the names of the webhooks for Pods that are called for a Pod.
func (w *world) sent(p *corev1.Pod, namespace string, ofNamespace map[string]string) []string {
	w.t.Helper()
	labels := map[string]string{corev1.LabelMetadataName: namespace}
	for key, value := range ofNamespace {
		labels[key] = value
	}
	var out []string
	hooks := w.configuration().Webhooks
	for i := range hooks {
		if !isForSidecarSets(hooks[i].Name) && !isLaunchOrder(hooks[i]) {
			continue
		}
		key := fmt.Sprint(hooks[i].NamespaceSelector, hooks[i].MatchConditions)
		if _, known := w.read[key]; !known {
			w.read[key] = dispatch.Read(&hooks[i])
		}
		hook := w.read[key]
		hook.By = w.by
		called, err := hook.Calls(p, namespace, labels)
		w.must(err)
		if called {
			out = append(out, hooks[i].Name)
		}
	}
	return out
}

func podOf(app string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
	}
}

// setOf returns a SidecarSet that selects Pods by the label app, as it is when it has been stored for the first time.
func setOf(name, app string) *v1beta1.SidecarSet {
	return &v1beta1.SidecarSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1},
		Spec: v1beta1.SidecarSetSpec{SidecarSetBaseSpec: v1beta1.SidecarSetBaseSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		}},
	}
}

// isAsInstalled checks that the configuration holds what the manifest does and nothing more.
func (w *world) isAsInstalled() {
	w.t.Helper()
	for _, webhook := range w.configuration().Webhooks {
		if isForSidecarSets(webhook.Name) {
			w.t.Fatalf("webhook %s is left", webhook.Name)
		}
	}
}
