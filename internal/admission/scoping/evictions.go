package scoping

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

const (
	// Guarded is the name of the shipped webhook for deletions and updates of Pods that name a budget.
	Guarded = "vpod.kb.io"
	// Evicted is the name of the webhook for evictions in namespaces that hold budgets. It is not in the manifest: no namespace holds one at first.
	Evicted = "vpodeviction.kb.io"
	// soon is how long the leader waits for further budgets before it has the evictions in their namespaces judged.
	soon = 50 * time.Millisecond
	// mostNamespaces is how many namespaces are told to the API server by name. Beyond that it asks about the evictions of all.
	mostNamespaces = 1000
)

// Evictions keeps the webhook for evictions true to the PodUnavailableBudgets. An eviction does not show what Pod it is of, so that it can't be told by
// a condition whether a budget guards that; whether there is one in its namespace can. The promise:
//
//	namespaces whose evictions are sent  ⊇  namespaces with a budget that says that it is in force
type Evictions struct {
	// Client must read without a cache.
	Client client.Client
	// Configuration is the name of the webhook configuration, and Shipped its webhook Guarded as it is shipped.
	Configuration string
	Shipped       admissionv1.ValidatingWebhook
	// Settle is how long API servers may take to go by a changed configuration.
	Settle time.Duration
	// Pause is the wait before a write is tried again because somebody else was first; it doubles with every further try.
	Pause time.Duration
	Now   func() time.Time

	mu sync.Mutex
	// since is when a namespace was first seen here to be asked about.
	since map[string]time.Time
}

// Add makes the leader keep the configuration when budgets come and go, and repair it when somebody else has changed it. The manager's cache must hold
// no other configuration.
func (k *Evictions) Add(mgr manager.Manager) error {
	c, err := controller.New("evictionscope", mgr, controller.Options{Reconciler: k})
	if err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}
	comesOrGoes := predicate.TypedFuncs[*policyv1beta1.PodUnavailableBudget]{
		UpdateFunc: func(event.TypedUpdateEvent[*policyv1beta1.PodUnavailableBudget]) bool { return false },
	}
	for _, s := range []source.Source{
		source.Kind(mgr.GetCache(), &policyv1beta1.PodUnavailableBudget{}, after[*policyv1beta1.PodUnavailableBudget](k.Configuration, soon), comesOrGoes),
		source.Kind(mgr.GetCache(), &admissionv1.ValidatingWebhookConfiguration{}, after[*admissionv1.ValidatingWebhookConfiguration](k.Configuration, 0)),
	} {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	return nil
}

// Reconcile brings the configuration in line with the budgets.
func (k *Evictions) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	err := k.keep(ctx)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: calm}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err) // made anew by those who keep the certificates, and seen here then
}

// InForce returns how long to wait until all evictions in a namespace are judged; zero once they are. It is for the leader to say.
func (k *Evictions) InForce(namespace string) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	since, ok := k.since[namespace]
	if !ok {
		return k.Settle
	}
	return max(0, since.Add(k.Settle).Sub(k.Now()))
}

// see notes which namespaces are asked about as of now.
func (k *Evictions) see(namespaces []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	since := map[string]time.Time{}
	for _, namespace := range namespaces {
		since[namespace] = k.Now()
		if earlier, ok := k.since[namespace]; ok {
			since[namespace] = earlier
		}
	}
	k.since = since
}

// keep brings the configuration in line with the budgets that are stored.
func (k *Evictions) keep(ctx context.Context) error {
	return untilFirst(k.Pause, func() error { return k.try(ctx) })
}

func (k *Evictions) try(ctx context.Context) error {
	live := &admissionv1.ValidatingWebhookConfiguration{}
	if err := k.Client.Get(ctx, client.ObjectKey{Name: k.Configuration}, live); err != nil {
		return fmt.Errorf("reading ValidatingWebhookConfiguration %s: %w", k.Configuration, err)
	}
	// After the configuration, on top of whose version is written: no budget that another one has added meanwhile is missed.
	var budgets policyv1beta1.PodUnavailableBudgetList
	if err := k.Client.List(ctx, &budgets); err != nil {
		return fmt.Errorf("reading PodUnavailableBudgets: %w", err)
	}
	holding := map[string]bool{}
	for i := range budgets.Items {
		holding[budgets.Items[i].Namespace] = true
	}
	namespaces := slices.Sorted(maps.Keys(holding))
	next := live.DeepCopy()
	next.Webhooks = evictionHooks(live.Webhooks, k.Shipped, namespaces)
	written, err := change(ctx, k.Client, live, next)
	if err != nil {
		return err
	}
	if written {
		log.FromContext(ctx).Info("Changed whose evictions are sent", "namespaces", len(namespaces))
	}
	k.see(namespaces)
	return nil
}

// evictionHooks returns the webhooks that a configuration is to hold: all others as they are, and one for the evictions in the namespaces, if there are
// any. What users set in the webhook for deletions, such as further namespaces to leave out or another timeout, goes for it too. shipped is taken
// where the configuration lacks that one.
func evictionHooks(live []admissionv1.ValidatingWebhook, shipped admissionv1.ValidatingWebhook, namespaces []string) []admissionv1.ValidatingWebhook {
	model := shipped
	if i := slices.IndexFunc(live, func(w admissionv1.ValidatingWebhook) bool { return w.Name == Guarded }); i >= 0 {
		model = live[i]
	}
	hook := *model.DeepCopy()
	hook.Name = Evicted
	hook.MatchConditions = nil // they speak of the Pod, which the API server does not show
	scope := admissionv1.NamespacedScope
	hook.Rules = []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}, Scope: &scope},
	}}
	if len(namespaces) <= mostNamespaces {
		if hook.NamespaceSelector == nil {
			hook.NamespaceSelector = &metav1.LabelSelector{}
		}
		hook.NamespaceSelector.MatchExpressions = append(hook.NamespaceSelector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: namespaces,
		})
	}
	at := slices.IndexFunc(live, func(w admissionv1.ValidatingWebhook) bool { return w.Name == Evicted })
	out := slices.Clone(live)
	switch {
	case len(namespaces) == 0 && at < 0:
		return out
	case len(namespaces) == 0:
		return slices.Delete(out, at, at+1)
	case at < 0:
		return append(out, hook)
	default:
		out[at] = hook
		return out
	}
}
