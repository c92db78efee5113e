package webhookconfig

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/internal/rules/scope"
)

const (
	// LaunchOrderWebhook is the name of the webhook of the manifest for new Pods that ask for a launch order.
	LaunchOrderWebhook = "mpodlaunch.kb.io"
	// launchOrderCondition is the name of its condition, which the conditions of its copies replace.
	launchOrderCondition = "asks-for-a-launch-order"
	sidecarSetCondition  = "selected-by-a-sidecarset"
	// probeMarkerWebhook is the name of the webhook for Pods that PodProbeMarkers select.
	probeMarkerWebhook   = "mpodprobe.kb.io"
	probeMarkerCondition = "selected-by-a-podprobemarker"
	// spreadWebhook is the name of the webhook for Pods of workloads with a WorkloadSpread.
	spreadWebhook   = "mpodspread.kb.io"
	spreadCondition = "of-a-workload-with-a-workloadspread"
	// boundWebhook and preferringWebhook are the names of the webhooks for Pods that PersistentPodStates bind to where they ran: those that
	// must not run elsewhere, and those that only prefer it.
	boundWebhook, preferringWebhook = "mpodstate.kb.io", "mpodstatepreferred.kb.io"
	podStateCondition               = "of-a-persistentpodstate"
	// The webhooks for SidecarSets are named sidecarSetPrefix and webhookSuffix, with what tells them apart in between. The first one has
	// the name of the webhook for all Pods of an installation of the original, which it replaces.
	sidecarSetPrefix, webhookSuffix = "mpod", ".kb.io"

	// BudgetWebhook is the name of the webhook of the manifest for deletions and updates of Pods that name a budget.
	BudgetWebhook = "vpod.kb.io"
	// evictionWebhook is the name of the webhook for evictions in namespaces with budgets.
	evictionWebhook = "vpodeviction.kb.io"
	// maxNamespaces is how many namespaces are told to the API server by name. Beyond that the evictions of all are sent.
	maxNamespaces = 1000
)

// PodScope says which new Pods are sent.
type PodScope struct {
	// SidecarSets is what SidecarSets select, with a webhook for each entry.
	SidecarSets []scope.Entry
	// Markers is what PodProbeMarkers select, one entry at most: they say nothing of the labels of namespaces.
	Markers []scope.Entry
	// Bound and Preferring are expressions that select the Pods of PersistentPodStates that require a place, and of those that only prefer
	// it; empty for none.
	Bound, Preferring string
	// Spreads is a CEL expression on the Pods of workloads with a WorkloadSpread; "" if there are none.
	Spreads string
	// Pending and PendingSpreads are the annotations with the SidecarSets and the WorkloadSpreads that are admitted and may not be stored
	// yet.
	Pending, PendingSpreads string
}

// len returns the number of webhooks.
func (s PodScope) len() int {
	n := len(s.SidecarSets) + len(s.Markers)
	if s.Spreads != "" {
		n++
	}
	return n
}

// webhooks returns all webhooks, with those for WorkloadSpreads, SidecarSets and PodProbeMarkers made anew, at the end. They copy what
// users set in the webhook for launch orders, such as further namespaces to leave out or another timeout. That for WorkloadSpreads is
// first: labels that it adds may be selected by SidecarSets.
func (s PodScope) webhooks(all []admissionv1.MutatingWebhook) []admissionv1.MutatingWebhook {
	i := slices.IndexFunc(all, func(w admissionv1.MutatingWebhook) bool { return w.Name == LaunchOrderWebhook })
	if i < 0 {
		return all
	}
	model := all[i]
	out := slices.DeleteFunc(slices.Clone(all), func(w admissionv1.MutatingWebhook) bool {
		return isForSidecarSets(w.Name) ||
			slices.Contains([]string{probeMarkerWebhook, boundWebhook, preferringWebhook, spreadWebhook}, w.Name)
	})
	if s.Spreads != "" {
		out = append(out, ignored(model, spreadWebhook, admissionv1.MatchCondition{Name: spreadCondition, Expression: s.Spreads}))
	}
	for _, e := range s.SidecarSets {
		out = append(out, sidecarSetWebhook(model, e))
	}
	for _, e := range s.Markers {
		on := admissionv1.MatchCondition{Name: probeMarkerCondition, Expression: e.Expression}
		out = append(out, ignored(model, probeMarkerWebhook, on))
	}
	if s.Bound != "" {
		out = append(out, podStateWebhook(model, boundWebhook, s.Bound))
	}
	if s.Preferring != "" {
		preferring := podStateWebhook(model, preferringWebhook, s.Preferring)
		preferring.FailurePolicy = new(admissionv1.Ignore)
		out = append(out, preferring)
	}
	return out
}

// podStateWebhook returns a webhook for Pods of PersistentPodStates, which fails closed: a Pod that must run where it ran must not be
// created without being told.
func podStateWebhook(model admissionv1.MutatingWebhook, name, expression string) admissionv1.MutatingWebhook {
	out := *model.DeepCopy()
	out.Name = name
	out.MatchConditions = withCondition(out.MatchConditions, podStateCondition, expression)
	return out
}

// isForSidecarSets reports whether a webhook of this name is one of those for SidecarSets.
func isForSidecarSets(name string) bool {
	return name == sidecarSetPrefix+webhookSuffix || strings.HasPrefix(name, sidecarSetPrefix+"-") && strings.HasSuffix(name, webhookSuffix)
}

func sidecarSetWebhook(model admissionv1.MutatingWebhook, e scope.Entry) admissionv1.MutatingWebhook {
	out := *model.DeepCopy()
	out.Name = sidecarSetPrefix + webhookSuffix
	if e.Name != "" {
		out.Name = sidecarSetPrefix + "-" + e.Name + webhookSuffix
	}
	if len(e.Namespaces) > 0 {
		out.NamespaceSelector = narrowed(out.NamespaceSelector, e.Namespaces...)
	}
	out.MatchConditions = withCondition(out.MatchConditions, sidecarSetCondition, e.Expression)
	return out
}

// ignored returns a webhook that stops no Pod while no manager is there, because controllers make up for it.
func ignored(model admissionv1.MutatingWebhook, name string, on admissionv1.MatchCondition) admissionv1.MutatingWebhook {
	out := *model.DeepCopy()
	out.Name = name
	out.FailurePolicy = new(admissionv1.Ignore)
	out.MatchConditions = withCondition(out.MatchConditions, on.Name, on.Expression)
	return out
}

// withCondition returns the conditions with one in the place of that for launch orders.
func withCondition(all []admissionv1.MatchCondition, name, expression string) []admissionv1.MatchCondition {
	others := slices.DeleteFunc(all, func(c admissionv1.MatchCondition) bool { return c.Name == launchOrderCondition })
	return append(others, admissionv1.MatchCondition{Name: name, Expression: expression})
}

func narrowed(selector *metav1.LabelSelector, by ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
	if selector == nil {
		selector = &metav1.LabelSelector{}
	}
	selector.MatchExpressions = append(selector.MatchExpressions, by...)
	return selector
}

// EvictionScope says whose evictions are sent.
type EvictionScope struct {
	// Namespaces are those with budgets, sorted.
	Namespaces []string
}

// webhooks returns all webhooks, with that for evictions made anew, at the end, if there are namespaces with budgets.
func (s EvictionScope) webhooks(all []admissionv1.ValidatingWebhook) []admissionv1.ValidatingWebhook {
	isOld := func(w admissionv1.ValidatingWebhook) bool { return w.Name == evictionWebhook }
	out := slices.DeleteFunc(slices.Clone(all), isOld)
	i := slices.IndexFunc(out, func(w admissionv1.ValidatingWebhook) bool { return w.Name == BudgetWebhook })
	if i < 0 || len(s.Namespaces) == 0 {
		return out
	}
	added := *out[i].DeepCopy()
	added.Name = evictionWebhook
	added.MatchConditions = nil // they are about the Pod, which an eviction does not show
	added.Rules = []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule: admissionv1.Rule{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"},
			Scope: new(admissionv1.NamespacedScope),
		},
	}}
	if len(s.Namespaces) <= maxNamespaces {
		added.NamespaceSelector = narrowed(added.NamespaceSelector, metav1.LabelSelectorRequirement{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: s.Namespaces,
		})
	}
	return append(out, added)
}
