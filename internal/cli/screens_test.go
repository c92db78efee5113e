package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/doctor"
	"github.com/seed-69ecc383/kruise/internal/cli/explain"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
	"github.com/seed-69ecc383/kruise/internal/cli/lint"
	"github.com/seed-69ecc383/kruise/internal/cli/past"
	"github.com/seed-69ecc383/kruise/internal/cli/screen"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

var (
	update = flag.Bool("update", false, "write the golden files anew")
	noon   = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) // when all screens are shown
)

// shown returns a program, and what it writes, on a screen of 80 columns.
func shown() (*program, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return &program{
		Streams: Streams{In: strings.NewReader(""), Out: out, Err: out}, screen: &screen.Screen{Writer: out, Width: screen.DefaultWidth},
		now: func() time.Time { return noon },
	}, out
}

// golden compares a screen with its file, and checks that it fits.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Error(d)
	}
	for line := range strings.SplitSeq(got, "\n") {
		if n := len([]rune(line)); n > screen.DefaultWidth {
			t.Errorf("a line of %d columns: %s", n, line)
		}
		if strings.Contains(line, "\x1b") {
			t.Errorf("a line with colour: %q", line)
		}
	}
}

// codeOf returns the exit code that an error stands for.
func codeOf(err error) int {
	var end *exit
	if errors.As(err, &end) {
		return end.code
	}
	return exitOK
}

func objectOf(t *testing.T, group, kind, text string) access.Object {
	t.Helper()
	k, err := kinds.Of(schema.GroupKind{Group: group, Kind: kind})
	if err != nil {
		t.Fatal(err)
	}
	o := access.Object{Kind: k, Unstructured: &unstructured.Unstructured{}}
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := utiljson.Unmarshal(encoded, &o.Object); err != nil { // whole numbers stay such
		t.Fatal(err)
	}
	o.SetGroupVersionKind(k.GroupVersionKind)
	o.SetName("web")
	o.SetNamespace("shop")
	o.SetUID("u")
	o.SetGeneration(2)
	return o
}

func cloneSet(t *testing.T, spec, status string) access.Object {
	t.Helper()
	return objectOf(t, "apps.kruise.io", "CloneSet", "{spec: {replicas: 5, "+spec+"}, status: {observedGeneration: 2, replicas: 5, "+status+"}}")
}

// entry returns a stored revision of the CloneSet web.
func entry(t *testing.T, number int64, name, podSpec string) past.Entry {
	t.Helper()
	template := map[string]any{}
	if err := yaml.Unmarshal([]byte("{metadata: {labels: {app: web}}, spec: "+podSpec+"}"), &template); err != nil {
		t.Fatal(err)
	}
	encoded, err := yaml.Marshal(map[string]any{"spec": map[string]any{"template": template}})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := yaml.YAMLToJSON(encoded)
	if err != nil {
		t.Fatal(err)
	}
	rev := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: runtime.RawExtension{Raw: raw}}
	return past.Entry{
		Revision: number, Name: name, Created: metav1.NewTime(noon.Add(-time.Duration(100-number) * time.Hour)), Template: template,
		Images: kinds.ImagesIn(template["spec"].(map[string]any)), Stored: rev,
	}
}

func entries(t *testing.T) []past.Entry {
	t.Helper()
	return []past.Entry{
		entry(t, 3, "web-7f9c4d", "{containers: [{name: app, image: 'web:v3', command: [serve]}, {name: log, image: 'log:v1'}]}"),
		entry(t, 2, "web-5b6d8e", "{containers: [{name: app, image: 'web:v2'}, {name: log, image: 'log:v1'}]}"),
		entry(t, 1, "web-66d9aa", "{containers: [{name: app, image: 'web:v1'}, {name: log, image: 'log:v1'}]}"),
	}
}

func TestStatusScreen(t *testing.T) {
	for name, tc := range map[string]struct {
		spec, status string
		code         int
	}{
		"status-updating": {"", `availableReplicas: 3, updatedReplicas: 2, updatedAvailableReplicas: 1, conditions: [{type: Waiting, status: "True", message: "web-4xq: container app: ImagePullBackOff: Back-off pulling image web:v2; 1 more Pod is not in service"}]`, exitTimeout},
		"status-done":     {"", "availableReplicas: 5, updatedReplicas: 5, updatedAvailableReplicas: 5", exitOK},
		"status-partition": {"updateStrategy: {rollingUpdate: {partition: 3}}",
			"availableReplicas: 5, updatedReplicas: 2, updatedAvailableReplicas: 2", exitOK},
		"status-paused": {"updateStrategy: {rollingUpdate: {paused: true}}",
			"availableReplicas: 5, updatedReplicas: 2, updatedAvailableReplicas: 2", exitWaits},
		"status-failed": {"", `availableReplicas: 4, updatedReplicas: 2, updatedAvailableReplicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: CloneSet revision web-7f9 has timed out progressing}]`, exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			p, out := shown()
			f := &following{program: p, statusOptions: &statusOptions{}, began: noon}
			if err := f.follow(context.Background(), cloneSet(t, tc.spec, tc.status)); err != nil {
				t.Fatal(err)
			}
			if code := codeOf(f.exit()); code != tc.code {
				t.Errorf("the exit code is %d, want %d", code, tc.code)
			}
			golden(t, name, out.String())
		})
	}
}

func TestHistoryScreen(t *testing.T) {
	p, out := shown()
	all := entries(t)
	var pods []corev1.Pod
	for _, revision := range []string{"web-7f9c4d", "7f9c4d", "web-66d9aa"} {
		pods = append(pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: revision}}})
	}
	past.CountPods(all, pods)
	p.historyText(cloneSet(t, "", ""), all)
	golden(t, "history", out.String())
	out.Reset()
	if err := p.showRevision("", cloneSet(t, "", ""), all, 2); err != nil {
		t.Fatal(err)
	}
	golden(t, "history-revision", out.String())
}

func TestDiffScreen(t *testing.T) {
	for name, between := range map[string][2]int64{"diff-recreate": {0, 0}, "diff-in-place": {1, 2}} {
		t.Run(name, func(t *testing.T) {
			p, out := shown()
			o := cloneSet(t, "", "")
			c, err := compare(o, entries(t), between[0], between[1])
			if err != nil {
				t.Fatal(err)
			}
			p.diffText(o, c)
			golden(t, name, out.String())
		})
	}
}

func TestScaleDown(t *testing.T) {
	path := []string{"spec", "scaleStrategy", "podsToDelete"}
	for name, tc := range map[string]struct {
		spec     string
		pods     []string
		replicas int64
		listed   []string
		refused  string
	}{
		"two Pods":                            {"replicas: 5", []string{"a", "b"}, 3, []string{"a", "b"}, ""},
		"one that is listed counts no more":   {"replicas: 5, scaleStrategy: {podsToDelete: [a]}", []string{"a", "b"}, 4, []string{"a", "b"}, ""},
		"all are listed":                      {"replicas: 5, scaleStrategy: {podsToDelete: [a]}", []string{"a"}, 5, []string{"a"}, ""},
		"more than there are to be":           {"replicas: 1", []string{"a", "b"}, 0, nil, "2 Pods are named, and spec.replicas is 1"},
		"replicas is 1 where it is not given": {"paused: false", []string{"a"}, 0, []string{"a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := objectOf(t, "apps.kruise.io", "CloneSet", "{spec: {"+tc.spec+"}}")
			err := scaleDown(o.Unstructured, path, tc.pods)
			if tc.refused != "" {
				if err == nil || err.Error() != tc.refused {
					t.Errorf("error %v, want %s", err, tc.refused)
				}
				return
			}
			replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
			listed, _, _ := unstructured.NestedStringSlice(o.Object, path...)
			if d := cmp.Diff(tc.listed, listed); err != nil || replicas != tc.replicas || d != "" {
				t.Errorf("replicas %d, %v\n%s", replicas, err, d)
			}
		})
	}
}

func TestImageArgs(t *testing.T) {
	for name, tc := range map[string]struct {
		args    []string
		named   []string
		images  map[string]string
		refused string
	}{
		"a tag and a digest": {[]string{"clone/web", "app=reg:5000/web@sha256:1"}, []string{"clone/web"}, map[string]string{"app": "reg:5000/web@sha256:1"}, ""},
		"two containers":     {[]string{"clone", "web", "app=a", "*=b"}, []string{"clone", "web"}, map[string]string{"app": "a", "*": "b"}, ""},
		"no image":           {[]string{"clone/web"}, nil, nil, "no image is given: add CONTAINER=IMAGE, such as app=web:v2"},
		"no container":       {[]string{"clone/web", "=a"}, nil, nil, `"=a" is not CONTAINER=IMAGE, such as app=web:v2`},
		"a name at the end":  {[]string{"clone", "app=a", "web"}, nil, nil, `"web" is not CONTAINER=IMAGE, such as app=web:v2`},
	} {
		t.Run(name, func(t *testing.T) {
			named, images, err := imageArgs(tc.args)
			if tc.refused != "" {
				if err == nil || err.Error() != tc.refused {
					t.Errorf("error %v, want %s", err, tc.refused)
				}
				return
			}
			if d := cmp.Diff(tc.named, named) + cmp.Diff(tc.images, images); err != nil || d != "" {
				t.Error(err, d)
			}
		})
	}
}

// TestApprovable checks what an approval stands for.
func TestApprovable(t *testing.T) {
	for name, tc := range map[string]struct {
		at      string
		step    int32
		already bool
		refused string
	}{
		"the step that waits":                     {"currentStepIndex: 1, currentStepState: StepPaused", 0, false, ""},
		"that step, by its number":                {"currentStepIndex: 1, currentStepState: StepPaused", 1, false, ""},
		"a step that has gone":                    {"currentStepIndex: 2, currentStepState: StepUpgrade", 1, true, ""},
		"a step that is approved":                 {"currentStepIndex: 1, currentStepState: StepReady", 1, true, ""},
		"whatever waits, but it is approved":      {"currentStepIndex: 1, currentStepState: StepReady", 0, false, "is approved already"},
		"a step to come":                          {"currentStepIndex: 1, currentStepState: StepPaused", 2, false, "not yet at step 2"},
		"a step that is under way":                {"currentStepIndex: 1, currentStepState: StepUpgrade", 0, false, "does not wait for an approval"},
		"a pause that would end by itself is cut": {"currentStepIndex: 2, currentStepState: StepPaused", 0, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := shown()
			r, err := p.released(context.Background(), objectOf(t, "rollouts.kruise.io", "Rollout", `{
  spec: {workloadRef: {kind: CloneSet, name: web}, strategy: {canary: {steps: [{replicas: 1}, {replicas: 2, pause: {duration: 5}}]}}},
  status: {phase: Progressing, canaryStatus: {`+tc.at+`}}}`))
			if err != nil {
				t.Fatal(err)
			}
			already, err := approvable(r, tc.step)
			if already != tc.already || (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("already %v, %v, want %v and an error about %q", already, err, tc.already, tc.refused)
			}
		})
	}
}

func TestRolloutOf(t *testing.T) {
	o := cloneSet(t, "", "")
	if got := rolloutOf(o); got != "" {
		t.Errorf("without a mark it is released by %q", got)
	}
	o.SetAnnotations(map[string]string{keys.InProgressing: `{"rolloutName":"demo"}`})
	if got := rolloutOf(o); got != "demo" {
		t.Errorf("it is released by %q", got)
	}
}

func TestExplainScreen(t *testing.T) {
	at := noon.Add(-6 * time.Minute)
	e := explain.Explanation{
		Cause: explain.Reason{
			Pod: "web-77a", Code: reason.WaitImagePull, Why: "container app: ImagePullBackOff: Back-off pulling image web:v2", Since: &at,
			Free: "mend the image or the configuration that Pod web-77a has (kubectl describe pod web-77a); or put the old template back: " +
				"`kubectl kruise undo cloneset/web`",
		},
		Pods: []explain.Reason{
			{Pod: "web-77a", Code: reason.WaitImagePull, Why: "container app: ImagePullBackOff: Back-off pulling image web:v2", Since: &at},
			{Pod: "web-4xq", Code: reason.WaitMinReady, Why: "ready, and in service in 50s (minReadySeconds 60)", Since: &at},
			{Pod: "web-c0d", Code: reason.WaitBudget, Why: "2 Pods wait: maxUnavailable 2 is used up"},
			{Pod: "web-z1m", Code: reason.HeldByPartition, Why: "the partition keeps it at its template"},
		},
		UpToDate: 3,
	}
	p, out := shown()
	p.explainText(cloneSet(t, "", ""), e)
	golden(t, "explain", out.String())
	out.Reset()
	p.causeText("web-77a", e.Cause)
	golden(t, "explain-pod", out.String())
}

func TestSplitPod(t *testing.T) {
	for args, want := range map[string]string{"clone/web": "", "clone/web web-a": "web-a", "clone web": "", "clone web web-a": "web-a"} {
		if _, pod := splitPod(strings.Fields(args)); pod != want {
			t.Errorf("%s: the Pod is %q, want %q", args, pod, want)
		}
	}
}

func TestLintScreen(t *testing.T) {
	for name, tc := range map[string]struct {
		found lint.Result
		code  int
	}{
		"lint-clean": {lint.Result{Objects: 3, Ours: 2}, exitOK},
		"lint": {lint.Result{Objects: 2, Ours: 1, Errors: 1, Warnings: 1, Findings: []lint.Finding{
			{File: "web.yaml", Line: 1, Object: "CloneSet web", Severity: lint.Error, Field: "spec.replicas", Message: "Invalid value: -1: should be a non-negative integer"},
			{
				File: "web.yaml", Line: 20, Object: "Deployment api", Severity: lint.Warning, Field: "metadata.labels[policy.kruise.io/delete-protecton]",
				Message: "it is read by nobody: did you mean policy.kruise.io/delete-protection?",
			},
		}}, exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			p, out := shown()
			if got := codeOf(p.linted(screen.Text, tc.found)); got != tc.code {
				t.Errorf("the exit code is %d, want %d", got, tc.code)
			}
			golden(t, name, out.String())
		})
	}
}

func TestDoctorScreen(t *testing.T) {
	found := []doctor.Finding{
		{
			Severity: doctor.Broken, What: "the Lease kruise-manager was last renewed 6m0s ago, by \"m-1\"", Why: "no manager leads: controllers stand still",
			Mend: "kubectl -n kruise-system get pods; kubectl -n kruise-system logs deployment/kruise-controller-manager",
		},
		{
			Severity: doctor.Warning, What: "1 nodes have no daemon that is ready: n2", Why: "containers are not restarted, images not pulled and probes not run there",
			Mend: "kubectl -n kruise-system get pods -l control-plane=daemon -o wide",
		},
	}
	for name, tc := range map[string]struct {
		found []doctor.Finding
		code  int
	}{"doctor-sound": {nil, exitOK}, "doctor-warning": {found[1:], exitWaits}, "doctor-broken": {found, exitFailed}} {
		t.Run(name, func(t *testing.T) {
			p, out := shown()
			if got := codeOf(p.diagnosed(screen.Text, tc.found)); got != tc.code {
				t.Errorf("the exit code is %d, want %d", got, tc.code)
			}
			golden(t, name, out.String())
		})
	}
}
