package validating

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// EphemeralJobOptions is what the validation of EphemeralJobs needs.
type EphemeralJobOptions struct {
	// Templates judges containers, as those of a Pod template; without it only what is particular to ephemeral ones is looked into.
	Templates TemplateChecker
}

// EphemeralJob returns the handler that validates of EphemeralJobs what their schema can't: containers above all.
func EphemeralJob(o EphemeralJobOptions) admission.Handler {
	return kind[v1alpha1.EphemeralJob, *v1alpha1.EphemeralJob]{
		hub:     v1alpha1.GroupVersion,
		subject: func(job *v1alpha1.EphemeralJob) any { return job.Spec },
		validate: func(ctx context.Context, w write[v1alpha1.EphemeralJob]) (findings, error) {
			spec, path := &w.new.Spec, field.NewPath("spec")
			var found findings
			switch {
			case w.old == nil:
				found.add(metavalidation.ValidateLabelSelector(spec.Selector, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector")))
				found.add(ephemeralContainers(spec.Template.EphemeralContainers, path.Child("template", "ephemeralContainers")))
				if len(found.errors) == 0 && o.Templates != nil {
					containers, _, _ := unstructured.NestedSlice(w.raw, "spec", "template", "ephemeralContainers")
					found = judgeEphemeral(ctx, o.Templates, w.namespace, containers, spec).findings()
				}
			case !equality.Semantic.DeepEqual(spec.Template, w.old.Spec.Template): // Pods may have been given it already
				found.add(field.ErrorList{field.Forbidden(path.Child("template"), "is immutable: make another EphemeralJob to add other containers")})
			}
			if len(found.errors) == 0 {
				found.warnings = append(found.warnings, endless(spec)...)
			}
			return found, nil
		},
	}.handler()
}

func ephemeralContainers(containers []corev1.EphemeralContainer, at *field.Path) field.ErrorList {
	if len(containers) == 0 {
		return field.ErrorList{field.Required(at, "there is nothing to add without a container")}
	}
	var errs field.ErrorList
	names := map[string]bool{}
	for i := range containers {
		c := &containers[i]
		if names[c.Name] {
			errs = append(errs, field.Duplicate(at.Index(i).Child("name"), c.Name))
		}
		names[c.Name] = true
		errs = append(errs, ephemeralContainer(c, at.Index(i))...)
	}
	return errs
}

// ephemeralContainer checks what is particular to an ephemeral container, and to one that a job adds.
func ephemeralContainer(c *corev1.EphemeralContainer, at *field.Path) field.ErrorList {
	errs := containerName(c.Name, at.Child("name"))
	if target := c.TargetContainerName; target != "" {
		errs = append(errs, containerName(target, at.Child("targetContainerName"))...)
	}
	errs = append(errs, validateImage(c.Image, at.Child("image"))...)
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"ports", len(c.Ports) > 0}, {"resources", !equality.Semantic.DeepEqual(c.Resources, corev1.ResourceRequirements{})},
		{"livenessProbe", c.LivenessProbe != nil}, {"readinessProbe", c.ReadinessProbe != nil}, {"startupProbe", c.StartupProbe != nil},
		{"lifecycle", c.Lifecycle != nil}, {"resizePolicy", len(c.ResizePolicy) > 0},
		{"restartPolicy", c.RestartPolicy != nil}, {"restartPolicyRules", len(c.RestartPolicyRules) > 0},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(at.Child(f.name), "an ephemeral container can't have it"))
		}
	}
	for i, mount := range c.VolumeMounts {
		at := at.Child("volumeMounts").Index(i)
		if mount.SubPath != "" {
			errs = append(errs, field.Forbidden(at.Child("subPath"), "an ephemeral container can only mount a whole volume"))
		}
		if mount.SubPathExpr != "" {
			errs = append(errs, field.Forbidden(at.Child("subPathExpr"), "an ephemeral container can only mount a whole volume"))
		}
	}
	for i, variable := range c.Env {
		if variable.Name == keys.EphemeralJobID {
			errs = append(errs, field.Forbidden(at.Child("env").Index(i).Child("name"), keys.EphemeralJobID+" is reserved: the controller gives it to the containers"))
		}
	}
	return errs
}

func containerName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "name the container")}
	}
	var errs field.ErrorList
	for _, message := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(at, name, message))
	}
	return errs
}

// judgeEphemeral has the API server judge the containers as if they were those of a Pod template, which has no ephemeral ones, with all the
// volumes that they mount.
func judgeEphemeral(ctx context.Context, checker TemplateChecker, namespace string, containers []any, spec *v1alpha1.EphemeralJobSpec) Verdict {
	var ordinary, volumes []any
	for i := range containers {
		c, _ := runtime.DeepCopyJSONValue(containers[i]).(map[string]any)
		delete(c, "targetContainerName")
		ordinary = append(ordinary, c)
	}
	known := map[string]bool{}
	add := func(name string, source map[string]any) {
		if !known[name] {
			known[name] = true
			source["name"] = name
			volumes = append(volumes, source)
		}
	}
	for i := range spec.Template.EphemeralContainers {
		c := &spec.Template.EphemeralContainers[i]
		for _, device := range c.VolumeDevices {
			add(device.Name, map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "any"}})
		}
		for _, mount := range c.VolumeMounts {
			add(mount.Name, map[string]any{"emptyDir": map[string]any{}})
		}
	}
	path := field.NewPath("spec", "template")
	verdict := judge(ctx, checker, namespace, map[string]any{"spec": map[string]any{"containers": ordinary, "volumes": volumes}}, path)
	theirs, ours := path.Child("spec", "containers").String(), path.Child("ephemeralContainers").String()
	for _, err := range verdict.Errors {
		err.Field = strings.Replace(err.Field, theirs, ours, 1)
	}
	for i, warning := range verdict.Warnings {
		verdict.Warnings[i] = strings.ReplaceAll(warning, "template.spec.containers", ours)
	}
	return verdict
}

// endless warns of containers that wait for somebody to type, in a job that waits for them for ever.
func endless(spec *v1alpha1.EphemeralJobSpec) []string {
	if spec.ActiveDeadlineSeconds != nil {
		return nil
	}
	for i := range spec.Template.EphemeralContainers {
		if c := &spec.Template.EphemeralContainers[i]; c.Stdin || c.TTY {
			return []string{fmt.Sprintf("container %s has stdin or tty, and may never end, nor the job: set spec.activeDeadlineSeconds", c.Name)}
		}
	}
	return nil
}
