package daemonset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

func mergeFrom(before client.Object) client.Patch { return client.MergeFrom(before) }

func TestStandardUpdate(t *testing.T) {
	e := newEnv(t, 7)
	e.Make(e.manifest("{maxUnavailable: 20%}"))
	e.settled(7, 7)
	r := e.watch()
	e.edit(image("nginx:1.28"))
	set := e.settled(7, 7)
	r.most(e, 2, 0)
	e.same("updated nodes", e.Nodes, e.updatedNodes("nginx:1.28"))
	for _, p := range e.pods() {
		if p.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision {
			t.Errorf("%s is labelled %s, want %s", p.Name, p.Labels[appsv1.ControllerRevisionHashLabelKey], set.Status.UpdateRevision)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Two at a time, the last ones first: which of two is the faster is not ours to say.
	if first := slices.Sorted(slices.Values(r.order[:2])); !slices.Equal(first, e.last(2)) {
		t.Errorf("nodes were updated in the order %v", r.order)
	}
}

func TestPartition(t *testing.T) {
	e := newEnv(t, 8)
	e.Make(e.manifest(`{maxUnavailable: 4, partition: 6}`))
	e.settled(8, 8)
	e.edit(image("nginx:1.28"))
	e.settled(8, 2)
	e.same("updated nodes", e.last(2), e.updatedNodes("nginx:1.28"))
	// A Pod that is lost comes back at the update revision.
	e.Must(e.Client.Delete(e.Ctx, e.podOn(e.last(2)[0])))
	e.settled(8, 2)
	e.edit(strategy(`{partition: 25%}`))
	e.settled(8, 6)
	e.same("updated nodes", e.last(6), e.updatedNodes("nginx:1.28"))
	e.edit(strategy(`{partition: 0}`))
	e.settled(8, 8)
}

func TestCanaryByNodeLabel(t *testing.T) {
	e := newEnv(t, 5)
	canary := func(node string) {
		e.EditNode(node, func(n *corev1.Node) { n.Labels["canary"] = e.Namespace })
	}
	for _, node := range []string{e.Nodes[0], e.Nodes[2], e.Nodes[3]} {
		canary(node)
	}
	e.Make(e.manifest(fmt.Sprintf(`{maxUnavailable: 5, partition: 3, selector: {matchLabels: {canary: %s}}}`, e.Namespace)))
	e.settled(5, 5)
	e.edit(image("nginx:1.28"))
	e.settled(5, 2)
	e.same("updated nodes", []string{e.Nodes[2], e.Nodes[3]}, e.updatedNodes("nginx:1.28"))
	e.edit(strategy(`{partition: 0}`))
	e.settled(5, 3)
	canary(e.Nodes[4])
	e.settled(5, 4)
	e.edit(func(set *v1beta1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Selector = nil })
	e.settled(5, 5)
}

func TestSurge(t *testing.T) {
	e := newEnv(t, 5)
	e.Make(e.manifest(`{maxUnavailable: 0, maxSurge: 1}`, "minReadySeconds: 2"))
	e.settled(5, 5)
	r := e.watch()
	e.edit(image("nginx:1.28"))
	e.Eventually("the rollout has begun", func() error {
		if n := len(e.updatedNodes("nginx:1.28")); n == 0 {
			return fmt.Errorf("%d nodes are updated", n)
		}
		return nil
	})
	// A node that gets no new Pod any more does not hold the others up. Its own taint only keeps new Pods away.
	e.taint(e.Nodes[0], corev1.TaintEffectNoSchedule)
	e.settled(4, 4)
	r.most(e, 1, 1)
	for _, p := range e.allPods() {
		if p.Status.Phase == corev1.PodPending {
			t.Errorf("%s waits for %s", p.Name, nodeOf(&p))
		}
	}
}

func TestInPlace(t *testing.T) {
	e := newEnv(t, 4)
	e.Make(e.manifest(`{rollingUpdateType: Standard, maxUnavailable: 2}`))
	e.settled(4, 4)
	e.edit(strategy(`{rollingUpdateType: InPlaceIfPossible}`))
	// Pods without the readiness gate are recreated once.
	e.edit(image("nginx:1.28"))
	e.settled(4, 4)
	before := uids(e.pods())
	r := e.watch()
	e.edit(image("nginx:1.29"))
	e.settled(4, 4)
	e.same("Pods after an update in place", before, uids(e.pods()))
	e.same("updated nodes", e.Nodes, e.updatedNodes("nginx:1.29"))
	r.most(e, 2, 0)
	e.edit(strategy(`{inPlaceUpdateStrategy: {gracePeriodSeconds: 4}}`), image("nginx:1.30"))
	e.Eventually("a Pod is out of service before it changes", func() error {
		for _, p := range e.pods() {
			if p.Spec.Containers[0].Image == "nginx:1.29" && !scene.IsReady(&p) {
				return nil
			}
		}
		return fmt.Errorf("none is")
	})
	e.settled(4, 4)
	e.same("Pods after an update with grace", before, uids(e.pods()))
	e.edit(func(set *v1beta1.DaemonSet) {
		set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	})
	e.settled(4, 4)
	for _, uid := range uids(e.pods()) {
		if slices.Contains(before, uid) {
			t.Errorf("Pod %s is still there, although its environment changed", uid)
		}
	}
}

func TestPausedAndOnDelete(t *testing.T) {
	e := newEnv(t, 4)
	e.Make(e.manifest(`{maxUnavailable: 1, paused: true}`))
	e.settled(4, 4)
	e.edit(image("nginx:1.28"))
	e.settled(4, 0)
	e.Always(time.Second, "no node is updated", func() error {
		if n := len(e.updatedNodes("nginx:1.28")); n > 0 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	e.Must(e.Client.Delete(e.Ctx, e.podOn(e.Nodes[1])))
	e.settled(4, 1)
	e.edit(func(set *v1beta1.DaemonSet) { set.Spec.UpdateStrategy.Type = v1beta1.OnDeleteDaemonSetStrategyType })
	e.Must(e.Client.Delete(e.Ctx, e.podOn(e.Nodes[2])))
	e.settled(4, 2)
	e.edit(strategy(`{paused: false}`), func(set *v1beta1.DaemonSet) {
		set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateDaemonSetStrategyType
	})
	e.settled(4, 4)
}

// TestUpdatesInQuickSuccession: Pods that are young are no free prey.
func TestUpdatesInQuickSuccession(t *testing.T) {
	e := newEnv(t, 5)
	e.Make(e.manifest(`{maxUnavailable: 1}`, "minReadySeconds: 3"))
	e.settled(5, 5)
	r := e.watch()
	for i := range 3 {
		e.edit(image(fmt.Sprintf("nginx:1.3%d", i)))
		time.Sleep(1500 * time.Millisecond)
	}
	e.settled(5, 5)
	r.most(e, 1, 0)
}

func TestRollbackAndHistory(t *testing.T) {
	e := newEnv(t, 2)
	e.Make(e.manifest(`{maxUnavailable: 1, partition: 1}`, "revisionHistoryLimit: 2"))
	first := e.settled(2, 2).Status.UpdateRevision
	kept := string(e.podOn(e.Nodes[0]).UID)
	e.edit(image("nginx:1.28"))
	e.settled(2, 1)
	e.edit(image("nginx:1.27"), strategy(`{partition: 0}`))
	if got := e.settled(2, 2).Status.UpdateRevision; got != first {
		t.Errorf("the first template is at %s again, want %s", got, first)
	}
	if got := string(e.podOn(e.Nodes[0]).UID); got != kept {
		t.Error("the Pod of a node that was at the first template all along was replaced")
	}
	for i := range 4 {
		e.edit(image(fmt.Sprintf("nginx:1.4%d", i)))
		e.settled(2, 2)
	}
	e.Eventually("old revisions are deleted", func() error {
		var list appsv1.ControllerRevisionList
		e.Must(e.Client.List(e.Ctx, &list, client.InNamespace(e.Namespace)))
		if len(list.Items) > 3 {
			return fmt.Errorf("%d are there", len(list.Items))
		}
		return nil
	})
}

// TestRevisionNameThatIsTaken has somebody else put a revision of other data where the next one of ours belongs.
func TestRevisionNameThatIsTaken(t *testing.T) {
	e := newEnv(t, 1)
	e.Make(e.manifest(`{}`))
	e.settled(1, 1)
	e.edit(image("nginx:1.28"))
	taken := "agent-" + e.settled(1, 1).Status.UpdateRevision
	e.edit(image("nginx:1.27"))
	e.settled(1, 1)
	rev := &appsv1.ControllerRevision{}
	key := client.ObjectKey{Namespace: e.Namespace, Name: taken}
	e.Must(e.Client.Get(e.Ctx, key, rev))
	e.Must(e.Client.Delete(e.Ctx, rev))
	other := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: taken},
		Data:       runtime.RawExtension{Raw: []byte(`{"other":"data"}`)},
	}
	e.Must(e.Client.Create(e.Ctx, other))
	e.edit(image("nginx:1.28"))
	set := e.settled(1, 1)
	if count := set.Status.CollisionCount; count == nil || *count != 1 {
		t.Errorf("collisionCount is %v, want 1", count)
	}
	e.same("updated nodes", e.Nodes, e.updatedNodes("nginx:1.28"))
}

// TestTheOlderVersion drives a rollout as other software does: by patches of partition through v1alpha1, whose status names the revision as the
// Pods' label does.
func TestTheOlderVersion(t *testing.T) {
	e := newEnv(t, 4)
	text := e.manifest(`{rollingUpdateType: Surging}`)
	o := e.Make(strings.Replace(text, "v1beta1", "v1alpha1", 1))
	e.settled(4, 4)
	stored := e.set().Spec.UpdateStrategy.RollingUpdate
	if stored.Type != v1beta1.StandardRollingUpdateType || stored.MaxSurge == nil || stored.MaxSurge.IntValue() != 1 {
		t.Errorf("Surging is stored as %+v", stored)
	}
	patch := func(partition string) {
		e.Helper()
		body := fmt.Sprintf(`{"spec":{"updateStrategy":{"rollingUpdate":{"paused":false,"partition":%s}}}}`, partition)
		e.Must(e.Client.Patch(e.Ctx, o, client.RawPatch(types.MergePatchType, []byte(body))))
	}
	patch("4")
	e.edit(image("nginx:1.28"))
	e.settled(4, 0)
	patch("3")
	e.settled(4, 1)
	patch("null")
	e.settled(4, 4)
	e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(o), o))
	hash, _, _ := unstructured.NestedString(o.Object, "status", "daemonSetHash")
	if label := e.pods()[0].Labels[appsv1.ControllerRevisionHashLabelKey]; hash != label || hash == "" {
		t.Errorf("daemonSetHash is %q, and Pods are labelled %q", hash, label)
	}
}

// TestTakeoverOfANativeDaemonSet: the Pods of a DaemonSet of Kubernetes that is deleted without them go on as they are.
func TestTakeoverOfANativeDaemonSet(t *testing.T) {
	e := newEnv(t, 4)
	native := &appsv1.DaemonSet{}
	e.Must(yaml.Unmarshal([]byte(e.manifest(`{maxUnavailable: 1}`)), native))
	native.ObjectMeta = metav1.ObjectMeta{Name: "agent", Namespace: e.Namespace}
	native.TypeMeta = metav1.TypeMeta{}
	native.Status = appsv1.DaemonSetStatus{}
	native.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{}
	e.Must(e.Client.Create(e.Ctx, native))
	e.Eventually("the native one runs", func() error {
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(native), native))
		if native.Status.NumberAvailable != 4 {
			return fmt.Errorf("%d are available", native.Status.NumberAvailable)
		}
		return nil
	})
	before := uids(e.allPods())
	e.Must(e.Client.Delete(e.Ctx, native, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	e.Eventually("the native one is gone", func() error {
		err := e.Client.Get(e.Ctx, client.ObjectKeyFromObject(native), native)
		if err == nil {
			return errors.New("it is still there")
		}
		return client.IgnoreNotFound(err)
	})
	e.Make(e.manifest(`{maxUnavailable: 1}`))
	e.settled(4, 4)
	e.same("Pods after the takeover", before, uids(e.allPods()))
	// And they are updated as ours from now on.
	e.edit(image("nginx:1.28"))
	e.settled(4, 4)
}
