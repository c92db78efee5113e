package defaulting

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/defaults"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// StatefulSetOptions is what defaulting StatefulSets needs and heeds.
type StatefulSetOptions struct {
	Defaults defaults.Options
	// Revisions reads the revisions that a StatefulSet of Kubernetes has left behind; without it nothing is taken over.
	Revisions client.Reader
}

// StatefulSet returns the handler that fills in the defaults of StatefulSets. Both versions have the same fields.
func StatefulSet(o StatefulSetOptions) admission.Handler {
	return kind[v1beta1.StatefulSet, *v1beta1.StatefulSet]{hub: v1beta1.GroupVersion, fill: o.fill}.handler()
}

func (o StatefulSetOptions) fill(ctx context.Context, set, old *v1beta1.StatefulSet) error {
	if old == nil && o.Revisions != nil {
		left, err := o.leftBehind(ctx, set)
		if err != nil {
			return err
		}
		keepPullPolicies(&set.Spec.Template.Spec, left)
	}
	defaults.StatefulSet(set, old, o.Defaults)
	return nil
}

// leftBehind returns the template of the newest revision that nobody controls and that belonged to a StatefulSet of this name; nil where
// there is none. Its Pods are still there, and the new StatefulSet is about to adopt them.
func (o StatefulSetOptions) leftBehind(ctx context.Context, set *v1beta1.StatefulSet) (*corev1.PodTemplateSpec, error) {
	if !saysNotHowToPull(&set.Spec.Template.Spec) {
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil || selector.Empty() {
		return nil, nil // what can't be read is reported by what comes next
	}
	var list appsv1.ControllerRevisionList
	if err := o.Revisions.List(ctx, &list, client.InNamespace(set.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("looking for the revisions of a StatefulSet of Kubernetes: %w", err)
	}
	var newest *appsv1.ControllerRevision
	for i := range list.Items {
		rev := &list.Items[i]
		if metav1.GetControllerOf(rev) == nil && strings.HasPrefix(rev.Name, set.Name+"-") && (newest == nil || rev.Revision > newest.Revision) {
			newest = rev
		}
	}
	if newest == nil {
		return nil, nil
	}
	template, err := revision.Template(newest)
	if err != nil {
		return nil, nil // not one of a workload: there is nothing to take over
	}
	return template, nil
}

func saysNotHowToPull(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return c.ImagePullPolicy == "" })
}

// keepPullPolicies has containers, where the user does not say how to pull their image, do so as they have done before. Our default is
// another one than that of Kubernetes, and would restart every Pod that is taken over.
func keepPullPolicies(spec *corev1.PodSpec, left *corev1.PodTemplateSpec) {
	if left == nil {
		return
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		for _, before := range left.Spec.Containers {
			if c.ImagePullPolicy == "" && c.Name == before.Name && c.Image == before.Image {
				c.ImagePullPolicy = before.ImagePullPolicy
			}
		}
	}
}
