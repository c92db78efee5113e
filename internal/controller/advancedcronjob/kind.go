package advancedcronjob

import (
	"context"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// kind is that of the owner in references.
func kind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("AdvancedCronJob") }

// Kind is the controller of AdvancedCronJobs.
func Kind() loop.Kind[*v1beta1.AdvancedCronJob, State, v1beta1.AdvancedCronJobStatus] {
	m := &memory{}
	owned := []client.Object{&batchv1.Job{}, &v1beta1.BroadcastJob{}, &v1beta1.ImageListPullJob{}}
	return loop.Kind[*v1beta1.AdvancedCronJob, State, v1beta1.AdvancedCronJobStatus]{
		Name: "advancedcronjob",
		Owns: owned,
		Indexes: func(ctx context.Context, indexer client.FieldIndexer) error {
			return observe.AddControllerIndex(ctx, indexer, owned...)
		},
		Read:     m.read,
		Plan:     Plan,
		Status:   Status,
		StatusOf: func(o *v1beta1.AdvancedCronJob) *v1beta1.AdvancedCronJobStatus { return &o.Status },
		Remember: m.remember,
		Forget:   m.forget,
		Exact:    true, // the last slot must not go back
	}
}

// jobKind is a kind of jobs that can be made.
type jobKind struct {
	name v1beta1.TemplateKind
	gvk  schema.GroupVersionKind
	// list returns an empty list.
	list func() client.ObjectList
	// make returns a job of the template, nil when that is of another kind.
	make func(*v1beta1.CronJobTemplate) plan.Object
	// progressOf returns how far a job has come.
	progressOf func(client.Object) progress
}

// progress is how far a job has come.
type progress struct {
	finished, succeeded bool
	// start is when it began; nil before.
	start *metav1.Time
}

// jobKinds returns the kinds in the order in which a template is looked through.
func jobKinds() []jobKind {
	return []jobKind{{
		name: v1beta1.JobTemplate,
		gvk:  batchv1.SchemeGroupVersion.WithKind("Job"),
		list: func() client.ObjectList { return &batchv1.JobList{} },
		make: func(t *v1beta1.CronJobTemplate) plan.Object {
			if t.JobTemplate == nil {
				return nil
			}
			return &batchv1.Job{ObjectMeta: metadataOf(&t.JobTemplate.ObjectMeta), Spec: *t.JobTemplate.Spec.DeepCopy()}
		},
		progressOf: func(object client.Object) progress {
			p := progress{start: object.(*batchv1.Job).Status.StartTime}
			for _, c := range object.(*batchv1.Job).Status.Conditions {
				p.note(string(c.Type), c.Status)
			}
			return p
		},
	}, {
		name: v1beta1.ImageListPullJobTemplate,
		gvk:  v1beta1.GroupVersion.WithKind("ImageListPullJob"),
		list: func() client.ObjectList { return &v1beta1.ImageListPullJobList{} },
		make: func(t *v1beta1.CronJobTemplate) plan.Object {
			template := t.ImageListPullJobTemplate
			if template == nil {
				return nil
			}
			return &v1beta1.ImageListPullJob{ObjectMeta: metadataOf(&template.ObjectMeta), Spec: *template.Spec.DeepCopy()}
		},
		progressOf: func(object client.Object) progress {
			s := &object.(*v1beta1.ImageListPullJob).Status
			finished := s.CompletionTime != nil
			return progress{start: s.StartTime, finished: finished, succeeded: finished && s.Succeeded == s.Desired}
		},
	}, {
		name: v1beta1.BroadcastJobTemplate,
		gvk:  v1beta1.GroupVersion.WithKind("BroadcastJob"),
		list: func() client.ObjectList { return &v1beta1.BroadcastJobList{} },
		make: func(t *v1beta1.CronJobTemplate) plan.Object {
			template := t.BroadcastJobTemplate
			if template == nil {
				return nil
			}
			return &v1beta1.BroadcastJob{ObjectMeta: metadataOf(&template.ObjectMeta), Spec: *template.Spec.DeepCopy()}
		},
		progressOf: func(object client.Object) progress {
			p := progress{start: object.(*v1beta1.BroadcastJob).Status.StartTime}
			for _, c := range object.(*v1beta1.BroadcastJob).Status.Conditions {
				p.note(string(c.Type), c.Status)
			}
			return p
		},
	}}
}

// Conditions by which a Job, and a BroadcastJob, says that it is over.
const (
	conditionComplete = "Complete"
	conditionFailed   = "Failed"
)

// note heeds a condition of a job.
func (p *progress) note(condition string, status corev1.ConditionStatus) {
	if (condition == conditionComplete || condition == conditionFailed) && status == corev1.ConditionTrue {
		p.finished, p.succeeded = true, condition == conditionComplete
	}
}

// kindOf returns the kind of the jobs that the template makes, nil for none.
func kindOf(template *v1beta1.CronJobTemplate) *jobKind {
	for _, k := range jobKinds() {
		if k.make(template) != nil {
			return &k
		}
	}
	return nil
}

// metadataOf returns the metadata that jobs take over from their template.
func metadataOf(template *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations)}
}
