package validating

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// hubDatabase is a valid StatefulSet, defaulted, in each version.
const (
	baseDatabase = `
metadata: {name: db, namespace: ns}
spec:
  replicas: 3
  serviceName: db
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: app, image: "nginx:1", volumeMounts: [{name: data, mountPath: /data}]}]
      readinessGates: [{conditionType: InPlaceUpdateReady}]
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
  updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: ReCreate, partition: 0, maxUnavailable: 1, minReadySeconds: 0}}`
	hubDatabase   = "apiVersion: apps.kruise.io/v1beta1\nkind: StatefulSet" + baseDatabase
	olderDatabase = "apiVersion: apps.kruise.io/v1alpha1\nkind: StatefulSet" + baseDatabase
)

func askDatabase(o Options, object, old []byte) admission.Response {
	request := admissionv1.AdmissionRequest{
		UID: "1", Name: "db", Namespace: "ns", Operation: admissionv1.Create,
		Kind:   metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "StatefulSet"},
		Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old},
	}
	switch {
	case object == nil:
		request.Operation = admissionv1.Delete
	case old != nil:
		request.Operation = admissionv1.Update
	}
	hook := &webhook.Admission{Handler: StatefulSet(o)}
	return hook.Handle(context.Background(), admission.Request{AdmissionRequest: request})
}

func TestNewStatefulSet(t *testing.T) {
	const rolling = "spec.updateStrategy.rollingUpdate."
	for name, tc := range map[string]struct {
		set  edits
		want []string
	}{
		"a valid set":             {want: []string{"allowed"}},
		"no Service is all right": {set: edits{"spec.serviceName": "~"}, want: []string{"allowed"}},
		"reserved ordinals":       {set: edits{"spec.reserveOrdinals": `[1, "3-5", "7"]`}, want: []string{"allowed"}},
		"a range backwards": {
			set: edits{"spec.reserveOrdinals": `[1, "5-2"]`}, want: []string{`spec.reserveOrdinals[1]: Invalid value: "5-2": reserve ordinal is invalid: "5-2" ends before it begins`},
		},
		"one at a time is what it does": {set: edits{"spec.podManagementPolicy": "OrderedReady", "spec.scaleStrategy": "{maxUnavailable: 1}"}, want: []string{"allowed"}},
		"an update of several Pods of an ordered set": {
			set: edits{"spec.podManagementPolicy": "OrderedReady", rolling + "maxUnavailable": "2"}, want: []string{"allowed"},
		},
		"all":                          {set: edits{rolling + "maxUnavailable": "100%"}, want: []string{"allowed"}},
		"a partition of more than all": {set: edits{rolling + "partition": "32767"}, want: []string{"allowed"}},
		"the spelling of Kubernetes has no bound": {set: edits{"spec.minReadySeconds": "3600"}, want: []string{"allowed"}},
		"a deadline": {set: edits{"spec.minReadySeconds": "5", "spec.progressDeadlineSeconds": "6"}, want: []string{"allowed"}},
		"in place without its gate": {
			set: edits{rolling + "podUpdatePolicy": "InPlaceOnly", "spec.template.spec.readinessGates": "~"}, want: []string{"spec.template.spec.readinessGates: Invalid value: null: must contains InPlaceUpdateReady when podUpdatePolicy is InPlaceOnly"},
		},
		"updates on deletion": {set: edits{"spec.updateStrategy": "{type: OnDelete}"}, want: []string{"allowed"}},
		"two claims of one name": {
			set: edits{"spec.volumeClaimTemplates": "[{metadata: {name: data}}, {metadata: {name: data}}]"}, want: []string{`spec.volumeClaimTemplates[1].metadata.name: Duplicate value: "data"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, version := range []string{hubDatabase, olderDatabase} {
				if diff := cmp.Diff(tc.want, causes(askDatabase(Options{}, edit(t, version, tc.set), nil))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestChangedStatefulSet(t *testing.T) {
	const rolling = "spec.updateStrategy.rollingUpdate."
	yes, no := true, false
	classes := fake.NewClientBuilder().WithObjects(
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "growing", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}, AllowVolumeExpansion: &yes},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}, AllowVolumeExpansion: &no},
	).Build()
	claim := func(name, size, class string) string {
		if class != "" {
			class = ", storageClassName: " + class
		}
		return "[{metadata: {name: " + name + "}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: " + size + "}}" + class + "}}]"
	}
	grows := edits{"spec.volumeClaimUpdateStrategy": "{type: OnPodRollingUpdate}"}
	with := func(more edits) edits {
		out := edits{}
		for _, m := range []edits{grows, more} {
			for path, value := range m {
				out[path] = value
			}
		}
		return out
	}
	for name, tc := range map[string]struct {
		old, new edits
		want     []string
	}{
		"everything that may change": {
			new: edits{"spec.replicas": "7", "spec.minReadySeconds": "5", "spec.revisionHistoryLimit": "3", "spec.reserveOrdinals": "[1]", "spec.ordinals": "{start: 3}",
				"spec.volumeClaimTemplates": claim("other", "2Gi", "fixed"), "spec.lifecycle": "{}", "spec.scaleStrategy": "{maxUnavailable: 1}",
				"spec.persistentVolumeClaimRetentionPolicy": "{whenDeleted: Delete}", "spec.template.spec.hostname": "h", "spec.updateStrategy": "{type: OnDelete}"},
			want: []string{"allowed"},
		},
		"a change that needs new Pods": {
			old: edits{rolling + "podUpdatePolicy": "InPlaceOnly"},
			new: edits{rolling + "podUpdatePolicy": "InPlaceOnly", "spec.template.spec.containers": `[{name: app, image: "nginx:1", imagePullPolicy: Never}]`},
			want: []string{"spec.template.spec.containers[0].imagePullPolicy: Forbidden: only allowed to update images in spec for InPlaceOnly, but found add /spec/containers/0/imagePullPolicy " +
				"(only images, labels, annotations and, where enabled, cpu and memory can change in place): change it with podUpdatePolicy InPlaceIfPossible or ReCreate"},
		},
		"claims that grow":                {old: grows, new: with(edits{"spec.volumeClaimTemplates": claim("data", "2Gi", "")}), want: []string{"allowed"}},
		"claims that shrink in name only": {old: grows, new: with(edits{"spec.volumeClaimTemplates": claim("data", "1Mi", "")}), want: []string{"allowed"}},
		"claims that can't grow": {
			old: grows, new: with(edits{"spec.volumeClaimTemplates": claim("data", "2Gi", "fixed")}),
			want: []string{"spec.volumeClaimTemplates[data].spec.resources.requests.storage: Forbidden: storage class fixed does not have allowVolumeExpansion"},
		},
		"claims of no known class": {
			old: grows, new: with(edits{"spec.volumeClaimTemplates": claim("data", "2Gi", "unknown")}),
			want: []string{`spec.volumeClaimTemplates[data].spec.storageClassName: Invalid value: "unknown": there is no such storage class`},
		},
		"claims of another name": {
			old: grows, new: with(edits{"spec.volumeClaimTemplates": claim("other", "1Gi", "")}),
			want: []string{`spec.volumeClaimTemplates[other]: Invalid value: "other": is new: with volumeClaimUpdateStrategy OnPodRollingUpdate only sizes can change`},
		},
		"another shape along with the strategy that forbids it": {
			new:  with(edits{"spec.volumeClaimTemplates": `[{metadata: {name: data}, spec: {accessModes: [ReadOnlyMany], resources: {requests: {storage: 1Gi}}}}]`}),
			want: []string{"spec.volumeClaimTemplates[data]: Forbidden: only its size can change with volumeClaimUpdateStrategy OnPodRollingUpdate"},
		},
		"no claims any more": {
			old: grows, new: with(edits{"spec.volumeClaimTemplates": "[]"}),
			want: []string{"spec.volumeClaimTemplates: Forbidden: there are 0 of them instead of 1: with volumeClaimUpdateStrategy OnPodRollingUpdate only their sizes can change"},
		},
		"a label on what today's rules would refuse": {
			old: edits{rolling + "maxUnavailable": "0"}, new: edits{rolling + "maxUnavailable": "0", "metadata.labels.a": "b"}, want: []string{"allowed"},
		},
		"the finalizer of one that goes": {
			old:  edits{"metadata.deletionTimestamp": `"2026-01-01T00:00:00Z"`, "metadata.finalizers": "[a]"},
			new:  edits{"metadata.deletionTimestamp": `"2026-01-01T00:00:00Z"`, "spec.selector": "~"},
			want: []string{"allowed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{ClaimResize: true, Live: classes}
			got := causes(askDatabase(o, edit(t, hubDatabase, tc.new), edit(t, hubDatabase, tc.old)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatefulSetWarnings(t *testing.T) {
	long := strings.Repeat("a", 62)
	for name, tc := range map[string]struct {
		old, new edits // no old creates
		want     []string
	}{
		"nothing to say": {old: edits{}, new: edits{"spec.replicas": "6"}},
		"a partition that keeps all": {
			old: edits{}, new: edits{"spec.updateStrategy.rollingUpdate.partition": "3", "spec.template.spec.hostname": "h"},
			want: []string{"no Pod will be updated: partition 3 keeps all 3 at their old revision; lower it to start"},
		},
		"a range that is too long": {
			old: edits{}, new: edits{"spec.reserveOrdinals": `["10-99999"]`}, want: []string{"spec.reserveOrdinals reserves 99990 ordinals: is one of its ranges too long?"},
		},
		"a claim that nobody mounts": {
			old: edits{}, new: edits{"spec.volumeClaimTemplates": "[{metadata: {name: logs}}]"}, want: []string{"spec.volumeClaimTemplates[0]: no container mounts logs"},
		},
		"too long a name": {
			new: edits{"metadata.name": long}, want: []string{"the name of Pod " + long + "-2 has more than 63 characters, which is too long for a host name"},
		},
		"a hook that new Pods do not carry": {
			new:  edits{"spec.lifecycle": "{preDelete: {labelsHandler: {a: b}}}"},
			want: []string{"spec.lifecycle.preDelete: the template has no label a=b, so that the hook holds no Pod that is not given it otherwise"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var old []byte
			if tc.old != nil {
				old = edit(t, hubDatabase, tc.old)
			}
			response := askDatabase(Options{}, edit(t, hubDatabase, tc.new), old)
			if diff := cmp.Diff(tc.want, response.Warnings); diff != "" || !response.Allowed {
				t.Errorf("allowed %v (-want +got):\n%s", response.Allowed, diff)
			}
		})
	}
}

func TestNamesakeOfKubernetesIsToldOf(t *testing.T) {
	live := fake.NewClientBuilder().WithObjects(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns"}}).Build()
	want := []string{"there is a StatefulSet db of apps/v1, whose Pods have the same names: delete it with --cascade=orphan to hand its Pods over"}
	response := askDatabase(Options{Live: live}, edit(t, hubDatabase, nil), nil)
	if diff := cmp.Diff(want, response.Warnings); diff != "" || !response.Allowed {
		t.Errorf("allowed %v (-want +got):\n%s", response.Allowed, diff)
	}
}
