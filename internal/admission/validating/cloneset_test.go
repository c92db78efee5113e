package validating

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"
)

// base is a valid CloneSet, defaulted, in each version.
const (
	base = `
metadata: {name: web, namespace: ns, uid: web-uid}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "nginx:1"}]}
`
	hub = `apiVersion: apps.kruise.io/v1beta1
kind: CloneSet` + base + `  updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0}}`
	older = `apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet` + base + `  updateStrategy: {type: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0}`
)

// edit returns a version of the object in which the fields at paths, "a.b.c", have the given values, as YAML; "~" removes one.
func edit(t testing.TB, object string, fields map[string]string) []byte {
	t.Helper()
	var root map[string]any
	if err := yaml.Unmarshal([]byte(object), &root); err != nil {
		t.Fatal(err)
	}
	for path, text := range fields {
		steps := strings.Split(path, ".")
		parent := root
		for _, step := range steps[:len(steps)-1] {
			next, ok := parent[step].(map[string]any)
			if !ok {
				next = map[string]any{}
				parent[step] = next
			}
			parent = next
		}
		last := steps[len(steps)-1]
		if text == "~" {
			delete(parent, last)
			continue
		}
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		parent[last] = value
	}
	raw, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

type edits = map[string]string

// ask sends a request as the API server does. A nil old creates, a nil object deletes.
func ask(o CloneSetOptions, object, old []byte) admission.Response {
	request := admissionv1.AdmissionRequest{
		UID: "1", Name: "web", Namespace: "ns", Operation: admissionv1.Create,
		Kind:   metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "CloneSet"},
		Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old},
	}
	switch {
	case object == nil:
		request.Operation = admissionv1.Delete
	case old != nil:
		request.Operation = admissionv1.Update
	}
	hook := &webhook.Admission{Handler: CloneSet(o)}
	return hook.Handle(context.Background(), admission.Request{AdmissionRequest: request})
}

func options(t testing.TB) CloneSetOptions {
	t.Helper()
	pod := func(name, owner string, finalizers ...string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Finalizers: finalizers}}
		if owner != "" {
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: owner, UID: "web-uid", Controller: &yes}}
			if owner != "web" {
				p.OwnerReferences[0].UID = "other-uid"
			}
		}
		return p
	}
	going := pod("web-going", "web", "example.com/held")
	reader := fake.NewClientBuilder().WithObjects(pod("web-1", "web"), pod("other-1", "other"), pod("nobodys", ""), going).Build()
	if err := reader.Delete(context.Background(), going); err != nil {
		t.Fatal(err)
	}
	return CloneSetOptions{Pods: reader}
}

// causes returns the fields and texts of an answer: "allowed", or one line for each cause.
func causes(response admission.Response) []string {
	if response.Allowed {
		return []string{"allowed"}
	}
	if response.Result.Details == nil {
		return []string{response.Result.Message}
	}
	if response.Result.Code != http.StatusUnprocessableEntity {
		return []string{response.Result.String()}
	}
	var out []string
	for _, cause := range response.Result.Details.Causes {
		out = append(out, cause.Field+": "+cause.Message)
	}
	slices.Sort(out)
	return out
}

func TestCreate(t *testing.T) {
	longName := strings.Repeat("a", 53)
	for name, tc := range map[string]struct {
		set   edits
		older edits // as above, for v1alpha1; unset to ask the same of both versions
		want  []string
	}{
		"a valid set": {want: []string{"allowed"}},
		"negative replicas": {
			set:  edits{"spec.replicas": "-1"},
			want: []string{"spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
		},
		"a name that fits no label": {
			set:  edits{"metadata.name": longName},
			want: []string{`metadata.name: Invalid value: "` + longName + `": must be no more than 52 characters, because it becomes part of the value of a Pod label; or turn on the feature gate CloneSetShortHash`},
		},
		"no selector": {
			set:  edits{"spec.selector": "~"},
			want: []string{"spec.selector: Required value: name the labels of the template by which the Pods are known"},
		},
		"an empty selector": {
			set:  edits{"spec.selector": "{}"},
			want: []string{"spec.selector: Invalid value: {}: empty selector is invalid for cloneset"},
		},
		"a malformed selector": {
			set:  edits{"spec.selector": "{matchExpressions: [{key: a, operator: Like}]}"},
			want: []string{`spec.selector.matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator`},
		},
		"a selector of other labels": {
			set:  edits{"spec.selector.matchLabels.tier": "front"},
			want: []string{`spec.template.metadata.labels: Invalid value: {"app":"web"}: selector "app=web,tier=front" does not match: add its labels to the template`},
		},
		"a Pod that ends": {
			set: edits{"spec.template.spec.restartPolicy": "OnFailure", "spec.template.spec.activeDeadlineSeconds": "9"},
			want: []string{
				"spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in CloneSet is not supported: its Pods are to run for ever",
				`spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported values: "Always"`,
			},
		},
		"Pods to delete before there are any": {
			set:  edits{"spec.scaleStrategy.podsToDelete": "[ghost]"},
			want: []string{`spec.scaleStrategy.podsToDelete[0]: Invalid value: "ghost": Pod ghost not found in namespace ns`},
		},
		"an unreadable scale limit": {
			set:  edits{"spec.scaleStrategy.maxUnavailable": `"5"`},
			want: []string{`spec.scaleStrategy.maxUnavailable: Invalid value: "5": "5" is neither a number nor a percentage such as "20%"`},
		},
		"an unknown way of updating": {
			set:   edits{"spec.updateStrategy.rollingUpdate.podUpdatePolicy": "Magic"},
			older: edits{"spec.updateStrategy.type": "Magic"},
			want:  []string{`spec.updateStrategy.TYPE: Invalid value: "Magic": must be one of [ReCreate InPlaceIfPossible InPlaceOnlyOLDER]`},
		},
		"limits that can't be read": {
			set:   edits{"spec.updateStrategy.rollingUpdate.partition": "-1", "spec.updateStrategy.rollingUpdate.maxSurge": "1.5.0%", "spec.updateStrategy.rollingUpdate.maxUnavailable": "some"},
			older: edits{"spec.updateStrategy.partition": "-1", "spec.updateStrategy.maxSurge": "1.5.0%", "spec.updateStrategy.maxUnavailable": "some"},
			want: []string{
				`spec.updateStrategy.ROLLINGmaxSurge: Invalid value: "1.5.0%": "1.5.0%" is neither a number nor a percentage such as "20%"`,
				`spec.updateStrategy.ROLLINGmaxUnavailable: Invalid value: "some": "some" is neither a number nor a percentage such as "20%"`,
				`spec.updateStrategy.ROLLINGpartition: Invalid value: -1: -1 is negative: use 0 or more`,
			},
		},
		"limits that let nothing move": {
			set:   edits{"spec.updateStrategy.rollingUpdate.maxUnavailable": "0%"},
			older: edits{"spec.updateStrategy.maxUnavailable": "0%"},
			want:  []string{`spec.updateStrategy.ROLLINGmaxUnavailable: Invalid value: "0%": maxUnavailable and maxSurge should not both be less than 1: an update could never start`},
		},
		"no unavailability with a surge": {
			set:   edits{"spec.updateStrategy.rollingUpdate.maxUnavailable": "0", "spec.updateStrategy.rollingUpdate.maxSurge": "12.5%"},
			older: edits{"spec.updateStrategy.maxUnavailable": "0", "spec.updateStrategy.maxSurge": "12.5%"},
			want:  []string{"allowed"},
		},
		"limits that let nothing move, of nothing": {
			set:   edits{"spec.replicas": "0", "spec.updateStrategy.rollingUpdate.maxUnavailable": "0"},
			older: edits{"spec.replicas": "0", "spec.updateStrategy.maxUnavailable": "0"},
			want:  []string{"allowed"},
		},
		"surge in place only": {
			set:   edits{"spec.updateStrategy.rollingUpdate.podUpdatePolicy": "InPlaceOnly", "spec.updateStrategy.rollingUpdate.maxSurge": "1"},
			older: edits{"spec.updateStrategy.type": "InPlaceOnly", "spec.updateStrategy.maxSurge": "1"},
			want:  []string{"spec.updateStrategy.ROLLINGmaxSurge: Invalid value: 1: must be 0 with InPlaceOnly: surge Pods would have to be created and deleted"},
		},
		"updates on deletion": {
			set:   edits{"spec.updateStrategy": "{type: OnDelete}"},
			older: edits{"spec.updateStrategy": "{type: OnDelete}"},
			want:  []string{"allowed"},
		},
		"updates on deletion with stages that have no effect": {
			set:   edits{"spec.updateStrategy": "{type: OnDelete, rollingUpdate: {paused: true}}"},
			older: edits{"spec.updateStrategy": "{type: OnDelete, paused: true}"},
			want:  []string{"allowed"},
		},
		"an order of both kinds": {
			set:   edits{"spec.updateStrategy.rollingUpdate.priorityStrategy": `{orderPriority: [{orderedKey: ""}], weightPriority: [{weight: 101, matchSelector: {}}]}`},
			older: edits{"spec.updateStrategy.priorityStrategy": `{orderPriority: [{orderedKey: ""}], weightPriority: [{weight: 101, matchSelector: {}}]}`},
			want: []string{
				"spec.updateStrategy.ROLLINGpriorityStrategy.orderPriority[0].orderedKey: Required value: name the label that orders the Pods",
				"spec.updateStrategy.ROLLINGpriorityStrategy.weightPriority[0].matchSelector: Required value: an empty selector matches every Pod: name labels",
				"spec.updateStrategy.ROLLINGpriorityStrategy.weightPriority[0].weight: Invalid value: 101: must be from 0 to 100",
				"spec.updateStrategy.ROLLINGpriorityStrategy: Forbidden: orderPriority and weightPriority can't both be set: keep one",
			},
		},
		"scattered twice": {
			set:   edits{"spec.updateStrategy.rollingUpdate.scatterStrategy": `[{key: a, value: b}, {key: a, value: b}, {key: "", value: b}]`},
			older: edits{"spec.updateStrategy.scatterStrategy": `[{key: a, value: b}, {key: a, value: b}, {key: "", value: b}]`},
			want: []string{
				`spec.updateStrategy.ROLLINGscatterStrategy[1]: Invalid value: {"key":"a","value":"b"}: is on the list twice: name each pair once`,
				"spec.updateStrategy.ROLLINGscatterStrategy[2].key: Required value: name the label whose Pods are spread",
			},
		},
		"a deadline before Pods can be available": {
			set:  edits{"spec.minReadySeconds": "10", "spec.progressDeadlineSeconds": "10"},
			want: []string{"spec.progressDeadlineSeconds: Invalid value: 10: must be greater than minReadySeconds"},
		},
		"two claims of one name": {
			set:  edits{"spec.volumeClaimTemplates": "[{metadata: {name: data}}, {metadata: {name: data}}, {metadata: {}}]"},
			want: []string{`spec.volumeClaimTemplates[1].metadata.name: Duplicate value: "data"`, "spec.volumeClaimTemplates[2].metadata.name: Required value: name the volume that the claim stands for"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, version := range []struct {
				object             string
				set                edits
				rolling, kind, end string
			}{
				{hub, tc.set, "rollingUpdate.", "rollingUpdate.podUpdatePolicy", "]"},
				{older, tc.older, "", "type", " OnDelete]"},
			} {
				set := version.set
				if set == nil {
					set = tc.set
				}
				var want []string
				for _, line := range tc.want {
					want = append(want, strings.NewReplacer("ROLLING", version.rolling, "TYPE", version.kind, "OLDER]", version.end).Replace(line))
				}
				slices.Sort(want)
				got := causes(ask(options(t), edit(t, version.object, set), nil))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%.40s (-want +got):\n%s", version.object, diff)
				}
			}
		})
	}
}

func TestInPlaceDetails(t *testing.T) {
	const details = "spec.updateStrategy.rollingUpdate.inPlaceUpdateStrategy"
	response := ask(options(t), edit(t, hub, edits{
		details: `{gracePeriodSeconds: -1, imagePreDownloadParallelism: 10%, imagePreDownloadTimeoutSeconds: -2, imagePreDownloadMinUpdatedReadyPods: -3}`}), nil)
	want := []string{
		details + ".gracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0",
		details + ".imagePreDownloadMinUpdatedReadyPods: Invalid value: -3: must be greater than or equal to 0",
		details + `.imagePreDownloadParallelism: Invalid value: "10%": must be a number of 0 or more, not a percentage`,
		details + ".imagePreDownloadTimeoutSeconds: Invalid value: -2: must be greater than or equal to 0",
	}
	if diff := cmp.Diff(want, causes(response)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if response.Result.Code != http.StatusUnprocessableEntity || response.Result.Reason != metav1.StatusReasonInvalid || response.Result.Details.Kind != "CloneSet" {
		t.Errorf("answered %v, want an ordinary 422", response.Result)
	}
}

func TestUpdate(t *testing.T) {
	inPlaceOnly := edits{"spec.updateStrategy.rollingUpdate.podUpdatePolicy": "InPlaceOnly"}
	with := func(more edits) edits {
		out := edits{}
		for _, m := range []edits{inPlaceOnly, more} {
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
		"another selector": {
			new:  edits{"spec.selector.matchLabels": "{app: api}", "spec.template.metadata.labels": "{app: api}"},
			want: []string{"spec.selector: Forbidden: is immutable: delete the CloneSet with --cascade=orphan and create it anew to select other Pods"},
		},
		"everything that may change": {
			new: edits{"spec.replicas": "7", "spec.minReadySeconds": "5", "spec.progressDeadlineSeconds": "60", "spec.revisionHistoryLimit": "3",
				"spec.volumeClaimTemplates": "[{metadata: {name: data}}]", "spec.lifecycle": "{}", "spec.scaleStrategy": "{maxUnavailable: 1}",
				"spec.template.spec.hostname": "h", "spec.updateStrategy": "{type: OnDelete}"},
			want: []string{"allowed"},
		},
		"a new image in place": {
			old: inPlaceOnly, new: with(edits{"spec.template.spec.containers": `[{name: app, image: "nginx:2"}]`}),
			want: []string{"allowed"},
		},
		"a change that needs new Pods": {
			old: inPlaceOnly, new: with(edits{"spec.template.spec.containers": `[{name: app, image: "nginx:2", env: [{name: A, value: b}]}]`}),
			want: []string{"spec.template.spec.containers[0].env: Forbidden: only allowed to update images in spec for InPlaceOnly, but found add /spec/containers/0/env " +
				"(only images, labels, annotations and, where enabled, cpu and memory can change in place): change it with podUpdatePolicy InPlaceIfPossible or ReCreate"},
		},
		"a change that needs new Pods, and the policy for it": {
			old: inPlaceOnly, new: edits{"spec.template.spec.hostname": "h"},
			want: []string{"allowed"},
		},
		"Pods to delete": {
			new:  edits{"spec.scaleStrategy.podsToDelete": "[web-1]"},
			want: []string{"allowed"},
		},
		"Pods that are gone since they were listed": {
			old: edits{"spec.scaleStrategy.podsToDelete": "[gone, web-going]"}, new: edits{"spec.replicas": "4", "spec.scaleStrategy.podsToDelete": "[gone, web-going]"},
			want: []string{"allowed"},
		},
		"Pods that can't be deleted": {
			new: edits{"spec.scaleStrategy.podsToDelete": "[web-1, web-1, ghost, web-going, other-1, nobodys, NOT A NAME]"},
			want: []string{
				`spec.scaleStrategy.podsToDelete[1]: Invalid value: "web-1": is on the list twice: name each Pod once`,
				`spec.scaleStrategy.podsToDelete[2]: Invalid value: "ghost": Pod ghost not found in namespace ns`,
				`spec.scaleStrategy.podsToDelete[3]: Invalid value: "web-going": Pod web-going is already being deleted: leave it out`,
				`spec.scaleStrategy.podsToDelete[4]: Invalid value: "other-1": Pod other-1 is not controlled by this CloneSet but by CloneSet other`,
				`spec.scaleStrategy.podsToDelete[5]: Invalid value: "nobodys": Pod nobodys is not controlled by this CloneSet: no controller owns it`,
				`spec.scaleStrategy.podsToDelete[6]: Invalid value: "NOT A NAME": is not the name of a Pod`,
			},
		},
		"a label on what today's rules would refuse": {
			old: edits{"spec.scaleStrategy.maxUnavailable": "many"}, new: edits{"spec.scaleStrategy.maxUnavailable": "many", "metadata.labels.a": "b"},
			want: []string{"allowed"},
		},
		"the finalizer of one that goes": {
			old:  edits{"metadata.deletionTimestamp": `"2026-01-01T00:00:00Z"`, "metadata.finalizers": "[a]"},
			new:  edits{"metadata.deletionTimestamp": `"2026-01-01T00:00:00Z"`, "spec.selector": "~"},
			want: []string{"allowed"},
		},
		"a name that is too long already": {
			old: edits{"metadata.name": strings.Repeat("a", 60)}, new: edits{"metadata.name": strings.Repeat("a", 60), "spec.replicas": "2"},
			want: []string{"allowed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := causes(ask(options(t), edit(t, hub, tc.new), edit(t, hub, tc.old)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	const refused = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection="
	for name, tc := range map[string]struct {
		set  edits
		off  bool
		want string
	}{
		"unprotected":                    {want: "allowed"},
		"protected always":               {set: edits{"metadata.labels": "{policy.kruise.io/delete-protection: Always}"}, want: refused + "Always"},
		"protected while it has Pods":    {set: edits{"metadata.labels": "{policy.kruise.io/delete-protection: Cascading}"}, want: refused + "Cascading and replicas 5>0"},
		"protected, and without Pods":    {set: edits{"metadata.labels": "{policy.kruise.io/delete-protection: Cascading}", "spec.replicas": "0"}, want: "allowed"},
		"protected, but the gate is off": {set: edits{"metadata.labels": "{policy.kruise.io/delete-protection: Always}"}, off: true, want: "allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, version := range []string{hub, older} {
				response := ask(CloneSetOptions{DeletionProtection: !tc.off}, nil, edit(t, version, tc.set))
				if diff := cmp.Diff([]string{tc.want}, causes(response)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if !response.Allowed && response.Result.Code != http.StatusForbidden {
					t.Errorf("answered %d, want 403", response.Result.Code)
				}
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	const rolling = "spec.updateStrategy.rollingUpdate."
	inPlace := rolling + "podUpdatePolicy"
	for name, tc := range map[string]struct {
		object   string // hub unless set
		old, new edits  // no old creates
		want     []string
	}{
		"nothing to say": {old: edits{}, new: edits{"spec.replicas": "6"}},
		"a partition that keeps all": {
			old: edits{}, new: edits{rolling + "partition": "100%", "spec.template.spec.hostname": "h"},
			want: []string{"no Pod will be updated: partition 100% keeps all 5 at their old revision; lower it to start"},
		},
		"a surge beside in-place updates": {
			new:  edits{inPlace: "InPlaceIfPossible", rolling + "maxSurge": "30%"},
			want: []string{"maxSurge 30% with InPlaceIfPossible: up to 2 Pods of an update are created anew instead of updated in place"},
		},
		"a change that recreates": {
			old: edits{inPlace: "InPlaceIfPossible", rolling + "partition": "2"}, new: edits{inPlace: "InPlaceIfPossible", rolling + "partition": "2", "spec.template.spec.hostname": "h"},
			want: []string{"this change will recreate 3 Pods because of add /spec/hostname: only images, labels, annotations and, where enabled, cpu and memory can change in place"},
		},
		"a hook that new Pods do not carry": {
			new: edits{"spec.lifecycle": "{preDelete: {finalizersHandler: [example.com/f], labelsHandler: {a: b}}}"},
			want: []string{
				"spec.lifecycle.preDelete: the template has no finalizer example.com/f, so that the hook holds no Pod that is not given it otherwise",
				"spec.lifecycle.preDelete: the template has no label a=b, so that the hook holds no Pod that is not given it otherwise",
			},
		},
		"an annotation of the older version": {
			new: edits{"metadata.annotations": "{apps.kruise.io/image-predownload-parallelism: '3'}", "metadata.labels": "{apps.kruise.io/cloneset-scaling-exclude-preparing-delete: 'true'}"},
			want: []string{
				"metadata.annotations[apps.kruise.io/image-predownload-parallelism] has no effect in v1beta1: use spec.updateStrategy.rollingUpdate.inPlaceUpdateStrategy.imagePreDownloadParallelism",
				"metadata.labels[apps.kruise.io/cloneset-scaling-exclude-preparing-delete] has no effect in v1beta1: use spec.scaleStrategy.excludePreparingDelete",
			},
		},
		"an annotation that can't be read": {
			object: older, new: edits{"metadata.annotations": "{apps.kruise.io/image-predownload-min-updated-ready-pods: 10%}"},
			want: []string{`metadata.annotations[apps.kruise.io/image-predownload-min-updated-ready-pods]: "10%" has no effect: use a number of 0 or more`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object, old := tc.object, []byte(nil)
			if object == "" {
				object = hub
			}
			if tc.old != nil {
				old = edit(t, object, tc.old)
			}
			response := ask(options(t), edit(t, object, tc.new), old)
			if !response.Allowed {
				t.Fatalf("refused: %v", causes(response))
			}
			if diff := cmp.Diff(tc.want, response.Warnings); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTroubleIsNoVerdict(t *testing.T) {
	broken := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("no answer")
		},
	})
	for name, tc := range map[string]struct {
		o      CloneSetOptions
		object []byte
		want   int32
	}{
		"Pods can't be read": {CloneSetOptions{Pods: broken}, edit(t, hub, edits{"spec.scaleStrategy.podsToDelete": "[a]"}), http.StatusInternalServerError},
		"a panic":            {CloneSetOptions{Templates: panicking{}}, edit(t, hub, nil), http.StatusInternalServerError},
		"no JSON":            {CloneSetOptions{}, []byte(`{`), http.StatusBadRequest},
		"another version":    {CloneSetOptions{}, edit(t, hub, edits{"apiVersion": "apps.kruise.io/v2"}), http.StatusBadRequest},
		"a senseless field":  {CloneSetOptions{}, edit(t, hub, edits{"spec.template": "[]"}), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			if response := ask(tc.o, tc.object, nil); response.Allowed || response.Result.Code != tc.want {
				t.Errorf("answered allowed=%v %v, want %d", response.Allowed, response.Result, tc.want)
			}
		})
	}
}

type panicking struct{}

func (panicking) Check(context.Context, string, map[string]any) Verdict { panic("a bug") }

func TestTemplateIsJudgedAsItWillBe(t *testing.T) {
	judge := &recording{verdict: Verdict{
		Errors:   field.ErrorList{field.Required(field.NewPath("template", "spec", "containers").Index(0).Child("image"), "")},
		Warnings: []string{"mind this"},
	}}
	o := options(t)
	o.Templates = judge
	object := edit(t, hub, edits{
		"spec.template.spec.volumes": "[{name: a, emptyDir: {}}, {name: data, emptyDir: {}}]", "spec.template.spec.future": "1",
		"spec.volumeClaimTemplates": "[{metadata: {name: data}}, {metadata: {name: logs}}]",
	})
	response := ask(o, object, nil)
	if diff := cmp.Diff([]string{"spec.template.spec.containers[0].image: Required value"}, causes(response)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"mind this"}, response.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	claim := func(name string) any {
		return map[string]any{"name": name, "persistentVolumeClaim": map[string]any{"claimName": name}}
	}
	want := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
		"spec": map[string]any{
			"containers": []any{map[string]any{"name": "app", "image": "nginx:1"}},
			"future":     int64(1),
			"volumes":    []any{map[string]any{"name": "a", "emptyDir": map[string]any{}}, claim("data"), claim("logs")},
		},
	}
	if diff := cmp.Diff([]map[string]any{want}, judge.seen); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
	judge.seen = nil
	if response := ask(o, edit(t, hub, edits{"spec.replicas": "9"}), edit(t, hub, nil)); !response.Allowed || judge.seen != nil {
		t.Errorf("an unchanged template was judged: allowed=%v %v", response.Allowed, judge.seen)
	}
}

// recording keeps what it was asked.
type recording struct {
	seen    []map[string]any
	verdict Verdict
}

func (r *recording) Check(_ context.Context, namespace string, template map[string]any) Verdict {
	if namespace == "ns" {
		r.seen = append(r.seen, template)
	}
	return r.verdict
}

// FuzzCloneSet checks that no pair of objects makes the handler panic.
func FuzzCloneSet(f *testing.F) {
	for _, object := range []string{hub, older} {
		raw := edit(f, object, edits{"spec.volumeClaimTemplates": "[{metadata: {name: data}}]", "spec.lifecycle": "{preDelete: {finalizersHandler: [a]}}"})
		f.Add(raw, edit(f, object, nil))
		f.Add(raw, []byte{})
	}
	o := options(f)
	o.Templates = &recording{}
	o.DeletionProtection = true
	f.Fuzz(func(t *testing.T, object, old []byte) {
		if len(object) == 0 {
			object = nil
		}
		if len(old) == 0 {
			old = nil
		}
		if response := ask(o, object, old); !response.Allowed && response.Result.Code >= http.StatusInternalServerError {
			t.Errorf("answered %v", response.Result)
		}
	})
}
