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
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// TestUnitedDeploymentsOverClusters: a manager with members that go away and come back, for UnitedDeployments of one name each.
func TestUnitedDeploymentsOverClusters(t *testing.T) {
	f := newFleet(t)
	f.Describe = f.describe
	f.manage()
	f.serve("member-1", "statefulsets")
	f.register("member-1", "member-1")
	f.register("member-2", "member-2")
	for _, s := range []struct {
		name string
		run  func(*united)
		// leaves says that the members are left in another state.
		leaves bool
	}{
		{"three clusters get one, three and two Pods", (*united).threeClusters, false},
		{"the examples", (*united).examples, false},
		{"the commands of the documentation", (*united).documented, false},
		{"the status comes back within two seconds", (*united).statusComesBack, false},
		{"a member without the kind gets it later", (*united).kindNotInstalled, false},
		{"somebody who may not deploy to a member is refused", (*united).mayNotDeploy, false},
		{"a workload of somebody else has the name", (*united).nameConflict, false},
		{"a cluster without the namespace", (*united).noNamespace, false},
		{"two members say nothing, and a kubeconfig has a program", (*united).silentAndHostile, false},
		{"StatefulSets of both kinds", (*united).statefulSets, false},
		{"a Pod that no node of a member takes", (*united).reserved, false},
		{"a rollout in waves with one budget", (*united).wavesAndBudget, false},
		{"a member is away", (*united).away, true},
		{"the kind is there by now", (*united).kindInstalled, false},
		{"a manager starts while a member is away", (*united).restarted, true},
		{"a member is back", (*united).back, true},
		{"ten workloads belong to nobody", (*united).tooManyToSweep, false},
		{"a member is restored to an earlier state", (*united).restored, true},
		{"a member is replaced by another one of its name", (*united).replaced, true},
	} {
		if !t.Run(s.name, func(t *testing.T) {
			test := scene.NewTest(t)
			test.Describe = f.describe
			s.run(&united{&fleet{Test: test, clustersOf: f.clustersOf}})
		}) && s.leaves {
			break // the next ones need the members as this one leaves them
		}
	}
}

// united is one of these tests.
type united struct{ *fleet }

// manage starts a manager of the hub that connects to other clusters.
func (f *fleet) manage() {
	f.Helper()
	f.Must(f.hub.Install(f.Ctx))
	root, err := cluster.Root()
	f.Must(err)
	for _, file := range []string{"hub.yaml", "deployers.yaml"} {
		f.Must(f.hub.ApplyFile(f.Ctx, filepath.Join(root, "config", "multicluster", file)))
	}
	f.launch()
}

// launch starts the manager.
func (f *fleet) launch() {
	f.Helper()
	var err error
	f.manager, err = f.hub.LaunchManager(f.Ctx, cluster.ManagerOptions{
		Dir: filepath.Join(f.dir, "manager"), Args: []string{"--feature-gates=UnitedDeploymentMultiCluster=true", "--enable-leader-election=false"},
	})
	f.Must(err)
	f.Must(f.manager.WaitReady(f.Ctx))
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

const deploymentTemplate = `
deploymentTemplate:
  metadata: {labels: {app: APP}}
  spec:
    selector: {matchLabels: {app: APP}}
    strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 100%}}
    template: {metadata: {labels: {app: APP}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: app, image: "app:v1"}]}}`

const cloneSetTemplate = `
cloneSetTemplate:
  metadata: {labels: {app: APP}}
  spec:
    selector: {matchLabels: {app: APP}}
    template: {metadata: {labels: {app: APP}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: app, image: "app:v1"}]}}`

// create makes a UnitedDeployment in a namespace of its name, which the hub and the members given have.
func (u *united) create(name string, replicas int, subsets string, members ...string) *v1beta1.UnitedDeployment {
	u.Helper()
	u.namespace(name, members...)
	return u.createIn(name, name, deploymentTemplate, fmt.Sprintf("{replicas: %d, topology: {subsets: %s}}", replicas, subsets))
}

// createIn makes a UnitedDeployment in a namespace, of a template and more of its spec, whose cluster objects are Secrets.
func (u *united) createIn(namespace, name, template, spec string) *v1beta1.UnitedDeployment {
	u.Helper()
	set := &v1beta1.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	u.Must(yaml.UnmarshalStrict([]byte(strings.ReplaceAll(template, "APP", name)), &set.Spec.Template))
	u.Must(yaml.UnmarshalStrict([]byte(spec), &set.Spec))
	set.Spec.Topology.ClusterRegistry = &v1beta1.ClusterRegistry{ClusterType: &v1beta1.ClusterType{APIVersion: "v1", Kind: "Secret"}}
	u.Eventually("the API server takes it", func() error { return u.hub.Client.Create(u.Ctx, set) })
	return set
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

// merge patches a UnitedDeployment.
func (u *united) merge(name, patch string) {
	u.Helper()
	u.Eventually("the API server takes it", func() error { // which it does not before a manager that starts serves its webhooks
		return u.hub.Client.Patch(u.Ctx, u.get(name), client.RawPatch("application/merge-patch+json", []byte(patch)))
	})
}

func (u *united) scale(name string, replicas int32) {
	u.Helper()
	u.merge(name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
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
		set := u.get(name)
		s := set.Status
		if s.ObservedGeneration != set.Generation || s.Replicas != replicas || s.ReadyReplicas != replicas || s.UpdatedReadyReplicas != replicas ||
			!isTrue(s.Conditions, v1beta1.UnitedDeploymentUpdated) {
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
