package validating

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/convert"
)

// DaemonSetOptions is what the validation of DaemonSets needs and heeds.
type DaemonSetOptions struct {
	// Templates judges Pod templates; without it they are not looked into.
	Templates TemplateChecker
	// DeletionProtection heeds the label policy.kruise.io/delete-protection (gate ResourcesDeletionProtection).
	DeletionProtection bool
}

// DaemonSet returns the handler that validates DaemonSets of both versions.
func DaemonSet(o DaemonSetOptions) admission.Handler { return handler(o) }

func (o DaemonSetOptions) protects() bool { return o.DeletionProtection }

// doomed counts a node that wants a Pod for one.
func (o DaemonSetOptions) doomed(object runtime.RawExtension) (labels map[string]string, pods int32, err error) {
	set, err := decodeDaemonSet(object)
	if err != nil {
		return nil, 0, err
	}
	return set.hub.Labels, set.hub.Status.DesiredNumberScheduled, nil
}

func (o DaemonSetOptions) written(ctx context.Context, asked admission.Request) admission.Response {
	now, err := decodeDaemonSet(asked.Object)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
	}
	c := daemonSetChange{DaemonSetOptions: o, new: now.hub, namespace: asked.Namespace, rawTemplate: now.template}
	if asked.Operation == admissionv1.Update {
		before, err := decodeDaemonSet(asked.OldObject)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old object: %w", err))
		}
		// What is on its way out rolls nothing out any more, and its finalizers must come off. What was stored before a rule was made can
		// still be labelled and annotated.
		if now.hub.DeletionTimestamp != nil || equality.Semantic.DeepEqual(now.hub.Spec, before.hub.Spec) && now.older == before.older {
			return admission.Allowed("").WithWarnings(now.spellingWarnings()...)
		}
		c.old = before.hub
	}
	found := c.validate(ctx)
	found.errors = append(now.versionErrors(), found.errors...)
	if len(found.errors) > 0 {
		return invalid(asked, now.userErrors(found.errors)).WithWarnings(found.warnings...)
	}
	return admission.Allowed("").WithWarnings(slices.Concat(found.warnings, c.warnings(), now.spellingWarnings())...)
}

// decodedDaemonSet is an object of a request.
type decodedDaemonSet struct {
	// hub is what it means.
	hub *v1beta1.DaemonSet
	// older is how the rolling update was spelled, if in v1alpha1; inOlder says whether the object was.
	older   v1alpha1.RollingUpdateType
	inOlder bool
	// template is the template as it came, with all that this build does not know.
	template map[string]any
}

func decodeDaemonSet(from runtime.RawExtension) (*decodedDaemonSet, error) {
	u, err := request.Parse(from)
	if err != nil {
		return nil, err
	}
	hub, older, err := meaning(u, convert.DaemonSetToHub)
	if err != nil {
		return nil, err
	}
	out := &decodedDaemonSet{hub: hub, inOlder: older != nil}
	out.template, _, _ = unstructured.NestedMap(u.Object, "spec", "template")
	if out.inOlder && older.Spec.UpdateStrategy.RollingUpdate != nil {
		out.older = older.Spec.UpdateStrategy.RollingUpdate.Type
	}
	return out, nil
}

// versionErrors checks what conversion hides: Surging with a maxUnavailable of its own.
func (d *decodedDaemonSet) versionErrors() field.ErrorList {
	if d.older != v1alpha1.DeprecatedSurgingRollingUpdateType {
		return nil
	}
	if !isZero(d.hub.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable) {
		path := field.NewPath("spec", "updateStrategy", "rollingUpdate", "maxUnavailable")
		return field.ErrorList{field.Required(path, "must be 0 for Surging type")}
	}
	return nil
}

// userErrors names fields as the user's version does.
func (d *decodedDaemonSet) userErrors(errs field.ErrorList) field.ErrorList {
	if !d.inOlder {
		return errs
	}
	for _, err := range errs {
		if strings.HasPrefix(err.Field, "spec.scaleStrategy") {
			err.Field = "metadata.annotations[" + keys.ProgressiveCreatePod + "]"
		}
	}
	return errs
}

// spellingWarnings tells of the annotation that stands for a field in one version and has no effect as it is written.
func (d *decodedDaemonSet) spellingWarnings() []string {
	text, there := d.hub.Annotations[keys.ProgressiveCreatePod]
	switch {
	case !there || d.inOlder && text == "false":
		return nil
	case d.inOlder:
		return []string{fmt.Sprintf("metadata.annotations[%s]: %q has no effect: use \"true\"", keys.ProgressiveCreatePod, text)}
	default:
		return []string{fmt.Sprintf("metadata.annotations[%s] has no effect in v1beta1: use spec.scaleStrategy.partitionedScaling", keys.ProgressiveCreatePod)}
	}
}
