package clusters

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// TestUnitedDeploymentsOverClusters: a manager with members that go away and come back, for UnitedDeployments of one name each.
func TestUnitedDeploymentsOverClusters(t *testing.T) {
	f := bringUp(t, 2, "member-1", "member-2")
	f.Describe = f.describe
	f.manage()
	f.register("member-1")
	f.register("member-2")
	for _, s := range []struct {
		name string
		run  func(*united)
	}{
		{"three clusters get one, three and two Pods", (*united).threeClusters},
		{"the examples", (*united).examples},
		{"the commands of the documentation", (*united).documented},
		{"a workload of somebody else has the name", (*united).nameConflict},
		{"a cluster without the namespace", (*united).noNamespace},
		{"a member goes away and comes back", (*united).awayAndBack},
		{"it is deleted while a member is away", (*united).deletedMeanwhile},
		{"a member is restored to an earlier state", (*united).restored},
		{"a member is replaced by another one of its name", (*united).replaced},
	} {
		if !t.Run(s.name, func(t *testing.T) {
			test := scene.NewTest(t)
			test.Describe = f.describe
			s.run(&united{fleet: &fleet{Test: test, dir: f.dir, hub: f.hub, members: f.members}})
		}) {
			break // the next ones need the members as this one leaves them
		}
	}
}

// united is one of these tests.
type united struct{ *fleet }

// manage starts a manager of the hub that connects to other clusters.
func (f *fleet) manage() *cluster.Manager {
	f.Helper()
	m, err := f.hub.StartManager(f.Ctx, cluster.ManagerOptions{
		Dir: filepath.Join(f.dir, "manager"), Args: []string{"--feature-gates=UnitedDeploymentMultiCluster=true", "--enable-leader-election=false"},
	})
	f.Must(err)
	root, err := cluster.Root()
	f.Must(err)
	for _, file := range []string{"hub.yaml", "deployers.yaml"} {
		f.Must(f.hub.ApplyFile(f.Ctx, filepath.Join(root, "config", "multicluster", file)))
	}
	f.Cleanup(func() { m.Kill() })
	return m
}

func (f *fleet) describe() string {
	var out strings.Builder
	var sets v1beta1.UnitedDeploymentList
	if err := f.hub.Client.List(f.Afterwards(), &sets); err == nil {
		for i := range sets.Items {
			text, _ := yaml.Marshal(sets.Items[i].Status)
			fmt.Fprintf(&out, "UnitedDeployment %s/%s %v\n%s", sets.Items[i].Namespace, sets.Items[i].Name, sets.Items[i].Finalizers, text)
		}
	}
	return out.String()
}

// create makes a UnitedDeployment in a namespace of its name, which the hub and the members given have.
func (u *united) create(name string, replicas int, subsets string, members ...string) {
	u.Helper()
	for _, c := range append([]*cluster.Cluster{u.hub}, u.of(members)...) {
		err := c.Client.Create(u.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if !apierrors.IsAlreadyExists(err) {
			u.Must(err)
		}
	}
	set := &v1beta1.UnitedDeployment{}
	u.Must(yaml.UnmarshalStrict([]byte(fmt.Sprintf(`
apiVersion: apps.kruise.io/v1beta1
kind: UnitedDeployment
metadata: {name: %[1]s, namespace: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template: {deploymentTemplate: {metadata: {labels: {app: %[1]s}}, spec: {selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: app, image: "app:v1"}]}}}}}
  topology:
    clusterRegistry: {clusterType: {apiVersion: v1, kind: Secret}}
    subsets: %[3]s
`, name, replicas, subsets)), set))
	u.Eventually("the API server takes it", func() error { return u.hub.Client.Create(u.Ctx, set) })
}

func (u *united) of(names []string) (out []*cluster.Cluster) {
	for _, name := range names {
		out = append(out, u.members[name])
	}
	return out
}

func (u *united) get(name string) *v1beta1.UnitedDeployment {
	u.Helper()
	set := &v1beta1.UnitedDeployment{}
	u.Must(u.hub.Client.Get(u.Ctx, client.ObjectKey{Namespace: name, Name: name}, set))
	return set
}

func (u *united) scale(name string, replicas int32) {
	u.Helper()
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	u.Must(u.hub.Client.Patch(u.Ctx, u.get(name), client.RawPatch("application/merge-patch+json", []byte(patch))))
}

// deployments returns the Deployments of a namespace in a cluster.
func (u *united) deployments(c *cluster.Cluster, namespace string) []appsv1.Deployment {
	u.Helper()
	var list appsv1.DeploymentList
	u.Must(c.Client.List(u.Ctx, &list, client.InNamespace(namespace)))
	return list.Items
}

// specified returns the replicas of the only Deployment of a namespace in a cluster; 0 for none.
func (u *united) specified(c *cluster.Cluster, namespace string) int32 {
	u.Helper()
	all := u.deployments(c, namespace)
	if len(all) != 1 {
		return 0
	}
	return *all[0].Spec.Replicas
}

// isSpecified waits until a UnitedDeployment has so many replicas in the hub and in members, in the order of their names.
func (u *united) isSpecified(limit time.Duration, name string, hub int32, members ...int32) {
	u.Helper()
	u.Within(limit, fmt.Sprintf("%s has %d replicas here and %d elsewhere", name, hub, members), func() error {
		got := []int32{u.specified(u.hub, name)}
		for i := range members {
			got = append(got, u.specified(u.members[fmt.Sprintf("member-%d", i+1)], name))
		}
		if want := append([]int32{hub}, members...); !slices.Equal(got, want) {
			return fmt.Errorf("it has %d", got)
		}
		return nil
	})
}

// isReady waits until the status of a UnitedDeployment tells of so many Pods, all of the newest template and ready.
func (u *united) isReady(name string, replicas int32) {
	u.Helper()
	u.Eventually(fmt.Sprintf("the status of %s tells of %d Pods", name, replicas), func() error {
		s := u.get(name).Status
		if s.Replicas != replicas || s.ReadyReplicas != replicas || s.UpdatedReadyReplicas != replicas || !isTrue(s.Conditions, v1beta1.UnitedDeploymentUpdated) {
			return fmt.Errorf("it tells of %d, %d ready, %d updated and ready", s.Replicas, s.ReadyReplicas, s.UpdatedReadyReplicas)
		}
		return nil
	})
}

func isTrue(conditions []v1beta1.UnitedDeploymentCondition, t v1beta1.UnitedDeploymentConditionType) bool {
	return slices.ContainsFunc(conditions, func(c v1beta1.UnitedDeploymentCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}

// clusterIs waits until the condition ClusterReady of a subset has a status and a reason.
func (u *united) clusterIs(limit time.Duration, name, subset string, status corev1.ConditionStatus, reason string) {
	u.Helper()
	u.Within(limit, fmt.Sprintf("the cluster of subset %s of %s is %s", subset, name, reason), func() error {
		for _, s := range u.get(name).Status.SubsetStatuses {
			for _, c := range s.Conditions {
				if s.Name == subset && c.Type == v1beta1.UnitedDeploymentSubsetClusterReady && c.Status == status && c.Reason == reason {
					return nil
				}
			}
		}
		return fmt.Errorf("it is not")
	})
}

func (u *united) delete(name string) {
	u.Helper()
	u.Must(u.hub.Client.Delete(u.Ctx, u.get(name)))
}

// isGone waits until nothing is left of a UnitedDeployment, here and in members.
func (u *united) isGone(name string, members ...string) {
	u.Helper()
	u.Eventually(name+" is gone", func() error {
		err := u.hub.Client.Get(u.Ctx, client.ObjectKey{Namespace: name, Name: name}, &v1beta1.UnitedDeployment{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading what should be gone: %s", fmt.Sprint(err))
		}
		for _, c := range append(u.of(members), u.hub) {
			if left := u.deployments(c, name); len(left) > 0 {
				return fmt.Errorf("%s is left", left[0].Name)
			}
		}
		return nil
	})
}

const (
	local  = "{name: a}"
	remote = "{name: b, targetCluster: {name: member-1}}"
)

func (u *united) threeClusters() {
	subsets := "[{name: a, replicas: 1}, {name: b, replicas: 50%, targetCluster: {name: member-1}}, {name: c, targetCluster: {name: member-2}}]"
	u.create("three", 6, subsets, "member-1", "member-2")
	u.isSpecified(time.Minute, "three", 1, 3, 2)
	u.isReady("three", 6)
	set := u.get("three")
	if !isTrue(set.Status.Conditions, v1beta1.UnitedDeploymentClustersReady) || len(set.Status.MemberClusters) != 2 {
		u.Errorf("the status does not tell of two clusters")
	}
	w := u.deployments(u.members["member-1"], "three")[0]
	if len(w.OwnerReferences) > 0 || w.Labels[keys.HubID] != u.id(u.hub) || w.Labels[keys.HubOwnerUID] != string(set.UID) ||
		w.Spec.Template.Labels[keys.HubOwnerUID] != string(set.UID) || w.Annotations[keys.HubOwner] != "three/three" {
		u.Errorf("in the member it is owned by %v, with labels %v and annotations %v", w.OwnerReferences, w.Labels, w.Annotations)
	}
	// What happens to a Pod in a member is told within two seconds.
	var pods corev1.PodList
	u.Must(u.members["member-2"].Client.List(u.Ctx, &pods, client.InNamespace("three")))
	u.scale("three", 7)
	u.isSpecified(10*time.Second, "three", 1, 4, 2)
	u.isReady("three", 7)
	u.delete("three")
	u.isGone("three", "member-1", "member-2")
}

func (u *united) nameConflict() {
	u.create("conflict", 2, "["+local+", "+remote+"]", "member-1")
	u.isReady("conflict", 2)
	// What is not ours by its labels is not touched, although it has the name.
	w := u.deployments(u.members["member-1"], "conflict")[0]
	delete(w.Labels, keys.HubID)
	u.Must(u.members["member-1"].Client.Update(u.Ctx, &w))
	u.clusterIs(time.Minute, "conflict", "b", corev1.ConditionFalse, "NameConflict")
	u.delete("conflict")
	u.Eventually("it is gone in the hub", func() error {
		err := u.hub.Client.Get(u.Ctx, client.ObjectKey{Namespace: "conflict", Name: "conflict"}, &v1beta1.UnitedDeployment{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading what should be gone: %s", fmt.Sprint(err))
		}
		return nil
	})
	if left := u.deployments(u.members["member-1"], "conflict"); len(left) != 1 || left[0].UID != w.UID || left[0].DeletionTimestamp != nil {
		u.Errorf("the workload of somebody else became %v", left)
	}
}

func (u *united) noNamespace() {
	u.create("nowhere", 2, "["+local+", "+remote+"]")
	u.clusterIs(time.Minute, "nowhere", "b", corev1.ConditionFalse, "NamespaceNotFound")
	u.Must(u.members["member-1"].Client.Create(u.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "nowhere"}}))
	u.isReady("nowhere", 2)
	u.delete("nowhere")
	u.isGone("nowhere", "member-1")
}

func (u *united) awayAndBack() {
	u.create("away", 10, "["+local+", "+remote+"]", "member-1")
	u.isSpecified(time.Minute, "away", 5, 5)
	u.isReady("away", 10)
	u.create("beside", 2, "[{name: a}]")
	u.Must(u.members["member-1"].Stop(u.Ctx))
	u.scale("beside", 3)
	u.isSpecified(2*time.Second, "beside", 3)
	u.clusterIs(45*time.Second, "away", "b", corev1.ConditionUnknown, "Unreachable")
	u.scale("away", 12)
	u.isSpecified(2*time.Second, "away", 7)
	s := u.get("away").Status
	if s.ReadyReplicas < 10 || !slices.ContainsFunc(s.SubsetStatuses, func(s v1beta1.UnitedDeploymentSubsetStatus) bool {
		return s.Name == "b" && s.Replicas == 5 && s.ReadyReplicas == 5
	}) {
		u.Errorf("what was last seen of the member is not kept: %+v", s)
	}
	u.Must(u.members["member-1"].Start(u.Ctx))
	u.Within(90*time.Second, "each cluster has 6", func() error {
		here, there := u.specified(u.hub, "away"), u.specified(u.members["member-1"], "away")
		if here+there < 12 {
			u.Fatalf("there are %d and %d replicas", here, there)
		}
		if here != 6 || there != 6 {
			return fmt.Errorf("there are %d and %d", here, there)
		}
		return nil
	})
	u.isReady("away", 12)
	u.delete("beside")
}

func (u *united) deletedMeanwhile() {
	u.Must(u.members["member-1"].Stop(u.Ctx))
	u.clusterIs(45*time.Second, "away", "b", corev1.ConditionUnknown, "Unreachable")
	u.delete("away")
	u.Eventually("it waits for the member", func() error {
		for _, m := range u.get("away").Status.MemberClusters {
			if m.Phase == v1beta1.MemberClusterLost {
				return nil
			}
		}
		return fmt.Errorf("it does not")
	})
	u.Must(u.members["member-1"].Start(u.Ctx))
	u.isGone("away", "member-1")
}

func (u *united) restored() {
	u.create("earlier", 2, "["+local+", "+remote+"]", "member-1")
	u.isReady("earlier", 2)
	saved := filepath.Join(u.dir, "saved")
	u.Must(u.members["member-1"].SaveEtcd(u.Ctx, saved))
	u.scale("earlier", 6)
	u.isSpecified(time.Minute, "earlier", 3, 3)
	u.isReady("earlier", 6)
	u.Must(u.members["member-1"].RestoreEtcd(u.Ctx, saved))
	u.isSpecified(time.Minute, "earlier", 3, 3)
	u.isReady("earlier", 6)
}

func (u *united) replaced() {
	other, err := u.members["member-1"].Replace(u.Ctx)
	u.Must(err)
	u.members["member-1"] = other
	u.register("member-1")
	u.Must(other.Client.Create(u.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "earlier"}}))
	u.clusterIs(time.Minute, "earlier", "b", corev1.ConditionFalse, "ClusterIDChanged")
	if found := u.deployments(other, "earlier"); len(found) > 0 {
		u.Errorf("the other cluster was written to: %s", found[0].Name)
	}
}
