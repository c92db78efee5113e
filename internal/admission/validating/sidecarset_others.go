package validating

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// revision checks that the revision to inject exists and is one of this SidecarSet.
func (c sidecarSetChange) revision(ctx context.Context, spec *field.Path) (field.ErrorList, error) {
	asked := c.new.Spec.InjectionStrategy.Revision
	if asked == nil {
		return nil, nil
	}
	path := spec.Child("injectionStrategy", "revision")
	policies := []v1beta1.SidecarSetInjectRevisionPolicy{v1beta1.AlwaysSidecarSetInjectRevisionPolicy, v1beta1.PartialSidecarSetInjectRevisionPolicy}
	if !slices.Contains(policies, asked.Policy) {
		return field.ErrorList{field.NotSupported(path.Child("policy"), asked.Policy, policies)}, nil
	}
	name, version := valueOf(asked.RevisionName), valueOf(asked.CustomVersion)
	if name == "" && version == "" {
		return field.ErrorList{field.Required(path, "revisionName or customVersion is needed")}, nil
	}
	labels := client.MatchingLabels{keys.SidecarSetName: c.new.Name}
	at, value := path.Child("revisionName"), name
	if name == "" {
		labels[keys.SidecarSetCustomVersion] = version
		at, value = path.Child("customVersion"), version
	}
	var list appsv1.ControllerRevisionList
	if err := c.Live.List(ctx, &list, client.InNamespace(c.Namespace), labels); err != nil {
		return nil, fmt.Errorf("looking for the revision to inject: %w", err)
	}
	if slices.ContainsFunc(list.Items, func(rev appsv1.ControllerRevision) bool { return name == "" || rev.Name == name }) {
		return nil, nil
	}
	return field.ErrorList{field.Invalid(at, value, "Cannot find specific ControllerRevision of this SidecarSet")}, nil
}

func valueOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// What the administrator of the cluster allows to SidecarSets.
const (
	configurationName = "kruise-configuration"
	allowedKey        = "SidecarSet_PatchPodMetadata_WhiteList"
)

// allowed checks that the annotations to write are allowed.
func (c sidecarSetChange) allowed(ctx context.Context, spec *field.Path) (field.ErrorList, error) {
	if len(c.new.Spec.PatchPodMetadata) == 0 {
		return nil, nil
	}
	var configuration corev1.ConfigMap
	if err := client.IgnoreNotFound(c.Live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: configurationName}, &configuration)); err != nil {
		return nil, fmt.Errorf("reading what annotations are allowed: %w", err)
	}
	rules, err := sidecar.ParseAllowed(configuration.Data[allowedKey])
	if err != nil {
		return nil, err
	}
	var errs field.ErrorList
	for i, patch := range c.new.Spec.PatchPodMetadata {
		denied, err := rules.Denied(c.new.Labels, sortedKeys(patch.Annotations), c.AnyAnnotation)
		if err != nil {
			return nil, err
		}
		for _, key := range sortedKeys(denied) {
			errs = append(errs, field.Forbidden(spec.Child("patchPodMetadata").Index(i).Child("annotations").Key(key), denied[key]))
		}
	}
	return errs, nil
}

// canaryOf returns the SidecarSet that this one replaces for the Pods that it selects; nothing where it does not.
func canaryOf(set *v1beta1.SidecarSet) string {
	if set.Annotations[keys.SidecarSetCanary] != "true" {
		return ""
	}
	return set.Annotations[keys.SidecarSetBase]
}

// beside checks the SidecarSet against all others: what both put into one Pod must not clash.
func (c sidecarSetChange) beside(ctx context.Context, spec *field.Path) (field.ErrorList, error) {
	var list v1beta1.SidecarSetList
	if err := c.Live.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("looking at the other SidecarSets: %w", err)
	}
	errs := c.canary(list.Items)
	for i := range list.Items {
		other := &list.Items[i]
		replaces := canaryOf(c.new) == other.Name || canaryOf(other) == c.new.Name // one Pod never gets both
		if other.Name == c.new.Name || replaces || !sidecar.MayShare(&c.new.Spec, &other.Spec) {
			continue
		}
		errs = append(errs, c.against(other, spec)...)
	}
	return errs, nil
}

func (c sidecarSetChange) canary(all []v1beta1.SidecarSet) field.ErrorList {
	path := field.NewPath("metadata", "annotations").Key(keys.SidecarSetBase)
	base := canaryOf(c.new)
	if c.old != nil && canaryOf(c.old) != "" && canaryOf(c.old) != base {
		return field.ErrorList{field.Invalid(path, base, "is immutable: delete this SidecarSet and create it anew as the canary of another one")}
	}
	if c.new.Annotations[keys.SidecarSetCanary] != "true" {
		return nil
	}
	at := slices.IndexFunc(all, func(s v1beta1.SidecarSet) bool { return s.Name == base })
	switch {
	case base == c.new.Name:
		return field.ErrorList{field.Invalid(path, base, "a SidecarSet can't be the canary of itself")}
	case base == "" || at < 0:
		return field.ErrorList{field.Invalid(path, base, "must be the name of a SidecarSet")}
	case all[at].Annotations[keys.SidecarSetCanary] == "true":
		return field.ErrorList{field.Invalid(path, base, "is a canary itself")}
	case c.new.Spec.UpdateStrategy.Type != v1beta1.NotUpdateSidecarSetStrategyType:
		return field.ErrorList{field.Invalid(field.NewPath("spec", "updateStrategy", "type"), c.new.Spec.UpdateStrategy.Type, "must be NotUpdate for a canary")}
	}
	return nil
}

// against compares the SidecarSet with one that may select the same Pods.
func (c sidecarSetChange) against(other *v1beta1.SidecarSet, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	taken := map[string]bool{}
	for _, item := range slices.Concat(other.Spec.Containers, other.Spec.InitContainers) {
		for _, name := range finalNames(&item) {
			taken[name] = true
		}
	}
	for _, list := range []struct {
		name  string
		items []v1beta1.SidecarContainer
	}{{"containers", c.new.Spec.Containers}, {"initContainers", c.new.Spec.InitContainers}} {
		for i := range list.items {
			for _, name := range finalNames(&list.items[i]) {
				if taken[name] {
					errs = append(errs, field.Invalid(spec.Child(list.name).Index(i).Child("name"), list.items[i].Name, fmt.Sprintf("container %v already exist in %v", name, other.Name)))
				}
			}
		}
	}
	for i := range c.new.Spec.Volumes {
		volume := &c.new.Spec.Volumes[i]
		for j := range other.Spec.Volumes {
			if theirs := &other.Spec.Volumes[j]; volume.Name == theirs.Name && !equality.Semantic.DeepEqual(volume, theirs) {
				errs = append(errs, field.Invalid(spec.Child("volumes").Index(i).Child("name"), volume.Name, fmt.Sprintf("volume %s is in conflict with sidecarset %s", volume.Name, other.Name)))
			}
		}
	}
	return append(errs, c.metadataAgainst(other, spec.Child("patchPodMetadata"))...)
}

// metadataAgainst refuses one annotation in two SidecarSets, unless the result does not depend on which of them comes first.
func (c sidecarSetChange) metadataAgainst(other *v1beta1.SidecarSet, path *field.Path) field.ErrorList {
	theirs := map[string]v1beta1.SidecarSetPatchPolicy{}
	for _, patch := range other.Spec.PatchPodMetadata {
		for key := range patch.Annotations {
			theirs[key] = patch.PatchPolicy
		}
	}
	var errs field.ErrorList
	for i, patch := range c.new.Spec.PatchPodMetadata {
		for _, key := range sortedKeys(patch.Annotations) {
			policy, both := theirs[key]
			retain := policy == v1beta1.SidecarSetRetainPatchPolicy || patch.PatchPolicy == v1beta1.SidecarSetRetainPatchPolicy
			merge := policy == v1beta1.SidecarSetMergePatchJSONPatchPolicy && patch.PatchPolicy == v1beta1.SidecarSetMergePatchJSONPatchPolicy
			if both && !retain && !merge {
				errs = append(errs, field.Invalid(path.Index(i).Child("annotations").Key(key), key, fmt.Sprintf("annotation %s is in conflict with sidecarset %s", key, other.Name)))
			}
		}
	}
	return errs
}
