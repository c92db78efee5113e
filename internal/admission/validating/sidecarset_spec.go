package validating

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

// sidecarSetChange is a SidecarSet to be written.
type sidecarSetChange struct {
	SidecarSetOptions
	// old is nil for a new object.
	old, new *v1beta1.SidecarSet
	// raw is the spec as it came.
	raw map[string]any
}

// setName is what a SidecarSet's name must be: it becomes a part of labels and of JSON keys.
var setName = regexp.MustCompile(`^[a-zA-Z0-9\-]+$`)

const maxSetName = 63

// validate returns what is wrong with the change. An error means that it could not be found out.
func (c sidecarSetChange) validate(ctx context.Context) (findings, error) {
	spec := field.NewPath("spec")
	var found findings
	if name := c.new.Name; !setName.MatchString(name) || len(name) > maxSetName {
		found.add(field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name, fmt.Sprintf("must be at most %d letters, digits and dashes", maxSetName))})
	}
	found.add(c.selectors(spec))
	found.add(c.containers(spec))
	found.add(c.strategy(spec.Child("updateStrategy")))
	found.add(c.metadataKeys(spec.Child("patchPodMetadata")))
	if len(found.errors) > 0 {
		return found, nil // what follows takes them for granted
	}
	for _, check := range []func(context.Context, *field.Path) (field.ErrorList, error){c.revision, c.allowed, c.beside} {
		errs, err := check(ctx, spec)
		if err != nil {
			return found, err
		}
		found.add(errs)
	}
	if len(found.errors) == 0 {
		verdict := c.asTemplate(ctx)
		found.add(verdict.Errors)
		found.warnings = append(found.warnings, verdict.Warnings...)
	}
	return found, nil
}

func (c sidecarSetChange) selectors(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.new.Spec.Selector == nil {
		errs = append(errs, field.Required(path.Child("selector"), "name the labels of the Pods that get the sidecars"))
	}
	errs = append(errs, nonEmptySelector(c.new.Spec.Selector, path.Child("selector"), "empty selector is not valid for sidecarset.")...)
	return append(errs, nonEmptySelector(c.new.Spec.NamespaceSelector, path.Child("namespaceSelector"), "must not be empty: leave it out to select all namespaces")...)
}

// nonEmptySelector checks a selector; nil is left alone.
func nonEmptySelector(selector *metav1.LabelSelector, path *field.Path, ifEmpty string) field.ErrorList {
	if selector == nil {
		return nil
	}
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return field.ErrorList{field.Invalid(path, selector, ifEmpty)}
	}
	return metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, path)
}

func (c sidecarSetChange) strategy(path *field.Path) field.ErrorList {
	strategy := &c.new.Spec.UpdateStrategy
	types := []v1beta1.SidecarSetUpdateStrategyType{v1beta1.RollingUpdateSidecarSetStrategyType, v1beta1.NotUpdateSidecarSetStrategyType}
	switch {
	case !slices.Contains(types, strategy.Type):
		return field.ErrorList{field.NotSupported(path.Child("type"), strategy.Type, types)}
	case strategy.Type == v1beta1.NotUpdateSidecarSetStrategyType:
		return nil // nothing below has an effect then
	}
	var errs field.ErrorList
	for _, limit := range []struct {
		name  string
		value *intstr.IntOrString
	}{{"partition", strategy.Partition}, {"maxUnavailable", strategy.MaxUnavailable}} {
		errs = append(errs, numberOrPercent(limit.value, path.Child(limit.name))...)
	}
	errs = append(errs, nonEmptySelector(strategy.Selector, path.Child("selector"), "must not be empty: leave it out to update all Pods")...)
	if strategy.Selector != nil && !isZero(strategy.Partition) {
		errs = append(errs, field.Invalid(path.Child("partition"), strategy.Partition, "must be 0 together with a selector"))
	}
	return append(errs, checkWeights(strategy.PriorityStrategy, path.Child("priorityStrategy"))...)
}

// numberOrPercent checks a number of Pods, or a percentage of them; nil is left alone.
func numberOrPercent(value *intstr.IntOrString, path *field.Path) field.ErrorList {
	share, err := budget.Scaled(value, 100, budget.Up)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, value, err.Error())}
	case value != nil && value.Type == intstr.String && share > 100:
		return field.ErrorList{field.Invalid(path, value, "must not be greater than 100%")}
	}
	return nil
}

// metadataKeys checks the form of the annotations to write; whether they are allowed is another matter.
func (c sidecarSetChange) metadataKeys(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	policies := []v1beta1.SidecarSetPatchPolicy{v1beta1.SidecarSetRetainPatchPolicy, v1beta1.SidecarSetOverwritePatchPolicy, v1beta1.SidecarSetMergePatchJSONPatchPolicy}
	for i, patch := range c.new.Spec.PatchPodMetadata {
		at := path.Index(i)
		if len(patch.Annotations) == 0 {
			errs = append(errs, field.Required(at.Child("annotations"), "name the annotations to write"))
		}
		if !slices.Contains(policies, patch.PatchPolicy) {
			errs = append(errs, field.NotSupported(at.Child("patchPolicy"), patch.PatchPolicy, policies))
		}
		errs = append(errs, apivalidation.ValidateAnnotations(patch.Annotations, at.Child("annotations"))...)
		for _, key := range sortedKeys(patch.Annotations) {
			if seen[key] {
				errs = append(errs, field.Duplicate(at.Child("annotations").Key(key), key))
			}
			seen[key] = true
			if value := patch.Annotations[key]; patch.PatchPolicy == v1beta1.SidecarSetMergePatchJSONPatchPolicy && !isJSONObject(value) {
				errs = append(errs, field.Invalid(at.Child("annotations").Key(key), value, "must be a JSON object to be merged"))
			}
		}
	}
	return errs
}

// warnings tells of valid changes that may not do what their author expects. It is asked only about valid ones.
func (c sidecarSetChange) warnings() []string {
	var out []string
	strategy, revision := &c.new.Spec.UpdateStrategy, c.new.Spec.InjectionStrategy.Revision
	rolling := strategy.Type != v1beta1.NotUpdateSidecarSetStrategyType
	if rolling && isZero(strategy.MaxUnavailable) && !strategy.Paused {
		out = append(out, "spec.updateStrategy.maxUnavailable 0 updates only Pods that are not ready")
	}
	if revision == nil {
		return out
	}
	if rolling && !strategy.Paused && strategy.Selector == nil && isZero(strategy.Partition) {
		out = append(out, "new Pods get the revision of spec.injectionStrategy.revision and are updated to the present one at once: pause the update, or set its partition or selector")
	}
	if revision.Policy == v1beta1.PartialSidecarSetInjectRevisionPolicy && (strategy.Partition == nil || strategy.Partition.Type != intstr.String) && strategy.Selector == nil {
		out = append(out, "spec.injectionStrategy.revision.policy Partial has no effect unless spec.updateStrategy.partition is a percentage: all new Pods get the present revision")
	}
	return out
}
