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
		"a name that fits no label": {
			set:  edits{"metadata.name": longName},
			want: []string{`metadata.name: Invalid value: "` + longName + `": must be no more than 52 characters, because it becomes part of the value of a Pod label; or turn on the feature gate CloneSetShortHash`},
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
		"an order by a malformed selector": {
			set:   edits{"spec.updateStrategy.rollingUpdate.priorityStrategy": `{weightPriority: [{weight: 1, matchSelector: {matchExpressions: [{key: a, operator: Like}]}}]}`},
			older: edits{"spec.updateStrategy.priorityStrategy": `{weightPriority: [{weight: 1, matchSelector: {matchExpressions: [{key: a, operator: Like}]}}]}`},
			want: []string{
				`spec.updateStrategy.ROLLINGpriorityStrategy.weightPriority[0].matchSelector.matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator`,
			},
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

func TestARefusalIsAnOrdinary422(t *testing.T) {
	response := ask(options(t), edit(t, hub, edits{"spec.template.metadata.labels": "{app: api}"}), nil)
	if response.Result.Code != http.StatusUnprocessableEntity || response.Result.Reason != metav1.StatusReasonInvalid || response.Result.Details.Kind != "CloneSet" {
		t.Errorf("answered %v, want an ordinary 422", response.Result)
	}
}
