// Package statefulset keeps Pods running that each have a number, and with it a name, an address and claims that outlive the Pod.
//
// Its promise: no ordinal ever has two Pods; under OrderedReady a Pod is created only while all of lower ordinals are available; an update
// never makes more than maxUnavailable Pods unavailable and leaves as many at their revision as the partition says; no claim is lost that
// the retention policy keeps. A broken Pod never blocks the update that repairs it.
//
// A pass reads once (read.go), classifies what it read (classify.go), plans (plan*.go), and writes a status (status.go). Package apply
// writes. The phases of a plan, of which OrderedReady enters each only when the one before has nothing left to do:
//
//	settle ── fill the slots upwards: create, replace what has ended ── scale in from the highest ordinal down ── update from the highest down
//
// A slot is an ordinal that is wanted; a Pod in no slot is surplus.
package statefulset
