package persistentpodstate

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// TestACloneSet gives a deleted Pod's instance id again, with its claims, and the Pod comes back to its node. That none comes back without
// claims that are taken over is told.
func TestACloneSet(t *testing.T) {
	e := newEnv(t, 3)
	e.Make(fmt.Sprintf(`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {app: web}},
		volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Gi}}}}],
		template: {metadata: {labels: {app: web}}, spec: {terminationGracePeriodSeconds: 0, nodeSelector: {test-pool: %s},
			containers: [{name: app, image: "nginx:1", volumeMounts: [{name: data, mountPath: /data}]}]}}}}`, e.Namespace))
	e.Make(`{apiVersion: apps.kruise.io/v1beta1, kind: PersistentPodState, metadata: {name: pps}, spec: {
		targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}, ` + requiredHost + `}}`)
	e.says(v1beta1.PersistentPodStateNamesNotReused, "enablePVCReuse")
	set := e.Manifest(`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web}}`)
	e.Must(e.Client.Patch(e.Ctx, set, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"scaleStrategy":{"enablePVCReuse":true}}}`))))
	e.says(v1beta1.PersistentPodStateRecording, "CloneSet web")
	e.bindClaim()
	var name string
	e.Eventually("there is a Pod", func() error {
		pods := e.Pods()
		if len(pods) != 1 {
			return fmt.Errorf("there are %d", len(pods))
		}
		name = pods[0].Name
		return nil
	})
	before := e.pod(name)
	e.recorded("pps", name)
	e.isSent("apps.kruise.io/CloneSet/web")
	after := e.recreated(before)
	e.isBound(after, "pps")
	if after.Spec.NodeName != before.Spec.NodeName {
		t.Errorf("it ran on %s, and then on %s", before.Spec.NodeName, after.Spec.NodeName)
	}
}

// says waits until the condition Ready of pps has a reason, and a text in its message.
func (e *env) says(reason, text string) {
	e.Helper()
	state := &v1beta1.PersistentPodState{}
	e.Eventually("pps says "+reason, func() error {
		e.Read("pps", state)
		c := meta.FindStatusCondition(state.Status.Conditions, v1beta1.PersistentPodStateReady)
		if c == nil || c.Reason != reason || !strings.Contains(c.Message, text) {
			return fmt.Errorf("it says %+v", c)
		}
		return nil
	})
}

// bindClaim makes a volume, which any node has, for the one claim of the namespace.
func (e *env) bindClaim() {
	e.Helper()
	var claims corev1.PersistentVolumeClaimList
	e.Eventually("there is a claim", func() error {
		e.Must(e.List(e.Ctx, &claims, client.InNamespace(e.Namespace)))
		if len(claims.Items) != 1 {
			return fmt.Errorf("there are %d", len(claims.Items))
		}
		return nil
	})
	volume := e.Manifest(fmt.Sprintf(`{apiVersion: v1, kind: PersistentVolume, metadata: {name: %[1]s}, spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi},
		claimRef: {namespace: %[1]s, name: %[2]s}, hostPath: {path: /tmp/%[1]s}}}`, e.Namespace, claims.Items[0].Name))
	volume.SetNamespace("")
	e.Must(e.Client.Create(e.Ctx, volume))
	e.CleanUp(volume)
}
