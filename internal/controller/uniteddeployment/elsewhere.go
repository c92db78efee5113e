package uniteddeployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/members"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
	memberrules "github.com/seed-69ecc383/kruise/internal/rules/member"
)

// Clusters are the clusters that subsets may be in besides that of the UnitedDeployment. Nothing here ever waits for one.
type Clusters interface {
	// Want says which clusters an owner needs, all of them each time, and Forget that it is gone.
	Want(owner plan.Object, places ...memberrules.Place)
	Forget(owner types.UID)
	// Look returns a cluster as it can be read for an owner now.
	Look(ctx context.Context, owner plan.Object, place memberrules.Place) members.Member
	// Bury has it stored that an owner leaves behind what it has in a cluster that does not answer, and IsBuried reports whether it is. The
	// cluster is named by its identity, too.
	Bury(owner plan.Object, place memberrules.Place, cluster string)
	IsBuried(owner plan.Object, cluster string) bool
	// Asked has passes asked for by a function when there is news of a cluster.
	Asked(ask func(owner types.NamespacedName))
}

// Cluster is another cluster that a subset is in, or was.
type Cluster struct {
	memberrules.Place
	memberrules.Seen
	// Readable means that the snapshot has all workloads that the UnitedDeployment has there.
	Readable bool
	// Lacks are the kinds of workloads that the cluster does not serve.
	Lacks []schema.GroupVersionKind
	// Refused is why the last writes failed, without a reason if they did not, and Wait how long the next ones wait for that.
	Refused memberrules.Verdict
	Wait    time.Duration
	// Buried means that it is stored that what is there is left behind.
	Buried bool
}

// isElsewhere reports whether a UnitedDeployment has, or may have, workloads in other clusters.
func isElsewhere(set *v1beta1.UnitedDeployment) bool {
	return slices.Contains(set.Finalizers, keys.MulticlusterCleanup)
}

// placeOf returns the place of the cluster object of a subset.
func placeOf(set *v1beta1.UnitedDeployment, target *v1beta1.ClusterReference) memberrules.Place {
	out := memberrules.Place{Kind: "ClusterProfile", Namespace: target.Namespace, Name: target.Name}
	namespaces := []string{metav1.NamespaceDefault}
	if r := set.Spec.Topology.ClusterRegistry; r != nil {
		if r.ClusterType != nil {
			out.Kind = r.ClusterType.Kind
		}
		if len(r.Namespaces) > 0 {
			namespaces = r.Namespaces
		}
	}
	if out.Namespace == "" {
		out.Namespace = namespaces[0]
	}
	return out
}

// wantedPlaces returns the clusters that subsets are to be in: none once the UnitedDeployment is being deleted.
func wantedPlaces(set *v1beta1.UnitedDeployment) (out []memberrules.Place) {
	if set.DeletionTimestamp != nil {
		return nil
	}
	for i := range set.Spec.Topology.Subsets {
		if target := set.Spec.Topology.Subsets[i].TargetCluster; target != nil {
			if place := placeOf(set, target); !slices.Contains(out, place) {
				out = append(out, place)
			}
		}
	}
	return out
}

// readClusters reads what the UnitedDeployment has in other clusters, as far as their caches tell.
func (o Options) readClusters(ctx context.Context, s *Snapshot) error {
	wanted := wantedPlaces(s.Set)
	places := slices.Clone(wanted)
	for _, place := range memberrules.Recorded(s.Set.Status.MemberClusters) {
		if !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	if o.Clusters != nil {
		o.Clusters.Want(s.Set, places...)
	}
	for _, place := range places {
		c := Cluster{Place: place, Seen: memberrules.Seen{
			Reason: connection.Unreachable, Message: "the feature gate UnitedDeploymentMultiCluster of the manager is off",
		}}
		if o.Clusters != nil {
			now := o.Clusters.Look(ctx, s.Set, place)
			if r := memberrules.Find(s.Set.Status.MemberClusters, place); r != nil {
				c.Buried = o.Clusters.IsBuried(s.Set, r.ClusterID)
			}
			c.Seen, c.Wait, c.Refused = now.Seen, now.Wait, refusal(now.Refused)
			c.Unselected = slices.Contains(wanted, place) && !selects(s.Set.Spec.Topology.ClusterRegistry, now.Labels)
			if err := s.readCluster(ctx, &c, now); err != nil {
				return fmt.Errorf("reading cluster %s: %w", place, err)
			}
		}
		s.Clusters = append(s.Clusters, c)
	}
	s.Workloads = s.once()
	return nil
}

// once returns the workloads without those that were read twice, because two objects lead to the same cluster: each is in the place of its
// subset, if it has one.
func (s *Snapshot) once() (out []Workload) {
	wanted := map[string]string{}
	for i := range s.Set.Spec.Topology.Subsets {
		if one := &s.Set.Spec.Topology.Subsets[i]; one.TargetCluster != nil {
			wanted[one.Name] = placeOf(s.Set, one.TargetCluster).Key()
		}
	}
	ids := map[string]string{}
	for i := range s.Clusters {
		ids[s.Clusters[i].Key()] = s.Clusters[i].ID
	}
	type one struct{ cluster, uid string }
	at := map[one]int{}
	for _, w := range s.Workloads {
		is := one{ids[w.Cluster], string(w.Object.GetUID())}
		i, known := at[is]
		switch {
		case !known:
			at[is] = len(out)
			out = append(out, w)
		case w.Cluster == wanted[w.Object.GetLabels()[keys.SubsetName]]:
			out[i] = w
		}
	}
	return out
}

func selects(registry *v1beta1.ClusterRegistry, labels map[string]string) bool {
	if registry == nil {
		return true
	}
	for key, value := range registry.Selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// refusal says what the failure of a write means for a subset. What has passed with the next try is no reason.
func refusal(err error) memberrules.Verdict {
	out := memberrules.Verdict{}
	switch {
	case err == nil:
		return out
	case apierrors.IsAlreadyExists(err):
		out.Reason = connection.NameConflict
	case apierrors.IsForbidden(err):
		out.Reason = connection.Forbidden
	case isOfNamespace(err):
		out.Reason = connection.NamespaceMissing
	default:
		return out
	}
	out.Message = err.Error()
	return out
}

// isOfNamespace reports whether an error says that there is no namespace of the name.
func isOfNamespace(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "namespaces"
}

// readCluster adds the workloads that the UnitedDeployment has in a cluster, unless that is not the one that it was written to.
func (s *Snapshot) readCluster(ctx context.Context, c *Cluster, now members.Member) error {
	record := memberrules.Find(s.Set.Status.MemberClusters, c.Place)
	if now.Cached == nil || !memberrules.Judge(c.Place, record, c.Seen).Ready() {
		return nil
	}
	ours := []client.ListOption{
		client.InNamespace(s.Set.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{keys.HubID: s.HubID, keys.HubOwnerUID: string(s.Set.UID)},
	}
	var found []Workload
	for _, k := range workloadKinds() {
		served, readable := now.Serves(k.gvk)
		if !served {
			c.Lacks = append(c.Lacks, k.gvk)
			continue
		}
		if !readable {
			c.Wait = time.Second
			return nil
		}
		list := k.list()
		if err := now.Cached.List(ctx, list, ours...); err != nil {
			return fmt.Errorf("listing the %ss: %w", k.name, err)
		}
		if err := meta.EachListItem(list, func(object runtime.Object) error {
			found = append(found, Workload{Cluster: c.Key(), Object: object.(plan.Object)})
			return nil
		}); err != nil {
			return err
		}
	}
	pods := &corev1.PodList{}
	if err := now.Cached.List(ctx, pods, ours...); err != nil {
		return fmt.Errorf("listing the Pods: %w", err)
	}
	for i := range found {
		w := &found[i]
		for j := range pods.Items {
			if p := &pods.Items[j]; isOf(p, w.Object) {
				w.Pods = append(w.Pods, p)
			}
		}
		slices.SortFunc(w.Pods, byName)
	}
	s.Workloads = append(s.Workloads, found...)
	c.Readable = true
	return nil
}

// isOf reports whether a Pod is of a workload. ReplicaSets, which are not read in other clusters, are called after their Deployment.
func isOf(p *corev1.Pod, workload plan.Object) bool {
	controller := metav1.GetControllerOfNoCopy(p)
	return controller != nil && (controller.UID == workload.GetUID() ||
		controller.Kind == "ReplicaSet" && isParent(workload.GetName(), controller.Name))
}

// isParent reports whether a name is that of a Deployment with the hash of a template behind it.
func isParent(deployment, replicaSet string) bool {
	hash, is := strings.CutPrefix(replicaSet, deployment+"-")
	return is && !strings.Contains(hash, "-")
}

// Wants returns what reports whether a UnitedDeployment in the hub wants a workload in another cluster, or deletes it there itself. Which
// object leads to the cluster does not matter: others may lead there, too.
func Wants(hub client.Reader) func(context.Context, memberrules.Workload, members.Cluster) (bool, error) {
	return func(ctx context.Context, w memberrules.Workload, in members.Cluster) (bool, error) {
		if w.OwnerName.Name == "" {
			return true, nil // somebody has changed its annotations, so that nobody knows
		}
		set := &v1beta1.UnitedDeployment{}
		switch err := hub.Get(ctx, w.OwnerName, set); {
		case apierrors.IsNotFound(err):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("reading UnitedDeployment %s: %w", w.OwnerName, err)
		}
		for _, place := range append(wantedPlaces(set), memberrules.Recorded(set.Status.MemberClusters)...) {
			r := memberrules.Find(set.Status.MemberClusters, place)
			if set.UID == w.Owner && (r != nil && r.ClusterID == in.ID || r == nil && slices.Contains(in.Places, place)) {
				return true, nil
			}
		}
		return false, nil
	}
}

// bury has it stored what is left behind.
func (o Options) bury(v State, _ apply.Outcome) {
	for i := range v.records {
		if r := &v.records[i]; v.isAbandoned(r) {
			o.Clusters.Bury(v.Set, memberrules.Place{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}, r.ClusterID)
		}
	}
}
