package validating

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
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

// ImagePullJob returns the handler that validates ImagePullJobs, which are the same in both versions.
func ImagePullJob(o ImageOptions) admission.Handler {
	return imageJob(o, func(job *v1beta1.ImagePullJob) judged {
		return judged{job.DeletionTimestamp != nil, job.Spec, func() field.ErrorList {
			spec := field.NewPath("spec")
			return append(validateImage(job.Spec.Image, spec.Child("image")), validateTemplate(&job.Spec.ImagePullJobTemplate, spec)...)
		}}
	})
}

// ImageListPullJob returns the handler that validates ImageListPullJobs, which are the same in both versions.
func ImageListPullJob(o ImageOptions) admission.Handler {
	return imageJob(o, func(list *v1beta1.ImageListPullJob) judged {
		return judged{list.DeletionTimestamp != nil, list.Spec, func() field.ErrorList {
			return validateImageList(&list.Spec, field.NewPath("spec"))
		}}
	})
}

// validateImageList finds what the schema can't.
func validateImageList(spec *v1beta1.ImageListPullJobSpec, path *field.Path) field.ErrorList {
	errs := validateTemplate(&spec.ImagePullJobTemplate, path)
	at := path.Child("images")
	for i, image := range spec.Images {
		errs = append(errs, validateImage(image, at.Index(i))...)
		if slices.Contains(spec.Images[:i], image) {
			errs = append(errs, field.Invalid(at.Index(i), image, "images cannot have duplicate values"))
		}
	}
	return errs
}

// judged is what the validation needs to know of a job.
type judged struct {
	leaving  bool
	spec     any
	validate func() field.ErrorList
}

func imageJob[T any](o ImageOptions, look func(*T) judged) admission.Handler {
	return onWritten(func(_ context.Context, asked admission.Request) admission.Response {
		u, err := request.Parse(asked.Object)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
		}
		object, err := request.Decode[T](u)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
		}
		now := look(object)
		if asked.Operation == admissionv1.Update {
			was, err := request.Parse(asked.OldObject)
			if err != nil {
				return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old object: %w", err))
			}
			before, err := request.Decode[T](was)
			if err != nil {
				return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old object: %w", err))
			}
			// Its finalizers must come off, also once a gate was closed, and what was stored before a rule was made can still be labelled.
			if now.leaving || equality.Semantic.DeepEqual(now.spec, look(before).spec) {
				return admission.Allowed("")
			}
		}
		if gate := o.missing(true); gate != "" {
			return closed(gate)
		}
		if errs := now.validate(); len(errs) > 0 {
			return invalid(asked, errs)
		}
		return admission.Allowed("")
	})
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
