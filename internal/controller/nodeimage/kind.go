package nodeimage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

// Options are the choices made for both controllers at start-up.
type Options struct {
	// CreationDelay is how long a node must have been Ready before it gets a NodeImage: new nodes are busy enough.
	CreationDelay time.Duration
	// Jobs says that ImagePullJobs are reconciled: what becomes of one matters to the tags that it asked for.
	Jobs bool
	// Namespace is the only one whose jobs are reconciled; empty for all.
	Namespace string
	// ConfigNamespace is the namespace of the Secrets that users may name in NodeImages, Sources reads them.
	ConfigNamespace string
	Sources         *observe.Sources
	// Seal encrypts credentials for the daemon of a node.
	Seal pull.Sealer
}

// CreationKind is the controller that creates the NodeImages of nodes.
func CreationKind(o Options) loop.Kind[*corev1.Node, NodeSnapshot, corev1.NodeStatus] {
	return loop.Kind[*corev1.Node, NodeSnapshot, corev1.NodeStatus]{
		Name:     "nodeimage-birth", // in the labels of metrics
		Source:   eventSource,
		Concerns: concerns,
		Watches: func(observe.Reader) []loop.Watch {
			return []loop.Watch{loop.Affected(&v1beta1.NodeImage{}, ofDeleted)}
		},
		Read: o.readNode,
		Plan: PlanCreation,
	}
}

// Kind is the controller of NodeImages.
func Kind(o Options) loop.Kind[*v1beta1.NodeImage, Snapshot, v1beta1.NodeImageStatus] {
	read := reader{Options: o, gone: observe.NewKept[types.UID, bool](goneFor, time.Now)}
	return loop.Kind[*v1beta1.NodeImage, Snapshot, v1beta1.NodeImageStatus]{
		Name: "nodeimage",
		Watches: func(cached observe.Reader) []loop.Watch {
			watches := []loop.Watch{loop.Affected(&corev1.Node{}, ofLabels)}
			if o.Jobs {
				watches = append(watches, loop.Affected(&v1beta1.ImagePullJob{}, images{cached}.ofJob))
			}
			return watches
		},
		Read: read.image,
		Plan: Plan,
	}
}

const eventSource = "nodeimage-controller"

// concerns reports whether a node comes, becomes Ready, or turns from a virtual node into a machine.
func concerns(before, after *corev1.Node) bool {
	if before == nil {
		return true
	}
	_, was := pull.ReadySince(before)
	_, is := pull.ReadySince(after)
	return was != is || isVirtual(before) != isVirtual(after) || before.UID != after.UID
}

// ofDeleted returns the node whose NodeImage was deleted.
func ofDeleted(_ context.Context, before, after *v1beta1.NodeImage) ([]types.NamespacedName, error) {
	if after != nil {
		return nil, nil
	}
	return []types.NamespacedName{{Name: before.Name}}, nil
}

// ofLabels returns the NodeImage of a node whose labels have changed, or that is gone.
func ofLabels(_ context.Context, before, after *corev1.Node) ([]types.NamespacedName, error) {
	if before != nil && after != nil && before.UID == after.UID && maps.Equal(before.Labels, after.Labels) &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) {
		return nil, nil
	}
	return []types.NamespacedName{{Name: cmp.Or(after, before).Name}}, nil
}

// images finds the NodeImages that a change concerns.
type images struct{ observe.Reader }

// ofJob returns the NodeImages that a job has asked, when the job has completed or is gone: they need not keep for it what they have.
func (m images) ofJob(ctx context.Context, before, after *v1beta1.ImagePullJob) ([]types.NamespacedName, error) {
	gone := after == nil || after.DeletionTimestamp != nil
	completed := !gone && before != nil && before.Status.CompletionTime == nil && after.Status.CompletionTime != nil
	if !gone && !completed {
		return nil, nil
	}
	job := cmp.Or(before, after).UID
	all, err := m.NodeImages(ctx)
	return observe.Keys(all, func(n *v1beta1.NodeImage) bool { return wasAsked(n, job) }), err
}

func wasAsked(n *v1beta1.NodeImage, job types.UID) bool {
	for _, image := range n.Spec.Images {
		for i := range image.Tags {
			if slices.ContainsFunc(image.Tags[i].OwnerReferences, func(owner corev1.ObjectReference) bool { return owner.UID == job }) {
				return true
			}
		}
	}
	return false
}
