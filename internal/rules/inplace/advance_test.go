package inplace

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

func newImage(name, ref string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		for i := range t.Spec.Containers {
			if t.Spec.Containers[i].Name == name {
				t.Spec.Containers[i].Image = ref
			}
		}
	}
}

func annotation(key, value string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		if t.Annotations == nil {
			t.Annotations = map[string]string{}
		}
		t.Annotations[key] = value
	}
}

func edited(template *corev1.PodTemplateSpec, edits ...func(*corev1.PodTemplateSpec)) *corev1.PodTemplateSpec {
	template = template.DeepCopy()
	for _, edit := range edits {
		edit(template)
	}
	return template
}

func TestGracePeriod(t *testing.T) {
	target := to("web-2")
	target.GraceSeconds = 5
	began := func(t *testing.T) *corev1.Pod {
		p := podOf(base())
		Begin(p, change(t, base(), changed(newImage("app", "app:v2"))), target)
		return p
	}
	cases := map[string]struct {
		edit      func(*corev1.Pod)
		seconds   float64
		want      Step
		wantImage string
	}{
		"the whole period is left": {nil, 0, Step{Wait: 5 * time.Second}, "app:v1"},
		"a rest is rounded up":     {nil, 2.5, Step{Wait: 3 * time.Second}, "app:v1"},
		"a moment is left":         {nil, 4.999, Step{Wait: time.Second}, "app:v1"},
		"it is over":               {nil, 5, Step{Changed: true}, "app:v2"},
		"it was over long ago":     {nil, 5000, Step{Changed: true}, "app:v2"},
		"a short hash is the revision, too": {
			func(p *corev1.Pod) { p.Labels["controller-revision-hash"] = "2" },
			5,
			Step{Changed: true},
			"app:v2",
		},
		"the Pod was given another revision": {
			func(p *corev1.Pod) { p.Labels["controller-revision-hash"] = "web-3" }, 1, Step{Changed: true}, "app:v1",
		},
		"the Pod has lost its revision": {
			func(p *corev1.Pod) { delete(p.Labels, "controller-revision-hash") }, 9, Step{Changed: true}, "app:v1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := began(t)
			if tc.edit != nil {
				tc.edit(p)
			}
			if diff := cmp.Diff(tc.want, step(t, p, tc.seconds)); diff != "" {
				t.Error(diff)
			}
			if got := pod.Container(p, "app").Image; got != tc.wantImage {
				t.Errorf("the image is %s, want %s", got, tc.wantImage)
			}
			if got, want := Pending(p), !tc.want.Changed; got != want {
				t.Errorf("a plan on the Pod: %v, want %v", got, want)
			}
		})
	}
}

// sidecarFirst is a template whose sidecar, which takes an annotation into its environment, starts before main.
func sidecarFirst() *corev1.PodTemplateSpec {
	return templateOf(
		container("main", "main:v1", barrier("0")),
		container("sidecar", "sidecar:v1", barrier("10"), fromField("CONFIG", "metadata.annotations['app-config']")),
	)
}

func TestTheSidecarRunsWithItsNewConfigurationBeforeMainChanges(t *testing.T) {
	p := podOf(sidecarFirst())
	Begin(p, change(t, sidecarFirst(), edited(sidecarFirst(), newImage("main", "main:v2"), annotation("app-config", "2"))), to("web-2"))
	step(t, p, 1)

	state := stateOf(t, p)
	if diff := cmp.Diff(map[string]string{"main": "main:v2"}, state.NextContainerImages); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"sidecar"}, state.PreCheckBeforeNext.ContainersRequiredReady); diff != "" {
		t.Error(diff)
	}
	if p.Annotations["app-config"] != "2" || pod.Container(p, "main").Image != "main:v1" {
		t.Errorf("the first batch left app-config %q and main at %s", p.Annotations["app-config"], pod.Container(p, "main").Image)
	}
	if got := step(t, p, 2); got.Changed {
		t.Error("main changed before the sidecar restarted")
	}
	node{daemon: true}.start(p, "sidecar")
	pod.ContainerStatus(p, "sidecar").Ready = false
	if got := step(t, p, 3); got.Changed {
		t.Error("main changed before the sidecar was ready")
	}
	want := Verdict{Why: "containers main follow once sidecar are ready"}
	if diff := cmp.Diff(want, Progress(p, everything())); diff != "" {
		t.Error(diff)
	}
	pod.ContainerStatus(p, "sidecar").Ready = true
	if got := step(t, p, 4); !got.Changed {
		t.Fatal("main did not change when the sidecar was ready")
	}
	state = stateOf(t, p)
	if len(state.ContainerBatchesRecord) != 2 || hasNext(state) || state.PreCheckBeforeNext != nil {
		t.Errorf("after the last batch the record is %+v", state)
	}
	if diff := cmp.Diff(Verdict{Why: "container main runs main:v1, not yet main:v2"}, Progress(p, everything())); diff != "" {
		t.Error(diff)
	}
	node{daemon: true}.run(p)
	if got := Progress(p, everything()); !got.Done {
		t.Errorf("the update still waits: %s", got.Why)
	}
}

func TestBatches(t *testing.T) {
	cpu := func(name, value string) func(*corev1.PodTemplateSpec) {
		return func(t *corev1.PodTemplateSpec) {
			for i := range t.Spec.Containers {
				if t.Spec.Containers[i].Name == name {
					t.Spec.Containers[i].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(value)}
				}
			}
		}
	}
	three := func(priorities ...string) *corev1.PodTemplateSpec {
		t := templateOf(container("a", "a:v1"), container("b", "b:v1"), container("c", "c:v1"))
		for i, priority := range priorities {
			if priority != "" {
				t.Spec.Containers[i].Env = []corev1.EnvVar{barrier(priority)}
			}
		}
		return edited(t, cpu("a", "1"), cpu("b", "1"), cpu("c", "1"))
	}
	takes := func(name, path string) func(*corev1.PodTemplateSpec) {
		return func(t *corev1.PodTemplateSpec) {
			for i := range t.Spec.Containers {
				if c := &t.Spec.Containers[i]; c.Name == name {
					c.Env = append(c.Env, fromField("V_"+path, path))
				}
			}
		}
	}
	all := []func(*corev1.PodTemplateSpec){newImage("a", "a:v2"), newImage("b", "b:v2"), newImage("c", "c:v2")}
	cases := map[string]struct {
		from  *corev1.PodTemplateSpec
		edits []func(*corev1.PodTemplateSpec)
		want  [][]string
	}{
		"without priorities, all at once":               {three(), all, [][]string{{"a", "b", "c"}}},
		"one after another, the highest priority first": {three("0", "5", "10"), all, [][]string{{"c"}, {"b"}, {"a"}}},
		"priorities are numbers, not text":              {three("9", "10", "-1"), all, [][]string{{"b"}, {"a"}, {"c"}}},
		"of one priority together":                      {three("1", "0", "1"), all, [][]string{{"a", "c"}, {"b"}}},
		"those without a priority go first":             {three("", "1", "0"), all, [][]string{{"a", "b"}, {"c"}}},
		"a priority that is no number counts as none":   {three("x", "1", "0"), all, [][]string{{"a", "b"}, {"c"}}},
		"only what changes":                             {three("0", "5", "10"), all[:2], [][]string{{"b"}, {"a"}}},
		"a later batch that is only resized": {
			three("0", "5", "10"), []func(*corev1.PodTemplateSpec){newImage("c", "c:v2"), cpu("a", "2")}, [][]string{{"c"}, {"a"}},
		},
		"nothing but resources": {
			three("0", "5", "10"), []func(*corev1.PodTemplateSpec){cpu("b", "2"), cpu("a", "2")}, [][]string{{"b"}, {"a"}},
		},
		"those that share an annotation together": {
			edited(three("0", "5", "10"), takes("a", "metadata.annotations['x']"), takes("c", "metadata.annotations['x']")),
			append([]func(*corev1.PodTemplateSpec){annotation("x", "1")}, all...),
			[][]string{{"a", "c"}, {"b"}},
		},
		"those that share through another together": {
			edited(three("0", "5", "10"),
				takes("a", "metadata.annotations['x']"), takes("b", "metadata.annotations['x']"),
				takes("b", "metadata.annotations['y']"), takes("c", "metadata.annotations['y']")),
			[]func(*corev1.PodTemplateSpec){annotation("x", "1"), annotation("y", "1")},
			[][]string{{"a", "b", "c"}},
		},
		"a label and an annotation of one name are not shared": {
			edited(three("0", "5", "10"), takes("a", "metadata.labels['x']"), takes("c", "metadata.annotations['x']")),
			[]func(*corev1.PodTemplateSpec){annotation("x", "1"), func(t *corev1.PodTemplateSpec) { t.Labels["x"] = "1" }},
			[][]string{{"c"}, {"a"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := podOf(tc.from)
			Begin(p, change(t, tc.from, edited(tc.from, tc.edits...)), to("web-2"))
			for i := 1; step(t, p, float64(i)).Changed; i++ {
				node{daemon: true}.run(p)
			}
			var got [][]string
			for i, batch := range stateOf(t, p).ContainerBatchesRecord {
				got = append(got, batch.Containers)
				if want := at(float64(i + 1)); !batch.Timestamp.Time.Equal(want) {
					t.Errorf("batch %d was at %s, want %s", i, batch.Timestamp, want)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if got := Progress(p, everything()); !got.Done {
				t.Errorf("the update waits: %s", got.Why)
			}
		})
	}
}

func TestOnlyContainersOfThePodAreWaitedFor(t *testing.T) {
	p := podOf(sidecarFirst())
	write(p, &pub.InPlaceUpdateState{
		Revision: "web-1", UpdateImages: true,
		NextContainerImages: map[string]string{"main": "main:v2", "stranger": "stranger:v2"},
		PreCheckBeforeNext:  &pub.InPlaceUpdatePreCheckBeforeNext{ContainersRequiredReady: []string{"taken-out"}},
	}, keys.InPlaceUpdateState)
	if !step(t, p, 1).Changed || step(t, p, 2).Changed {
		t.Fatal("the containers did not change in one batch")
	}
	node{}.run(p)
	if got := Progress(p, everything()); !got.Done {
		t.Errorf("the update waits: %s", got.Why)
	}
}

func TestRecordsThatCannotBeReadAreRemoved(t *testing.T) {
	planned := `{"revision":"web-2","containerImages":{"app":"app:v2"},"graceSeconds":5}`
	cases := map[string]struct {
		state, plan  string
		held         bool
		want         Step
		wantProblem  string
		wantRevision string
		wantImage    string
		wantState    bool
		wantPending  bool
	}{
		"the record of an update that is done": {
			state: "{", want: Step{Changed: true}, wantRevision: "web-2", wantImage: "app:v1",
			wantProblem: "pod web-x: reading annotation apps.kruise.io/inplace-update-state: unexpected end of JSON input; it is removed",
		},
		"the record of an update that is under way": {
			state: "[]", held: true, want: Step{Changed: true}, wantImage: "app:v1",
			wantProblem: "pod web-x: reading annotation apps.kruise.io/inplace-update-state: json: cannot unmarshal array into Go value " +
				"of type pub.InPlaceUpdateState; its update starts again",
		},
		"the plan": {
			state: `{"revision":"web-2"}`, plan: "nonsense", held: true, want: Step{Changed: true}, wantImage: "app:v1",
			wantProblem: "pod web-x: reading annotation apps.kruise.io/inplace-update-grace: invalid character 'o' in literal null " +
				"(expecting 'u'); its update starts again",
		},
		"nothing, when the metadata of the plan is empty": {
			state: `{"revision":"web-2"}`, plan: `{"revision":"web-2","metaDataPatch":"e30K","containerImages":{"app":"app:v2"}}`,
			held: true, want: Step{Changed: true}, wantRevision: "web-2", wantImage: "app:v2", wantState: true,
		},
		"the metadata of the plan is no JSON": {
			state: `{"revision":"web-2"}`, plan: `{"revision":"web-2","metaDataPatch":"Ww=="}`, held: true,
			want: Step{Changed: true}, wantImage: "app:v1",
			wantProblem: "pod web-x: reading the metadata patch: unexpected end of JSON input; its update starts again",
		},
		"the record beside a plan, which holds all that it said": {
			state: "{", plan: planned, held: true, want: Step{Changed: true, Wait: 5 * time.Second},
			wantRevision: "web-2", wantImage: "app:v1", wantState: true, wantPending: true,
			wantProblem: "pod web-x: reading annotation apps.kruise.io/inplace-update-state: unexpected end of JSON input; it is written anew",
		},
		"no record beside a plan": {
			plan: planned, held: true, want: Step{Changed: true, Wait: 5 * time.Second},
			wantRevision: "web-2", wantImage: "app:v1", wantState: true, wantPending: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := podOf(base())
			p.Labels["controller-revision-hash"] = "web-2"
			for key, text := range map[string]string{keys.InPlaceUpdateState: tc.state, keys.InPlaceUpdateGrace: tc.plan} {
				if text != "" {
					p.Annotations[key] = text
				}
			}
			if tc.held {
				pod.SetGate(p, corev1.PodCondition{Type: pub.InPlaceUpdateReady, Status: corev1.ConditionFalse}, at(0))
			}
			got := Advance(p, everything(), at(0))
			problem := ""
			if got.Problem != nil {
				problem, got.Problem = got.Problem.Error(), nil
			}
			if diff := cmp.Diff(tc.wantProblem, problem); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			state, err := State(p)
			if err != nil || (state != nil) != tc.wantState || Pending(p) != tc.wantPending {
				t.Errorf("afterwards the record is %+v, %v, and a plan is there: %v", state, err, Pending(p))
			}
			if got := p.Labels["controller-revision-hash"]; got != tc.wantRevision {
				t.Errorf("the revision is %q, want %q", got, tc.wantRevision)
			}
			if got := pod.Container(p, "app").Image; got != tc.wantImage {
				t.Errorf("the image is %s, want %s", got, tc.wantImage)
			}
			if again := Advance(p, everything(), at(0)); again.Problem != nil || again.Changed {
				t.Errorf("a second look finds %+v", again)
			}
		})
	}
}

func TestTheFirstSpellingOfTheAnnotationsIsReadAndReplaced(t *testing.T) {
	p := podOf(base())
	p.Labels["controller-revision-hash"] = "web-2"
	p.Annotations[keys.InPlaceUpdateStateOld] = `{"revision":"web-2","updateTimestamp":"2026-03-01T12:00:00Z","lastContainerStatuses":null}`
	p.Annotations[keys.InPlaceUpdateGraceOld] = `{"revision":"web-2","containerImages":{"app":"app:v2"},"graceSeconds":5,` +
		`"oldTemplate":{"spec":{}},"newTemplate":{"spec":{}}}`
	if !Pending(p) || Progress(p, everything()).Done {
		t.Error("the plan is not seen")
	}
	if diff := cmp.Diff(Step{Wait: 4 * time.Second}, step(t, p, 1)); diff != "" {
		t.Error(diff)
	}
	if !step(t, p, 5).Changed || pod.Container(p, "app").Image != "app:v2" {
		t.Error("the plan was not carried out")
	}
	for _, key := range []string{keys.InPlaceUpdateStateOld, keys.InPlaceUpdateGraceOld, keys.InPlaceUpdateGrace} {
		if _, ok := p.Annotations[key]; ok {
			t.Errorf("annotation %s is still there", key)
		}
	}
}

func TestAClockThatWasSetBackStartsTheGracePeriodAgain(t *testing.T) {
	p := podOf(base())
	write(p, &pub.InPlaceUpdateState{Revision: "web-1", UpdateTimestamp: ceilSecond(at(1e9))}, keys.InPlaceUpdateState)
	write(p, &Planned{Revision: "web-1", ContainerImages: map[string]string{"app": "app:v2"}, GraceSeconds: 5}, keys.InPlaceUpdateGrace)
	for i, want := range []Step{{Changed: true, Wait: 5 * time.Second}, {Wait: 4 * time.Second}} {
		if diff := cmp.Diff(want, step(t, p, float64(i))); diff != "" {
			t.Error(diff)
		}
	}
	if !step(t, p, 5).Changed || pod.Container(p, "app").Image != "app:v2" {
		t.Error("the update does not go on")
	}
}
