package validating

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// EphemeralJob returns the handler that validates of EphemeralJobs what their schema can't: containers above all.
func EphemeralJob(o Options) admission.Handler {
	return kind[v1alpha1.EphemeralJob, *v1alpha1.EphemeralJob]{
		hub:     v1alpha1.GroupVersion,
		subject: func(job *v1alpha1.EphemeralJob) any { return job.Spec },
		validate: func(ctx context.Context, w write[v1alpha1.EphemeralJob]) (findings, error) {
			spec, path := &w.new.Spec, field.NewPath("spec")
			var found findings
			switch {
			case w.old == nil:
				found.selector(path.Child("selector"), spec.Selector)
				found.ephemeralContainers(path.Child("template", "ephemeralContainers"), spec.Template.EphemeralContainers)
				if len(found.errors) == 0 && o.Templates != nil {
					containers, _, _ := unstructured.NestedSlice(w.raw, "spec", "template", "ephemeralContainers")
					found = o.judgeEphemeral(ctx, w.namespace, containers, spec).findings()
				}
			case !equality.Semantic.DeepEqual(spec.Template, w.old.Spec.Template): // Pods may have been given it already
				found.forbidden(path.Child("template"), "is immutable: make another EphemeralJob to add other containers")
			}
			if len(found.errors) == 0 {
				found.endless(spec)
			}
			return found, nil
		},
	}.handler()
}

// maxEphemeralContainers is more than anybody needs in one Pod. None can be taken out of a Pod again.
const maxEphemeralContainers = 64

func (f *findings) ephemeralContainers(at *field.Path, containers []corev1.EphemeralContainer) {
	if len(containers) == 0 {
		f.required(at, "there is nothing to add without a container")
	}
	if len(containers) > maxEphemeralContainers {
		f.add(field.ErrorList{field.TooMany(at, len(containers), maxEphemeralContainers)})
		return
	}
	names := map[string]bool{}
	for i := range containers {
		c := &containers[i]
		if names[c.Name] {
			f.add(field.ErrorList{field.Duplicate(at.Index(i).Child("name"), c.Name)})
		}
		names[c.Name] = true
		f.ephemeralContainer(at.Index(i), c)
	}
}

// ephemeralContainer checks what is particular to an ephemeral container, and to one that a job adds.
func (f *findings) ephemeralContainer(at *field.Path, c *corev1.EphemeralContainer) {
	if c.Name == "" {
		f.required(at.Child("name"), "name the container")
	} else {
		f.messages(at.Child("name"), c.Name, validation.IsDNS1123Label(c.Name))
	}
	if target := c.TargetContainerName; target != "" {
		f.messages(at.Child("targetContainerName"), target, validation.IsDNS1123Label(target))
	}
	f.image(at.Child("image"), c.Image)
	for _, other := range []struct {
		field string
		set   bool
	}{
		{"ports", len(c.Ports) > 0}, {"resources", !equality.Semantic.DeepEqual(c.Resources, corev1.ResourceRequirements{})},
		{"livenessProbe", c.LivenessProbe != nil}, {"readinessProbe", c.ReadinessProbe != nil}, {"startupProbe", c.StartupProbe != nil},
		{"lifecycle", c.Lifecycle != nil}, {"resizePolicy", len(c.ResizePolicy) > 0},
		{"restartPolicy", c.RestartPolicy != nil}, {"restartPolicyRules", len(c.RestartPolicyRules) > 0},
	} {
		if other.set {
			f.forbidden(at.Child(other.field), "an ephemeral container can't have it")
		}
	}
	for i, mount := range c.VolumeMounts {
		at := at.Child("volumeMounts").Index(i)
		if mount.SubPath != "" {
			f.forbidden(at.Child("subPath"), "an ephemeral container can only mount a whole volume")
		}
		if mount.SubPathExpr != "" {
			f.forbidden(at.Child("subPathExpr"), "an ephemeral container can only mount a whole volume")
		}
	}
	for i, variable := range c.Env {
		if variable.Name == keys.EphemeralJobID {
			f.forbidden(at.Child("env").Index(i).Child("name"), "%s is reserved: the controller gives it to the containers", variable.Name)
		}
	}
}

// judgeEphemeral has the API server judge the containers as if they were those of a Pod template, which has no ephemeral ones, with all the
// volumes that they mount.
func (o Options) judgeEphemeral(ctx context.Context, namespace string, containers []any, spec *v1alpha1.EphemeralJobSpec) Verdict {
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
	template := map[string]any{"spec": map[string]any{"containers": ordinary, "volumes": volumes}}
	verdict := judge(ctx, o.Templates, namespace, template, path)
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
func (f *findings) endless(spec *v1alpha1.EphemeralJobSpec) {
	if spec.ActiveDeadlineSeconds != nil {
		return
	}
	for i := range spec.Template.EphemeralContainers {
		if c := &spec.Template.EphemeralContainers[i]; c.Stdin || c.TTY {
			f.warn("container %s has stdin or tty, and may never end, nor the job: set spec.activeDeadlineSeconds", c.Name)
			return
		}
	}
}
