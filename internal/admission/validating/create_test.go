package validating

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
				object  string
				set     edits
				rolling string
			}{
				{hub, tc.set, "rollingUpdate."},
				{older, tc.older, ""},
			} {
				set := version.set
				if set == nil {
					set = tc.set
				}
				var want []string
				for _, line := range tc.want {
					want = append(want, strings.NewReplacer("ROLLING", version.rolling).Replace(line))
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
