package clusters

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// kubeconfigOf returns a kubeconfig with a server and a user.
func kubeconfigOf(server string, user *clientcmdapi.AuthInfo) *clientcmdapi.Config {
	out := clientcmdapi.NewConfig()
	out.Clusters["c"], out.AuthInfos["u"] = &clientcmdapi.Cluster{Server: server}, user
	out.Contexts["c"], out.CurrentContext = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}, "c"
	return out
}

// starting returns a kubeconfig with a program that makes a file.
func starting(file string) *clientcmdapi.Config {
	return kubeconfigOf("https://127.0.0.1:1", &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: "touch", Args: []string{file}, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}})
}

// silent returns a kubeconfig for a server that accepts connections and says nothing.
func silent(t *testing.T) *clientcmdapi.Config {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = connection.Close() })
		}
	}()
	return kubeconfigOf("https://"+listener.Addr().String(), &clientcmdapi.AuthInfo{Token: "token"})
}

// patience is less than the manager waits for the answer of any cluster: what takes no longer has waited for none that says nothing.
const patience = 9 * time.Second

// lost are UnitedDeployments that the hub will lose.
const lost = 10

// away: member-1 does not answer. What it has stays as it was seen, and nothing else waits for it. Meanwhile two UnitedDeployments are deleted,
// one of which leaves behind what it has there.
func (u *united) away() {
	u.create("away", 10, "["+local+", "+remote+"]", "member-1")
	u.create("gone", 2, "["+local+", "+remote+"]", "member-1")
	u.create("left", 2, "["+local+", "+remote+"]", "member-1")
	u.create("beside", 2, "[{name: a}, {name: b, targetCluster: {name: member-2}}]", "member-2")
	u.namespace("lost", "member-1", "member-2")
	for i := range lost {
		u.createIn("lost", fmt.Sprint("lost-", i), deploymentTemplate, "{replicas: 0, topology: {subsets: [{name: b, targetCluster: {name: member-2}}]}}")
	}
	u.isSpecified(2*time.Minute, "away", 5, 5)
	for name, n := range map[string]int32{"away": 10, "gone": 2, "left": 2, "beside": 2} {
		u.isReady(name, n)
	}
	u.Eventually("the other member has ten workloads", func() error { return u.counts("member-2", "lost", lost) })

	u.Must(u.members["member-1"].Stop(u.Ctx))
	u.scale("beside", 4)
	u.isSpecified(patience, "beside", 2)
	u.Within(patience, "the other member is written to", func() error {
		if n := u.specified(u.members["member-2"], "beside"); n != 2 {
			return fmt.Errorf("it has %d", n)
		}
		return nil
	})
	u.clusterIs(2*time.Minute, "away", "b", corev1.ConditionUnknown, "Unreachable")
	u.scale("away", 12)
	u.isSpecified(patience, "away", 7)
	u.Eventually("what was last seen of the member is kept", func() error {
		s := u.get("away").Status
		if s.ReadyReplicas != 12 || !slices.ContainsFunc(s.SubsetStatuses, func(s v1beta1.UnitedDeploymentSubsetStatus) bool {
			return s.Name == "b" && s.Replicas == 5 && s.ReadyReplicas == 5
		}) {
			return fmt.Errorf("%d are ready, of the subsets %+v", s.ReadyReplicas, s.SubsetStatuses)
		}
		return nil
	})
	u.delete("gone")
	u.Eventually("it waits for the member", func() error {
		for _, m := range u.get("gone").Status.MemberClusters {
			if m.Phase == v1beta1.MemberClusterLost {
				return nil
			}
		}
		return errors.New("it does not")
	})
	u.delete("left")
	u.merge("left", `{"metadata":{"annotations":{"`+keys.AbandonClusters+`":"default/member-1"}}}`)
	u.isGone("left")
	if stones := u.tombstones(); len(stones) != 1 {
		u.Errorf("%v is stored of what was left behind", stones)
	}
}

// restarted: a manager that starts while a member is away writes nothing for that. Meanwhile the hub forgets ten UnitedDeployments.
func (u *united) restarted() {
	before := u.versions("away", "gone")
	u.manager.Kill()
	u.forget()
	u.launch()
	u.scale("beside", 6) // which the manager sees
	u.isSpecified(2*time.Minute, "beside", 3)
	time.Sleep(2 * time.Second)
	after := u.versions("away", "gone")
	for name, version := range after {
		if before[name] != version {
			u.Errorf("a manager that starts writes %s", name)
		}
	}
}

// forget has the hub lose UnitedDeployments, as if it was restored from a time before them. No manager runs.
func (u *united) forget() {
	// They would refuse it as long as there is no manager; the next one brings them back. The API server hears a moment later that they are gone.
	u.Must(u.hub.Client.DeleteAllOf(u.Ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{}))
	u.Must(u.hub.Client.DeleteAllOf(u.Ctx, &admissionregistrationv1.MutatingWebhookConfiguration{}))
	for i := range lost {
		set := &v1beta1.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lost", Name: fmt.Sprint("lost-", i)}}
		u.Eventually("the hub loses it", func() error {
			if err := u.hub.Client.Patch(u.Ctx, set, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
				return err
			}
			return u.hub.Client.Delete(u.Ctx, set)
		})
	}
}

// versions returns the versions of UnitedDeployments, by name.
func (u *united) versions(names ...string) map[string]string {
	u.Helper()
	out := map[string]string{}
	for _, name := range names {
		out[name] = u.get(name).ResourceVersion
	}
	return out
}

// counts returns an error unless a member has so many Deployments in a namespace.
func (u *united) counts(member, namespace string, want int) error {
	u.Helper()
	if n := len(u.deployments(u.members[member], namespace)); n != want {
		return fmt.Errorf("there are %d", n)
	}
	return nil
}

// tombstones returns what is stored of what was left behind.
func (u *united) tombstones() map[string]string {
	u.Helper()
	stones := &corev1.ConfigMap{}
	err := u.hub.Client.Get(u.Ctx, client.ObjectKey{Namespace: "kruise-system", Name: "kruise-multicluster-tombstones"}, stones)
	if !apierrors.IsNotFound(err) {
		u.Must(err)
	}
	return stones.Data
}

// back: member-1 answers again. It gets what the spec says, and nothing is taken away elsewhere before; what nobody wants in it is deleted.
func (u *united) back() {
	u.Must(u.members["member-1"].Start(u.Ctx))
	u.Within(3*time.Minute, "each cluster has 6", func() error {
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
	u.isGone("gone", "member-1")
	u.isGone("left", "member-1")
	u.Eventually("the tombstone is gone", func() error {
		if stones := u.tombstones(); len(stones) > 0 {
			return fmt.Errorf("%v is stored", stones)
		}
		return nil
	})
	u.delete("beside")
}

// exceeds waits until an event tells that too many workloads of a member belong to nobody.
func (u *united) exceeds(member string) {
	u.Helper()
	u.Within(3*time.Minute, "the threshold is told of", func() error {
		var events corev1.EventList
		u.Must(u.hub.Client.List(u.Ctx, &events, client.InNamespace("default")))
		if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.Reason == "SweepThresholdExceeded" && e.InvolvedObject.Name == member
		}) {
			return errors.New("no event")
		}
		return nil
	})
}

// allow lets workloads of a member be deleted.
func (u *united) allow(member string, workloads int) {
	u.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"%d"}}}`, keys.AllowSweep, workloads)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: member}}
	u.Must(u.hub.Client.Patch(u.Ctx, secret, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

// tooManyToSweep: ten workloads whose owners the hub does not know any more stay until a person allows it.
func (u *united) tooManyToSweep() {
	u.exceeds("member-2")
	u.Must(u.counts("member-2", "lost", lost))
	u.allow("member-2", lost)
	u.Eventually("they are gone", func() error { return u.counts("member-2", "lost", 0) })
}

// restored: a member that goes back in time gets what the spec says now; what it had then and nobody wants any more stays until a person
// allows it, as it is much.
func (u *united) restored() {
	for i := range 6 {
		u.createIn("lost", fmt.Sprint("former-", i), deploymentTemplate, "{replicas: 0, topology: {subsets: [{name: b, targetCluster: {name: member-1}}]}}")
	}
	u.Eventually("the member has six workloads", func() error { return u.counts("member-1", "lost", 6) })
	saved := filepath.Join(u.dir, "saved")
	u.Must(u.members["member-1"].SaveEtcd(u.Ctx, saved))
	for i := range 6 {
		u.Must(u.hub.Client.Delete(u.Ctx, &v1beta1.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lost", Name: fmt.Sprint("former-", i)}}))
	}
	u.scale("away", 16)
	u.isSpecified(2*time.Minute, "away", 8, 8)
	u.isReady("away", 16)
	u.Eventually("the member has none of the six", func() error { return u.counts("member-1", "lost", 0) })
	u.Must(u.members["member-1"].RestoreEtcd(u.Ctx, saved))
	u.isSpecified(2*time.Minute, "away", 8, 8)
	u.isReady("away", 16)
	u.exceeds("member-1")
	u.Must(u.counts("member-1", "lost", 6))
	u.allow("member-1", 6)
	u.Eventually("they are gone", func() error { return u.counts("member-1", "lost", 0) })
}

func (u *united) replaced() {
	other, err := u.members["member-1"].Replace(u.Ctx)
	u.Must(err)
	u.members["member-1"] = other
	u.register("member-1", "member-1")
	u.namespace("away", "member-1")
	u.clusterIs(2*time.Minute, "away", "b", corev1.ConditionFalse, "ClusterIDChanged")
	if found := u.deployments(other, "away"); len(found) > 0 {
		u.Errorf("the other cluster was written to: %s", found[0].Name)
	}
}
