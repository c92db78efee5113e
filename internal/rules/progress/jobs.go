package progress

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

func broadcastJob(o *v1beta1.BroadcastJob) Progress {
	s := o.Status
	p := Progress{
		Phase: Updating, Updated: s.Succeeded, Wanted: s.Desired, Total: s.Desired, Ready: s.Succeeded, Available: s.Active,
		Message: fmt.Sprintf("%d active, %d succeeded, %d failed", s.Active, s.Succeeded, s.Failed), Seen: true, // the status does not tell
	}
	message := ""
	for _, c := range s.Conditions {
		if c.Status == corev1.ConditionTrue && c.Message != "" {
			message, p.Since = ": "+c.Message, at(c.LastTransitionTime)
		}
	}
	switch s.Phase {
	case v1beta1.BroadcastJobCompleted:
		p.Phase = Done
	case v1beta1.BroadcastJobFailed:
		p.Phase, p.Reason, p.Message = Failed, GivenUp, p.Message+message
	}
	// The phase says paused still after the job was resumed, until the controller has seen that: the spec alone tells.
	if o.Spec.Paused && p.Phase == Updating {
		p.Phase, p.Reason, p.Message, p.Next = Waiting, Paused, "paused: "+p.Message, "resume it"
	}
	return p
}

// job is a Job of Kubernetes. One that has failed is not tried again.
func job(o *batchv1.Job) Progress {
	s := o.Status
	wanted := value(o.Spec.Completions, value(o.Spec.Parallelism, 1))
	p := Progress{
		Phase: Updating, Updated: s.Succeeded, Wanted: wanted, Total: wanted, Ready: s.Succeeded, Available: s.Active, Seen: true,
		Message: fmt.Sprintf("%d active, %d succeeded, %d failed", s.Active, s.Succeeded, s.Failed),
	}
	if s.StartTime != nil {
		p.Since = &s.StartTime.Time
	}
	for _, c := range s.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete, batchv1.JobSuccessCriteriaMet:
			p.Phase = Done
		case batchv1.JobFailed:
			p.Phase, p.Reason, p.Since = Failed, GivenUp, at(c.LastTransitionTime)
			p.Message += ": " + c.Reason + ": " + c.Message
		case batchv1.JobSuspended:
			p.Since = at(c.LastTransitionTime)
		}
	}
	if value(o.Spec.Suspend, false) && p.Phase == Updating {
		p.Phase, p.Reason, p.Message, p.Next = Waiting, Paused, "suspended: "+p.Message, "resume it"
	}
	return p
}

// imagePullJob is done once each node has pulled the image; one of type Never goes on for ever and is done while no node pulls.
func imagePullJob(o *v1beta1.ImagePullJob) Progress {
	s := o.Status
	p := Progress{
		Phase: Updating, Updated: s.Succeeded, Wanted: s.Desired, Total: s.Desired, Ready: s.Succeeded, Available: s.Active,
		Seen: s.StartTime != nil, Message: fmt.Sprintf("%d nodes pull, %d have the image, %d have given up", s.Active, s.Succeeded,
			s.Failed),
	}
	if s.StartTime != nil {
		p.Since = &s.StartTime.Time
	}
	if s.Active > 0 {
		p.waits = reason.WaitImagePull
	}
	ended := s.CompletionTime != nil || p.Seen && s.Succeeded+s.Failed >= s.Desired
	switch {
	case ended && s.Failed > 0:
		p.Phase, p.Reason = Failed, GivenUp
		p.Message += ": " + strings.Join(s.FailedNodes, ", ")
		if s.CompletionTime == nil {
			p.Phase, p.Next = Waiting, "look at these nodes"
		}
	case ended:
		p.Phase, p.waits = Done, ""
	}
	return p
}

// imageListPullJob is done once each of its images is.
func imageListPullJob(o *v1beta1.ImageListPullJob) Progress {
	s := o.Status
	p := Progress{
		Phase: Updating, Updated: s.Succeeded, Wanted: s.Desired, Total: s.Desired, Ready: s.Succeeded, Available: s.Active,
		Seen: s.StartTime != nil, Message: fmt.Sprintf("%d images are pulled, %d of %d are on all nodes", s.Active, s.Succeeded, s.Desired),
	}
	if s.StartTime != nil {
		p.Since = &s.StartTime.Time
	}
	if s.Active > 0 {
		p.waits = reason.WaitImagePull
	}
	var failed []string
	for _, image := range s.FailedImageStatuses {
		failed = append(failed, image.Name)
	}
	switch {
	case s.CompletionTime != nil && len(failed) > 0:
		p.Phase, p.Reason = Failed, GivenUp
		p.Message += ": some node has given up " + strings.Join(failed, ", ")
	case s.CompletionTime != nil:
		p.Phase = Done
	}
	return p
}
