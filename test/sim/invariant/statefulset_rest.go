package invariant

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// StatefulSetConverged returns how a cluster at rest differs from what a StatefulSet wants.
func StatefulSetConverged(c *simulate.Cluster, set *v1beta1.StatefulSet) []string {
	var problems []string
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	var have []int
	serving, updated := 0, 0
	for _, object := range c.Of(corev1.SchemeGroupVersion.WithKind("Pod")) {
		p := object.(*corev1.Pod)
		if !metav1.IsControlledBy(p, set) {
			continue
		}
		have = append(have, ordinalOf(p))
		if serves(p, minReadyOf(set), c.Now()) {
			serving++
		}
		if isAt(p, set.Status.UpdateRevision) {
			updated++
			if image := set.Spec.Template.Spec.Containers[0].Image; p.Status.ContainerStatuses[0].Image != image ||
				p.Spec.Containers[0].Image != image {
				wrong("at rest, %s is labelled %s and does not run %s", p.Name, revisionOf(p), image)
			}
		}
		problems = append(problems, lacks(c, set, p)...)
	}
	slices.Sort(have)
	if want := slotsOf(set); !slices.Equal(have, want) {
		wrong("at rest there are Pods %v, not %v", have, want)
	}
	if serving != len(have) {
		wrong("at rest %d of %d Pods are available", serving, len(have))
	}
	if least := len(have) - partitionOf(set); updated < least {
		wrong("at rest %d Pods are updated, of %d", updated, least)
	}
	s := set.Status
	if s.ObservedGeneration != set.Generation {
		wrong("at rest the status speaks of generation %d, not %d", s.ObservedGeneration, set.Generation)
	}
	if int(s.Replicas) != len(have) || int(s.AvailableReplicas) != serving || int(s.UpdatedReplicas) != updated {
		wrong("at rest the status says %d Pods, %d available, %d updated; there are %d, %d, %d",
			s.Replicas, s.AvailableReplicas, s.UpdatedReplicas, len(have), serving, updated)
	}
	return problems
}

// lacks returns what a Pod lacks of its identity.
func lacks(c *simulate.Cluster, set *v1beta1.StatefulSet, p *corev1.Pod) []string {
	var problems []string
	if p.Spec.Hostname != p.Name || p.Labels["statefulset.kubernetes.io/pod-name"] != p.Name {
		problems = append(problems,
			fmt.Sprintf("%s has the hostname %q and the label %q", p.Name, p.Spec.Hostname, p.Labels["statefulset.kubernetes.io/pod-name"]))
	}
	for _, template := range set.Spec.VolumeClaimTemplates {
		name := template.Name + "-" + p.Name
		held, _ := c.Get(simulate.Key{Kind: corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), Namespace: p.Namespace,
			Name: name}).(*corev1.PersistentVolumeClaim)
		switch {
		case held == nil || held.DeletionTimestamp != nil:
			problems = append(problems, fmt.Sprintf("%s has no claim %s", p.Name, name))
		case !mounts(p, name):
			problems = append(problems, fmt.Sprintf("%s does not mount %s", p.Name, name))
		}
		if held == nil {
			continue
		}
		policy := set.Spec.PersistentVolumeClaimRetentionPolicy
		wanted := policy != nil && policy.WhenDeleted == v1beta1.DeletePersistentVolumeClaimRetentionPolicyType
		if got := metav1.IsControlledBy(held, set); got != wanted || (len(held.OwnerReferences) > 0) != wanted {
			problems = append(problems,
				fmt.Sprintf("%s is owned by %v, wanted that of the StatefulSet: %v", name, held.OwnerReferences, wanted))
		}
	}
	return problems
}
