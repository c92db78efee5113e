package advancedcronjob

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// jobKind is a kind of jobs that can be made.
type jobKind struct {
	name v1beta1.TemplateKind
	gvk  schema.GroupVersionKind
	// list returns an empty list.
	list func() client.ObjectList
	// make returns a job of the template, nil when that is of another kind.
	make func(*v1beta1.CronJobTemplate) plan.Object
	// judge says how far a job has come.
	judge func(client.Object) progress
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
			return &batchv1.Job{ObjectMeta: described(&t.JobTemplate.ObjectMeta), Spec: *t.JobTemplate.Spec.DeepCopy()}
		},
		judge: func(object client.Object) progress {
			s := &object.(*batchv1.Job).Status
			return judged(s.StartTime, s.Conditions, func(c batchv1.JobCondition) (string, corev1.ConditionStatus) { return string(c.Type), c.Status })
		},
	}, {
		name: v1beta1.ImageListPullJobTemplate,
		gvk:  v1beta1.GroupVersion.WithKind("ImageListPullJob"),
		list: func() client.ObjectList { return &v1beta1.ImageListPullJobList{} },
		make: func(t *v1beta1.CronJobTemplate) plan.Object {
			if t.ImageListPullJobTemplate == nil {
				return nil
			}
			return &v1beta1.ImageListPullJob{ObjectMeta: described(&t.ImageListPullJobTemplate.ObjectMeta), Spec: *t.ImageListPullJobTemplate.Spec.DeepCopy()}
		},
		judge: func(object client.Object) progress {
			s := &object.(*v1beta1.ImageListPullJob).Status
			return progress{start: s.StartTime, finished: s.CompletionTime != nil, succeeded: s.CompletionTime != nil && s.Succeeded == s.Desired}
		},
	}, {
		name: v1beta1.BroadcastJobTemplate,
		gvk:  v1beta1.GroupVersion.WithKind("BroadcastJob"),
		list: func() client.ObjectList { return &v1beta1.BroadcastJobList{} },
		make: func(t *v1beta1.CronJobTemplate) plan.Object {
			if t.BroadcastJobTemplate == nil {
				return nil
			}
			return &v1beta1.BroadcastJob{ObjectMeta: described(&t.BroadcastJobTemplate.ObjectMeta), Spec: *t.BroadcastJobTemplate.Spec.DeepCopy()}
		},
		judge: func(object client.Object) progress {
			s := &object.(*v1beta1.BroadcastJob).Status
			return judged(s.StartTime, s.Conditions, func(c v1beta1.BroadcastJobCondition) (string, corev1.ConditionStatus) {
				return string(c.Type), c.Status
			})
		},
	}}
}

// judged returns how far a job has come whose conditions say that it is over: Complete or Failed.
func judged[C any](start *metav1.Time, conditions []C, of func(C) (string, corev1.ConditionStatus)) progress {
	p := progress{start: start}
	for _, c := range conditions {
		if name, status := of(c); (name == conditionComplete || name == conditionFailed) && status == corev1.ConditionTrue {
			p.finished, p.succeeded = true, name == conditionComplete
		}
	}
	return p
}

// Conditions by which a Job, and a BroadcastJob, says that it is over.
const (
	conditionComplete = "Complete"
	conditionFailed   = "Failed"
)

// kindOf returns the kind of the jobs that the template makes, nil for none.
func kindOf(template *v1beta1.CronJobTemplate) *jobKind {
	for _, k := range jobKinds() {
		if k.make(template) != nil {
			return &k
		}
	}
	return nil
}

// described returns the metadata that jobs take over from their template.
func described(template *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations)}
}
