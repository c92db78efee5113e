package validating

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

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
		o      Options
		object []byte
		want   int32
	}{
		"Pods can't be read": {Options{Live: broken}, edit(t, hub, edits{"spec.scaleStrategy.podsToDelete": "[a]"}), http.StatusInternalServerError},
		"a panic":            {Options{Templates: panicking{}}, edit(t, hub, nil), http.StatusInternalServerError},
		"no JSON":            {Options{}, []byte(`{`), http.StatusBadRequest},
		"another version":    {Options{}, edit(t, hub, edits{"apiVersion": "apps.kruise.io/v2"}), http.StatusBadRequest},
		"a senseless field":  {Options{}, edit(t, hub, edits{"spec.template": "[]"}), http.StatusBadRequest},
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
