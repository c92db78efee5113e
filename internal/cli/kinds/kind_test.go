package kinds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
)

// object reads an object of a kind; generation is 2 unless it says another one.
func object(t *testing.T, group, kind, text string) (Kind, *unstructured.Unstructured) {
	t.Helper()
	k, err := Of(schema.GroupKind{Group: group, Kind: kind})
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	o.SetGroupVersionKind(k.GroupVersionKind)
	o.SetName("web")
	if o.GetGeneration() == 0 {
		o.SetGeneration(2)
	}
	return k, o
}

const (
	ours        = "apps.kruise.io"
	theirs      = "apps"
	ofReleases  = "rollouts.kruise.io"
	fiveUpdated = "observedGeneration: 2, replicas: 5, availableReplicas: 5, updatedReplicas: 5, updatedReadyReplicas: 5, updatedAvailableReplicas: 5"
)

func TestProgress(t *testing.T) {
	canary := func(state, more, conditions string) string {
		return fmt.Sprintf(`{spec: {workloadRef: {kind: CloneSet, name: web}, strategy: {canary: {steps: [{replicas: 1}, {replicas: 3, pause: {duration: 60}}, {replicas: "100%%"}]}}},
  status: {observedGeneration: 2, phase: Progressing, canaryStatus: {currentStepIndex: 1, currentStepState: %s, canaryReplicas: 1, canaryReadyReplicas: 1%s}, conditions: [%s]}}`, state, more, conditions)
	}
	for name, tc := range map[string]struct {
		group, kind, text string
		want              progress.Phase
		says              string
	}{
		"a CloneSet whose spec nobody has seen": {ours, "CloneSet", `{spec: {replicas: 5}, status: {observedGeneration: 1, replicas: 5}}`, progress.Updating, "has not seen"},
		"a CloneSet that is updated":            {ours, "CloneSet", `{spec: {replicas: 5}, status: {` + fiveUpdated + `}}`, progress.Done, "all Pods are updated"},
		"a CloneSet with a surge Pod left": {ours, "CloneSet", `{spec: {replicas: 5}, status: {observedGeneration: 2, replicas: 6, availableReplicas: 6, updatedReplicas: 5, updatedAvailableReplicas: 5}}`,
			progress.Updating, "1 Pods are to be deleted"},
		"a CloneSet at its partition": {ours, "CloneSet", `{spec: {replicas: 5, updateStrategy: {rollingUpdate: {partition: "60%"}}}, status: {observedGeneration: 2, replicas: 5, availableReplicas: 5, updatedReplicas: 2, updatedAvailableReplicas: 2}}`,
			progress.Done, "3 Pods stay at the old template"},
		"a paused CloneSet": {ours, "CloneSet", `{spec: {replicas: 5, updateStrategy: {rollingUpdate: {paused: true}}}, status: {observedGeneration: 2, replicas: 5, availableReplicas: 5, updatedReplicas: 2, updatedAvailableReplicas: 2}}`,
			progress.Waiting, "paused: 3 Pods"},
		"a CloneSet that is paused when all is done": {ours, "CloneSet", `{spec: {replicas: 5, updateStrategy: {rollingUpdate: {paused: true}}}, status: {` + fiveUpdated + `}}`, progress.Done, "all Pods"},
		"a CloneSet that updates on delete": {ours, "CloneSet", `{spec: {replicas: 5, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, replicas: 5, availableReplicas: 5, updatedReplicas: 1}}`,
			progress.Waiting, "4 Pods are updated when they are deleted"},
		"a CloneSet past its deadline": {ours, "CloneSet", `{spec: {replicas: 5}, status: {observedGeneration: 2, replicas: 5, updatedReplicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: too late}]}}`,
			progress.Failed, "past its deadline: too late"},
		"a CloneSet that waits for a Pod": {ours, "CloneSet", `{spec: {replicas: 5}, status: {observedGeneration: 2, replicas: 5, updatedReplicas: 1, conditions: [{type: Waiting, status: "True", reason: PodBroken, message: "web-a: ErrImagePull"}]}}`,
			progress.Updating, "web-a: ErrImagePull"},
		"a CloneSet that can't create Pods": {ours, "CloneSet", `{spec: {replicas: 5}, status: {observedGeneration: 2, replicas: 4, updatedReplicas: 4, conditions: [{type: FailedScale, status: "True", message: exceeded quota}]}}`,
			progress.Updating, "exceeded quota"},
		"a StatefulSet at its partition": {ours, "StatefulSet", `{spec: {replicas: 5, updateStrategy: {rollingUpdate: {partition: 4}}}, status: {observedGeneration: 2, replicas: 5, availableReplicas: 5, updatedReplicas: 1, updatedAvailableReplicas: 1}}`,
			progress.Done, "4 Pods stay"},
		"a DaemonSet of which a Pod is not in service": {ours, "DaemonSet", `{spec: {}, status: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 2}}`,
			progress.Updating, "1 updated Pods are not in service"},
		"a DaemonSet at its partition": {ours, "DaemonSet", `{spec: {updateStrategy: {rollingUpdate: {partition: 2}}}, status: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 3}}`,
			progress.Done, "2 Pods stay"},
		"a UnitedDeployment that pauses after a wave": {ours, "UnitedDeployment", `{spec: {replicas: 4}, status: {observedGeneration: 2, replicas: 4, updatedReplicas: 2, updatedRevision: web-2, wave: first, conditions: [{type: UnitedDeploymentUpdated, status: "False"}, {type: SubsetUpdated, status: "False", reason: WavePaused, message: wave first is done}]}}`,
			progress.Waiting, "wave first is done"},
		"a UnitedDeployment that is updated": {ours, "UnitedDeployment", `{spec: {replicas: 4}, status: {observedGeneration: 2, conditions: [{type: UnitedDeploymentUpdated, status: "True"}]}}`, progress.Done, "all subsets"},
		"a SidecarSet that is paused": {ours, "SidecarSet", `{status: {observedGeneration: 2, matchedPods: 4, updatedPods: 1, conditions: [{type: Progressing, status: "False", reason: Paused, message: 1 of 4}]}}`,
			progress.Waiting, "paused: 1 of 4"},
		"a SidecarSet whose Pods have to be recreated": {ours, "SidecarSet", `{status: {observedGeneration: 2, matchedPods: 4, updatedPods: 1, conditions: [{type: Progressing, status: "False", reason: ImmutableFieldChanged, message: 3 Pods}]}}`,
			progress.Waiting, "3 Pods"},
		"a SidecarSet of OpenKruise, which writes no condition": {ours, "SidecarSet", `{status: {observedGeneration: 2, matchedPods: 4, updatedPods: 4, updatedReadyPods: 4}}`, progress.Done, "all Pods"},
		"a BroadcastJob that failed": {ours, "BroadcastJob", `{status: {phase: failed, desired: 3, succeeded: 1, failed: 2, conditions: [{type: Failed, status: "True", message: it took too long}]}}`,
			progress.Failed, "it took too long"},
		"a BroadcastJob that is paused":            {ours, "BroadcastJob", `{spec: {paused: true}, status: {phase: paused, desired: 3}}`, progress.Waiting, "paused: 0 active"},
		"a BroadcastJob that was resumed just now": {ours, "BroadcastJob", `{spec: {}, status: {phase: paused, desired: 3}}`, progress.Updating, "0 active"},
		"a Deployment that waits for new Pods":     {theirs, "Deployment", `{spec: {replicas: 3}, status: {observedGeneration: 2, replicas: 4, updatedReplicas: 1, availableReplicas: 3}}`, progress.Updating, "2 Pods are to be updated"},
		"a Deployment that is done":                {theirs, "Deployment", `{spec: {replicas: 3}, status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3}}`, progress.Done, "all Pods"},
		"a StatefulSet of Kubernetes that is done, as older versions told it": {theirs, "StatefulSet", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, availableReplicas: 2, currentRevision: a, updateRevision: a}}`,
			progress.Done, "all Pods"},
		"a DaemonSet of Kubernetes in the middle": {theirs, "DaemonSet", `{status: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 3}}`,
			progress.Updating, "2 Pods are to be updated"},

		"a Rollout that waits for an approval":          {ofReleases, "Rollout", canary("StepPaused", ", message: confirm", "{type: Progressing, status: 'True', reason: InRolling}"), progress.Waiting, "confirm"},
		"a Rollout whose step updates Pods":             {ofReleases, "Rollout", canary("StepUpgrade", "", "{type: Progressing, status: 'True', reason: InRolling, message: on its way}"), progress.Updating, "on its way"},
		"a Rollout that the guard has stopped":          {ofReleases, "Rollout", canary("StepPaused", ", message: held", "{type: Progressing, status: 'False', reason: GuardFailed}"), progress.Waiting, "held"},
		"a Rollout past the deadline of its step":       {ofReleases, "Rollout", canary("StepUpgrade", "", "{type: Progressing, status: 'False', reason: StepTimeout, message: Pod x}"), progress.Failed, "Pod x"},
		"a Rollout that was rolled back":                {ofReleases, "Rollout", `{spec: {strategy: {}}, status: {observedGeneration: 2, phase: Healthy, conditions: [{type: Succeeded, status: "False", reason: Completed, message: rolled back}]}}`, progress.Failed, "rolled back"},
		"a Rollout that succeeded":                      {ofReleases, "Rollout", `{spec: {strategy: {}}, status: {observedGeneration: 2, phase: Healthy, conditions: [{type: Succeeded, status: "True"}]}}`, progress.Done, "succeeded"},
		"a Rollout whose workload is not there":         {ofReleases, "Rollout", `{spec: {workloadRef: {kind: CloneSet, name: web}, strategy: {}}, status: {observedGeneration: 2, phase: Initial, message: none}}`, progress.Waiting, "none"},
		"a Rollout that is paused":                      {ofReleases, "Rollout", strings.Replace(canary("StepUpgrade", "", ""), "strategy: {", "strategy: {paused: true, ", 1), progress.Waiting, "paused"},
		"a Rollout that waits for time alone":           {ofReleases, "Rollout", strings.Replace(canary("StepPaused", ", message: 60 seconds", ""), "{replicas: 1}", "{replicas: 1, pause: {duration: 60}}", 1), progress.Updating, "60 seconds"},
		"a Rollout in the middle of its way back":       {ofReleases, "Rollout", canary("StepPaused", "", "{type: Progressing, status: 'True', reason: Cancelling, message: going back}"), progress.Updating, "going back"},
		"a Rollout that nobody has to act on: disabled": {ofReleases, "Rollout", `{spec: {strategy: {}}, status: {observedGeneration: 2, phase: Disabled}}`, progress.Done, "disabled"},
	} {
		t.Run(name, func(t *testing.T) {
			k, o := object(t, tc.group, tc.kind, tc.text)
			got, err := k.Progress(o)
			if err != nil {
				t.Fatal(err)
			}
			if got.Phase != tc.want || !strings.Contains(got.Message, tc.says) {
				t.Errorf("it is %s: %s, want %s: ... %s", got.Phase, got.Message, tc.want, tc.says)
			}
			if got.Phase == progress.Waiting && got.Next == "" {
				t.Errorf("it waits for a person and does not say what for")
			}
		})
	}
}

func TestSetImages(t *testing.T) {
	const set = `{spec: {template: {spec: {initContainers: [{name: init, image: i:1}], containers: [{name: app, image: a:1, unknown: kept}, {name: log, image: l:1}]}}}}`
	for name, tc := range map[string]struct {
		kind, text string
		images     map[string]string
		want       []string
		refused    string
	}{
		"one container":              {"CloneSet", set, map[string]string{"app": "a:2"}, []string{"app=a:2", "log=l:1", "init=i:1"}, ""},
		"all, but no init container": {"CloneSet", set, map[string]string{"*": "x:2"}, []string{"app=x:2", "log=x:2", "init=i:1"}, ""},
		"all, and one by name":       {"CloneSet", set, map[string]string{"*": "x:2", "log": "l:2"}, []string{"app=x:2", "log=l:2", "init=i:1"}, ""},
		"an init container":          {"CloneSet", set, map[string]string{"init": "i:2"}, []string{"app=a:1", "log=l:1", "init=i:2"}, ""},
		"a container that is none":   {"CloneSet", set, map[string]string{"ap": "a:2"}, nil, `has no container "ap"`},
		"a sidecar":                  {"SidecarSet", `{spec: {containers: [{name: mesh, image: m:1}]}}`, map[string]string{"mesh": "m:2"}, []string{"mesh=m:2"}, ""},
		"in the template of subsets": {"UnitedDeployment", `{spec: {template: {cloneSetTemplate: {spec: {template: {spec: {containers: [{name: app, image: a:1}]}}}}}}}`,
			map[string]string{"app": "a:2"}, []string{"app=a:2"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			k, o := object(t, ours, tc.kind, tc.text)
			err := k.SetImages(o, tc.images)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("error %v, want one about %s", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, k.Images(o)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRestart(t *testing.T) {
	const template = `template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: a%s}]}}`
	fromMetadata := fmt.Sprintf(template, `, env: [{name: AT, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['kubectl.kubernetes.io/restartedAt']"}}}]`)
	plain := fmt.Sprintf(template, "")
	for name, tc := range map[string]struct{ kind, spec, refused string }{
		"Pods are recreated":                           {"CloneSet", plain, ""},
		"Pods would get no more than the annotation":   {"CloneSet", "updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}, " + plain, "no container would restart"},
		"the annotation restarts a container":          {"CloneSet", "updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}, " + fromMetadata, ""},
		"a DaemonSet that updates its Pods in place":   {"DaemonSet", "updateStrategy: {rollingUpdate: {rollingUpdateType: InPlaceIfPossible}}, " + plain, "no container would restart"},
		"a kind without a template can't be restarted": {"SidecarSet", "containers: []", "has no Pod template"},
	} {
		t.Run(name, func(t *testing.T) {
			k, o := object(t, ours, tc.kind, "{spec: {"+tc.spec+"}}")
			err := k.Restart(o, "2026-01-02T03:04:05Z", inplace.Options{EnvFromMetadata: true})
			if tc.refused == "" && err != nil || tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)) {
				t.Errorf("error %v, want one about %q", err, tc.refused)
			}
		})
	}
}

func TestOf(t *testing.T) {
	if _, err := Of(schema.GroupKind{Kind: "Pod"}); err == nil || !strings.Contains(err.Error(), "CloneSet") {
		t.Errorf("a Pod: %v, want the kinds that there are", err)
	}
	seen := map[string]bool{}
	for _, k := range All() {
		if arg := k.Arg("x"); seen[arg] {
			t.Errorf("two kinds are %s", arg)
		} else {
			seen[arg] = true
		}
	}
}
