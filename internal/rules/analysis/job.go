package analysis

import (
	"maps"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// How long a measurement may take where a check says nothing, and how long a Job is kept where its template says nothing.
const (
	defaultTimeout    = 10 * time.Second
	defaultJobTimeout = 10 * time.Minute
	keptJobs          = int32(3600)
)

// maxJobName leaves room for what Pods of a Job have in their names.
const maxJobName = 52

// Timeout returns how long a measurement of a check may take.
func Timeout(c *v1beta1.Check) time.Duration {
	switch {
	case c.TimeoutSeconds != nil:
		return time.Duration(*c.TimeoutSeconds) * time.Second
	case c.Job != nil:
		return defaultJobTimeout
	}
	return defaultTimeout
}

// Job returns the Job of a measurement. Its name follows from the Rollout and the measurement, so that none is run twice.
func Job(owner *v1beta1.Rollout, r Request) *batchv1.Job {
	template := r.Check.Job.Template.DeepCopy()
	name := r.Check.Name + "-" + digest(owner.UID, r.Key())
	if room := maxJobName - len(name) - 1; room > 0 {
		name = strings.ReplaceAll(owner.Name[:min(room, len(owner.Name))], ".", "-") + "-" + name
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.Namespace, Name: name, Labels: maps.Clone(template.Labels), Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1beta1.GroupVersion.WithKind("Rollout"))},
		},
		Spec: template.Spec,
	}
	if job.Labels == nil {
		job.Labels = map[string]string{}
	}
	job.Labels[keys.AnalysisCheck] = r.Check.Name
	limit := int64(Timeout(&r.Check) / time.Second)
	if own := job.Spec.ActiveDeadlineSeconds; own == nil || *own > limit {
		job.Spec.ActiveDeadlineSeconds = &limit
	}
	if job.Spec.TTLSecondsAfterFinished == nil {
		job.Spec.TTLSecondsAfterFinished = ptr.To(keptJobs)
	}
	return job
}
