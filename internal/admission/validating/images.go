package validating

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

// ImageOptions is what the validation of NodeImages and of the jobs that write them heeds.
type ImageOptions struct {
	// Daemon says that there are daemons on the nodes (gate KruiseDaemon), Jobs that image pull jobs are served (gate ImagePullJobGate).
	Daemon, Jobs bool
}

// missing returns the gate without which nothing would come of an object; empty for none.
func (o ImageOptions) missing(jobs bool) string {
	switch {
	case !o.Daemon:
		return "KruiseDaemon"
	case jobs && !o.Jobs:
		return "ImagePullJobGate"
	default:
		return ""
	}
}

// NodeImage returns the handler that says whether NodeImages are of any use. What is in them is up to their schema.
func NodeImage(o ImageOptions) admission.Handler {
	return admission.HandlerFunc(func(_ context.Context, asked admission.Request) admission.Response {
		if gate := o.missing(false); gate != "" && asked.Operation == admissionv1.Create {
			return closed(gate)
		}
		return admission.Allowed("")
	})
}

// closed refuses what nothing would come of.
//
// Wire: tools look for this message.
func closed(gate string) admission.Response {
	return admission.Denied(fmt.Sprintf("feature-gate %s is not enabled", gate))
}

// ImagePullJob returns the handler that validates of ImagePullJobs what their schema can't.
func ImagePullJob(o ImageOptions) admission.Handler {
	return kind[v1beta1.ImagePullJob, *v1beta1.ImagePullJob]{
		hub:      v1beta1.GroupVersion,
		subject:  func(job *v1beta1.ImagePullJob) any { return job.Spec },
		disabled: o.disabled(),
		validate: func(_ context.Context, w write[v1beta1.ImagePullJob]) (findings, error) {
			return findings{errors: ratcheted(func(job *v1beta1.ImagePullJob) field.ErrorList {
				spec := field.NewPath("spec")
				return append(validateImage(job.Spec.Image, spec.Child("image")), validateTemplate(&job.Spec.ImagePullJobTemplate, spec)...)
			}, w.new, w.old)}, nil
		},
	}.handler()
}

// ImageListPullJob returns the handler that validates of ImageListPullJobs what their schema can't.
func ImageListPullJob(o ImageOptions) admission.Handler {
	return kind[v1beta1.ImageListPullJob, *v1beta1.ImageListPullJob]{
		hub:      v1beta1.GroupVersion,
		subject:  func(list *v1beta1.ImageListPullJob) any { return list.Spec },
		disabled: o.disabled(),
		validate: func(_ context.Context, w write[v1beta1.ImageListPullJob]) (findings, error) {
			return findings{errors: ratcheted(func(list *v1beta1.ImageListPullJob) field.ErrorList {
				return validateImageList(&list.Spec, field.NewPath("spec"))
			}, w.new, w.old)}, nil
		},
	}.handler()
}

// disabled refuses every job while a gate is off; nil while both are on.
func (o ImageOptions) disabled() *admission.Response {
	gate := o.missing(true)
	if gate == "" {
		return nil
	}
	response := closed(gate)
	return &response
}

func validateImageList(spec *v1beta1.ImageListPullJobSpec, path *field.Path) field.ErrorList {
	errs := validateTemplate(&spec.ImagePullJobTemplate, path)
	at := path.Child("images")
	for i, image := range spec.Images {
		errs = append(errs, validateImage(image, at.Index(i))...)
		if slices.Contains(spec.Images[:i], image) { // in CEL it would cost more than a rule may
			errs = append(errs, field.Invalid(at.Index(i), image, "images cannot have duplicate values"))
		}
	}
	return errs
}

func validateImage(image string, at *field.Path) field.ErrorList {
	if image == "" {
		return field.ErrorList{field.Required(at, "image can not be empty")}
	}
	if _, err := pull.ParseReference(image); err != nil {
		return field.ErrorList{field.Invalid(at, image, err.Error())}
	}
	return nil
}

// validateTemplate finds what the schema can't.
func validateTemplate(t *v1beta1.ImagePullJobTemplate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	selector := func(s *metav1.LabelSelector, at *field.Path) {
		if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
			errs = append(errs, field.Invalid(at, s, err.Error()))
		}
	}
	if t.Selector != nil {
		at := path.Child("selector")
		selector(&t.Selector.LabelSelector, at)
		names := map[string]bool{}
		for i, name := range t.Selector.Names {
			if names[name] {
				errs = append(errs, field.Invalid(at.Child("names").Index(i), name, "duplicated name in selector names"))
			}
			names[name] = true
		}
	}
	if t.PodSelector != nil {
		selector(&t.PodSelector.LabelSelector, path.Child("podSelector"))
	}
	return errs
}
