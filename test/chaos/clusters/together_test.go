package clusters

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

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
	u.scale("three", 7)
	u.isSpecified(time.Minute, "three", 1, 4, 2)
	u.isReady("three", 7)
	u.delete("three")
	u.isGone("three", "member-1", "member-2")
}

// statusComesBack: what a workload in a member reports is in the status of its UnitedDeployment within two seconds.
func (u *united) statusComesBack() {
	u.create("told", 0, "[{name: b, targetCluster: {name: member-2}}]", "member-2")
	u.isSpecified(time.Minute, "told", 0, 0, 0)
	var mu sync.Mutex
	there, here := map[int32]time.Time{}, map[int32]time.Time{}
	see := func(at map[int32]time.Time, ready int32) {
		mu.Lock()
		defer mu.Unlock()
		if _, seen := at[ready]; !seen {
			at[ready] = time.Now()
		}
	}
	stopThere, err := u.members["member-2"].Follow(u.Ctx, &appsv1.DeploymentList{}, "told", func(e watch.Event) {
		see(there, e.Object.(*appsv1.Deployment).Status.ReadyReplicas)
	})
	u.Must(err)
	stopHere, err := u.hub.Follow(u.Ctx, &v1beta1.UnitedDeploymentList{}, "told", func(e watch.Event) {
		see(here, e.Object.(*v1beta1.UnitedDeployment).Status.ReadyReplicas)
	})
	u.Must(err)
	slowest := time.Duration(0)
	for n := range int32(5) {
		u.scale("told", n+1)
		u.isReady("told", n+1)
		u.Eventually("both were seen", func() error {
			mu.Lock()
			defer mu.Unlock()
			if there[n+1].IsZero() || here[n+1].IsZero() {
				return errors.New("not yet")
			}
			slowest = max(slowest, here[n+1].Sub(there[n+1]))
			return nil
		})
	}
	u.Must(errors.Join(stopThere(), stopHere()))
	u.Logf("the status came back after %s at most", slowest.Round(time.Millisecond))
	if slowest > 2*time.Second {
		u.Errorf("the status came back after %s, want 2s at most", slowest)
	}
	u.delete("told")
}

func (u *united) kindNotInstalled() {
	u.namespace("kinds", "member-1", "member-2")
	u.createIn("kinds", "kinds", cloneSetTemplate, "{replicas: 2, topology: {subsets: [{name: a}, {name: b, targetCluster: {name: member-2}}]}}")
	u.clusterIs(time.Minute, "kinds", "b", corev1.ConditionFalse, "KindNotInstalled")
	u.serve("member-2", "clonesets")
}

// kindInstalled: the subset has its workload once the member has been asked for its kinds again. None of the tests before has waited for it.
func (u *united) kindInstalled() {
	u.clusterIs(time.Minute, "kinds", "b", corev1.ConditionTrue, "Connected")
	var sets v1beta1.CloneSetList
	u.Eventually("the member has a CloneSet", func() error {
		u.Must(u.members["member-2"].Client.List(u.Ctx, &sets, client.InNamespace("kinds")))
		if len(sets.Items) != 1 {
			return fmt.Errorf("it has %d", len(sets.Items))
		}
		return nil
	})
	u.delete("kinds")
}

func (u *united) mayNotDeploy() {
	u.grant("somebody", "united", rbacv1.PolicyRule{
		APIGroups: []string{"apps.kruise.io"}, Resources: []string{"uniteddeployments"}, Verbs: []string{"*"},
	})
	config := rest.CopyConfig(u.hub.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "somebody"}
	somebody, err := client.New(config, client.Options{Scheme: u.hub.Client.Scheme()})
	u.Must(err)
	set := u.create("refused", 1, "["+remote+"]")
	set.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "refused-again"}
	u.Eventually("it is refused", func() error {
		err := somebody.Create(u.Ctx, set.DeepCopy(), client.DryRunAll)
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("the answer is %s", fmt.Sprint(err))
		}
		return wants(err, "somebody may not deploy to all of these clusters: default/member-1")
	})
	u.delete("refused")
}

// nameConflict: what is not ours by its labels is not touched, although it has the name.
func (u *united) nameConflict() {
	u.create("conflict", 2, "["+local+", "+remote+"]", "member-1")
	u.isReady("conflict", 2)
	w := u.deployments(u.members["member-1"], "conflict")[0]
	delete(w.Labels, keys.HubID)
	u.Must(u.members["member-1"].Client.Update(u.Ctx, &w))
	u.clusterIs(time.Minute, "conflict", "b", corev1.ConditionFalse, "NameConflict")
	u.delete("conflict")
	u.isGone("conflict")
	left := u.deployments(u.members["member-1"], "conflict")
	if len(left) != 1 || left[0].UID != w.UID || left[0].DeletionTimestamp != nil || left[0].Generation != w.Generation {
		u.Errorf("the workload of somebody else became %v", left)
	}
}

func (u *united) noNamespace() {
	u.create("nowhere", 2, "["+local+", "+remote+"]")
	u.clusterIs(time.Minute, "nowhere", "b", corev1.ConditionFalse, "NamespaceNotFound")
	u.namespace("nowhere", "member-1")
	u.isReady("nowhere", 2)
	u.delete("nowhere")
	u.isGone("nowhere", "member-1")
}

// silentAndHostile: of five members two accept connections and say nothing, and one has a kubeconfig that starts a program. The others are
// joined and written to without delay; a second object for one of them makes no difference to what is in it.
func (u *united) silentAndHostile() {
	u.create("two-names", 1, "[{name: b, targetCluster: {name: member-2}}]", "member-2")
	u.isReady("two-names", 1)
	first := u.deployments(u.members["member-2"], "two-names")[0]
	started := filepath.Join(u.dir, "started")
	u.object("hostile", starting(started))
	u.object("silent-1", silent(u.T))
	u.object("silent-2", silent(u.T))
	u.create("five", 6, `[{name: a}, {name: b, targetCluster: {name: silent-1}}, {name: c, targetCluster: {name: silent-2}},
		{name: d, targetCluster: {name: hostile}}, {name: e, targetCluster: {name: member-1}}]`, "member-1", "member-2")
	u.Within(patience, "those that answer have workloads", func() error {
		if here, there := u.specified(u.hub, "five"), u.specified(u.members["member-1"], "five"); here == 0 || there == 0 {
			return fmt.Errorf("there are %d and %d replicas", here, there)
		}
		return nil
	})
	u.register("again", "member-2")
	begun := time.Now()
	u.merge("five", `{"spec":{"topology":{"subsets":[{"name":"a"},{"name":"b","targetCluster":{"name":"silent-1"}},
		{"name":"c","targetCluster":{"name":"silent-2"}},{"name":"d","targetCluster":{"name":"hostile"}},
		{"name":"e","targetCluster":{"name":"member-1"}},{"name":"f","targetCluster":{"name":"again"}}]}}}`)
	u.clusterIs(25*time.Second, "five", "f", corev1.ConditionTrue, "Connected")
	u.Logf("a member was joined %s after it was named, while two others said nothing", time.Since(begun).Round(time.Millisecond))
	u.clusterIs(time.Minute, "five", "d", corev1.ConditionFalse, "CredentialsInvalid")
	if _, err := os.Stat(started); !errors.Is(err, os.ErrNotExist) {
		u.Errorf("the program of the kubeconfig was started: %v", err)
	}
	u.delete("five")
	u.isGone("five", "member-1", "member-2")
	if now := u.deployments(u.members["member-2"], "two-names"); len(now) != 1 || now[0].UID != first.UID {
		u.Errorf("what another object leads to became %v", now)
	}
	u.delete("two-names")
}

// wavesAndBudget: no subset is touched before its wave, and no more Pods than the budget has are out of service in all clusters together.
func (u *united) wavesAndBudget() {
	u.namespace("waves", "member-1", "member-2")
	u.createIn("waves", "waves", deploymentTemplate, `{replicas: 9, topology: {subsets: [
		{name: a, patch: {spec: {readinessGates: []}}}, {name: b, targetCluster: {name: member-1}}, {name: c, targetCluster: {name: member-2}}]},
		updateStrategy: {maxUnavailable: 2, waves: [{name: canary, subsets: [a]}, {name: most, subsets: [b, c]}]}}`)
	u.isReady("waves", 9)
	update := func(pod string, more ...string) {
		u.merge("waves", `{"spec":{`+strings.Join(more, "")+`"template":{"deploymentTemplate":{"spec":{"template":{"spec":`+pod+`}}}}}}`)
	}
	image := func(c *cluster.Cluster) string {
		return u.deployments(c, "waves")[0].Spec.Template.Spec.Containers[0].Image
	}

	// Nobody opens the gate, so that the Pods of b and c stay out of service.
	update(`{"readinessGates":[{"conditionType":"example.com/never"}],"containers":[{"name":"app","image":"app:v2"}]}`)
	u.Eventually("the second wave has begun", func() error {
		begun := image(u.members["member-1"]) == "app:v2" || image(u.members["member-2"]) == "app:v2"
		first := u.deployments(u.hub, "waves")[0]
		isDone := first.Spec.Template.Spec.Containers[0].Image == "app:v2" && first.Status.ObservedGeneration == first.Generation &&
			first.Status.UpdatedReplicas == 3 && first.Status.AvailableReplicas == 3
		if begun && !isDone {
			u.Fatalf("the second wave begins while of the first one %d are updated, %d available", first.Status.UpdatedReplicas, first.Status.AvailableReplicas)
		}
		if !begun {
			return errors.New("it has not")
		}
		return nil
	})
	out := func() (n int) {
		for _, c := range []*cluster.Cluster{u.hub, u.members["member-1"], u.members["member-2"]} {
			var pods corev1.PodList
			u.Must(c.Client.List(u.Ctx, &pods, client.InNamespace("waves")))
			n += 3 - len(slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool {
				return p.DeletionTimestamp != nil || !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
					return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
				})
			}))
		}
		return n
	}
	u.Eventually("the budget is used up", func() error {
		if n := out(); n != 2 {
			return fmt.Errorf("%d Pods are out of service", n)
		}
		return nil
	})
	u.Never("more Pods are out of service than the budget has", func() bool { return out() > 2 })

	// The next template, with room for what waits and for its first wave, replaces them.
	update(`{"readinessGates":null,"containers":[{"name":"app","image":"app:v3"}]}`, `"updateStrategy":{"maxUnavailable":4},`)
	u.isReady("waves", 9)
	u.delete("waves")
}
