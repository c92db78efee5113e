// Package scope turns the selectors of SidecarSets and PodProbeMarkers into those of webhooks: namespace selectors, and match conditions in
// CEL, which the API server evaluates by itself. A Pod that none of them selects is never sent to a manager, and so is created even while
// none runs.
//
// The inequality it keeps, whatever the number of SidecarSets:
//
//	Pods that are sent  ⊇  Pods that a SidecarSet selects
//
// Both sides are equal as long as the expression is of a reasonable size. Beyond that the expression is made coarser in steps: only the
// keys of the labels, then only the namespaces, then every Pod.
//
// It builds on rules/sidecar, which knows what a SidecarSet selects.
package scope
