package validating

import (
	"context"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

// NodeImage returns the handler that refuses NodeImages that no daemon would read. What is in them is up to their schema.
func NodeImage(o Options) admission.Handler {
	return admission.HandlerFunc(func(_ context.Context, asked admission.Request) admission.Response {
		if refused := o.disabled("NodeImage", http.StatusForbidden); refused != nil && asked.Operation == admissionv1.Create {
			return *refused
		}
		return admission.Allowed("")
	})
}

// ImagePullJob returns the handler that validates of ImagePullJobs what their schema can't.
func ImagePullJob(o Options) admission.Handler {
	return kind[v1beta1.ImagePullJob, *v1beta1.ImagePullJob]{
		hub:      v1beta1.GroupVersion,
		subject:  func(job *v1beta1.ImagePullJob) any { return job.Spec },
		disabled: o.disabled("ImagePullJob", http.StatusForbidden),
		validate: rules[v1beta1.ImagePullJob](func(found *findings, job *v1beta1.ImagePullJob) {
			spec := field.NewPath("spec")
			found.image(spec.Child("image"), job.Spec.Image)
			found.pullTemplate(spec, &job.Spec.ImagePullJobTemplate)
		}).validate,
	}.handler()
}

// ImageListPullJob returns the handler that validates of ImageListPullJobs what their schema can't.
func ImageListPullJob(o Options) admission.Handler {
	return kind[v1beta1.ImageListPullJob, *v1beta1.ImageListPullJob]{
		hub:      v1beta1.GroupVersion,
		subject:  func(list *v1beta1.ImageListPullJob) any { return list.Spec },
		disabled: o.disabled("ImageListPullJob", http.StatusForbidden),
		validate: rules[v1beta1.ImageListPullJob](func(found *findings, list *v1beta1.ImageListPullJob) {
			found.imageList(field.NewPath("spec"), &list.Spec)
		}).validate,
	}.handler()
}

func (f *findings) imageList(path *field.Path, spec *v1beta1.ImageListPullJobSpec) {
	f.pullTemplate(path, &spec.ImagePullJobTemplate)
	at := path.Child("images")
	for i, image := range spec.Images {
		f.image(at.Index(i), image)
		if slices.Contains(spec.Images[:i], image) { // in CEL it would cost more than a rule may
			f.invalid(at.Index(i), image, "images cannot have duplicate values")
		}
	}
}

func (f *findings) image(at *field.Path, image string) {
	if image == "" {
		f.required(at, "image can not be empty")
	} else if _, err := pull.ParseReference(image); err != nil {
		f.invalid(at, image, "%v", err)
	}
}

// pullTemplate checks what all image pull jobs say.
func (f *findings) pullTemplate(path *field.Path, t *v1beta1.ImagePullJobTemplate) {
	selector := func(at *field.Path, s *metav1.LabelSelector) {
		if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
			f.invalid(at, s, "%v", err)
		}
	}
	if t.Selector != nil {
		at := path.Child("selector")
		selector(at, &t.Selector.LabelSelector)
		for i, name := range t.Selector.Names {
			if slices.Contains(t.Selector.Names[:i], name) {
				f.invalid(at.Child("names").Index(i), name, "duplicated name in selector names")
			}
		}
	}
	if t.PodSelector != nil {
		selector(path.Child("podSelector"), &t.PodSelector.LabelSelector)
	}
	if p := t.PullPolicy; p != nil {
		const used = "%s is %d: nodes use %d, the most that a job can ask of them"
		if most := int32(pull.MaxTimeout.Seconds()); ptr.Deref(p.TimeoutSeconds, 0) > most {
			f.warn(used, path.Child("pullPolicy", "timeoutSeconds"), *p.TimeoutSeconds, most)
		}
		if ptr.Deref(p.BackoffLimit, 0) > pull.MaxBackoffLimit {
			f.warn(used, path.Child("pullPolicy", "backoffLimit"), *p.BackoffLimit, pull.MaxBackoffLimit)
		}
	}
}
