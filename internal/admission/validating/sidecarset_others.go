package validating

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// revision checks that the revision to inject exists and is one of this SidecarSet.
func (c sidecarSetChange) revision(ctx context.Context, found *findings, spec *field.Path) error {
	asked := c.new.Spec.InjectionStrategy.Revision
	if asked == nil {
		return nil
	}
	path := spec.Child("injectionStrategy", "revision")
	name, version := ptr.Deref(asked.RevisionName, ""), ptr.Deref(asked.CustomVersion, "")
	labels := client.MatchingLabels{keys.SidecarSetName: c.new.Name}
	at, value := path.Child("revisionName"), name
	if name == "" {
		labels[keys.SidecarSetCustomVersion] = version
		at, value = path.Child("customVersion"), version
	}
	var list appsv1.ControllerRevisionList
	if err := c.Live.List(ctx, &list, client.InNamespace(c.Namespace), labels); err != nil {
		return fmt.Errorf("looking for the revision to inject: %w", err)
	}
	if !slices.ContainsFunc(list.Items, func(rev appsv1.ControllerRevision) bool { return name == "" || rev.Name == name }) {
		found.invalid(at, value, "Cannot find specific ControllerRevision of this SidecarSet")
	}
	return nil
}

// allowedKey is the key of the configuration with what the administrator of the cluster allows to SidecarSets.
const allowedKey = "SidecarSet_PatchPodMetadata_WhiteList"

// allowed checks that the annotations to write are allowed.
func (c sidecarSetChange) allowed(ctx context.Context, found *findings, spec *field.Path) error {
	if len(c.new.Spec.PatchPodMetadata) == 0 {
		return nil
	}
	var configuration corev1.ConfigMap
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: keys.Configuration}, &configuration)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading what annotations are allowed: %w", err)
	}
	allowed, err := sidecar.ParseAllowed(configuration.Data[allowedKey])
	if err != nil {
		return err
	}
	for i, patch := range c.new.Spec.PatchPodMetadata {
		denied, err := allowed.Denied(c.new.Labels, sortedKeys(patch.Annotations), c.AnyAnnotation)
		if err != nil {
			return err
		}
		for _, key := range sortedKeys(denied) {
			found.forbidden(spec.Child("patchPodMetadata").Index(i).Child("annotations").Key(key), "%s", denied[key])
		}
	}
	return nil
}

// canaryOf returns the SidecarSet that this one replaces for the Pods that it selects; nothing where it does not.
func canaryOf(set *v1beta1.SidecarSet) string {
	if set.Annotations[keys.SidecarSetCanary] != "true" {
		return ""
	}
	return set.Annotations[keys.SidecarSetBase]
}

// beside checks the SidecarSet against all others: what both put into one Pod must not clash, unless it did before.
func (c sidecarSetChange) beside(ctx context.Context, found *findings, spec *field.Path) error {
	var list v1beta1.SidecarSetList
	if err := c.Live.List(ctx, &list); err != nil {
		return fmt.Errorf("looking at the other SidecarSets: %w", err)
	}
	c.canary(found, list.Items)
	clashes := rules[v1beta1.SidecarSet](func(found *findings, set *v1beta1.SidecarSet) {
		for i := range list.Items {
			other := &list.Items[i]
			replaces := canaryOf(set) == other.Name || canaryOf(other) == set.Name // one Pod never gets both
			if other.Name != set.Name && !replaces && sidecar.MayShare(&set.Spec, &other.Spec) {
				found.clashes(spec, set, other)
			}
		}
	})
	found.join(clashes.ratcheted(c.write))
	return nil
}

func (c sidecarSetChange) canary(found *findings, all []v1beta1.SidecarSet) {
	path := field.NewPath("metadata", "annotations").Key(keys.SidecarSetBase)
	base := canaryOf(c.new)
	if c.old != nil && canaryOf(c.old) != "" && canaryOf(c.old) != base {
		found.invalid(path, base, "is immutable: delete this SidecarSet and create it anew as the canary of another one")
		return
	}
	if c.new.Annotations[keys.SidecarSetCanary] != "true" {
		return
	}
	at := slices.IndexFunc(all, func(s v1beta1.SidecarSet) bool { return s.Name == base })
	switch strategy := c.new.Spec.UpdateStrategy.Type; {
	case base == c.new.Name:
		found.invalid(path, base, "a SidecarSet can't be the canary of itself")
	case base == "" || at < 0:
		found.invalid(path, base, "must be the name of a SidecarSet")
	case all[at].Annotations[keys.SidecarSetCanary] == "true":
		found.invalid(path, base, "is a canary itself")
	case strategy != v1beta1.NotUpdateSidecarSetStrategyType:
		found.invalid(field.NewPath("spec", "updateStrategy", "type"), strategy, "must be NotUpdate for a canary")
	}
}

// clashes compares a SidecarSet with one that may select the same Pods.
func (f *findings) clashes(spec *field.Path, set, other *v1beta1.SidecarSet) {
	taken := map[string]bool{}
	eachSidecar(&other.Spec, func(_ string, _ int, item *v1beta1.SidecarContainer) {
		for _, name := range finalNames(item) {
			taken[name] = true
		}
	})
	eachSidecar(&set.Spec, func(list string, i int, item *v1beta1.SidecarContainer) {
		for _, name := range finalNames(item) {
			if taken[name] {
				f.invalid(spec.Child(list).Index(i).Child("name"), item.Name, "container %v already exist in %v", name, other.Name)
			}
		}
	})
	for i := range set.Spec.Volumes {
		volume := &set.Spec.Volumes[i]
		for j := range other.Spec.Volumes {
			if theirs := &other.Spec.Volumes[j]; volume.Name == theirs.Name && !equality.Semantic.DeepEqual(volume, theirs) {
				at := spec.Child("volumes").Index(i).Child("name")
				f.invalid(at, volume.Name, "volume %s is in conflict with sidecarset %s", volume.Name, other.Name)
			}
		}
	}
	f.metadataClashes(spec.Child("patchPodMetadata"), set, other)
}

// metadataClashes refuses one annotation in two SidecarSets, unless the result does not depend on which of them comes first.
func (f *findings) metadataClashes(path *field.Path, set, other *v1beta1.SidecarSet) {
	const retain, merge = v1beta1.SidecarSetRetainPatchPolicy, v1beta1.SidecarSetMergePatchJSONPatchPolicy
	theirs := map[string]v1beta1.SidecarSetPatchPolicy{}
	for _, patch := range other.Spec.PatchPodMetadata {
		for key := range patch.Annotations {
			theirs[key] = patch.PatchPolicy
		}
	}
	for i, patch := range set.Spec.PatchPodMetadata {
		for _, key := range sortedKeys(patch.Annotations) {
			policy, both := theirs[key]
			retained := policy == retain || patch.PatchPolicy == retain
			merged := policy == merge && patch.PatchPolicy == merge
			if both && !retained && !merged {
				at := path.Index(i).Child("annotations").Key(key)
				f.invalid(at, key, "annotation %s is in conflict with sidecarset %s", key, other.Name)
			}
		}
	}
}
