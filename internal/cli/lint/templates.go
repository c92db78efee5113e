package lint

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seed-69ecc383/kruise/internal/admission/validating"
)

// templates judges Pod templates as far as it can be done without Kubernetes' own rules: fields that do not exist or have another type, and
// what every Pod needs. The webhook asks the API server instead.
type templates struct{}

// Check implements validating.TemplateChecker.
func (templates) Check(_ context.Context, _ string, template map[string]any) validating.Verdict {
	var verdict validating.Verdict
	into := &corev1.PodTemplate{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(map[string]any{"template": template}, into, true)
	if strict, unknown := runtime.AsStrictDecodingError(err); unknown {
		for _, one := range strict.Errors() {
			verdict.Warnings = append(verdict.Warnings, one.Error())
		}
	} else if err != nil {
		verdict.Errors = field.ErrorList{field.Invalid(field.NewPath("template"), field.OmitValueType{}, err.Error())}
		return verdict
	}
	spec, at := &into.Template.Spec, field.NewPath("template", "spec")
	if len(spec.Containers) == 0 {
		verdict.Errors = append(verdict.Errors, field.Required(at.Child("containers"), ""))
	}
	volumes, names := sets.New[string](), sets.New[string]()
	for _, v := range spec.Volumes {
		volumes.Insert(v.Name)
	}
	for i := range spec.InitContainers {
		verdict.Errors = append(verdict.Errors, container(at.Child("initContainers").Index(i), &spec.InitContainers[i], names, volumes)...)
	}
	for i := range spec.Containers {
		verdict.Errors = append(verdict.Errors, container(at.Child("containers").Index(i), &spec.Containers[i], names, volumes)...)
	}
	return verdict
}

// container returns what is wrong with a container of a template with these volumes. names are those of containers before it.
func container(at *field.Path, c *corev1.Container, names, volumes sets.Set[string]) (errs field.ErrorList) {
	switch {
	case c.Name == "":
		errs = append(errs, field.Required(at.Child("name"), ""))
	case names.Has(c.Name):
		errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
	default:
		for _, why := range validation.IsDNS1123Label(c.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), c.Name, why))
		}
	}
	names.Insert(c.Name)
	if c.Image == "" {
		errs = append(errs, field.Required(at.Child("image"), ""))
	}
	for i, mount := range c.VolumeMounts {
		if !volumes.Has(mount.Name) {
			errs = append(errs, field.NotFound(at.Child("volumeMounts").Index(i).Child("name"), mount.Name))
		}
	}
	return errs
}
