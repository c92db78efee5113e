package persistentpodstate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// TestWhatIsRefused (scenario 11): a second one for a workload, another target, no topology, what is no label.
func TestWhatIsRefused(t *testing.T) {
	e := newEnv(t, 0)
	e.newState(requiredHost)
	for name, tc := range map[string]struct{ manifest, want string }{
		"a second one":  {`{apiVersion: apps.kruise.io/v1alpha1, kind: PersistentPodState, metadata: {name: two}, spec: {targetRef: {apiVersion: apps.kruise.io/v1alpha1, kind: StatefulSet, name: web}, requiredPersistentTopology: {nodeTopologyKeys: [zone]}}}`, "in conflict with other PersistentPodState pps"},
		"no topology":   {`{apiVersion: apps.kruise.io/v1beta1, kind: PersistentPodState, metadata: {name: two}, spec: {targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: x}}}`, "must have requiredPersistentTopology, preferredPersistentTopology or both"},
		"another kind":  {`{apiVersion: apps.kruise.io/v1beta1, kind: PersistentPodState, metadata: {name: two}, spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: x}, ` + requiredHost + `}}`, "targetRef.Kind must be StatefulSet or in PPS_Watch_Custom_Workload_WhiteList"},
		"no weight":     {`{apiVersion: apps.kruise.io/v1beta1, kind: PersistentPodState, metadata: {name: two}, spec: {targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: x}, preferredPersistentTopology: [{weight: 0, preference: {keys: [a]}}]}}`, "weight"},
		"no label":      {`{apiVersion: apps.kruise.io/v1alpha1, kind: PersistentPodState, metadata: {name: two}, spec: {targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: x}, preferredPersistentTopology: [{weight: 1, preference: {nodeTopologyKeys: [a b]}}]}}`, "spec.preferredPersistentTopology[0].preference.nodeTopologyKeys[0]"},
		"a CEL literal": {`{apiVersion: apps.kruise.io/v1beta1, kind: PersistentPodState, metadata: {name: two}, spec: {targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: "x\"] || true"}, ` + requiredHost + `}}`, "spec.targetRef.name"},
	} {
		if err := e.Client.Create(e.Ctx, e.Manifest(tc.manifest)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	state := &v1beta1.PersistentPodState{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "pps"}}
	err := e.Client.Patch(e.Ctx, state, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"targetRef":{"name":"other"}}}`)))
	if err == nil || !strings.Contains(err.Error(), "immutable") {
		t.Errorf("another target: %v", err)
	}
}

// TestEitherVersion (scenario 12).
func TestEitherVersion(t *testing.T) {
	e := newEnv(t, 0)
	e.AcceptsExamples("persistentpodstate-*.yaml")
	e.Make(`{apiVersion: apps.kruise.io/v1alpha1, kind: PersistentPodState, metadata: {name: old}, spec: {
		targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}, requiredPersistentTopology: {nodeTopologyKeys: [zone]},
		preferredPersistentTopology: [{weight: 5, preference: {nodeTopologyKeys: [host]}}]}}`)
	hub := &v1beta1.PersistentPodState{}
	e.Read("old", hub)
	if term := hub.Spec.PreferredPersistentTopology; !slices.Equal(hub.Spec.RequiredPersistentTopology.Keys, []string{"zone"}) ||
		len(term) != 1 || !slices.Equal(term[0].Preference.Keys, []string{"host"}) {
		t.Errorf("the hub version is %+v", hub.Spec)
	}
	older := &v1alpha1.PersistentPodState{}
	e.Read("old", older)
	if !slices.Equal(older.Spec.RequiredPersistentTopology.NodeTopologyKeys, []string{"zone"}) {
		t.Errorf("the older version is %+v", older.Spec)
	}
}

// TestWhomNothingIsGiven (scenario 13): a Pod of which nothing is recorded, one that is not stored, and one of another workload.
func TestWhomNothingIsGiven(t *testing.T) {
	e := newEnv(t, 1)
	e.newSet(ours, 1, "{}")
	e.newState(requiredHost)
	e.recorded("pps", "web-0")
	e.isSent("apps.kruise.io/StatefulSet/web")
	e.scale(2)
	e.isBound(e.pod("web-1"), "")
	set := &v1beta1.StatefulSet{}
	e.Read("web", set)
	e.recorded("pps", "web-0", "web-1")
	dry := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "web-9", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: ours, Kind: "StatefulSet", Name: "web", UID: set.UID, Controller: new(true)},
	}}}
	dry.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx:1"}}
	state := &v1beta1.PersistentPodState{}
	e.Read("pps", state)
	for name := range state.Status.PodStates {
		one := dry.DeepCopy()
		one.Name, one.GenerateName = name+"-dry", ""
		e.Must(e.Client.Create(e.Ctx, one, client.DryRunAll))
		e.isBound(one, "")
	}
	e.Make(fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: d}}, template: {
		metadata: {labels: {app: d}}, spec: {nodeSelector: {test-pool: %s}, containers: [{name: app, image: "nginx:1"}]}}}}`, e.Namespace))
	e.Eventually("the Pod of the Deployment runs", func() error {
		for _, p := range e.Pods() {
			if p.Labels["app"] == "d" && p.Spec.NodeName != "" {
				e.isBound(&p, "")
				return nil
			}
		}
		return fmt.Errorf("it does not")
	})
}
