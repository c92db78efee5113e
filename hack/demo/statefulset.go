package main

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// statefulSet shows an update in place, and how one Pod of several is taken out.
func statefulSet() performance {
	rolling := func(set *v1beta1.StatefulSet) *v1beta1.RollingUpdateStatefulSetStrategy {
		return set.Spec.UpdateStrategy.RollingUpdate
	}
	updated := func(set *v1beta1.StatefulSet, wanted int32) bool {
		s := set.Status
		return s.ObservedGeneration == set.Generation && s.Replicas == *set.Spec.Replicas && s.AvailableReplicas == s.Replicas &&
			s.UpdatedAvailableReplicas >= wanted
	}
	all := func(set *v1beta1.StatefulSet) bool { return updated(set, *set.Spec.Replicas) }
	return play[*v1beta1.StatefulSet]{
		example: "statefulset-inplace.yaml",
		object:  func() *v1beta1.StatefulSet { return &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "game"}} },
		counts: func(set *v1beta1.StatefulSet) string {
			s := set.Status
			return fmt.Sprintf("DESIRED %d  CURRENT %d  UPDATED %d  READY %d  AVAILABLE %d",
				*set.Spec.Replicas, s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas)
		},
		steps: []step[*v1beta1.StatefulSet]{
			{title: "A StatefulSet of five Pods, all started at once (examples/statefulset-inplace.yaml)", done: all},
			{
				title: "A new image, in place, to three of five Pods (partition 2): the same names, IPs and nodes, one at a time",
				change: func(set *v1beta1.StatefulSet) {
					rolling(set).InPlaceUpdateStrategy.GracePeriodSeconds = 1
					set.Spec.Template.Spec.Containers[0].Image = "nginx:mainline"
				},
				done: func(set *v1beta1.StatefulSet) bool { return updated(set, *set.Spec.Replicas-*rolling(set).Partition) },
			},
			{
				title: "The canary is good: partition 0, to all Pods, two at a time",
				change: func(set *v1beta1.StatefulSet) {
					*rolling(set).Partition, rolling(set).MaxUnavailable = 0, number(2)
				},
				done: all,
			},
			{
				title: "game-1 is to go and no other Pod: its number is reserved, with one replica less",
				change: func(set *v1beta1.StatefulSet) {
					set.Spec.ReserveOrdinals = append(set.Spec.ReserveOrdinals, *number(1))
					*set.Spec.Replicas--
				},
				done: all,
			},
		},
		next: `  k kruise plan asts/game --set image=server=nginx:1.30          which Pods, in which order, in place or not
  k kruise set image asts/game server=nginx:1.30
  k kruise explain asts/game                           what is waited for, and what would free it
  k get asts,pods -w
  k scale asts/game --replicas=8                       numbered on beyond the reserved one
  k label pod game-2 apps.kruise.io/specified-delete=true        replaced, under its name, as maxUnavailable allows
  k explain asts.spec.updateStrategy.rollingUpdate --api-version=apps.kruise.io/v1beta1
`,
	}
}
