package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// canaries is the number of nodes that an update is to reach first.
const canaries = 2

// daemonSet shows an update in place by node label, and one with surge.
func daemonSet() performance {
	rolling := func(set *v1beta1.DaemonSet) *v1beta1.RollingUpdateDaemonSet {
		return set.Spec.UpdateStrategy.RollingUpdate
	}
	updated := func(set *v1beta1.DaemonSet, wanted int32) bool {
		s := set.Status
		return s.ObservedGeneration == set.Generation && s.DesiredNumberScheduled > 0 && s.NumberAvailable == s.DesiredNumberScheduled &&
			s.UpdatedNumberScheduled >= wanted
	}
	all := func(set *v1beta1.DaemonSet) bool { return updated(set, set.Status.DesiredNumberScheduled) }
	return play[*v1beta1.DaemonSet]{
		example: "daemonset-inplace.yaml",
		object:  func() *v1beta1.DaemonSet { return &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent"}} },
		prepare: labelCanaries,
		counts: func(set *v1beta1.DaemonSet) string {
			s := set.Status
			return fmt.Sprintf("DESIRED %d  CURRENT %d  READY %d  UP-TO-DATE %d  AVAILABLE %d",
				s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.NumberReady, s.UpdatedNumberScheduled, s.NumberAvailable)
		},
		steps: []step[*v1beta1.DaemonSet]{
			{title: "A DaemonSet on five nodes, of which two are in the pool canary (examples/daemonset-inplace.yaml)", done: all},
			{
				title: "A new image, in place, on the nodes of the pool canary only",
				change: func(set *v1beta1.DaemonSet) {
					set.Spec.MinReadySeconds, rolling(set).InPlaceUpdateStrategy.GracePeriodSeconds = 1, 1
					set.Spec.Template.Spec.Containers[0].Image = "nginx:mainline"
				},
				done: func(set *v1beta1.DaemonSet) bool { return updated(set, canaries) },
			},
			{
				title:  "The canaries are good: without a node selector, on all nodes, three at a time",
				change: func(set *v1beta1.DaemonSet) { rolling(set).Selector = nil },
				done:   all,
			},
			{
				title: "An agent that must never be missing: each new Pod comes beside the old one, which goes once that is available",
				change: func(set *v1beta1.DaemonSet) {
					rolling(set).Type, rolling(set).InPlaceUpdateStrategy = v1beta1.StandardRollingUpdateType, nil
					rolling(set).MaxSurge, rolling(set).MaxUnavailable = number(2), number(0)
					set.Spec.Template.Spec.Containers[0].Image = "nginx:1.29"
				},
				done: all,
			},
		},
		next: `  k kruise plan ads/agent --set image=agent=nginx:1.30           which Pods, in which order, in place or not
  k kruise set image ads/agent agent=nginx:1.30
  k kruise explain ads/agent                           what is waited for, and what would free it
  k get ads,pods -o wide -w
  k taint node --all maintenance:NoExecute             every Pod goes ...
  k taint node --all maintenance-                      ... and comes back
  k explain ads.spec.updateStrategy.rollingUpdate --api-version=apps.kruise.io/v1beta1
`,
	}
}

// labelCanaries puts two nodes into the pool that the example updates first.
func labelCanaries(ctx context.Context, d *demo) error {
	var nodes corev1.NodeList
	if err := d.cluster.Client.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for i := range nodes.Items[:min(canaries, len(nodes.Items))] {
		node := &nodes.Items[i]
		before := client.MergeFrom(node.DeepCopy())
		node.Labels["pool"] = "canary"
		if err := d.cluster.Client.Patch(ctx, node, before); err != nil {
			return fmt.Errorf("labelling node %s: %w", node.Name, err)
		}
	}
	return nil
}
