package validating

import (
	"context"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/defaults"
)

// SidecarSet returns the handler that validates of SidecarSets of both versions what their schemas can't.
func SidecarSet(o Options) admission.Handler {
	return kind[v1beta1.SidecarSet, *v1beta1.SidecarSet]{
		hub:     v1beta1.GroupVersion,
		subject: func(set *v1beta1.SidecarSet) any { return []any{set.Spec, canaryOf(set)} },
		validate: func(ctx context.Context, w write[v1beta1.SidecarSet]) (findings, error) {
			c := sidecarSetChange{o, w}
			found, err := c.validate(ctx)
			if err != nil || len(found.errors) > 0 {
				return found, err
			}
			c.warnings(&found)
			if o.Accepted != nil && !w.dryRun {
				err = o.Accepted(ctx, w.old, w.new)
			}
			return found, err
		},
		ineffective: sidecarSetSpelling,
		olderNames:  sidecarSetOlderNames,
	}.handler()
}

// olderSidecarSet returns the object as the user wrote it in v1alpha1; nil if it was written in v1beta1.
func olderSidecarSet(w write[v1beta1.SidecarSet]) *v1alpha1.SidecarSet {
	if !w.older {
		return nil
	}
	older, err := request.Decode[v1alpha1.SidecarSet](&unstructured.Unstructured{Object: w.written})
	if err != nil {
		return nil // it has been converted, and so can be read
	}
	return older
}

func sidecarSetOlderNames(w write[v1beta1.SidecarSet]) []olderName {
	names := []olderName{{"spec.customVersion", "metadata.labels"}}
	if older := olderSidecarSet(w); older != nil && older.Spec.Namespace != "" && older.Spec.NamespaceSelector == nil {
		names = append(names,
			olderName{"spec.namespaceSelector.matchLabels", "spec.namespace"}, olderName{"spec.namespaceSelector", "spec.namespace"})
	}
	return names
}

// sidecarSetSpelling tells of the fields of the first releases, and of which value counts where both spellings differ.
func sidecarSetSpelling(found *findings, w write[v1beta1.SidecarSet]) {
	older := olderSidecarSet(w)
	if older == nil {
		return
	}
	spec := &older.Spec
	const unused = "%s %v has no effect: %s %v is used"
	if spec.Strategy != nil {
		found.warn("spec.strategy is deprecated, use spec.updateStrategy.maxUnavailable")
		first, now := defaults.FirstMaxUnavailable(older), spec.UpdateStrategy.MaxUnavailable
		if first != nil && now != nil && *first != *now {
			found.warn(unused, "spec.strategy.rollingUpdate.maxUnavailable", first, "spec.updateStrategy.maxUnavailable", now)
		}
	}
	if spec.Paused != nil {
		found.warn("spec.paused is deprecated, use spec.updateStrategy.paused")
		if *spec.Paused != spec.UpdateStrategy.Paused {
			found.warn(unused, "spec.paused", *spec.Paused, "spec.updateStrategy.paused", spec.UpdateStrategy.Paused)
		}
	}
}

// sidecarSetChange is a SidecarSet to be written.
type sidecarSetChange struct {
	Options
	write[v1beta1.SidecarSet]
}

// validate returns what is wrong with the change. An error means that it could not be found out.
func (c sidecarSetChange) validate(ctx context.Context) (findings, error) {
	spec := field.NewPath("spec")
	found := rules[v1beta1.SidecarSet](sidecarSetRules).ratcheted(c.write)
	c.containersKept(&found, spec.Child("containers"))
	if len(found.errors) > 0 {
		return found, nil // what follows takes them for granted
	}
	for _, check := range []func(context.Context, *findings, *field.Path) error{c.revision, c.allowed, c.beside} {
		if err := check(ctx, &found, spec); err != nil {
			return found, err
		}
	}
	if len(found.errors) == 0 {
		found.join(c.asTemplate(ctx).findings())
	}
	return found, nil
}

// sidecarSetRules finds what is wrong with a SidecarSet by itself, beyond what its schema finds.
func sidecarSetRules(found *findings, set *v1beta1.SidecarSet) {
	spec := field.NewPath("spec")
	found.selector(spec.Child("selector"), set.Spec.Selector)
	found.selector(spec.Child("namespaceSelector"), set.Spec.NamespaceSelector)
	sidecarContainers(found, spec, &set.Spec)
	patchedMetadata(found, spec.Child("patchPodMetadata"), set.Spec.PatchPodMetadata)
	strategy, at := &set.Spec.UpdateStrategy, spec.Child("updateStrategy")
	if strategy.Type == v1beta1.NotUpdateSidecarSetStrategyType {
		return // nothing of it has an effect then
	}
	found.selector(at.Child("selector"), strategy.Selector)
	found.weights(at.Child("priorityStrategy"), strategy.PriorityStrategy)
}

// patchedMetadata checks the form of the annotations to write; whether they are allowed is another matter.
func patchedMetadata(found *findings, path *field.Path, patches []v1beta1.SidecarSetPatchPodMetadata) {
	seen := map[string]bool{}
	for i, patch := range patches {
		at := path.Index(i).Child("annotations")
		found.add(apivalidation.ValidateAnnotations(patch.Annotations, at))
		for _, key := range sortedKeys(patch.Annotations) {
			if seen[key] {
				found.add(field.ErrorList{field.Duplicate(at.Key(key), key)})
			}
			seen[key] = true
			if value := patch.Annotations[key]; patch.PatchPolicy == v1beta1.SidecarSetMergePatchJSONPatchPolicy && !isJSONObject(value) {
				found.invalid(at.Key(key), value, "must be a JSON object to be merged")
			}
		}
	}
}

// warnings tells of valid changes that may not do what their author expects. It is asked only about valid ones.
func (c sidecarSetChange) warnings(found *findings) {
	strategy, revision := &c.new.Spec.UpdateStrategy, c.new.Spec.InjectionStrategy.Revision
	rolling := strategy.Type != v1beta1.NotUpdateSidecarSetStrategyType
	if rolling && isZero(strategy.MaxUnavailable) && !strategy.Paused {
		found.warn("spec.updateStrategy.maxUnavailable 0 updates only Pods that are not ready")
	}
	if revision == nil {
		return
	}
	if rolling && !strategy.Paused && strategy.Selector == nil && isZero(strategy.Partition) {
		found.warn("new Pods get the revision of spec.injectionStrategy.revision and are updated to the present one at once: " +
			"pause the update, or set its partition or selector")
	}
	byPercentage := strategy.Partition != nil && strategy.Partition.Type == intstr.String
	if revision.Policy == v1beta1.PartialSidecarSetInjectRevisionPolicy && !byPercentage && strategy.Selector == nil {
		found.warn("spec.injectionStrategy.revision.policy Partial has no effect unless spec.updateStrategy.partition is a percentage: " +
			"all new Pods get the present revision")
	}
}
