package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// PreDownload is an update whose images are to be pulled before Pods are updated, so that an update in place costs a restart and no
// download.
//
// Its promise: images are pulled only where the update leaves time for it, only on nodes whose Pods have still to be updated, and once for
// each rollout; and nothing about it ever delays the update itself.
type PreDownload struct {
	// Old are the revisions that Pods may still be at.
	Old []*appsv1.ControllerRevision
	// Pointless says why pulling ahead would gain nothing; empty where it would gain something. It is asked only when it matters.
	Pointless func() string
	// UpdatedReady is the number of updated Pods that are ready.
	UpdatedReady int
	Tuning       Tuning
	// Done means that no Pod has to be updated any more.
	Done bool
}

// fewReplicas is the most Pods that are too few to pull ahead for.
const fewReplicas = 3

// Pace is how fast Pods are updated in place.
type Pace struct {
	// InPlace means that Pods are updated in place, and that this update can be.
	InPlace                             bool
	Replicas, Partition, MaxUnavailable int
}

// Pointless says why pulling ahead would gain nothing; empty where it would gain something.
func (p Pace) Pointless() string {
	switch {
	case !p.InPlace:
		return "Pods are not updated in place"
	case p.Replicas <= fewReplicas:
		return "there are few replicas"
	case p.Partition == 0 && p.MaxUnavailable >= p.Replicas:
		return "all Pods are updated at once"
	default:
		return ""
	}
}

// Tuning is what users set.
type Tuning struct {
	Parallelism    *intstr.IntOrString
	TimeoutSeconds *int32
	// MinUpdatedReady is the number of updated Pods that must be ready before anything is pulled.
	MinUpdatedReady int
}

// Annotated reads the tuning from the annotations of a workload, of which percentages are those of its replicas, rounded up. What can't be
// read counts as not set.
func Annotated(annotations map[string]string, replicas int) Tuning {
	var t Tuning
	if n, err := strconv.ParseUint(annotations[keys.ImagePreDownloadParallelism], 10, 31); err == nil {
		t.Parallelism = ptr.To(intstr.FromInt32(int32(n)))
	}
	if n, err := strconv.ParseUint(annotations[keys.ImagePreDownloadTimeoutSeconds], 10, 31); err == nil {
		t.TimeoutSeconds = ptr.To(int32(n))
	}
	if text := annotations[keys.ImagePreDownloadMinUpdatedReadyPods]; text != "" {
		value := intstr.Parse(text)
		if n, err := budget.Scaled(&value, replicas, budget.Up); err == nil {
			t.MinUpdatedReady = n
		}
	}
	return t
}

// Over returns the tuning with what the fields of an update strategy set, which count more than annotations.
func (t Tuning) Over(s *v1beta1.InPlaceUpdateStrategy) Tuning {
	if s == nil {
		return t
	}
	t.Parallelism = cmp.Or(s.ImagePreDownloadParallelism, t.Parallelism)
	t.TimeoutSeconds = cmp.Or(s.ImagePreDownloadTimeoutSeconds, t.TimeoutSeconds)
	if s.ImagePreDownloadMinUpdatedReadyPods != nil {
		t.MinUpdatedReady = int(*s.ImagePreDownloadMinUpdatedReadyPods)
	}
	return t
}

// PreDownloadInPlace has the images pulled that an update in place from the current revision needs.
func (w *Workload) PreDownloadInPlace(pace Pace, details *v1beta1.InPlaceUpdateStrategy, updatedReady int32, b *plan.Builder) {
	update, current := w.History.Update, w.History.Current
	w.PreDownload(PreDownload{
		Old: []*appsv1.ControllerRevision{current}, Done: current.Name == update.Name, UpdatedReady: int(updatedReady),
		Tuning: Annotated(w.Object.GetAnnotations(), pace.Replicas).Over(details),
		Pointless: func() string {
			_, refusal := inplace.Diff(current, update, w.InPlace)
			pace.InPlace = pace.InPlace && refusal == nil
			return pace.Pointless()
		},
	}, b)
}

// PreDownload has the images pulled once for each rollout, and deletes the jobs when it is over. What was decided is noted on the
// revision, and the note removed when the revision is not wanted any more, or all Pods are at it: a rollout back to it is a new one. A
// rollout that was too small for jobs gets them when it grows.
//
// All of it comes after the writes that the update itself takes, and none of its failures is one of the update.
func (w *Workload) PreDownload(p PreDownload, b *plan.Builder) {
	for _, job := range w.PullJobs {
		if job.DeletionTimestamp == nil && (p.Done || job.Labels[keys.RevisionHash] != revision.ShortHash(w.History.Update.Name)) {
			b.Last(plan.Action{
				Verb: plan.Delete, Concern: plan.Tidy, Before: job, AnyVersion: true, Optional: true,
				What: "pull no more", Why: "no Pod waits for the image any more",
			})
		}
	}
	for _, rev := range w.History.All {
		if hasNote(rev) && (p.Done || rev.Name != w.History.Update.Name) {
			b.Last(note(rev, "", "the rollout is over"))
		}
	}
	stored := w.History.Stored
	if p.Done || !isWritten(w.History) || stored.Labels[keys.RevisionPreDownloadCreated] != "" {
		return
	}
	verdict, err := decide(w.History.Update, p)
	switch {
	case err != nil:
		b.Hold(plan.Hold{Code: reason.InvalidSpec, Why: err.Error()})
	case verdict.wait:
	case verdict.ignore != "":
		if stored.Labels[keys.RevisionPreDownloadIgnored] == "" {
			b.Last(note(stored, keys.RevisionPreDownloadIgnored, verdict.ignore))
		}
	default:
		b.Last(append(w.createPullJobs(verdict, p.Tuning), note(stored, keys.RevisionPreDownloadCreated, "its images are pulled"))...)
	}
}

// verdict is what to do about a rollout.
type verdict struct {
	// wait means that it is too early to decide.
	wait bool
	// ignore says why nothing is pulled; empty when it is.
	ignore string
	// containers are those whose images are pulled, and template the Pod template of the update.
	containers []corev1.Container
	template   *corev1.PodTemplateSpec
}

// decide evaluates a rollout. The error says which revision can't be read.
func decide(update *appsv1.ControllerRevision, p PreDownload) (verdict, error) {
	if len(p.Old) == 0 || p.UpdatedReady < p.Tuning.MinUpdatedReady {
		return verdict{wait: true}, nil
	}
	if why := p.Pointless(); why != "" {
		return verdict{ignore: why}, nil
	}
	template, err := revision.Template(update)
	if err != nil {
		return verdict{}, fmt.Errorf("reading revision %s: %w", update.Name, err)
	}
	v := verdict{template: template}
	for _, rev := range p.Old {
		old, err := revision.Template(rev)
		if err != nil {
			return verdict{}, fmt.Errorf("reading revision %s: %w", rev.Name, err)
		}
		for _, c := range template.Spec.Containers {
			has := slices.ContainsFunc(old.Spec.Containers, func(o corev1.Container) bool { return o.Name == c.Name && o.Image == c.Image })
			known := slices.ContainsFunc(v.containers, func(o corev1.Container) bool { return o.Name == c.Name })
			if !has && !known {
				v.containers = append(v.containers, c)
			}
		}
	}
	if len(v.containers) == 0 {
		v.ignore = "no image changes"
	}
	return v, nil
}

func hasNote(rev *appsv1.ControllerRevision) bool {
	return rev.Labels[keys.RevisionPreDownloadCreated] != "" || rev.Labels[keys.RevisionPreDownloadIgnored] != ""
}

// note notes on a revision what was decided, or, without a label, nothing.
func note(rev *appsv1.ControllerRevision, label, why string) plan.Action {
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

// What a job has where the workload does not say.
const (
	defaultTimeoutSeconds = 300
	backoffLimit          = 1
	ttlSeconds            = 600
)

// createPullJobs returns the writes that make the jobs. A job whose name another object has is left out: somebody pulls something else
// by that name.
func (w *Workload) createPullJobs(v verdict, t Tuning) plan.Chain {
	var chain plan.Chain
	for _, job := range w.newPullJobs(v, t) {
		if slices.ContainsFunc(w.PullJobs,
			func(j *v1beta1.ImagePullJob) bool { return j.Name == job.Name && j.DeletionTimestamp == nil }) ||
			slices.Contains(w.Taken, job.Name) {
			continue
		}
		chain = append(chain, plan.Action{
			Verb: plan.Create, Concern: plan.Tidy, After: job, Optional: true,
			What: "pull " + job.Spec.Image, Why: "Pods will be updated to it",
			Event: eventCreatedImagePullJob, EventMessage: "created ImagePullJob " + job.Name + " for image " + job.Spec.Image,
			FailedEvent: eventFailedCreateImagePullJob,
		})
	}
	return chain
}

// newPullJobs returns the jobs that pull the images, one for each container, in the order of the containers.
func (w *Workload) newPullJobs(v verdict, t Tuning) []*v1beta1.ImagePullJob {
	update := w.History.Update.Name
	labels := maps.Clone(v.template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[keys.RevisionHash] = revision.ShortHash(update)
	template := v1beta1.ImagePullJobTemplate{
		PodSelector: &v1beta1.ImagePullJobPodSelector{LabelSelector: outdated(w.Selector, update)},
		Parallelism: cmp.Or(t.Parallelism, ptr.To(intstr.FromInt32(1))),
		PullPolicy: &v1beta1.PullPolicy{
			TimeoutSeconds: cmp.Or(t.TimeoutSeconds, ptr.To(int32(defaultTimeoutSeconds))), BackoffLimit: ptr.To(int32(backoffLimit)),
		},
		CompletionPolicy: v1beta1.CompletionPolicy{
			Type: v1beta1.AlwaysComplete, TTLSecondsAfterFinished: ptr.To(int32(ttlSeconds)),
		},
		SandboxConfig:   &v1beta1.SandboxConfig{Labels: maps.Clone(labels), Annotations: maps.Clone(v.template.Annotations)},
		ImagePullPolicy: v1beta1.PullIfNotPresent,
	}
	for _, secret := range v.template.Spec.ImagePullSecrets {
		template.PullSecrets = append(template.PullSecrets, secret.Name)
	}
	jobs := make([]*v1beta1.ImagePullJob, 0, len(v.containers))
	for _, c := range v.containers {
		jobs = append(jobs, &v1beta1.ImagePullJob{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.Object.GetNamespace(), Name: strings.ToLower(update + "-" + c.Name), Labels: maps.Clone(labels),
				OwnerReferences: []metav1.OwnerReference{w.Owner()},
			},
			Spec: v1beta1.ImagePullJobSpec{Image: c.Image, ImagePullJobTemplate: *template.DeepCopy()},
		})
	}
	return jobs
}

// longestLabel is the most that the value of a label can have.
const longestLabel = 63

// outdated selects the Pods of a workload that are not at a revision yet, whose label may hold its name or its hash.
func outdated(selector *metav1.LabelSelector, update string) metav1.LabelSelector {
	out := *selector.DeepCopy()
	values := []string{revision.ShortHash(update)}
	if len(update) <= longestLabel && update != values[0] {
		values = append([]string{update}, values...)
	}
	out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: appsv1.ControllerRevisionHashLabelKey, Operator: metav1.LabelSelectorOpNotIn, Values: values,
	})
	return out
}
