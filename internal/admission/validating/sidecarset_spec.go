package validating

import (
	"context"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// sidecarSetChange is a SidecarSet to be written.
type sidecarSetChange struct {
	SidecarSetOptions
	write[v1beta1.SidecarSet]
}

// validate returns what is wrong with the change. An error means that it could not be found out.
func (c sidecarSetChange) validate(ctx context.Context) (findings, error) {
	spec := field.NewPath("spec")
	found := findings{errors: ratcheted(sidecarSetRules, c.new, c.old)}
	found.add(c.containersKept(spec.Child("containers")))
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
		found.join(c.asTemplate(ctx).findings())
	}
	return found, nil
}

// sidecarSetRules finds what is wrong with a SidecarSet by itself, beyond what its schema finds.
func sidecarSetRules(set *v1beta1.SidecarSet) field.ErrorList {
	spec := field.NewPath("spec")
	selector := func(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
		return metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, path)
	}
	errs := slices.Concat(
		selector(set.Spec.Selector, spec.Child("selector")),
		selector(set.Spec.NamespaceSelector, spec.Child("namespaceSelector")),
		sidecarContainers(&set.Spec, spec),
		patchedMetadata(set.Spec.PatchPodMetadata, spec.Child("patchPodMetadata")),
	)
	strategy, at := &set.Spec.UpdateStrategy, spec.Child("updateStrategy")
	if strategy.Type == v1beta1.NotUpdateSidecarSetStrategyType {
		return errs // nothing of it has an effect then
	}
	return slices.Concat(errs, selector(strategy.Selector, at.Child("selector")), checkWeights(strategy.PriorityStrategy, at.Child("priorityStrategy")))
}

// patchedMetadata checks the form of the annotations to write; whether they are allowed is another matter.
func patchedMetadata(patches []v1beta1.SidecarSetPatchPodMetadata, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, patch := range patches {
		at := path.Index(i).Child("annotations")
		errs = append(errs, apivalidation.ValidateAnnotations(patch.Annotations, at)...)
		for _, key := range sortedKeys(patch.Annotations) {
			if seen[key] {
				errs = append(errs, field.Duplicate(at.Key(key), key))
			}
			seen[key] = true
			if value := patch.Annotations[key]; patch.PatchPolicy == v1beta1.SidecarSetMergePatchJSONPatchPolicy && !isJSONObject(value) {
				errs = append(errs, field.Invalid(at.Key(key), value, "must be a JSON object to be merged"))
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
