package keys

// Annotations and labels of PodUnavailableBudgets and of the Pods that they guard.
const (
	// RelatedBudget is the Pod annotation with the name of the budget that guards the Pod. The Pod webhook and the controller of budgets
	// write it, whoever judges a request on the Pod reads it.
	RelatedBudget = "pub.kruise.io/related-pub"
	// RelatedBudgetOld is the first spelling of RelatedBudget: written beside it, read where the new one is absent or empty.
	RelatedBudgetOld = "kruise.io/related-pub"
	// NoProtect is the Pod annotation that, with a value that is true to Go, frees the Pod from every budget. Users write it.
	NoProtect = "pub.kruise.io/no-protect"
	// UnavailablePrefix begins the Pod labels that say that the Pod counts as unavailable, whatever its conditions are. Users and their
	// controllers write them; a budget judges the writing.
	UnavailablePrefix = "unavailable-pod.kruise.io/"
)

// Annotations of a v1alpha1 PodUnavailableBudget that stand for fields of v1beta1. Users write them, conversion reads them. The first two
// also count on a v1beta1 budget without the field.
const (
	// ProtectOperations stands for spec.protectOperations: its values with commas.
	ProtectOperations = "kruise.io/pub-protect-operations"
	// ProtectTotalReplicas stands for spec.protectTotalReplicas: a number of 1 or more.
	ProtectTotalReplicas = "pub.kruise.io/protect-total-replicas"
	// IgnoredPodSelector stands for spec.ignoredPodSelector, as JSON.
	IgnoredPodSelector = "pub.kruise.io/ignored-pod-selector"
)

// BudgetResource is the kind in the details of a refusal by a budget. The Pod webhook writes it, our own controllers read it.
const BudgetResource = "podunavailablebudgets"
