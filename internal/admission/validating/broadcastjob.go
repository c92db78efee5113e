package validating

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// BroadcastJobOptions is what the validation of BroadcastJobs needs.
type BroadcastJobOptions struct {
	// Templates checks Pod templates; without it they are not looked into.
	Templates TemplateChecker
}

// BroadcastJob returns the handler that validates the templates of BroadcastJobs. All else is up to their schema.
func BroadcastJob(o BroadcastJobOptions) admission.Handler {
	return kind[v1beta1.BroadcastJob, *v1beta1.BroadcastJob]{
		hub:     v1beta1.GroupVersion,
		subject: func(job *v1beta1.BroadcastJob) any { return job.Spec.Template },
		validate: func(ctx context.Context, w write[v1beta1.BroadcastJob]) (findings, error) {
			path := field.NewPath("spec", "template")
			found := findings{errors: broadcastTemplate(&w.new.Spec.Template, path)}
			if len(found.errors) == 0 && o.Templates != nil {
				found = judge(ctx, o.Templates, w.namespace, w.rawTemplate(), path).findings()
			}
			return found, nil
		},
	}.handler()
}

// broadcastTemplate checks what a BroadcastJob asks of its template, beyond what is the same for every Pod template.
func broadcastTemplate(template *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	errs := podsEnd(template, path)
	for _, label := range []string{keys.BroadcastJobName, keys.BroadcastJobControllerUID} {
		if value, set := template.Labels[label]; set {
			errs = append(errs, field.Invalid(path.Child("metadata", "labels"), map[string]string{label: value},
				fmt.Sprintf("label %s is reserved: the controller gives it to the Pods", label)))
		}
	}
	return errs
}

// podsEnd checks that the Pods of a job end.
func podsEnd(template *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	if policy := template.Spec.RestartPolicy; policy != corev1.RestartPolicyNever && policy != corev1.RestartPolicyOnFailure {
		return field.ErrorList{field.Invalid(path.Child("spec", "restartPolicy"), policy, "must be Never or OnFailure: the Pods of a job end")}
	}
	return nil
}
