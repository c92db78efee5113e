package daemonset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// kind is that of the owner in references and events.
func kind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("DaemonSet") }

// Options are the choices made for the whole controller at start-up.
type Options struct {
	// BindPods names the node in the Pods themselves, instead of having the scheduler bind them to it (flag
	// --assign-pods-by-scheduler=false).
	BindPods bool
	// PreDownload has images pulled before Pods are updated (gate PreDownloadImageForDaemonSetUpdate).
	PreDownload bool
	// InPlace says which changes can go in place.
	InPlace inplace.Options
}

// Kind is the controller of DaemonSets.
func Kind(o Options) loop.Kind[*v1beta1.DaemonSet, State, v1beta1.DaemonSetStatus] {
	failed := &memory{}
	return loop.Kind[*v1beta1.DaemonSet, State, v1beta1.DaemonSetStatus]{
		Name: "daemonset",
		Owns: []client.Object{&corev1.Pod{}},
		Watches: func(cached observe.Reader) []loop.Watch {
			find := finder{cached}
			return []loop.Watch{loop.Affected(&corev1.Pod{}, find.ofOrphan), loop.Affected(&corev1.Node{}, find.ofNode)}
		},
		Read: func(ctx context.Context, r loop.Reads, set *v1beta1.DaemonSet) (State, error) {
			s, err := o.read(ctx, r, set)
			if err != nil {
				return State{}, err
			}
			s.Failures = failed.failures(set.UID, set.Generation)
			return Classify(s), nil
		},
		Plan:     Plan,
		Status:   Status,
		StatusOf: func(o *v1beta1.DaemonSet) *v1beta1.DaemonSetStatus { return &o.Status },
		Remember: failed.note,
		Forget:   failed.Forget,
		Final:    saysComplete,
		Release:  func(v State, _ *v1beta1.DaemonSet) plan.Release { return rollout.ReleaseOf(v.workload.History) },
		// A daemon beside another one fights for ports and files.
		CreatesLive: true,
	}
}

// finder finds the DaemonSets that a change concerns that does not name them itself, in a cache.
type finder struct{ client.Reader }

// ofOrphan returns the DaemonSets that could adopt a Pod without a controller.
func (f finder) ofOrphan(ctx context.Context, _, after *corev1.Pod) ([]types.NamespacedName, error) {
	if after == nil || after.DeletionTimestamp != nil || metav1.GetControllerOfNoCopy(after) != nil || len(after.Labels) == 0 {
		return nil, nil
	}
	return f.affected(ctx, after.Namespace, func(set *v1beta1.DaemonSet) bool {
		selector, err := pod.Selector(set.Spec.Selector)
		return err == nil && selector.Matches(labels.Set(after.Labels))
	})
}

// ofNode returns the DaemonSets for which the coming, going or changing of a node makes a difference. Most changes of nodes are
// heartbeats, which make none and cost no more than a comparison.
func (f finder) ofNode(ctx context.Context, before, after *corev1.Node) ([]types.NamespacedName, error) {
	if before != nil && after != nil && !nodefit.Changed(before, after) {
		return nil, nil
	}
	return f.affected(ctx, "", func(set *v1beta1.DaemonSet) bool {
		return whatFits(set, before) != whatFits(set, after)
	})
}

// fitting is all that a DaemonSet asks of a node.
type fitting struct {
	verdict  nodefit.Verdict
	selected bool
}

func whatFits(set *v1beta1.DaemonSet, node *corev1.Node) fitting {
	if node == nil {
		return fitting{}
	}
	out := fitting{verdict: nodefit.Of(&set.Spec.Template.Spec).On(node)}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(rolling.Selector)
		out.selected = err == nil && selector.Matches(labels.Set(node.Labels))
	}
	return out
}

func (f finder) affected(ctx context.Context, namespace string, affected func(*v1beta1.DaemonSet) bool) ([]types.NamespacedName, error) {
	var all v1beta1.DaemonSetList
	if err := f.List(ctx, &all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var out []types.NamespacedName
	for i := range all.Items {
		if affected(&all.Items[i]) {
			out = append(out, client.ObjectKeyFromObject(&all.Items[i]))
		}
	}
	return out, nil
}
