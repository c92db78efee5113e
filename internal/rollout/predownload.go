package rollout

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/predownload"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// Event reasons of images that are pulled ahead. Wire: users' alerts and tools match them.
const (
	EventCreatedImagePullJob      = "CreatedImagePullJob"
	EventFailedCreateImagePullJob = "FailedCreateImagePullJob"
)

// PreDownload is what the step needs that has images pulled before the Pods that need them are updated.
type PreDownload struct {
	predownload.Rollout
	Workload predownload.Workload
	History  revision.History
	// Done means that no Pod has to be updated any more.
	Done bool
	// Jobs are those that the workload controls.
	Jobs []*v1beta1.ImagePullJob
	// Taken are names that new objects can't have.
	Taken []string
}

// InPlace is a workload whose Pods are updated in place, as far as pulling ahead goes.
type InPlace struct {
	predownload.Workload
	History revision.History
	// Annotations and Details are where the user tunes it.
	Annotations map[string]string
	Details     *v1beta1.InPlaceUpdateStrategy
	// Pace is how fast Pods are updated, where this update can go in place.
	Pace    predownload.Pace
	Options inplace.Options
	// UpdatedReady is the number of updated Pods that are ready.
	UpdatedReady int
	Jobs         []*v1beta1.ImagePullJob
	Taken        []string
}

// Plan has the images pulled that the update from the current revision needs.
func (i InPlace) Plan(b *plan.Builder) error {
	update, current := i.History.Update, i.History.Current
	pointless := func() string {
		_, refusal := inplace.Diff(current, update, i.Options)
		pace := i.Pace
		pace.InPlace = pace.InPlace && refusal == nil
		return pace.Pointless()
	}
	return PreDownload{
		Rollout: predownload.Rollout{
			Update: update, Old: []*appsv1.ControllerRevision{current}, Pointless: pointless, UpdatedReady: i.UpdatedReady,
			Tuning: predownload.Annotated(i.Annotations, i.Pace.Replicas).Over(i.Details),
		},
		Workload: i.Workload,
		History:  i.History,
		Done:     current.Name == update.Name,
		Jobs:     i.Jobs,
		Taken:    i.Taken,
	}.Plan(b)
}

// Plan has the images pulled once for each rollout, and takes the jobs away when it is over. What was decided is noted on the revision, and
// forgotten when the revision is wanted no more, or by all Pods: a rollout back to it is a new one. A rollout that was too small for jobs gets
// them when it grows.
//
// All of it comes after the writes that the update itself takes, and none of its failures is one of the update.
func (p PreDownload) Plan(b *plan.Builder) error {
	for _, job := range p.Jobs {
		if job.DeletionTimestamp == nil && (p.Done || job.Labels[keys.RevisionHash] != revision.ShortHash(p.History.Update.Name)) {
			b.Last(plan.Action{
				Verb: plan.Delete, Concern: plan.Tidy, Before: job, AnyVersion: true, Optional: true,
				What: "pull no more", Why: "no Pod waits for the image any more",
			})
		}
	}
	for _, rev := range p.History.All {
		if noted(rev) && (p.Done || rev.Name != p.History.Update.Name) {
			b.Last(mark(rev, "", "the rollout is over"))
		}
	}
	stored := p.History.Stored
	if p.Done || !isWritten(p.History) || stored.Labels[keys.RevisionPreDownloadCreated] != "" {
		return nil
	}
	verdict, err := predownload.Decide(p.Rollout)
	switch {
	case err != nil:
		return err
	case verdict.Wait:
	case verdict.Ignore != "":
		if stored.Labels[keys.RevisionPreDownloadIgnored] == "" {
			b.Last(mark(stored, keys.RevisionPreDownloadIgnored, verdict.Ignore))
		}
	default:
		b.Last(append(p.create(verdict), mark(stored, keys.RevisionPreDownloadCreated, "its images are pulled"))...)
	}
	return nil
}

// create returns the writes that make the jobs. A job whose name another object has is left out: somebody pulls something else by that name.
func (p PreDownload) create(verdict predownload.Verdict) plan.Chain {
	var chain plan.Chain
	for _, job := range verdict.Jobs(p.Workload, p.Rollout) {
		exists := slices.ContainsFunc(p.Jobs, func(j *v1beta1.ImagePullJob) bool { return j.Name == job.Name && j.DeletionTimestamp == nil })
		if exists || slices.Contains(p.Taken, job.Name) {
			continue
		}
		chain = append(chain, plan.Action{
			Verb: plan.Create, Concern: plan.Tidy, After: job, Optional: true,
			What: "pull " + job.Spec.Image, Why: "Pods will be updated to it",
			Event: EventCreatedImagePullJob, EventMessage: "created ImagePullJob " + job.Name + " for image " + job.Spec.Image,
			FailedEvent: EventFailedCreateImagePullJob,
		})
	}
	return chain
}

func noted(rev *appsv1.ControllerRevision) bool {
	return rev.Labels[keys.RevisionPreDownloadCreated] != "" || rev.Labels[keys.RevisionPreDownloadIgnored] != ""
}

// mark notes on a revision what was decided, or, without a label, nothing.
func mark(rev *appsv1.ControllerRevision, label, why string) plan.Action {
	after := rev.DeepCopy()
	after.Labels = maps.Clone(after.Labels)
	delete(after.Labels, keys.RevisionPreDownloadCreated)
	delete(after.Labels, keys.RevisionPreDownloadIgnored)
	if label != "" {
		if after.Labels == nil {
			after.Labels = map[string]string{}
		}
		after.Labels[label] = "true"
	}
	return plan.Action{
		Verb: plan.Update, Concern: plan.Tidy, Before: rev, After: after, Optional: true,
		What: "note what is pulled ahead", Why: why,
	}
}
