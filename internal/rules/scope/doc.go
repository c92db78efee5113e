// Package scope says which new Pods the API server has to send to the managers, in the words of a webhook configuration: namespace selectors and
// match conditions in CEL, which the API server judges by itself. What nobody here is interested in is never sent, and so is created even while
// no manager is there to answer.
//
// The inequality it keeps, whatever the number of SidecarSets:
//
//	Pods that are sent  ⊇  Pods that a SidecarSet selects
//
// It is an equation as long as the expression is of a reasonable size. Beyond that the expression gets coarser step by step: only whether the
// labels are there, then only the namespaces, then everything.
//
// It builds on rules/sidecar, which knows what a SidecarSet selects.
package scope
