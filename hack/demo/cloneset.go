package main

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// cloneSet shows a canary with surge, and an update in place.
func cloneSet() performance {
	rolling := func(set *v1beta1.CloneSet) *v1beta1.RollingUpdateCloneSetStrategy {
		return set.Spec.UpdateStrategy.RollingUpdate
	}
	canaried := func(set *v1beta1.CloneSet) bool {
		s := set.Status
		return s.ObservedGeneration == set.Generation && s.Replicas == *set.Spec.Replicas && s.AvailableReplicas == s.Replicas &&
			s.UpdatedAvailableReplicas >= s.ExpectedUpdatedReplicas
	}
	all := func(set *v1beta1.CloneSet) bool {
		return canaried(set) && set.Status.UpdatedAvailableReplicas == *set.Spec.Replicas
	}
	return play[*v1beta1.CloneSet]{
		example: "cloneset-surge-partition.yaml",
		object:  func() *v1beta1.CloneSet { return &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Name: "demo"}} },
		counts: func(set *v1beta1.CloneSet) string {
			s := set.Status
			return fmt.Sprintf("DESIRED %d  UPDATED %d  UPDATED_READY %d  READY %d  TOTAL %d",
				*set.Spec.Replicas, s.UpdatedReplicas, s.UpdatedReadyReplicas, s.ReadyReplicas, s.Replicas)
		},
		steps: []step[*v1beta1.CloneSet]{
			{title: "A CloneSet of five Pods (examples/cloneset-surge-partition.yaml)", done: all},
			{
				title:  "A new image, to two of five Pods (partition 3), one Pod of surge, none unavailable",
				change: func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = "nginx:mainline" },
				done:   canaried,
			},
			{
				title:  "The canary is good: partition 0, to all Pods",
				change: func(set *v1beta1.CloneSet) { rolling(set).Partition = number(0) },
				done:   all,
			},
			{
				title: "Another image, in place: the same Pods, IPs and nodes, two at a time",
				change: func(set *v1beta1.CloneSet) {
					rolling(set).PodUpdatePolicy = v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType
					rolling(set).MaxSurge, rolling(set).MaxUnavailable = number(0), number(2)
					set.Spec.Template.Spec.Containers[0].Image = "nginx:1.29"
				},
				done: all,
			},
		},
		next: `  k kruise plan clone/demo --set image=nginx=nginx:1.30          which Pods, in which order, in place or not
  k kruise set image clone/demo nginx=nginx:1.30
  k kruise explain clone/demo                          what is waited for, and what would free it
  k get clone,pods -w
  k scale clone/demo --replicas=8
  k label pod -l app=demo apps.kruise.io/specified-delete=true   all of them, as maxUnavailable allows
  k explain cloneset.spec.updateStrategy.rollingUpdate
`,
	}
}

func number(n int32) *intstr.IntOrString {
	value := intstr.FromInt32(n)
	return &value
}
