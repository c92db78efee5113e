package ephemeraljob

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/ephemeral"
)

// Reasons of events and conditions. Wire: users' alerts and tools match them.
const (
	reasonCreateFailed     = "CreateFailed"
	reasonDeadlineExceeded = "DeadlineExceeded"
	reasonMatchEmpty       = "MatchEmpty"
	reasonInitialized      = "Initialized"
	reasonSucceeded        = "JobSucceeded"
	reasonFailed           = "JobFailed"
	reasonInvalid          = "InvalidSpec"
	eventLeftOut           = "PodsLeftOut"
)

// verdict is how far a job has come, and the condition that says so; that has no type for most phases.
type verdict struct {
	phase           v1alpha1.EphemeralJobPhase
	condition       v1alpha1.EphemeralJobConditionType
	reason, message string
}

func (d verdict) isOver() bool {
	return d.phase == v1alpha1.EphemeralJobSucceeded || d.phase == v1alpha1.EphemeralJobFailed
}

func (d verdict) eventType() string {
	if d.phase == v1alpha1.EphemeralJobFailed {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// judge says how far a job has come that was not over before. What has ended in all Pods has ended, also past the deadline and in a pause.
func (v *Survey) judge() verdict {
	all := len(v.targets)
	switch {
	case v.problem != nil:
		return verdict{v1alpha1.EphemeralJobError, v1alpha1.EphemeralJobIsInError, reasonInvalid, v.problem.Error()}
	case all > 0 && v.succeeded == all:
		message := fmt.Sprintf("%s succeeded", pods(all))
		return verdict{v1alpha1.EphemeralJobSucceeded, v1alpha1.EphemeralJobIsSucceeded, reasonSucceeded, message}
	case all > 0 && v.succeeded+v.failed == all:
		message := fmt.Sprintf("%d of %s failed: %s", v.failed, pods(all), v.failures())
		return verdict{v1alpha1.EphemeralJobFailed, v1alpha1.EphemeralJobIsFailed, reasonFailed, message}
	}
	if left, limited := v.untilDeadline(); limited && left <= 0 {
		return verdict{v1alpha1.EphemeralJobFailed, v1alpha1.EphemeralJobIsFailed, reasonDeadlineExceeded, v.overdue()}
	}
	switch {
	case all == 0:
		return verdict{v1alpha1.EphemeralJobWaiting, v1alpha1.EphemeralJobMatchedEmpty, reasonMatchEmpty, v.empty()}
	case v.running > 0:
		return verdict{phase: v1alpha1.EphemeralJobRunning}
	case v.waiting < all && v.Job.Spec.Paused:
		return verdict{phase: v1alpha1.EphemeralJobPaused}
	case v.succeeded+v.failed > 0:
		return verdict{phase: v1alpha1.EphemeralJobRunning} // between two Pods
	default:
		return verdict{phase: v1alpha1.EphemeralJobWaiting}
	}
}

// pods returns a number of Pods in words: "1 Pod", "3 Pods".
func pods(n int) string {
	if n == 1 {
		return "1 Pod"
	}
	return fmt.Sprintf("%d Pods", n)
}

// most is the number of Pods that a message names.
const most = 3

// listed returns the first few of some items, and how many more there are.
func listed(items []string) string {
	if len(items) <= most {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(items[:most], ", "), len(items)-most)
}

func (v *Survey) failures() string {
	var out []string
	for _, t := range v.targets {
		if t.State == ephemeral.Failed {
			out = append(out, fmt.Sprintf("%s (%s)", t.pod.Name, t.Why))
		}
	}
	return listed(out)
}

func (v *Survey) leftOut() string {
	var out []string
	for _, u := range v.unfit {
		out = append(out, fmt.Sprintf("%s (%s)", u.name, u.why))
	}
	return listed(out)
}

// empty says that the job has no Pods, and which it would have if they could take the containers.
func (v *Survey) empty() string {
	const message = "job match no pods" // Wire
	if len(v.unfit) == 0 {
		return message
	}
	return fmt.Sprintf("%s: %s can't take the containers: %s", message, pods(len(v.unfit)), v.leftOut())
}

// overdue says that the deadline has passed, and in how many Pods containers still run: nobody can stop those.
func (v *Survey) overdue() string {
	message := fmt.Sprintf("Job %s/%s was active longer than specified deadline", v.Job.Namespace, v.Job.Name)
	if v.busy > 0 {
		message += fmt.Sprintf("; its containers run on in %s until they end or their Pods do", pods(v.busy))
	}
	return message
}

// untilDeadline returns how long the job may still take, if there is a limit. Pauses do not stop the clock.
func (v *Survey) untilDeadline() (left time.Duration, limited bool) {
	return plan.UntilDeadline(v.Job.Status.StartTime, v.Job.Spec.ActiveDeadlineSeconds, v.Now)
}
