package uniteddeployment

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Snapshot is all that one pass reads.
type Snapshot struct {
	Set *v1beta1.UnitedDeployment
	// Workloads are those that it controls, of all kinds, here and in the clusters that can be read.
	Workloads []Workload
	// Clusters are the other ones that subsets are in, or were. HubID is the identity of this one.
	Clusters  []Cluster
	HubID     string
	Revisions []*appsv1.ControllerRevision
	// Taken are names that no workload can have, because objects of others have them.
	Taken []string
	Now   time.Time
}

// Workload is what a subset has, and where.
type Workload struct {
	// Cluster is the key of the place where it runs; empty for the cluster of the UnitedDeployment.
	Cluster string
	Object  plan.Object
	// Pods are those that it controls, or that its ReplicaSets do.
	Pods []*corev1.Pod
}

// read makes every read of a pass.
func (o Options) read(ctx context.Context, r loop.Reads, set *v1beta1.UnitedDeployment) (State, error) {
	s := Snapshot{Set: set, Taken: r.Taken, Now: r.Now, HubID: o.HubID}
	if set.DeletionTimestamp != nil && !isElsewhere(set) {
		return Classify(s)
	}
	var err error
	if s.Revisions, err = r.Revisions(ctx, set.Namespace, labels.Nothing(), set.UID); err != nil {
		return State{}, err
	}
	if s.Workloads, err = workloadsOf(ctx, r.Reader, set); err != nil {
		return State{}, err
	}
	if err = o.readClusters(ctx, &s); err != nil {
		return State{}, err
	}
	return Classify(s)
}

// workloadsOf returns the workloads that a UnitedDeployment has in its own cluster. They are found by their owner and in its namespace:
// what else carries the same labels is not looked at.
func workloadsOf(ctx context.Context, r observe.Reader, set *v1beta1.UnitedDeployment) ([]Workload, error) {
	var out []Workload
	for _, k := range workloadKinds() {
		objects, err := r.Controlled(ctx, k.list(), set.Namespace, set.UID)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			out = append(out, Workload{Object: object})
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, addPods(ctx, r, set, out)
}

// addPods finds the Pods of the workloads: by the index of a cache, else in one list.
func addPods(ctx context.Context, r observe.Reader, set *v1beta1.UnitedDeployment, workloads []Workload) error {
	byController := map[types.UID][]*corev1.Pod{}
	if !r.Indexed {
		inSubset, err := labels.NewRequirement(keys.SubsetName, selection.Exists, nil)
		if err != nil {
			return fmt.Errorf("selecting the Pods of subsets: %w", err)
		}
		pods, err := r.SelectedPods(ctx, set.Namespace, labels.NewSelector().Add(*inSubset))
		if err != nil {
			return err
		}
		for _, p := range pods {
			if controller := metav1.GetControllerOfNoCopy(p); controller != nil {
				byController[controller.UID] = append(byController[controller.UID], p)
			}
		}
	}
	for i := range workloads {
		w := &workloads[i]
		owners, err := podOwners(ctx, r, set.Namespace, w.Object)
		if err != nil {
			return err
		}
		for _, owner := range owners {
			pods := byController[owner]
			if r.Indexed {
				if pods, err = r.Pods(ctx, set.Namespace, owner); err != nil {
					return err
				}
			}
			w.Pods = append(w.Pods, pods...)
		}
		slices.SortFunc(w.Pods, byName)
	}
	return nil
}

// podOwners returns the UIDs of what controls the Pods of a workload.
func podOwners(ctx context.Context, r observe.Reader, namespace string, workload plan.Object) ([]types.UID, error) {
	if _, is := workload.(*appsv1.Deployment); !is {
		return []types.UID{workload.GetUID()}, nil
	}
	sets, err := r.Controlled(ctx, &appsv1.ReplicaSetList{}, namespace, workload.GetUID())
	var out []types.UID
	for _, set := range sets {
		out = append(out, set.GetUID())
	}
	return out, err
}
