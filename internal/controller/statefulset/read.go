package statefulset

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Snapshot is all that one pass may look at. It is read once and never changed, so it can be saved as a test case.
type Snapshot struct {
	Set *v1beta1.StatefulSet
	// Pods are those that the StatefulSet controls.
	Pods []*corev1.Pod
	// Orphans are Pods that the selector matches, that have a name of this StatefulSet, and no controller. Of each only what identifies it
	// is known. There are none where it is not sure that the StatefulSet is still the one that is meant.
	Orphans []*corev1.Pod
	// Claims are those that have the name of a claim of one of the Pods, whoever owns them.
	Claims []*corev1.PersistentVolumeClaim
	// Revisions are those that the StatefulSet controls, and those that its selector matches and that have no controller.
	Revisions []*appsv1.ControllerRevision
	// FixedClasses are the storage classes, of claims that are too small, whose claims can't grow, each with the reason.
	FixedClasses map[string]string
	// PullJobs are the ImagePullJobs that the StatefulSet controls.
	PullJobs []*v1beta1.ImagePullJob
	// Taken are names that new ImagePullJobs can't have, because objects of others have them.
	Taken   []string
	Now     time.Time
	Options Options
}

// read makes every read of a pass. Names and labels of everything found are those of the moment now.
func (o Options) read(ctx context.Context, r loop.Reads, set *v1beta1.StatefulSet) (State, error) {
	s := Snapshot{Set: set, Now: r.Now, Options: o, Taken: r.Taken}
	selector, err := pod.Selector(set.Spec.Selector)
	if err != nil {
		// Nothing can be found with it; the plan says so.
		return Classify(s), nil
	}
	if s.Pods, err = r.Pods(ctx, set.Namespace, set.UID); err != nil {
		return State{}, err
	}
	if s.Orphans, err = r.Adoptable(ctx, r.Live, set, selector); err != nil {
		return State{}, err
	}
	s.Orphans = slices.DeleteFunc(s.Orphans, func(p *corev1.Pod) bool {
		name, _, ok := ordinal.Split(p.Name)
		return !ok || name != set.Name
	})
	if s.Revisions, err = r.RevisionsWith(ctx, set, selector, set.Status.CurrentRevision, s.Orphans...); err != nil {
		return State{}, err
	}
	if len(set.Spec.VolumeClaimTemplates) > 0 {
		isOurs := func(name string) bool { return templateOf(name, set) != nil }
		if s.Claims, err = r.ClaimsNamed(ctx, set.Namespace, isOurs); err != nil {
			return State{}, err
		}
	}
	if o.PreDownload {
		if s.PullJobs, err = r.ImagePullJobs(ctx, set.Namespace, set.UID); err != nil {
			return State{}, err
		}
	}
	if resizes(set, o) {
		if s.FixedClasses, err = fixedClasses(ctx, r.Live, s); err != nil {
			return State{}, err
		}
	}
	return Classify(s), nil
}

// fixedClasses looks up the storage classes of the claims that have to grow.
func fixedClasses(ctx context.Context, live client.Reader, s Snapshot) (map[string]string, error) {
	fixed, known := map[string]string{}, map[string]bool{}
	for _, c := range s.Claims {
		template := templateOf(c.Name, s.Set)
		name := classOf(c)
		if template == nil || known[name] || claim.IsCompatible(c, template) {
			continue
		}
		known[name] = true
		why, err := whyFixed(ctx, live, name)
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
func whyFixed(ctx context.Context, live client.Reader, name string) (string, error) {
	if name == "" {
		return "it has no storage class, and so can't grow", nil
	}
	var class storagev1.StorageClass
	err := live.Get(ctx, client.ObjectKey{Name: name}, &class)
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

// templateOf returns the template that makes claims of this name for Pods of the StatefulSet, or nil.
func templateOf(name string, set *v1beta1.StatefulSet) *corev1.PersistentVolumeClaim {
	prefix, _, ok := ordinal.Split(name)
	for i := range set.Spec.VolumeClaimTemplates {
		if t := &set.Spec.VolumeClaimTemplates[i]; ok && prefix == t.Name+"-"+set.Name {
			return t
		}
	}
	return nil
}
