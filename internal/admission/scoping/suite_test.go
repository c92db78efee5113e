package scoping

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	shipped "github.com/seed-69ecc383/kruise/config/webhook"
	"github.com/seed-69ecc383/kruise/test/kit/dispatch"
)

// world is an API server in memory, with a clock.
type world struct {
	t rapid.TB
	// client is the users'; the keeper's goes through what the test puts between.
	client client.Client
	keeper *Keeper
	now    time.Time
	writes int
	// read are the webhooks that have been read before, which takes a while, by their conditions.
	read map[string]dispatch.Webhook
	// between runs before every call of the keeper's.
	between func()
}

func newWorld(t rapid.TB) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admissionv1.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	configuration := manifest(t)
	w := &world{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), read: map[string]dispatch.Webhook{}, between: func() {}}
	stored := fake.NewClientBuilder().WithScheme(scheme).WithObjects(configuration).Build()
	w.client = stored
	keepers := interceptor.NewClient(stored, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			w.between()
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			w.between()
			return c.List(ctx, list, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			w.between()
			w.writes++
			return c.Patch(ctx, o, p, options...)
		},
	})
	w.keeper = &Keeper{
		Client: keepers, Configuration: configuration.Name, Shipped: configuration.Webhooks[slices.IndexFunc(configuration.Webhooks, isLaunchOrder)],
		Now: func() time.Time { return w.now },
	}
	return w
}

// another returns the keeper of another manager.
func (w *world) another() *Keeper {
	return &Keeper{Client: w.keeper.Client, Configuration: w.keeper.Configuration, Shipped: w.keeper.Shipped, Now: w.keeper.Now}
}

func isLaunchOrder(w admissionv1.MutatingWebhook) bool { return w.Name == LaunchOrder }

func manifest(t rapid.TB) *admissionv1.MutatingWebhookConfiguration {
	t.Helper()
	out := &admissionv1.MutatingWebhookConfiguration{}
	if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(shipped.Manifests), 4096).Decode(out); err != nil {
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
	w.must(w.client.Get(context.Background(), client.ObjectKey{Name: w.keeper.Configuration}, out))
	return out
}

// lead is one look of the leader's.
func (w *world) lead() reconcile.Result {
	w.t.Helper()
	result, err := w.keeper.Reconcile(context.Background(), reconcile.Request{})
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
		called, err := w.read[key].Calls(p, namespace, labels)
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

// isAsShipped checks that the configuration holds what is shipped and nothing more.
func (w *world) isAsShipped() {
	w.t.Helper()
	for _, hook := range w.configuration().Webhooks {
		if isForSidecarSets(hook.Name) {
			w.t.Fatalf("webhook %s is left", hook.Name)
		}
	}
}
