package imagepulljob

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

// Messages. Wire: users' scripts match how they begin.
const (
	messageCompleted  = "job has completed"
	messageOverdue    = "job exceeds activeDeadlineSeconds"
	messageNoProgress = "job is running, no progress"
)

// Status counts the nodes as they were read. What this pass asks for counts in the next one.
func Status(v State, _ plan.Plan, _ apply.Outcome) v1beta1.ImagePullJobStatus {
	s := *v.Job.Status.DeepCopy()
	if v.Job.DeletionTimestamp != nil || s.CompletionTime != nil {
		return s
	}
	now := metav1.NewTime(v.Now)
	if s.StartTime == nil {
		s.StartTime = &now
	}
	if v.problem != nil {
		s.Message = v.problem.Error()
		return s
	}
	c := v.count()
	s.Desired, s.Active, s.Succeeded, s.Failed = int32(len(v.nodes)), int32(c.active), int32(c.succeeded), int32(c.failed)
	s.FailedNodes = c.failedNodes
	switch {
	case !v.isOver():
		s.Message = progress(c, len(v.nodes))
	case v.isOverdue():
		s.CompletionTime, s.Message = &now, messageOverdue
	default:
		s.CompletionTime, s.Message = &now, messageCompleted
	}
	s.Message += v.remarks()
	return s
}

func progress(c counts, desired int) string {
	if desired == 0 {
		return messageNoProgress
	}
	return fmt.Sprintf("job is running, progress %.1f%%", 100*float64(c.succeeded+c.failed)/float64(desired))
}

// remarks say what a user could do something about.
func (v *State) remarks() string {
	var full, dark, keyless []string
	for _, n := range v.nodes {
		switch {
		case n.Full:
			full = append(full, n.name)
		case !n.ready && n.State != pull.Succeeded && n.State != pull.Failed:
			dark = append(dark, n.name)
		case n.State == pull.NotRequested && v.awaitsKey(n):
			keyless = append(keyless, n.name)
		}
	}
	var out strings.Builder
	say := func(what string, names []string) {
		const most = 5
		if len(names) == 0 {
			return
		}
		out.WriteString("; " + what + ": " + strings.Join(names[:min(len(names), most)], ", "))
		if len(names) > most {
			fmt.Fprintf(&out, " and %d more", len(names)-most)
		}
	}
	say("not ready", dark)
	say("waiting for the NodeImage of", v.awaited)
	say("waiting for a daemon that can be given credentials on", keyless)
	say("no such node", v.absent)
	say("NodeImages that can list no more images, or no more of this namespace", full)
	for _, reason := range v.unread {
		out.WriteString("; " + reason)
	}
	return out.String()
}
