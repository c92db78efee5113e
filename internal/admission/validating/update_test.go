package validating

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUpdate(t *testing.T) {
	inPlaceOnly := edits{"spec.updateStrategy.rollingUpdate.podUpdatePolicy": "InPlaceOnly"}
	const like = `{weightPriority: [{weight: 1, matchSelector: {matchExpressions: [{key: a, operator: Like}]}}]}`
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
		"a new image for what today's rules would refuse": {
			old: edits{"spec.selector.matchExpressions": "[{key: a, operator: Like}]", "spec.updateStrategy.rollingUpdate.priorityStrategy": like},
			new: edits{"spec.selector.matchExpressions": "[{key: a, operator: Like}]", "spec.updateStrategy.rollingUpdate.priorityStrategy": like,
				"spec.template.spec.containers": `[{name: app, image: "nginx:2"}]`},
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

// TestDelete: installations of the original send deletions, too. A policy judges these, and not this webhook.
func TestDelete(t *testing.T) {
	for _, version := range []string{hub, older} {
		always := edits{"metadata.labels": "{policy.kruise.io/delete-protection: Always}"}
		if diff := cmp.Diff([]string{"allowed"}, causes(ask(Options{}, nil, edit(t, version, always)))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
