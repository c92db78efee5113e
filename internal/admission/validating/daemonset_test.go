package validating

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// hubAgent is a valid DaemonSet, defaulted, in each version.
const (
	baseAgent = `
metadata: {name: agent, namespace: ns}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: app, image: "nginx:1"}]}
  burstReplicas: 250
  revisionHistoryLimit: 10
  updateStrategy: {type: RollingUpdate, rollingUpdate: {rollingUpdateType: Standard, maxUnavailable: 1, maxSurge: 0}}`
	hubAgent   = "apiVersion: apps.kruise.io/v1beta1\nkind: DaemonSet" + baseAgent
	olderAgent = "apiVersion: apps.kruise.io/v1alpha1\nkind: DaemonSet" + baseAgent
)

func askAgent(o Options, object, old []byte) admission.Response {
	request := admissionv1.AdmissionRequest{
		UID: "1", Name: "agent", Namespace: "ns", Operation: admissionv1.Create,
		Kind:   metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "DaemonSet"},
		Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old},
	}
	switch {
	case object == nil:
		request.Operation = admissionv1.Delete
	case old != nil:
		request.Operation = admissionv1.Update
	}
	hook := &webhook.Admission{Handler: DaemonSet(o)}
	return hook.Handle(context.Background(), admission.Request{AdmissionRequest: request})
}

func TestDaemonSetRules(t *testing.T) {
	const rolling = "spec.updateStrategy.rollingUpdate."
	for name, tc := range map[string]struct {
		object string // hubAgent unless set
		old    edits  // unset creates
		new    edits
		want   []string
	}{
		"a valid set":                    {want: []string{"allowed"}},
		"a valid set, older":             {object: olderAgent, want: []string{"allowed"}},
		"a Pod that ends":                {new: edits{"spec.template.spec.restartPolicy": "Never"}, want: []string{`spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`}},
		"a number over all":              {new: edits{rolling + "partition": "101"}, want: []string{"allowed"}},
		"a malformed canary":             {new: edits{rolling + "selector": "{matchExpressions: [{key: a, operator: Like}]}"}, want: []string{`spec.updateStrategy.rollingUpdate.selector.matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator`}},
		"nothing moves by itself":        {new: edits{"spec.updateStrategy.type": "OnDelete", rolling + "maxUnavailable": "0"}, want: []string{"allowed"}},
		"Surging, defaulted":             {object: olderAgent, new: edits{rolling + "rollingUpdateType": "Surging", rolling + "maxUnavailable": "0", rolling + "maxSurge": "1"}, want: []string{"allowed"}},
		"an in-place hook":               {new: edits{"spec.lifecycle": "{inPlaceUpdate: {labelsHandler: {a: b}}}"}, want: []string{"allowed"}},
		"another template":               {old: edits{}, new: edits{"spec.template.spec.hostname": "h"}, want: []string{"allowed"}},
		"an old mistake can be labelled": {old: edits{"spec.burstReplicas": "0"}, new: edits{"spec.burstReplicas": "0", "metadata.labels": "{a: b}"}, want: []string{"allowed"}},
		"an old mistake can be deleted":  {old: edits{}, new: edits{"spec.burstReplicas": "0", "metadata.deletionTimestamp": "2026-01-01T00:00:00Z"}, want: []string{"allowed"}},
	} {
		t.Run(name, func(t *testing.T) {
			object, old := tc.object, []byte(nil)
			if object == "" {
				object = hubAgent
			}
			if tc.old != nil {
				old = edit(t, object, tc.old)
			}
			if diff := cmp.Diff(tc.want, causes(askAgent(Options{}, edit(t, object, tc.new), old))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDaemonSetWarnings(t *testing.T) {
	const rolling = "spec.updateStrategy.rollingUpdate."
	for name, tc := range map[string]struct {
		object   string
		old, new edits
		want     []string
	}{
		"nothing to say": {},
		"a surge on a port of the node": {
			new:  edits{rolling + "maxSurge": "1", rolling + "maxUnavailable": "0", "spec.template.spec.containers": "[{name: app, image: a, ports: [{containerPort: 80, hostPort: 8080}]}]"},
			want: []string{"maxSurge 1 with host port 8080: a new Pod can't run beside the old one on its node, so that the update would wait for ever; use maxUnavailable"},
		},
		"limits that have no effect": {
			new:  edits{"spec.updateStrategy.type": "OnDelete"},
			want: []string{"spec.updateStrategy.rollingUpdate has no effect with type OnDelete"},
		},
		"a partition that keeps all": {
			old: edits{"status.desiredNumberScheduled": "3"}, new: edits{rolling + "partition": "3", "spec.template.spec.hostname": "h"},
			want: []string{"no node will be updated: partition 3 keeps all 3 at their old revision; lower it to start"},
		},
		"a hook without effect": {new: edits{"spec.lifecycle": "{preNormal: {labelsHandler: {a: b}}}"}, want: []string{"spec.lifecycle.preNormal has no effect on a DaemonSet"}},
		"the older annotation in the hub": {
			new:  edits{"metadata.annotations": "{daemonset.kruise.io/progressive-create-pod: 'true'}"},
			want: []string{"metadata.annotations[daemonset.kruise.io/progressive-create-pod] has no effect in v1beta1: use spec.scaleStrategy.partitionedScaling"},
		},
		"the older annotation misspelled": {
			object: olderAgent, new: edits{"metadata.annotations": "{daemonset.kruise.io/progressive-create-pod: 'yes'}"},
			want: []string{`metadata.annotations[daemonset.kruise.io/progressive-create-pod]: "yes" has no effect: use "true"`},
		},
		"the older annotation in its place": {object: olderAgent, new: edits{"metadata.annotations": "{daemonset.kruise.io/progressive-create-pod: 'true'}"}},
	} {
		t.Run(name, func(t *testing.T) {
			object, old := tc.object, []byte(nil)
			if object == "" {
				object = hubAgent
			}
			if tc.old != nil {
				old = edit(t, object, tc.old)
			}
			response := askAgent(Options{}, edit(t, object, tc.new), old)
			if !response.Allowed {
				t.Fatalf("refused: %v", causes(response))
			}
			if diff := cmp.Diff(tc.want, response.Warnings); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
