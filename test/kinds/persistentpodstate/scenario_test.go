package persistentpodstate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// TestAStateIsGeneratedAndRecords (scenario 1), and a deleted Pod comes back to its node (scenario 2), with the annotation that it had.
func TestAStateIsGeneratedAndRecords(t *testing.T) {
	e := newEnv(t, 3)
	e.newSet(ours, 3, wishes)
	records := e.recorded("web", "web-0", "web-1", "web-2")
	state := &v1beta1.PersistentPodState{}
	e.Read("web", state)
	if c := metav1.GetControllerOf(state); c == nil || c.Name != "web" || c.Kind != "StatefulSet" {
		t.Errorf("its controller is %v", c)
	}
	term := state.Spec.PreferredPersistentTopology
	if required := state.Spec.RequiredPersistentTopology; required == nil || !slices.Equal(required.Keys, []string{zone}) ||
		len(term) != 1 || term[0].Weight != 100 || !slices.Equal(term[0].Preference.Keys, []string{host}) {
		t.Errorf("the spec is %+v", state.Spec)
	}
	if c := meta.FindStatusCondition(state.Status.Conditions, v1beta1.PersistentPodStateReady); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("the conditions are %+v", state.Status.Conditions)
	}
	e.isSent("apps.kruise.io/StatefulSet/web")

	e.Must(e.Client.Patch(e.Ctx, state.DeepCopy(), client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"recordPodIPs":true,"previousNodes":2,"persistentPodLabels":[{"key":"shard"}]}}`))))
	if err := e.Client.Patch(e.Ctx, state.DeepCopy(), client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"persistentPodLabels":[{"key":"apps.kruise.io/subset-name"}]}}`))); err == nil {
		t.Error("a label of Kruise is to be recorded")
	}
	before := e.pod("web-1")
	if records["web-1"].NodeName != before.Spec.NodeName || records["web-1"].NodeTopologyLabels[host] != before.Spec.NodeName {
		t.Errorf("web-1 on %s is recorded as %+v", before.Spec.NodeName, records["web-1"])
	}
	e.Must(e.Client.Patch(e.Ctx, before.DeepCopy(), client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"ip":"10.0.0.7"},"labels":{"shard":"7"}}}`))))
	e.Eventually("the annotation and the label are recorded", func() error {
		if got := e.recorded("web", "web-0", "web-1", "web-2")["web-1"]; got.Annotations["ip"] != "10.0.0.7" || got.Labels["shard"] != "7" {
			return fmt.Errorf("recorded is %+v", got)
		}
		return nil
	})
	e.Eventually("its address is recorded", func() error {
		if got := e.recorded("web", "web-0", "web-1", "web-2")["web-1"].PodIPs; !slices.Equal(got, []string{before.Status.PodIP}) {
			return fmt.Errorf("it has %q, recorded are %v", before.Status.PodIP, got)
		}
		return nil
	})
	after := e.recreated(before)
	e.isBound(after, "web")
	if after.Spec.NodeName != before.Spec.NodeName || after.Spec.NodeSelector[zone] != records["web-1"].NodeTopologyLabels[zone] ||
		!slices.Equal(prefers(after, host), []string{before.Spec.NodeName}) || after.Annotations["ip"] != "10.0.0.7" || after.Labels["shard"] != "7" ||
		after.Annotations[keys.PreviousPodIPs] != before.Status.PodIP {
		t.Errorf("web-1 ran on %s, and then on %s: %+v %v", before.Spec.NodeName, after.Spec.NodeName, after.Spec.NodeSelector, after.Annotations)
	}
}

// TestATemplateUpdateKeepsZones (scenario 3).
func TestATemplateUpdateKeepsZones(t *testing.T) {
	e := newEnv(t, 3)
	e.newSet(ours, 3, `{kruise.io/auto-generate-persistent-pod-state: "true", kruise.io/required-persistent-topology: topology.kubernetes.io/zone}`,
		"updateStrategy: {rollingUpdate: {maxUnavailable: 100%}},")
	before := e.recorded("web", "web-0", "web-1", "web-2")
	e.isSent("apps.kruise.io/StatefulSet/web")
	var uids []types.UID
	for _, p := range e.Pods() {
		uids = append(uids, p.UID)
	}
	e.patchSet(ours, `{spec: {template: {metadata: {labels: {version: "2"}}, spec: {terminationGracePeriodSeconds: 1}}}}`)
	for _, name := range []string{"web-0", "web-1", "web-2"} {
		if p := e.pod(name, uids...); p.Spec.NodeName != before[name].NodeName {
			t.Errorf("%s ran on %s, and then on %s", name, before[name].NodeName, p.Spec.NodeName)
		}
	}
}

// TestScalingDropsRecords (scenario 4): once the Pod is gone, unless they are to be kept; then the Pod that comes back uses its own.
func TestScalingDropsRecords(t *testing.T) {
	e := newEnv(t, 3)
	e.newSet(ours, 3, "{}")
	e.newState(requiredHost)
	e.recorded("pps", "web-0", "web-1", "web-2")
	e.scale(2)
	e.recorded("pps", "web-0", "web-1")
	e.scale(3)
	e.recorded("pps", "web-0", "web-1", "web-2")
	state := &v1beta1.PersistentPodState{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "pps"}}
	e.Must(e.Client.Patch(e.Ctx, state, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"persistentPodStateRetentionPolicy":"WhenDeleted"}}`))))
	e.isSent("apps.kruise.io/StatefulSet/web")
	ran := e.pod("web-2")
	e.scale(2)
	e.Eventually("web-2 is gone", func() error {
		if len(e.Pods()) != 2 {
			return fmt.Errorf("there are %d Pods", len(e.Pods()))
		}
		return nil
	})
	e.recorded("pps", "web-0", "web-1", "web-2")
	e.scale(3)
	back := e.pod("web-2", ran.UID)
	e.isBound(back, "pps")
	if back.Spec.NodeName != ran.Spec.NodeName {
		t.Errorf("web-2 ran on %s, and came back to %s", ran.Spec.NodeName, back.Spec.NodeName)
	}
}

// TestNumbersOfPods (scenario 5): ordinals that are reserved, and a first ordinal.
func TestNumbersOfPods(t *testing.T) {
	t.Run("reserved", func(t *testing.T) {
		e := newEnv(t, 1)
		e.newSet(ours, 3, "{}")
		e.newState(requiredHost)
		e.recorded("pps", "web-0", "web-1", "web-2")
		e.patchSet(ours, "{spec: {replicas: 2, reserveOrdinals: [1]}}")
		e.recorded("pps", "web-0", "web-2")
	})
	t.Run("start", func(t *testing.T) {
		e := newEnv(t, 1)
		e.newSet(ours, 3, "{}", "ordinals: {start: 5},")
		e.newState(requiredHost)
		e.recorded("pps", "web-5", "web-6", "web-7")
		e.scale(2)
		e.recorded("pps", "web-5", "web-6")
	})
}

// TestAnnotationsDecideOnWhatTheyMade (scenario 6), and on nothing else.
func TestAnnotationsDecideOnWhatTheyMade(t *testing.T) {
	e := newEnv(t, 1)
	e.newSet(ours, 1, wishes)
	e.recorded("web", "web-0")
	e.patchSet(ours, `{metadata: {annotations: {kruise.io/persistent-pod-annotations: "ip, mac"}}}`)
	e.Eventually("the annotations to record follow", func() error {
		state := &v1beta1.PersistentPodState{}
		e.Read("web", state)
		if n := len(state.Spec.PersistentPodAnnotations); n != 2 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	e.patchSet(ours, `{metadata: {annotations: {kruise.io/auto-generate-persistent-pod-state: "false"}}}`)
	e.isGone("web")
	e.Make(`{apiVersion: apps.kruise.io/v1beta1, kind: PersistentPodState, metadata: {name: web}, spec: {
		targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, name: web}, ` + preferredHost + `}}`)
	e.patchSet(ours, `{metadata: {annotations: {kruise.io/auto-generate-persistent-pod-state: "no"}}}`)
	e.Eventually("there is an event", func() error {
		if !slices.Contains(e.Reasons("web"), "PersistentPodStateConflict") {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	e.recorded("web", "web-0")
}

// TestANodeThatIsGone (scenario 7): with a fallback, a Pod whose node is deleted runs elsewhere, and so does one whose node takes no Pods.
func TestANodeThatIsGone(t *testing.T) {
	t.Run("deleted", func(t *testing.T) {
		e := newEnv(t, 2)
		e.newSet(ours, 1, "{}")
		e.newState(requiredHost + ", fallback: {afterSeconds: 5, action: Delete}")
		e.recorded("pps", "web-0")
		e.isSent("apps.kruise.io/StatefulSet/web")
		before := e.pod("web-0")
		e.Must(e.Client.Delete(e.Ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: before.Spec.NodeName}}))
		e.Must(client.IgnoreNotFound(e.Client.Delete(e.Ctx, before, client.GracePeriodSeconds(0))))
		e.runsElsewhere(before)
	})
	t.Run("full", func(t *testing.T) {
		e := newEnv(t, 2)
		e.newSet(ours, 1, "{}")
		e.newState(requiredHost + ", fallback: {afterSeconds: 5, action: Delete}")
		e.recorded("pps", "web-0")
		e.isSent("apps.kruise.io/StatefulSet/web")
		before := e.pod("web-0")
		e.cordon(before.Spec.NodeName)
		e.Must(e.Client.Delete(e.Ctx, before))
		e.runsElsewhere(before)
		e.Eventually("an event tells of it", func() error {
			if got := e.Reasons("pps"); !slices.Contains(got, "PersistentPodStateReleased") {
				return fmt.Errorf("the events are %v", got)
			}
			return nil
		})
	})
}

// runsElsewhere waits until the next Pod of the name runs on another node, and that is recorded.
func (e *env) runsElsewhere(before *corev1.Pod) {
	e.Helper()
	e.Eventually(before.Name+" runs elsewhere", func() error {
		p := &corev1.Pod{}
		if err := e.Get(e.Ctx, client.ObjectKeyFromObject(before), p); err != nil {
			return err
		}
		record := e.recorded("pps", before.Name)[before.Name]
		if p.Spec.NodeName == "" || p.Spec.NodeName == before.Spec.NodeName || record.NodeName != p.Spec.NodeName {
			return fmt.Errorf("it is on %q, and recorded on %q", p.Spec.NodeName, record.NodeName)
		}
		return nil
	})
}

// TestAPreferredPlaceThatIsTaken (scenario 8), and a required one that is to be avoided while it takes no Pods.
func TestAPreferredPlaceThatIsTaken(t *testing.T) {
	for name, spec := range map[string]string{"preferred": preferredHost, "avoided": requiredHost + ", avoidUnavailableNodes: true"} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, 2)
			e.newSet(ours, 1, "{}")
			e.newState(spec)
			e.recorded("pps", "web-0")
			e.isSent("apps.kruise.io/StatefulSet/web")
			before := e.pod("web-0")
			e.cordon(before.Spec.NodeName)
			e.Eventually("it is created for another node", func() error {
				p := &corev1.Pod{}
				if err := e.Get(e.Ctx, client.ObjectKeyFromObject(before), p); err != nil {
					return err
				}
				if p.Spec.NodeName == before.Spec.NodeName || p.Spec.NodeSelector[host] == before.Spec.NodeName {
					// Nothing tells when the cache of the manager shows that the node takes no Pods: one that is made before waits in vain.
					e.Must(client.IgnoreNotFound(e.Client.Delete(e.Ctx, p, client.GracePeriodSeconds(0))))
					return fmt.Errorf("it is for %s", before.Spec.NodeName)
				}
				return nil
			})
			e.runsElsewhere(before)
		})
	}
}

// TestADeletedWorkload (scenario 9) leaves no records, and what was generated for it goes.
func TestADeletedWorkload(t *testing.T) {
	e := newEnv(t, 1)
	e.newSet(ours, 1, wishes)
	e.recorded("web", "web-0")
	e.Make(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: native}, spec: {serviceName: native, selector: {matchLabels: {app: native}},
		template: {metadata: {labels: {app: native}}, spec: {containers: [{name: app, image: "nginx:1"}]}}}}`)
	e.Make(`{apiVersion: apps.kruise.io/v1beta1, kind: PersistentPodState, metadata: {name: native}, spec: {
		targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: native}, persistentPodStateRetentionPolicy: WhenDeleted, ` + requiredHost + `}}`)
	e.recorded("native", "native-0")
	for _, manifest := range []string{
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: native}}", "{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: web}}",
	} {
		e.Must(e.Client.Delete(e.Ctx, e.Manifest(manifest)))
	}
	e.recorded("native")
	e.isGone("web")
}

// TestAllKindsOfWorkloads (scenario 10): StatefulSets of Kubernetes, those of ours by either version, and a kind that the configuration names.
func TestAllKindsOfWorkloads(t *testing.T) {
	for name, tc := range map[string]struct{ set, ref, sent string }{
		"native": {"apps/v1", "apps/v1", "apps/StatefulSet/web"},
		"older":  {"apps.kruise.io/v1beta1", "apps.kruise.io/v1alpha1", "apps.kruise.io/StatefulSet/web"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, 2)
			e.newSet(tc.set, 1, "{}")
			e.Make(`{apiVersion: apps.kruise.io/v1beta1, kind: PersistentPodState, metadata: {name: pps}, spec: {
				targetRef: {apiVersion: ` + tc.ref + `, kind: StatefulSet, name: web}, ` + requiredHost + `}}`)
			e.recorded("pps", "web-0")
			e.isSent(tc.sent)
			before := e.pod("web-0")
			after := e.recreated(before)
			e.isBound(after, "pps")
			if after.Spec.NodeName != before.Spec.NodeName {
				t.Errorf("it ran on %s, and then on %s", before.Spec.NodeName, after.Spec.NodeName)
			}
		})
	}
	t.Run("named", func(t *testing.T) {
		e := newEnv(t, 1)
		e.newGame()
		e.newGamePod("game-0")
		e.Eventually("its place is recorded", func() error {
			state := &v1beta1.PersistentPodState{}
			e.Read("pps", state)
			if len(state.Status.PodStates) != 1 {
				return fmt.Errorf("it is not")
			}
			return nil
		})
		e.isSent("example.com/GameSet/game")
		before := e.pod("game-0")
		e.Must(e.Client.Delete(e.Ctx, before, client.GracePeriodSeconds(0)))
		e.Eventually("it is gone", func() error {
			if n := len(e.Pods()); n > 0 {
				return fmt.Errorf("there are %d Pods", n)
			}
			return nil
		})
		e.newGamePod("game-0")
		e.isBound(e.pod("game-0", before.UID), "pps")
	})
}

// newGame makes a workload of a kind that only the configuration of PersistentPodStates knows.
func (e *env) newGame() {
	e.Helper()
	crd := &unstructured.Unstructured{}
	crd.Object = e.Manifest(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gamesets.example.com}, spec: {
		group: example.com, scope: Namespaced, names: {kind: GameSet, plural: gamesets, singular: gameset, listKind: GameSetList},
		versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}},
			subresources: {scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}}]}}`).Object
	crd.SetNamespace("")
	e.Must(e.Client.Create(e.Ctx, crd))
	e.CleanUp(crd)
	configuration := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-configuration"}}
	state := `{apiVersion: apps.kruise.io/v1beta1, kind: PersistentPodState, metadata: {name: pps}, spec: {
		targetRef: {apiVersion: example.com/v1, kind: GameSet, name: game}, ` + requiredHost + `}}`
	if err := e.Client.Create(e.Ctx, e.Manifest(state)); err == nil || !strings.Contains(err.Error(), "PPS_Watch_Custom_Workload_WhiteList") {
		e.Errorf("a kind that nobody has named: %v", err)
	}
	configuration.Data = map[string]string{keys.PodStateKinds: `{"workloads":[{"Group":"example.com","Version":"v1","Kind":"GameSet"}]}`}
	e.Must(e.Client.Create(e.Ctx, configuration))
	e.CleanUp(configuration)
	e.Eventually("there is a game", func() error {
		return e.Client.Create(e.Ctx, e.Manifest(`{apiVersion: example.com/v1, kind: GameSet, metadata: {name: game}, spec: {replicas: 1}}`))
	})
	e.Eventually("the configuration counts", func() error { return e.Client.Create(e.Ctx, e.Manifest(state)) })
}

func (e *env) newGamePod(name string) {
	e.Helper()
	game := e.Manifest(`{apiVersion: example.com/v1, kind: GameSet, metadata: {name: game}}`)
	e.Read("game", game)
	e.Make(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, ownerReferences: [
		{apiVersion: example.com/v1, kind: GameSet, name: game, uid: %s, controller: true}]}, spec: {containers: [{name: app, image: "nginx:1"}]}}`,
		name, game.GetUID()))
}
