package statefulset

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// observer makes the reads of a pass.
type observer struct {
	observe.Reader
	// live reads around the cache.
	live client.Reader
	options
}

type options struct {
	Options
	now func() time.Time
}

// observe makes every read of a pass. Names and labels of everything found are those of the moment now.
func (o observer) observe(ctx context.Context, set *v1beta1.StatefulSet) (Snapshot, error) {
	s := Snapshot{Set: set, Now: o.now(), Options: o.Options}
	selector, err := pod.Selector(set.Spec.Selector)
	if err != nil {
		// Nothing can be found with it; the plan says so.
		return s, nil
	}
	if s.Pods, err = o.Pods(ctx, set.Namespace, set.UID); err != nil {
		return Snapshot{}, err
	}
	if s.Orphans, err = o.orphans(ctx, set, selector); err != nil {
		return Snapshot{}, err
	}
	if s.Revisions, err = o.Revisions(ctx, set.Namespace, selector, set.UID); err != nil {
		return Snapshot{}, err
	}
	if len(set.Spec.VolumeClaimTemplates) > 0 {
		if s.Claims, err = o.ClaimsNamed(ctx, set.Namespace, isClaimOf(set)); err != nil {
			return Snapshot{}, err
		}
	}
	if o.PreDownload {
		if s.PullJobs, err = o.ImagePullJobs(ctx, set.Namespace, set.UID); err != nil {
			return Snapshot{}, err
		}
	}
	if o.ClaimResize {
		s.FixedClasses, err = o.fixedClasses(ctx, s)
	}
	return s, err
}

// orphans returns the Pods to adopt: those whose names are a StatefulSet's own.
func (o observer) orphans(ctx context.Context, set *v1beta1.StatefulSet, selector labels.Selector) ([]*corev1.Pod, error) {
	found, err := o.Adoptable(ctx, o.live, set, selector)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(p *corev1.Pod) bool {
		name, _, ok := ordinal.Split(p.Name)
		return !ok || name != set.Name
	}), nil
}

// isClaimOf tells the names of claims that Pods of the StatefulSet have or had.
func isClaimOf(set *v1beta1.StatefulSet) func(string) bool {
	return func(name string) bool {
		prefix, _, ok := ordinal.Split(name)
		if !ok {
			return false
		}
		for i := range set.Spec.VolumeClaimTemplates {
			if prefix == set.Spec.VolumeClaimTemplates[i].Name+"-"+set.Name {
				return true
			}
		}
		return false
	}
}

// fixedClasses looks up the storage classes of the claims that have to grow.
func (o observer) fixedClasses(ctx context.Context, s Snapshot) (map[string]string, error) {
	if !resizes(s.Set, s.Options) {
		return nil, nil
	}
	fixed, known := map[string]string{}, map[string]bool{}
	for _, c := range s.Claims {
		template := templateOf(c.Name, s.Set)
		name := classOf(c)
		if template == nil || known[name] || claim.IsCompatible(c, template) {
			continue
		}
		known[name] = true
		why, err := o.whyFixed(ctx, name)
		if err != nil {
			return nil, err
		}
		if why != "" {
			fixed[name] = why
		}
	}
	return fixed, nil
}

// whyFixed says why claims of a storage class can't grow; nothing if they can.
func (o observer) whyFixed(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "it has no storage class, and so can't grow", nil
	}
	var class storagev1.StorageClass
	err := o.live.Get(ctx, client.ObjectKey{Name: name}, &class)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("its storage class %s does not exist any more", name), nil
	case err != nil:
		return "", fmt.Errorf("reading storage class %s: %w", name, err)
	case class.AllowVolumeExpansion == nil || !*class.AllowVolumeExpansion:
		return fmt.Sprintf("its storage class %s does not have allowVolumeExpansion", name), nil
	}
	return "", nil
}

func classOf(c *corev1.PersistentVolumeClaim) string {
	if c.Spec.StorageClassName == nil {
		return ""
	}
	return *c.Spec.StorageClassName
}

// templateOf returns the template that a claim of this name was made from, or nil.
func templateOf(name string, set *v1beta1.StatefulSet) *corev1.PersistentVolumeClaim {
	prefix, _, _ := ordinal.Split(name)
	for i := range set.Spec.VolumeClaimTemplates {
		if t := &set.Spec.VolumeClaimTemplates[i]; prefix == t.Name+"-"+set.Name {
			return t
		}
	}
	return nil
}
