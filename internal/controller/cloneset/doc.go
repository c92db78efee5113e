// Package cloneset keeps a number of alike Pods running and rolls new templates out over them in stages.
//
// Its promise: there are never more Pods than replicas and maxSurge together, a rollout never makes more of them unavailable than
// maxUnavailable, and no more are updated than the partition allows, whatever fails in between and whenever the controller is killed.
//
// A pass reads once (read.go), classifies what it read (classify.go), plans (plan*.go), and writes a status (status.go). Package apply
// writes. The life of a Pod:
//
//	created ── PreparingNormal ── Normal ──┬── PreparingUpdate ── Updating ── Updated ── Normal   in place
//	            (preNormal hook)           │    (inPlaceUpdate hook)     (inPlaceUpdate hook)
//	                                       └── PreparingDelete ── gone                             scaled in, recreated, named by the user
//	                                            (preDelete hook)
package cloneset
