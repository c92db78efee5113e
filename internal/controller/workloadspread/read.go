package workloadspread

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/spread"
)

// Snapshot is all that one pass reads.
type Snapshot struct {
	Spread *v1beta1.WorkloadSpread
	// Owned are the Pods of the workload that the filter lets through, Named those whose annotations name the WorkloadSpread.
	Owned, Named []*corev1.Pod
	// Gone are the entries of Pods that were seen and are gone.
	Gone map[string]bool
	// Latest is the version of the workload's present template.
	Latest string
	// Fill is how Pods fill the subsets; empty with Problem, which is why that can't be told.
	spread.Fill
	// Total is how many Pods the workload is to have.
	Total   int32
	Problem error
	// Nodes are those that Pods run on which were given to no subset.
	Nodes map[string]*corev1.Node
	Now   time.Time
}

// read makes every read of a pass. A cache that has not seen all Pods that have left the ledger says nothing: they would be counted
// nowhere.
func (o Options) read(ctx context.Context, r loop.Reads, s *v1beta1.WorkloadSpread) (Snapshot, error) {
	out := Snapshot{Spread: s, Now: r.Now, Nodes: map[string]*corev1.Node{}}
	if r.Indexed && o.SeenPods != nil {
		seen, err := o.SeenPods(ctx)
		if err != nil {
			return out, err
		}
		if !spread.IsAsNewAs(seen, s) {
			return out, observe.ErrOutdated
		}
	}
	if o.Gone != nil {
		out.Gone = o.Gone(client.ObjectKeyFromObject(s))
	}
	total, err := o.Targets.Total(ctx, s)
	if err != nil {
		return out, err
	}
	out.Total = total
	if out.Fill, out.Problem, err = o.Targets.Fill(ctx, s, total); err != nil {
		return out, err
	}
	if out.Named, err = readNamed(ctx, r, s); err != nil {
		return out, err
	}
	if err := o.readOwned(ctx, r.Reader, &out); err != nil {
		return out, err
	}
	for _, p := range out.Owned {
		if _, known := out.Nodes[p.Spec.NodeName]; known || !isUnclaimed(p) {
			continue
		}
		node, err := observe.Find(ctx, r, types.NamespacedName{Name: p.Spec.NodeName}, &corev1.Node{})
		if err != nil {
			return out, err
		}
		out.Nodes[p.Spec.NodeName] = node // nil if it is gone
	}
	return out, nil
}

// readNamed reads the Pods that name the WorkloadSpread. Before room counts as free that was given to Pods which nobody has seen for long,
// they are read live: the cache may be what is late.
func readNamed(ctx context.Context, r loop.Reads, s *v1beta1.WorkloadSpread) ([]*corev1.Pod, error) {
	reader := r.Reader
	if creating, _, _ := spread.Expire(s.DeepCopy(), r.Now); len(creating) > 0 && r.Indexed {
		reader = observe.Reader{Reader: r.Tracked}
	}
	return reader.SpreadPods(ctx, s.Namespace, s.Name)
}

// isUnclaimed reports whether a Pod runs and was given to no subset of any WorkloadSpread.
func isUnclaimed(p *corev1.Pod) bool {
	_, claimed := spread.MatchedOf(p)
	return !claimed && pod.IsActive(p) && p.Spec.NodeName != ""
}

// readOwned reads the Pods of the workload, and which version is the latest.
func (o Options) readOwned(ctx context.Context, r observe.Reader, s *Snapshot) (err error) {
	target := spread.TargetOf(s.Spread)
	s.Latest = v1beta1.VersionIgnored
	if !spread.IsBuiltIn(target.GroupKind) {
		s.Owned, err = o.descendants(ctx, r, s.Spread)
	} else {
		err = readBuiltIn(ctx, r, s)
	}
	s.Owned = slices.DeleteFunc(s.Owned, func(p *corev1.Pod) bool { return !spread.Selects(s.Spread, p.Labels) })
	return err
}

func readBuiltIn(ctx context.Context, r observe.Reader, s *Snapshot) error {
	target := spread.TargetOf(s.Spread)
	object := observe.NewWorkload(target.GroupKind)
	if object == nil {
		object = &batchv1.Job{}
	}
	err := r.Get(ctx, client.ObjectKey{Namespace: s.Spread.Namespace, Name: target.Name}, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if set, ok := object.(*v1beta1.CloneSet); ok && set.Status.UpdateRevision != "" {
		s.Latest = set.Status.UpdateRevision[strings.LastIndexByte(set.Status.UpdateRevision, '-')+1:]
	}
	if _, ok := object.(*appsv1.Deployment); ok {
		return readThroughReplicaSets(ctx, r, s, object.GetUID())
	}
	s.Owned, err = r.Pods(ctx, s.Spread.Namespace, object.GetUID())
	if _, ok := object.(*appsv1.ReplicaSet); ok && len(s.Owned) > 0 {
		s.Latest = spread.VersionOf(target.GroupKind, s.Owned[0])
	}
	return err
}

// readThroughReplicaSets reads the Pods of a Deployment: its latest version is that of the ReplicaSet with the highest number.
func readThroughReplicaSets(ctx context.Context, r observe.Reader, s *Snapshot, deployment types.UID) error {
	var list appsv1.ReplicaSetList
	sets, err := observe.List(ctx, r, &list, &list.Items, client.InNamespace(s.Spread.Namespace))
	if err != nil {
		return err
	}
	newest := -1
	for _, set := range sets {
		if controller := metav1.GetControllerOfNoCopy(set); controller == nil || controller.UID != deployment {
			continue
		}
		pods, err := r.Pods(ctx, s.Spread.Namespace, set.UID)
		if err != nil {
			return err
		}
		s.Owned = append(s.Owned, pods...)
		number, err := strconv.Atoi(set.Annotations[observe.RevisionOfDeployment])
		if err == nil && number > newest {
			newest, s.Latest = number, set.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		}
	}
	return nil
}

// descendants returns the Pods that have the workload among their owners.
func (o Options) descendants(ctx context.Context, r observe.Reader, s *v1beta1.WorkloadSpread) ([]*corev1.Pod, error) {
	all, err := r.SelectedPods(ctx, s.Namespace, labels.Everything())
	if err != nil {
		return nil, err
	}
	target := spread.TargetOf(s)
	var out []*corev1.Pod
	for _, p := range all {
		controller := metav1.GetControllerOfNoCopy(p)
		if controller == nil {
			continue
		}
		above, err := o.Targets.Above(ctx, s.Namespace, controller)
		if apierrors.IsNotFound(err) {
			continue // its Pods are on their way out
		}
		if err != nil {
			return nil, err
		}
		if slices.Contains(append([]spread.Reference{spread.ReferenceOf(controller)}, above...), target) {
			out = append(out, p)
		}
	}
	return out, nil
}
