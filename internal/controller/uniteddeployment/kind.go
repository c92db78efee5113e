package uniteddeployment

import (
	"context"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// kind is that of the owner in references.
func kind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("UnitedDeployment") }

// Options are what the controller works with.
type Options struct {
	// Clusters are the other clusters that subsets may be in; nil while they can't be (gate UnitedDeploymentMultiCluster).
	Clusters Clusters
	// HubID is the UID of the namespace kube-system of the cluster of the UnitedDeployments.
	HubID string
}

// Lists returns empty lists of all kinds of workloads that subsets can have.
func Lists() (out []client.ObjectList) {
	for _, k := range workloadKinds() {
		out = append(out, k.list())
	}
	return out
}

// Kind is the controller of UnitedDeployments.
func Kind(o Options) loop.Kind[*v1beta1.UnitedDeployment, State, v1beta1.UnitedDeploymentStatus] {
	owned := []client.Object{&appsv1.Deployment{}, &v1beta1.CloneSet{}, &appsv1.StatefulSet{}, &v1beta1.StatefulSet{}}
	out := loop.Kind[*v1beta1.UnitedDeployment, State, v1beta1.UnitedDeploymentStatus]{
		Name: "uniteddeployment",
		Owns: owned,
		Indexes: func(ctx context.Context, indexer client.FieldIndexer) error {
			return observe.AddControllerIndex(ctx, indexer, append(owned, &appsv1.ReplicaSet{})...)
		},
		Watches:     func(observe.Reader) []loop.Watch { return []loop.Watch{loop.Affected(&corev1.Pod{}, podChanged)} },
		Read:        o.read,
		Plan:        Plan,
		Status:      Status,
		StatusOf:    func(o *v1beta1.UnitedDeployment) *v1beta1.UnitedDeploymentStatus { return &o.Status },
		Exact:       true, // what may be in which cluster, and which wave is done, must not go back
		MinInterval: minInterval,
		Release:     func(v State, _ *v1beta1.UnitedDeployment) plan.Release { return rollout.ReleaseOf(v.history) },
	}
	if o.Clusters != nil {
		out.Asked, out.Forget = o.Clusters.Asked, o.Clusters.Forget
		out.Remember = o.bury
	}
	return out
}

// minInterval grows with the number of Pods.
func minInterval(v State) time.Duration {
	pods := 0
	for _, w := range v.Workloads {
		pods += len(w.Pods)
	}
	return loop.IntervalOf(pods)
}

// podChanged returns the UnitedDeployment that a Pod says it belongs to, when it changes in what is counted. The Pod may be somebody else's
// that only carries the labels: it then costs a pass that does nothing.
func podChanged(_ context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
	of := after
	if of == nil {
		of = before
	}
	if _, is := of.Labels[keys.SubsetName]; !is || before != nil && after != nil && seenOf(before) == seenOf(after) &&
		equality.Semantic.DeepEqual(before.Labels, after.Labels) {
		return nil, nil
	}
	name := of.Labels[keys.SubsetRevision]
	if at := strings.LastIndexByte(name, '-'); at > 0 {
		return []types.NamespacedName{{Namespace: of.Namespace, Name: name[:at]}}, nil
	}
	return nil, nil
}

// seen is what is counted of a Pod.
type seen struct {
	phase            corev1.PodPhase
	ready, leaving   bool
	node, unassigned string
}

func seenOf(p *corev1.Pod) seen {
	out := seen{phase: p.Status.Phase, ready: pod.IsReady(p), leaving: p.DeletionTimestamp != nil, node: p.Spec.NodeName}
	if c := pod.Condition(p, corev1.PodScheduled); c != nil {
		out.unassigned = string(c.Status) + c.Reason
	}
	return out
}
