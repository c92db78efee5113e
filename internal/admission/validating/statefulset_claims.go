package validating

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
)

// resize checks a change of claim templates that the claims there are have to follow: they can grow, and nothing else. An error means that
// it could not be found out.
func (c statefulSetChange) resize(ctx context.Context, found *findings, path *field.Path) error {
	strategy := c.new.Spec.VolumeClaimUpdateStrategy.Type
	if c.old == nil || !c.ClaimResize || strategy != v1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType || !c.claimsChanged() {
		return nil
	}
	before, after := c.old.Spec.VolumeClaimTemplates, c.new.Spec.VolumeClaimTemplates
	if len(before) != len(after) {
		found.forbidden(path, "there are %d of them instead of %d: "+
			"with volumeClaimUpdateStrategy OnPodRollingUpdate only their sizes can change", len(after), len(before))
		return nil
	}
	for i := range after {
		key := path.Key(after[i].Name)
		at := slices.IndexFunc(before, func(t corev1.PersistentVolumeClaim) bool { return t.Name == after[i].Name })
		if at < 0 {
			found.invalid(key, after[i].Name, "is new: with volumeClaimUpdateStrategy OnPodRollingUpdate only sizes can change")
		} else if err := c.grows(ctx, &before[at], &after[i], found); err != nil {
			return err
		}
	}
	return nil
}

// grows checks one claim template that is replaced by another of its name.
func (c statefulSetChange) grows(ctx context.Context, before, after *corev1.PersistentVolumeClaim, found *findings) error {
	path := field.NewPath("spec", "volumeClaimTemplates").Key(after.Name)
	if !claim.HasShape(before, after) {
		found.forbidden(path, "only its size can change with volumeClaimUpdateStrategy OnPodRollingUpdate")
		return nil
	}
	was, is := before.Spec.Resources.Requests[corev1.ResourceStorage], after.Spec.Resources.Requests[corev1.ResourceStorage]
	if is.Cmp(was) <= 0 || c.Live == nil {
		return nil
	}
	class, err := c.class(ctx, after)
	switch {
	case apierrors.IsNotFound(err):
		found.invalid(path.Child("spec", "storageClassName"), *after.Spec.StorageClassName, "there is no such storage class")
	case err != nil:
		return err
	case class != nil && (class.AllowVolumeExpansion == nil || !*class.AllowVolumeExpansion):
		found.forbidden(path.Child("spec", "resources", "requests", "storage"),
			"storage class %s does not have allowVolumeExpansion", class.Name)
	}
	return nil
}

// class returns the storage class of a claim template: the newest default class where it names none, and nil where there is none either.
func (c statefulSetChange) class(ctx context.Context, template *corev1.PersistentVolumeClaim) (*storagev1.StorageClass, error) {
	if name := template.Spec.StorageClassName; name != nil && *name != "" {
		class := &storagev1.StorageClass{}
		if err := c.Live.Get(ctx, client.ObjectKey{Name: *name}, class); err != nil {
			return nil, fmt.Errorf("reading storage class %s: %w", *name, err)
		}
		return class, nil
	}
	var list storagev1.StorageClassList
	if err := c.Live.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing storage classes: %w", err)
	}
	var newest *storagev1.StorageClass
	for i := range list.Items {
		class := &list.Items[i]
		if class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" &&
			(newest == nil || newest.CreationTimestamp.Before(&class.CreationTimestamp)) {
			newest = class
		}
	}
	return newest, nil
}

// warnings tells of valid changes that may not do what their author expects. It is asked only about valid ones.
func (c statefulSetChange) warnings(found *findings) {
	spec := &c.new.Spec
	if c.templateChanged() {
		c.hookWarnings(found)
	}
	if reserved, err := ordinal.Parse(spec.ReserveOrdinals); err == nil && reserved.Size() > mostReserved {
		found.warn("spec.reserveOrdinals reserves %d ordinals: is one of its ranges too long?", reserved.Size())
	}
	if name := ordinal.PodName(c.new.Name, c.lastOrdinal()); c.old == nil && len(name) > maxHostname {
		found.warn("the name of Pod %s has more than %d characters, which is too long for a host name", name, maxHostname)
	}
	for i := range spec.VolumeClaimTemplates {
		if t := &spec.VolumeClaimTemplates[i]; c.claimsChanged() && !mounted(t.Name, &spec.Template.Spec) {
			found.warn("spec.volumeClaimTemplates[%d]: no container mounts %s", i, t.Name)
		}
	}
	rolling := spec.UpdateStrategy.RollingUpdate
	if c.old == nil || !c.templateChanged() || rolling == nil || rolling.Partition == nil || spec.Replicas == nil {
		return
	}
	if kept, total := *rolling.Partition, *spec.Replicas; kept >= total && total > 0 {
		found.nothingMoves("Pod", kept, int(total))
	}
}

const (
	// mostReserved is how many ordinals somebody may want to reserve who has not mistyped a range.
	mostReserved = 10000
	// maxHostname is the length of a DNS label.
	maxHostname = 63
)

func (c statefulSetChange) lastOrdinal() int32 {
	reserved, err := ordinal.Parse(c.new.Spec.ReserveOrdinals)
	if err != nil || c.new.Spec.Replicas == nil {
		return 0
	}
	start := int32(0)
	if o := c.new.Spec.Ordinals; o != nil {
		start = max(o.Start, 0)
	}
	slots := reserved.Slots(start, *c.new.Spec.Replicas)
	if len(slots) == 0 {
		return start
	}
	return slots[len(slots)-1]
}

func mounted(volume string, spec *corev1.PodSpec) bool {
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		if slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume }) ||
			slices.ContainsFunc(container.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.Name == volume }) {
			return true
		}
	}
	return false
}
