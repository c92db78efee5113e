package rollout

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// PodWrites returns the writes that take a Pod through the given versions, each as few as the API server allows: labels and annotations
// ride on a status write where there is one, and resources go by their own subresource.
func PodWrites(concern plan.Concern, versions ...*corev1.Pod) plan.Chain {
	var chain plan.Chain
	write := func(verb plan.Verb, before, after *corev1.Pod) {
		chain = append(chain, plan.Action{Verb: verb, Concern: concern, Before: before, After: after})
	}
	from := versions[0]
	for i := 1; i < len(versions); i++ {
		to := versions[i]
		status := !equality.Semantic.DeepEqual(from.Status, to.Status)
		spec := !equality.Semantic.DeepEqual(from.Spec, to.Spec)
		if !status && !spec && i+1 < len(versions) && withResources(to, versions[i+1]) == nil {
			// Nothing here that could not ride on the next write. A resize takes no metadata along: would it be written first and the
			// kubelet's answer come before the record of it, nothing on the Pod would tell that it is to be waited for.
			continue
		}
		resized := withResources(from, to)
		if spec && resized != nil {
			write(plan.Resize, from, resized)
			from = resized
			spec = !equality.Semantic.DeepEqual(from.Spec, to.Spec)
		}
		switch {
		case status && spec:
			// Labels and annotations come with the spec that they speak of: were they written first, and the spec never, they would tell of
			// an update that did not happen.
			withStatus := from.DeepCopy()
			withStatus.Status = *to.Status.DeepCopy()
			write(plan.UpdateStatus, from, withStatus)
			write(plan.Update, withStatus, to)
		case status:
			write(plan.UpdateStatus, from, to)
		case spec || !sameMetadata(from, to):
			write(plan.Update, from, to)
		}
		from = to
	}
	return chain
}

// withResources returns from with the containers' resources of to, or nil where they are the same.
func withResources(from, to *corev1.Pod) *corev1.Pod {
	var out *corev1.Pod
	for i := range from.Spec.Containers {
		if i >= len(to.Spec.Containers) || equality.Semantic.DeepEqual(from.Spec.Containers[i].Resources, to.Spec.Containers[i].Resources) {
			continue
		}
		if out == nil {
			out = from.DeepCopy()
		}
		out.Spec.Containers[i].Resources = *to.Spec.Containers[i].Resources.DeepCopy()
	}
	return out
}

func sameMetadata(a, b *corev1.Pod) bool {
	return equality.Semantic.DeepEqual(a.Labels, b.Labels) &&
		equality.Semantic.DeepEqual(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Finalizers, b.Finalizers) &&
		equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences)
}
