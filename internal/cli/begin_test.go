package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/cli/past"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// TestBegins checks that a Rollout is not done whose workload has a new template that it has not seen.
func TestBegins(t *testing.T) {
	done := progress.Progress{Phase: progress.Failed, Reason: progress.GivenUp, Message: "the last release did not succeed", Next: "x"}
	for mark, want := range map[string]progress.Phase{"": progress.Failed, `{"rolloutName":"demo"}`: progress.Updating, `{"rolloutName":"other"}`: progress.Failed} {
		o := cloneSet(t, "", "")
		if mark != "" {
			o.SetAnnotations(map[string]string{keys.InProgressing: mark})
		}
		p := begins(done, "demo", o)
		if p.Phase != want || p.Begins != (want == progress.Updating) || p.Begins && (p.Next != "" || !strings.Contains(p.Message, "cloneset/web")) {
			t.Errorf("with mark %q it is %+v", mark, p)
		}
	}
}

// TestRestoreOver checks that an earlier template takes the place of none but the one that was shown.
func TestRestoreOver(t *testing.T) {
	const spec = "template: {spec: {containers: [{name: app, image: 'web:v2'}]}}"
	shown, now := cloneSet(t, spec, ""), cloneSet(t, "paused: true, "+spec, "")
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": "web:v1"}}}}
	restore := restoreOver(shown, past.Entry{Template: template})
	if err := restore(now.Unstructured); err != nil {
		t.Fatal(err)
	}
	if images := now.Kind.Images(now.Unstructured); len(images) != 1 || images[0] != "app=web:v1" {
		t.Errorf("it has images %v", images)
	}
	err := restore(cloneSet(t, strings.Replace(spec, "v2", "v3", 1), "").Unstructured)
	if err == nil || !strings.Contains(err.Error(), "was changed while this was shown") {
		t.Errorf("over another template: %v", err)
	}
}

// TestFromFile checks which object of a file is meant.
func TestFromFile(t *testing.T) {
	p, _ := shown()
	file := filepath.Join(t.TempDir(), "web.yaml")
	for text, refused := range map[string]string{
		"{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web}}":                                         "",
		"{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: web, namespace: shop}}":                       "",
		"{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web, namespace: other}}":                       "holds no CloneSet shop/web: give the file",
		"{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: web}}":                                      "holds no CloneSet shop/web",
		"{apiVersion: v1, kind: ConfigMap}\n---\n{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web}}": "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		u, err := p.fromFile(file, cloneSet(t, "", ""))
		if refused == "" {
			if err != nil || u.GroupVersionKind().Version != "v1beta1" {
				t.Errorf("%s: %v, %v", text, u, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: error %v, want one about %q", text, err, refused)
		}
	}
}

// TestPodAlone checks when a Pod is named without its workload.
func TestPodAlone(t *testing.T) {
	for args, want := range map[string]string{"pod/web-a": "web-a", "po web-a": "web-a", "clone/web pod/web-a": "", "clone/pod": "", "pod": "", "podset/a": ""} {
		if got, alone := podAlone(strings.Fields(args)); alone != (want != "") || alone && got != want {
			t.Errorf("%s: the Pod is %q (%v), want %q", args, got, alone, want)
		}
	}
}

// TestRolloutCause checks the reasons that a Rollout itself stands still for.
func TestRolloutCause(t *testing.T) {
	const paused = "phase: Progressing, canaryStatus: {currentStepIndex: 1, currentStepState: StepPaused}"
	condition := func(kind, status, reason string) string {
		return ", conditions: [{type: " + kind + ", status: '" + status + "', reason: " + reason + ", message: because}]"
	}
	for name, tc := range map[string]struct {
		spec, status string
		want         reason.Code
		free         string
	}{
		"an approval":            {"", paused, reason.WaitApproval, "kubectl kruise approve web"},
		"a pause":                {"paused: true, ", paused, reason.HeldByPause, "kubectl kruise resume rollout/web"},
		"a failed analysis":      {"", paused + condition("Progressing", "True", v1beta1.ReasonAnalysisFailed), reason.Stopped, "kubectl kruise retry web"},
		"a deadline":             {"", paused + condition("Progressing", "True", v1beta1.ReasonStepTimeout), reason.DeadlineExceeded, "abort"},
		"a release that is lost": {"", "phase: Healthy" + condition("Succeeded", "False", "X"), reason.Stopped, "begins the next release"},
		"nothing":                {"", "phase: Healthy", reason.Nothing, ""},
		"no workload":            {"", "phase: Initial", reason.Stopped, "create CloneSet web"},
		"a step at work":         {"", strings.Replace(paused, "StepPaused", "StepUpgrade", 1), reason.Updating, "by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			o := objectOf(t, "rollouts.kruise.io", "Rollout", "{spec: {workloadRef: {kind: CloneSet, name: web}, strategy: {"+tc.spec+
				"canary: {steps: [{replicas: 1}]}}}, status: {observedGeneration: 2, "+tc.status+"}}")
			var r v1beta1.Rollout
			if err := o.Into(&r); err != nil {
				t.Fatal(err)
			}
			p, err := o.Kind.Progress(o.Unstructured)
			if err != nil {
				t.Fatal(err)
			}
			c := rolloutCause(o, &r, p)
			if c.Code != tc.want || !strings.Contains(c.Free, tc.free) || (c.Free == "") != (tc.free == "") {
				t.Errorf("it is %+v, want %s and %q", c, tc.want, tc.free)
			}
		})
	}
	o := objectOf(t, "rollouts.kruise.io", "Rollout", "{spec: {}, status: {observedGeneration: 1}}")
	if c := rolloutCause(o, &v1beta1.Rollout{}, progress.Progress{}); c.Code != reason.ControllerLag || !strings.Contains(c.Free, "kruise-rollout") {
		t.Errorf("a spec that was not seen: %+v", c)
	}
}
