// Package rollout holds the steps of a plan that all workloads have in common: a revision is written, what is in flight on a Pod is settled,
// a Pod is updated in place or told to wait for a hook.
//
// A workload's own planner decides which Pods take a step and when; the steps here only know one Pod. Everything is pure: a step adds writes
// and holds to the plan's builder and changes nothing.
package rollout

import (
	"time"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

// Workload is what the steps need to know of the workload whose Pods they move.
type Workload struct {
	Lifecycle *pub.Lifecycle
	InPlace   inplace.Options
	// TemplateHash also labels Pods with pod-template-hash, the short hash of their revision.
	TemplateHash bool
	// ShortHash labels Pods with the hash of their revision alone, instead of its full name.
	ShortHash bool
	// Bare Pods carry no lifecycle state unless a hook plays a part, and their records name a revision by its hash alone.
	Bare bool
	Now  time.Time
}

// Event reasons of the steps. Wire: users' alerts and tools match them.
const (
	EventSuccessfulUpdatePodInPlace = "SuccessfulUpdatePodInPlace"
	EventFailedUpdatePodInPlace     = "FailedUpdatePodInPlace"
)
