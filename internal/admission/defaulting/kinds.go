package defaulting

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/defaults"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// CloneSet returns the handler that fills in the defaults of CloneSets of both versions.
func CloneSet(o defaults.Options) admission.Handler {
	return kind[v1beta1.CloneSet, *v1beta1.CloneSet]{fill: fillWith(defaults.CloneSet, o)}.handler()
}

// DaemonSet returns the handler that fills in the defaults of DaemonSets of both versions.
func DaemonSet() admission.Handler {
	return kind[v1beta1.DaemonSet, *v1beta1.DaemonSet]{
		fill: func(_ context.Context, set, _ *v1beta1.DaemonSet) error {
			defaults.DaemonSet(set)
			return nil
		},
		older: surging,
	}.handler()
}

// surging spells out for the type Surging, which the hub version does not have, that no node may be without a Pod.
func surging(set, _ *unstructured.Unstructured) error {
	path := []string{"spec", "updateStrategy", "rollingUpdate"}
	rolling, _, err := unstructured.NestedMap(set.Object, path...)
	isSurging := rolling["rollingUpdateType"] == string(v1alpha1.DeprecatedSurgingRollingUpdateType)
	if err != nil || !isSurging || rolling["maxUnavailable"] != nil {
		return nil // what can't be read is reported later
	}
	return unstructured.SetNestedField(set.Object, int64(0), append(path, "maxUnavailable")...)
}

// BroadcastJob returns the handler that fills in the defaults of BroadcastJobs of both versions.
func BroadcastJob(o defaults.Options) admission.Handler {
	return kind[v1beta1.BroadcastJob, *v1beta1.BroadcastJob]{fill: fillWith(defaults.BroadcastJob, o)}.handler()
}

// AdvancedCronJob returns the handler that fills in the defaults of AdvancedCronJobs of both versions.
func AdvancedCronJob(o defaults.Options) admission.Handler {
	return kind[v1beta1.AdvancedCronJob, *v1beta1.AdvancedCronJob]{fill: fillWith(defaults.AdvancedCronJob, o)}.handler()
}

// UnitedDeployment returns the handler that fills in the defaults of UnitedDeployments, whose spec is the same in both versions.
func UnitedDeployment(o defaults.Options) admission.Handler {
	return kind[v1beta1.UnitedDeployment, *v1beta1.UnitedDeployment]{fill: fillWith(defaults.UnitedDeployment, o)}.handler()
}

// SidecarSet returns the handler that fills in the defaults and the hashes of SidecarSets of both versions.
func SidecarSet() admission.Handler {
	return kind[v1beta1.SidecarSet, *v1beta1.SidecarSet]{
		fill:  func(_ context.Context, set, _ *v1beta1.SidecarSet) error { return defaults.SidecarSet(set) },
		older: sidecarSetFirstSpelling,
	}.handler()
}

// sidecarSetFirstSpelling copies the fields of the first releases to their successors. What they were before is not told by the hub
// version.
func sidecarSetFirstSpelling(set, old *unstructured.Unstructured) error {
	now, err := request.Decode[v1alpha1.SidecarSet](set)
	if err != nil {
		return unreadableError{err}
	}
	var was *v1alpha1.SidecarSet
	if old != nil {
		if was, err = request.Decode[v1alpha1.SidecarSet](old); err != nil {
			return unreadableError{err}
		}
	}
	defaults.SidecarSetFirstSpelling(now, was)
	strategy, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&now.Spec.UpdateStrategy)
	if err != nil {
		return err
	}
	return unstructured.SetNestedMap(set.Object, strategy, "spec", "updateStrategy")
}

// StatefulSetOptions is what defaulting StatefulSets needs and heeds.
type StatefulSetOptions struct {
	Defaults defaults.Options
	// Revisions reads the revisions that a StatefulSet of Kubernetes has left behind; without it nothing is taken over.
	Revisions client.Reader
}

// StatefulSet returns the handler that fills in the defaults of StatefulSets. Both versions have the same fields.
func StatefulSet(o StatefulSetOptions) admission.Handler {
	return kind[v1beta1.StatefulSet, *v1beta1.StatefulSet]{fill: o.fill}.handler()
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

// leftBehind returns the template of the newest revision that belonged to a StatefulSet of Kubernetes of this name, or does so until the
// garbage collector has let go of it; nil where there is none. Its Pods are still there, and the new StatefulSet is about to adopt them.
func (o StatefulSetOptions) leftBehind(ctx context.Context, set *v1beta1.StatefulSet) (*corev1.PodTemplateSpec, error) {
	if !saysNotHowToPull(&set.Spec.Template.Spec) {
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil || selector.Empty() {
		return nil, nil // what can't be read is reported by what comes next
	}
	var list appsv1.ControllerRevisionList
	selected := client.MatchingLabelsSelector{Selector: selector}
	if err := o.Revisions.List(ctx, &list, client.InNamespace(set.Namespace), selected); err != nil {
		return nil, fmt.Errorf("looking for the revisions of a StatefulSet of Kubernetes: %w", err)
	}
	var newest *appsv1.ControllerRevision
	for i := range list.Items {
		rev := &list.Items[i]
		by := metav1.GetControllerOf(rev)
		isLeft := by == nil && strings.HasPrefix(rev.Name, set.Name+"-") ||
			by != nil && by.APIVersion == appsv1.SchemeGroupVersion.String() && by.Kind == "StatefulSet" && by.Name == set.Name
		if isLeft && (newest == nil || rev.Revision > newest.Revision) {
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
