package scoping

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/internal/rules/scope"
)

const (
	// LaunchOrder is the name of the shipped webhook for Pods that ask for a launch order.
	LaunchOrder = "mpodlaunch.kb.io"
	// AsksForIt is the name of its condition.
	AsksForIt = "asks-for-a-launch-order"
	// Selected is the name of the condition that stands in its place in the webhooks for SidecarSets.
	Selected = "selected-by-a-sidecarset"

	// Probed is the name of the webhook for Pods that PodProbeMarkers select. What it adds is made up for later where it is missing: it stops no Pod
	// while no manager is there.
	Probed = "mpodprobe.kb.io"
	// SelectedByMarker is the name of its condition.
	SelectedByMarker = "selected-by-a-podprobemarker"

	// The names of the webhooks for SidecarSets are nameStart and nameEnd, with what tells them apart in between. The first is also the name of the
	// webhook for all Pods of an installation of the original, which this one takes the place of.
	nameStart, nameEnd = "mpod", ".kb.io"
)

func nameOf(e scope.Entry) string {
	if e.Name == "" {
		return nameStart + nameEnd
	}
	return nameStart + "-" + e.Name + nameEnd
}

// isForSidecarSets reports whether a webhook of this name is one of those that are made here.
func isForSidecarSets(name string) bool {
	return name == nameStart+nameEnd || strings.HasPrefix(name, nameStart+"-") && strings.HasSuffix(name, nameEnd)
}

// wanted is what the webhooks made here are to ask for.
type wanted struct {
	// sidecarSets are what SidecarSets select, one webhook for each.
	sidecarSets []scope.Entry
	// markers is what PodProbeMarkers select; nil if they select nothing.
	markers *scope.Entry
}

// arrange returns the webhooks that a configuration is to hold: all others as they are, and one for each entry. What users set in the webhook for
// launch orders, such as further namespaces to leave out or another timeout, goes for these too. shipped is taken where the configuration lacks it.
func arrange(live []admissionv1.MutatingWebhook, shipped admissionv1.MutatingWebhook, asked wanted) []admissionv1.MutatingWebhook {
	out := slices.DeleteFunc(slices.Clone(live), func(w admissionv1.MutatingWebhook) bool { return isForSidecarSets(w.Name) || w.Name == Probed })
	model := shipped
	if i := slices.IndexFunc(live, func(w admissionv1.MutatingWebhook) bool { return w.Name == LaunchOrder }); i >= 0 {
		model = live[i]
	}
	for _, e := range asked.sidecarSets {
		out = append(out, hookFor(e, model))
	}
	if asked.markers != nil {
		out = append(out, probeHookFor(*asked.markers, model))
	}
	return out
}

func hookFor(e scope.Entry, model admissionv1.MutatingWebhook) admissionv1.MutatingWebhook {
	hook := *model.DeepCopy()
	hook.Name = nameOf(e)
	if len(e.Namespaces) > 0 {
		if hook.NamespaceSelector == nil {
			hook.NamespaceSelector = &metav1.LabelSelector{}
		}
		hook.NamespaceSelector.MatchExpressions = append(hook.NamespaceSelector.MatchExpressions, e.Namespaces...)
	}
	hook.MatchConditions = conditions(model, admissionv1.MatchCondition{Name: Selected, Expression: e.Expression})
	return hook
}

func probeHookFor(e scope.Entry, model admissionv1.MutatingWebhook) admissionv1.MutatingWebhook {
	hook := *model.DeepCopy()
	hook.Name = Probed
	ignore := admissionv1.Ignore
	hook.FailurePolicy = &ignore
	hook.MatchConditions = conditions(model, admissionv1.MatchCondition{Name: SelectedByMarker, Expression: e.Expression})
	return hook
}

// conditions returns those of the model, with one in the place of that for launch orders.
func conditions(model admissionv1.MutatingWebhook, one admissionv1.MatchCondition) []admissionv1.MatchCondition {
	others := slices.DeleteFunc(slices.Clone(model.MatchConditions), func(c admissionv1.MatchCondition) bool { return c.Name == AsksForIt })
	return append(others, one)
}
