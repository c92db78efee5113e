// Package progress reads off the status of a workload, a job or a Rollout how far it has come, and why it stands still.
//
// It is what the command line shows and what managers count: one truth about one status. Objects are of the hub version of their kind.
package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// Phase is where a rollout stands.
type Phase string

const (
	// Done means that all is as it is wanted now: a partition or a pause may still keep Pods at an older template.
	Done Phase = "Done"
	// Updating means that the controller works, or waits for something that ends by itself.
	Updating Phase = "Updating"
	// Waiting means that nothing happens until a person acts.
	Waiting Phase = "Waiting"
	// Failed means that the rollout was given up, is past its deadline, or can't be carried out as it is written.
	Failed Phase = "Failed"
)

// Reason says what a person wanted, or has to mend, such that a rollout stands in phase Waiting or Failed.
type Reason string

const (
	// Paused means that the user has paused it.
	Paused Reason = "Paused"
	// OnDelete means that Pods are updated when somebody deletes them.
	OnDelete Reason = "OnDelete"
	// NeedsApproval is a step of a Rollout, or a wave of a UnitedDeployment, that a person has to let go on.
	NeedsApproval Reason = "NeedsApproval"
	// NeedsRecreation means that Pods can't take the change as they are.
	NeedsRecreation Reason = "NeedsRecreation"
	// DeadlineExceeded means that there was no progress for as long as the spec says.
	DeadlineExceeded Reason = "DeadlineExceeded"
	// InvalidSpec is a spec that the controller can't carry out.
	InvalidSpec Reason = "InvalidSpec"
	// Halted is a release that an analysis, the guard or a revision that was rolled back before has stopped until a person decides.
	Halted Reason = "Halted"
	// GivenUp is a job or a release that has failed, and is not tried again.
	GivenUp Reason = "GivenUp"
)

// Progress is how far an object has come.
type Progress struct {
	Phase Phase `json:"phase"`
	// Reason is what kind of thing it waits for, or failed of; empty in the other phases.
	Reason Reason `json:"reason,omitempty"`
	// Code is why it stands where it does, as far as the status tells. A Pod may tell more.
	Code reason.Code `json:"code"`
	// Since is when that began; nil where the status does not tell.
	Since *time.Time `json:"since,omitempty"`
	// Seen means that the controller has seen the present spec.
	Seen bool `json:"seen"`
	// Begins means that a Rollout has not seen yet that a release is to begin.
	Begins bool `json:"-"`
	// Step is the step that a Rollout is at, counted from 1, of Steps; zero for other kinds and without a release.
	Step  int32 `json:"step,omitempty"`
	Steps int32 `json:"steps,omitempty"`
	// Updated is the number of Pods with the newest template, Wanted how many are to have it now, Total how many Pods are wanted.
	Updated int32 `json:"updated"`
	Wanted  int32 `json:"wanted"`
	Total   int32 `json:"total"`
	// Ready is the number of those updated that are in service; Available that of all Pods.
	Ready     int32 `json:"ready"`
	Available int32 `json:"available"`
	// Failure is what the controller says that it failed in, and tries again; empty where nothing failed.
	Failure string `json:"failure,omitempty"`
	// Budget is what the controller says of a PodUnavailableBudget that lets no Pod go; empty where none holds it.
	Budget string `json:"budget,omitempty"`
	// waits is the code of the condition Waiting; empty where there is none.
	waits reason.Code
	// held means that a partition keeps Pods at the old template.
	held bool
	// Message says what is waited for, or how it ended.
	Message string `json:"message"`
	// Next is what a person can do about it; empty where nothing has to be done.
	Next string `json:"next,omitempty"`
}

// barWidth is the number of characters of a bar.
const barWidth = 20

// Line is the progress in one line: a bar, numbers, and what is waited for. The bar of a Rollout, whose status does not tell how many Pods
// there are, shows its steps.
func (p Progress) Line() string {
	line := bar(p.Updated, p.Total) + " " + p.Numbers()
	if p.Steps > 0 {
		line = fmt.Sprintf("%s step %d/%d, %s", bar(p.Step-1, p.Steps), p.Step, p.Steps, p.Numbers())
	}
	if p.Message != "" {
		line += ": " + p.Message
	}
	return line
}

// Numbers are those of the Pods. Updated Pods that are not in service are told of.
func (p Progress) Numbers() string {
	if p.Total == 0 && p.Wanted == 0 {
		return fmt.Sprintf("%d updated, %d ready", p.Updated, p.Ready)
	}
	text := fmt.Sprintf("%d/%d updated", p.Updated, p.Total)
	if p.Wanted != p.Total {
		text += fmt.Sprintf(" (%d wanted)", p.Wanted)
	}
	if p.Ready < p.Updated {
		text += fmt.Sprintf(", %d of these in service", p.Ready)
	}
	return text
}

// bar draws a part of a whole. It is full only for the whole.
func bar(part, whole int32) string {
	done := barWidth
	if whole > 0 {
		done = min(int(int64(barWidth)*int64(max(part, 0))/int64(whole)), barWidth)
	}
	return "[" + strings.Repeat("#", done) + strings.Repeat("-", barWidth-done) + "]"
}
