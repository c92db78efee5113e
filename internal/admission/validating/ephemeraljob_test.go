package validating

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const shellJob = `
apiVersion: apps.kruise.io/v1alpha1
kind: EphemeralJob
metadata: {name: shell, namespace: ns}
spec:
  selector: {matchLabels: {app: web}}
  template: {ephemeralContainers: [{name: shell, image: "busybox:1", targetContainerName: app}]}`

func TestEphemeralJobRules(t *testing.T) {
	const at = "spec.template.ephemeralContainers"
	one := func(fields string) edits { return edits{at: "[{name: shell, image: busybox, " + fields + "}]"} }
	for name, tc := range map[string]struct {
		old  edits // unset creates
		new  edits
		want string
	}{
		"a valid job":                       {want: "allowed"},
		"all that an ephemeral one may say": {new: one("terminationMessagePolicy: File, imagePullPolicy: Always, stdin: true, env: [{name: A, value: b}], volumeMounts: [{name: v, mountPath: /v}]"), want: "allowed"},
		"a selector that can't be read":     {new: edits{"spec.selector": "{matchExpressions: [{key: a, operator: Near}]}"}, want: `spec.selector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator`},
		"no containers":                     {new: edits{at: "[]"}, want: at + ": Required value: there is nothing to add without a container"},
		"too many containers": {
			new:  edits{at: "[" + strings.Repeat("{name: a, image: x}, ", 65) + "]"},
			want: at + ": Too many: 65: must have at most 64 items",
		},
		"no name":                          {new: edits{at: "[{image: busybox}]"}, want: at + "[0].name: Required value: name the container"},
		"a bad name":                       {new: edits{at: "[{name: Shell, image: busybox}]"}, want: at + `[0].name: Invalid value: "Shell": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`},
		"a name twice":                     {new: edits{at: "[{name: a, image: x}, {name: a, image: x}]"}, want: at + `[1].name: Duplicate value: "a"`},
		"no image":                         {new: edits{at: "[{name: a}]"}, want: at + "[0].image: Required value: image can not be empty"},
		"ports":                            {new: one("ports: [{containerPort: 80}]"), want: at + "[0].ports: Forbidden: an ephemeral container can't have it"},
		"resources":                        {new: one("resources: {limits: {cpu: 1}}"), want: at + "[0].resources: Forbidden: an ephemeral container can't have it"},
		"a probe":                          {new: one("livenessProbe: {exec: {command: [ls]}}"), want: at + "[0].livenessProbe: Forbidden: an ephemeral container can't have it"},
		"a hook":                           {new: one("lifecycle: {preStop: {sleep: {seconds: 1}}}"), want: at + "[0].lifecycle: Forbidden: an ephemeral container can't have it"},
		"a restart policy":                 {new: one("restartPolicy: Always"), want: at + "[0].restartPolicy: Forbidden: an ephemeral container can't have it"},
		"a part of a volume":               {new: one("volumeMounts: [{name: v, mountPath: /v, subPath: x}]"), want: at + "[0].volumeMounts[0].subPath: Forbidden: an ephemeral container can only mount a whole volume"},
		"a part of a volume by a variable": {new: one("volumeMounts: [{name: v, mountPath: /v, subPathExpr: $(A)}]"), want: at + "[0].volumeMounts[0].subPathExpr: Forbidden: an ephemeral container can only mount a whole volume"},
		"a bad target":                     {new: one("targetContainerName: a_b"), want: at + `[0].targetContainerName: Invalid value: "a_b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`},
		"a reserved variable":              {new: one("env: [{name: KRUISE_EJOB_ID, value: x}]"), want: at + "[0].env[0].name: Forbidden: KRUISE_EJOB_ID is reserved: the controller gives it to the containers"},
		"other numbers, later":             {old: edits{}, new: edits{"spec.parallelism": "3", "spec.paused": "true", "spec.activeDeadlineSeconds": "60"}, want: "allowed"},
		"other containers, later":          {old: edits{}, new: one("tty: true"), want: "spec.template: Forbidden: is immutable: make another EphemeralJob to add other containers"},
		"an old mistake is labelled":       {old: edits{at: "[]"}, new: edits{at: "[]", "metadata.labels": "{a: b}"}, want: "allowed"},
		"an old mistake is paused":         {old: edits{at: "[]"}, new: edits{at: "[]", "spec.paused": "true"}, want: "allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			var old []byte
			if tc.old != nil {
				old = edit(t, shellJob, tc.old)
			}
			got := strings.Join(causes(askJob(EphemeralJob(Options{}), edit(t, shellJob, tc.new), old)), "\n")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAListThatIsNone(t *testing.T) {
	response := askJob(EphemeralJob(Options{}), edit(t, shellJob, edits{"spec.template.ephemeralContainers": "many"}), nil)
	if response.Allowed || response.Result.Code != http.StatusBadRequest {
		t.Errorf("the answer is %+v", response)
	}
}

// asked is a checker that notes what it was asked and answers with a verdict.
type asked struct {
	template map[string]any
	verdict  Verdict
}

func (a *asked) Check(_ context.Context, _ string, template map[string]any) Verdict {
	a.template = template
	return a.verdict
}

func TestContainersAreJudgedAsOrdinaryOnes(t *testing.T) {
	checker := &asked{verdict: Verdict{
		Errors:   field.ErrorList{field.Invalid(field.NewPath("template", "spec", "containers").Index(0).Child("env").Index(0).Child("name"), "=", "no name")},
		Warnings: []string{`template.spec.containers[0].env[1]: hides previous definition`},
	}}
	object := edit(t, shellJob, edits{"spec.template.ephemeralContainers": `[
		{name: shell, image: x, tty: true, targetContainerName: app, volumeMounts: [{name: v, mountPath: /v}, {name: v, mountPath: /w}], volumeDevices: [{name: d, devicePath: /d}]}]`})
	response := askJob(EphemeralJob(Options{Templates: checker}), object, nil)
	if diff := cmp.Diff([]string{`spec.template.ephemeralContainers[0].env[0].name: Invalid value: "=": no name`}, causes(response)); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"spec.template.ephemeralContainers[0].env[1]: hides previous definition"}, response.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	want := map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{
			"name": "shell", "image": "x", "tty": true,
			"volumeMounts":  []any{map[string]any{"name": "v", "mountPath": "/v"}, map[string]any{"name": "v", "mountPath": "/w"}},
			"volumeDevices": []any{map[string]any{"name": "d", "devicePath": "/d"}},
		}},
		"volumes": []any{
			map[string]any{"name": "d", "persistentVolumeClaim": map[string]any{"claimName": "any"}},
			map[string]any{"name": "v", "emptyDir": map[string]any{}},
		},
	}}
	if diff := cmp.Diff(want, checker.template); diff != "" {
		t.Errorf("the template (-want +got):\n%s", diff)
	}
	checker.verdict = Verdict{}
	response = askJob(EphemeralJob(Options{Templates: checker}), object, nil)
	want2 := []string{"container shell has stdin or tty, and may never end, nor the job: set spec.activeDeadlineSeconds"}
	if diff := cmp.Diff(want2, response.Warnings); diff != "" || !response.Allowed {
		t.Errorf("allowed %v, warnings (-want +got):\n%s", response.Allowed, diff)
	}
}
