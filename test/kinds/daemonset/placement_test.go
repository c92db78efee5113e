package daemonset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

func TestTolerationsOfDaemonPods(t *testing.T) {
	usual := []string{
		"node.kubernetes.io/disk-pressure:NoSchedule", "node.kubernetes.io/memory-pressure:NoSchedule", "node.kubernetes.io/not-ready:NoExecute",
		"node.kubernetes.io/pid-pressure:NoSchedule", "node.kubernetes.io/unreachable:NoExecute", "node.kubernetes.io/unschedulable:NoSchedule",
	}
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"of any":                  {"", usual},
		"of the network of nodes": {"hostNetwork: true", append(slices.Clone(usual), "node.kubernetes.io/network-unavailable:NoSchedule")},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, 1)
			e.Make(strings.Replace(e.manifest("{}"), "nodeSelector:", tc.spec+"\n      nodeSelector:", 1))
			e.settled(1, 1)
			var got []string
			for _, toleration := range e.podOn(e.Nodes[0]).Spec.Tolerations {
				if toleration.Operator != corev1.TolerationOpExists {
					t.Errorf("%s is tolerated by operator %s", toleration.Key, toleration.Operator)
				}
				got = append(got, fmt.Sprintf("%s:%s", toleration.Key, toleration.Effect))
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			e.same("tolerations", tc.want, got)
		})
	}
}

// TestTheHookIsHeededWhereANodeDropsOut: a Pod that is to go because its node does not fit any more waits for its hook as one that is updated.
func TestTheHookIsHeededWhereANodeDropsOut(t *testing.T) {
	e := newEnv(t, 2)
	e.Make(e.manifest("{}", `lifecycle: {preDelete: {labelsHandler: {example.com/hook: "yes"}}}`))
	e.settled(2, 2)
	p := e.podOn(e.Nodes[0])
	before := p.DeepCopy()
	p.Labels["example.com/hook"] = "yes"
	e.Must(e.Client.Patch(e.Ctx, p, mergeFrom(before)))
	e.EditNode(e.Nodes[0], func(n *corev1.Node) { delete(n.Labels, scene.Pool) })
	waits := func() error {
		now := e.podOn(e.Nodes[0])
		if state := now.Labels["lifecycle.apps.kruise.io/state"]; state != "PreparingDelete" || now.UID != p.UID {
			return fmt.Errorf("%s is in state %q", now.Name, state)
		}
		return nil
	}
	e.Eventually("it waits for its hook", waits)
	e.Always(2*time.Second, "it goes on waiting", waits)
	p = e.podOn(e.Nodes[0])
	before = p.DeepCopy()
	delete(p.Labels, "example.com/hook")
	e.Must(e.Client.Patch(e.Ctx, p, mergeFrom(before)))
	e.settled(1, 1)
}

// TestProgressiveCreationInTheOlderVersion asks for it by the annotation, takes it back in the newer version, and writes once more in the older one.
func TestProgressiveCreationInTheOlderVersion(t *testing.T) {
	const key = "daemonset.kruise.io/progressive-create-pod"
	e := newEnv(t, 5)
	older := strings.Replace(e.manifest(`{partition: 80%}`), "v1beta1", "v1alpha1", 1)
	o := e.Make(strings.Replace(older, "metadata: {name: agent}", `metadata: {name: agent, annotations: {`+key+`: "true"}}`, 1))
	if scale := e.set().Spec.ScaleStrategy; scale == nil || !scale.PartitionedScaling {
		t.Errorf("the annotation is stored as %+v", scale)
	}
	e.Eventually("the first node has its Pod", func() error {
		if n := len(e.pods()); n != 1 {
			return fmt.Errorf("%d have", n)
		}
		return nil
	})
	e.Always(2*time.Second, "no other gets one", func() error {
		if n := len(e.pods()); n != 1 {
			return fmt.Errorf("%d have", n)
		}
		return nil
	})
	e.edit(func(set *v1beta1.DaemonSet) { set.Spec.ScaleStrategy.PartitionedScaling = false })
	e.settled(5, 5)
	e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(o), o))
	if value, has := o.GetAnnotations()[key]; has {
		t.Errorf("the older version still has the annotation %q", value)
	}
	scene.Edit(e.Env, "agent", o, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"written": "older"}) })
	set := e.set()
	if set.Labels["written"] != "older" || set.Spec.ScaleStrategy != nil && set.Spec.ScaleStrategy.PartitionedScaling {
		t.Errorf("after a write in the older version, labels are %v and the strategy %+v", set.Labels, set.Spec.ScaleStrategy)
	}
}

// TestSurgingIsReadableInBothVersions: what the older version calls Surging is a surge of one.
func TestSurgingIsReadableInBothVersions(t *testing.T) {
	e := newEnv(t, 0)
	o := e.Make(strings.Replace(e.manifest(`{rollingUpdateType: Surging}`), "v1beta1", "v1alpha1", 1))
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		read := &unstructured.Unstructured{}
		read.SetAPIVersion("apps.kruise.io/" + version)
		read.SetKind("DaemonSet")
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(o), read))
		rolling, _, err := unstructured.NestedMap(read.Object, "spec", "updateStrategy", "rollingUpdate")
		e.Must(err)
		got := fmt.Sprint(rolling["rollingUpdateType"], rolling["maxSurge"], rolling["maxUnavailable"])
		if got != fmt.Sprint("Standard", 1, 0) {
			t.Errorf("%s says %v", version, rolling)
		}
	}
}

// TestTakeoverWhileTheOtherOneIsBeingDeleted creates ours in the moment in which the DaemonSet of Kubernetes still has its Pods and is about to let
// go of them. No node may have two, nor lose its own.
func TestTakeoverWhileTheOtherOneIsBeingDeleted(t *testing.T) {
	e := newEnv(t, 4)
	native := &appsv1.DaemonSet{}
	e.Must(yaml.Unmarshal([]byte(e.manifest(`{maxUnavailable: 1}`)), native))
	native.APIVersion, native.Namespace = "apps/v1", e.Namespace
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
	r := e.watch()
	e.Must(e.Client.Delete(e.Ctx, native, client.PropagationPolicy("Orphan")))
	e.Make(e.manifest(`{maxUnavailable: 1}`))
	e.settled(4, 4)
	e.same("Pods after the takeover", before, uids(e.allPods()))
	r.most(e, 0, 0)
	for _, c := range e.set().Status.Conditions {
		if c.Status != corev1.ConditionFalse {
			t.Errorf("condition %s is %s: %s", c.Type, c.Status, c.Message)
		}
	}
}

// TestAnUpdateInPlaceShowsOnThePod: address and node stay, and the Pod is out of service before its image changes.
func TestAnUpdateInPlaceShowsOnThePod(t *testing.T) {
	e := newEnv(t, 1)
	e.Make(e.manifest(`{rollingUpdateType: InPlaceIfPossible}`))
	e.settled(1, 1)
	before := e.podOn(e.Nodes[0])
	course := e.course()
	e.edit(image("nginx:1.28"))
	e.settled(1, 1)
	after := e.podOn(e.Nodes[0])
	if after.UID != before.UID || after.Status.PodIP != before.Status.PodIP || after.Spec.NodeName != before.Spec.NodeName {
		t.Errorf("UID, address and node were %s, %s, %s and are %s, %s, %s", before.UID, before.Status.PodIP, before.Spec.NodeName, after.UID, after.Status.PodIP, after.Spec.NodeName)
	}
	e.same("gate and image", []string{"True nginx:1.27", "False nginx:1.27", "False nginx:1.28", "True nginx:1.28"}, course())
	e.Eventually("an event tells of it", func() error {
		if n := e.told("SuccessfulUpdatePodInPlace"); n != 1 {
			return fmt.Errorf("%d do", n)
		}
		return nil
	})
}
