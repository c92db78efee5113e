package probe

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

func noon() metav1.Time { return metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)) }

// asker returns a marker for the Pods of app=p, so many seconds old, with a probe a for the given condition.
func asker(name string, age time.Duration, condition string) *v1alpha1.PodProbeMarker {
	m := &v1alpha1.PodProbeMarker{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.NewTime(noon().Add(-age))},
	}
	m.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "p"}}
	m.Spec.Probes = []v1alpha1.PodContainerProbe{{Name: "a", ContainerName: "main", PodConditionType: condition}}
	m.Spec.Probes[0].Probe.Exec = &corev1.ExecAction{Command: []string{"ask"}}
	return m
}

func askable(name string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "p"}},
	}
	p.Spec.NodeName, p.Status.PodIP = "n", "10.0.0.1"
	p.Spec.Containers = []corev1.Container{{Name: "main", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}
	return p
}

func TestPodProbes(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	on := func(change func(*v1alpha1.PodContainerProbe)) *v1alpha1.PodProbeMarker {
		m := asker("m", 0, "c")
		change(&m.Spec.Probes[0])
		return m
	}
	port := func(port intstr.IntOrString) func(*v1alpha1.PodContainerProbe) {
		return func(p *v1alpha1.PodContainerProbe) {
			p.Probe.Exec, p.Probe.TCPSocket = nil, &corev1.TCPSocketAction{Port: port}
		}
	}
	deleted := asker("m", 0, "c")
	deleted.DeletionTimestamp = &metav1.Time{Time: noon().Time}
	everything := asker("m", 0, "c")
	everything.Spec.Selector = &metav1.LabelSelector{}
	pod := func(change func(*corev1.Pod)) *corev1.Pod { p := askable("p"); change(p); return p }
	cases := map[string]struct {
		markers []*v1alpha1.PodProbeMarker
		pods    []*corev1.Pod
		want    []string
	}{
		"one of each": {
			[]*v1alpha1.PodProbeMarker{asker("m", 0, "c")}, []*corev1.Pod{askable("p")}, []string{"p m#a"},
		},
		"sorted by Pod": {
			[]*v1alpha1.PodProbeMarker{asker("m", 0, "c")}, []*corev1.Pod{askable("q"), askable("p")}, []string{"p m#a", "q m#a"},
		},
		"the older marker first": {
			[]*v1alpha1.PodProbeMarker{asker("a", 0, "c"), asker("z", 9, "d")}, []*corev1.Pod{askable("p")}, []string{"p z#a", "p a#a"},
		},
		"the older marker has a condition": {
			[]*v1alpha1.PodProbeMarker{asker("a", 0, "c"), asker("z", 9, "c")}, []*corev1.Pod{askable("p")}, []string{"p z#a"},
		},
		"a marker that is being deleted": {[]*v1alpha1.PodProbeMarker{deleted}, []*corev1.Pod{askable("p")}, nil},
		"a marker of everything":         {[]*v1alpha1.PodProbeMarker{everything}, []*corev1.Pod{askable("p")}, nil},
		"a named port": {
			[]*v1alpha1.PodProbeMarker{on(port(intstr.FromString("web")))}, []*corev1.Pod{askable("p")}, []string{"p m#a 8080"},
		},
		"a port by number": {
			[]*v1alpha1.PodProbeMarker{on(port(intstr.FromInt32(1)))}, []*corev1.Pod{askable("p")}, []string{"p m#a 1"},
		},
		"a port that nothing has": {
			[]*v1alpha1.PodProbeMarker{on(port(intstr.FromString("other")))}, []*corev1.Pod{askable("p")}, nil,
		},
		"a container that the Pod has not": {
			[]*v1alpha1.PodProbeMarker{on(func(p *v1alpha1.PodContainerProbe) { p.ContainerName = "x" })}, []*corev1.Pod{askable("p")}, nil,
		},
		"an init container that stays": {[]*v1alpha1.PodProbeMarker{on(func(p *v1alpha1.PodContainerProbe) { p.ContainerName = "x" })},
			[]*corev1.Pod{pod(func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "x", RestartPolicy: &always}} })},
			[]string{"p m#a"}},
		"a Pod of another namespace": {
			[]*v1alpha1.PodProbeMarker{asker("m", 0, "c")}, []*corev1.Pod{pod(func(p *corev1.Pod) { p.Namespace = "other" })}, nil,
		},
		"a Pod with other labels": {
			[]*v1alpha1.PodProbeMarker{asker("m", 0, "c")}, []*corev1.Pod{pod(func(p *corev1.Pod) { p.Labels = nil })}, nil,
		},
		"a Pod that has ended": {
			[]*v1alpha1.PodProbeMarker{asker("m", 0, "c")}, []*corev1.Pod{pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })},
			nil,
		},
		"a Pod that is initializing": {
			[]*v1alpha1.PodProbeMarker{asker("m", 0, "c")}, []*corev1.Pod{pod(func(p *corev1.Pod) { p.Status.Conditions = nil })}, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			podProbes, _ := NewMarkers(tc.markers).PodProbes(tc.pods)
			for _, p := range podProbes {
				for _, asked := range p.Probes {
					line := p.Name + " " + asked.Name
					if tcp := asked.Probe.TCPSocket; tcp != nil {
						line += " " + tcp.Port.String()
					}
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamesAreTakenApartExactly(t *testing.T) {
	if got := MarkerOf("gateway#way"); got != "gateway" {
		t.Errorf("MarkerOf() = %q", got)
	}
}

func TestMark(t *testing.T) {
	const yes, no, unknown = v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed, v1alpha1.ProbeUnknown
	idle := []v1alpha1.ProbeMarkerPolicy{
		{State: yes, Labels: map[string]string{"idle": "true"}, Annotations: map[string]string{"cost": "-10"}},
		{State: no, Annotations: map[string]string{"cost": "10"}},
	}
	cases := map[string]struct {
		policies []v1alpha1.ProbeMarkerPolicy
		labels   map[string]string
		cost     string
		state    v1alpha1.ProbeState
		want     string // status of the condition, label, cost
	}{
		"yes":                                  {idle, nil, "", yes, "True true -10"},
		"no":                                   {idle, map[string]string{"idle": "true"}, "-10", no, "False  10"},
		"not known, of one that was idle":      {idle, map[string]string{"idle": "true"}, "-10", unknown, "False true -10"},
		"no policy":                            {nil, map[string]string{"idle": "true"}, "1", no, "False true 1"},
		"only a policy for yes, and it is no":  {idle[:1], map[string]string{"idle": "true"}, "-10", no, "False  "},
		"only a policy for no, and it is yes":  {idle[1:], map[string]string{"idle": "true"}, "10", yes, "True true "},
		"a label that was never there":         {idle, nil, "", no, "False  10"},
		"what somebody else has written there": {idle, map[string]string{"idle": "maybe"}, "5", yes, "True true -10"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := asker("m", 0, "c")
			m.Spec.Probes[0].MarkerPolicy = tc.policies
			p := askable("p")
			p.Labels = map[string]string{"app": "p"}
			for key, value := range tc.labels {
				p.Labels[key] = value
			}
			if tc.cost != "" {
				p.Annotations = map[string]string{"cost": tc.cost}
			}
			before := p.DeepCopy()
			probes, _ := NewMarkers([]*v1alpha1.PodProbeMarker{m}).ProbesOf(p)
			results := Results{"m#a": {Name: "m#a", State: tc.state, Message: "said", LastProbeTime: noon(), LastTransitionTime: noon()}}
			after := Mark(p, probes, results)
			if diff := cmp.Diff(before, p); diff != "" {
				t.Errorf("the Pod itself was changed:\n%s", diff)
			}
			c := after.Status.Conditions[len(after.Status.Conditions)-1]
			if got := strings.Join([]string{string(c.Status), after.Labels["idle"], after.Annotations["cost"]}, " "); got != tc.want || c.Message != "said" {
				t.Errorf("it shows %q, want %q; %+v", got, tc.want, c)
			}
			if again := Mark(after, probes, results); again != after {
				t.Errorf("it is marked again:\n%s", cmp.Diff(after, again))
			}
		})
	}
}

func TestTransitionsAreTheDaemons(t *testing.T) {
	m := asker("m", 0, "c")
	p := askable("p")
	probes, _ := NewMarkers([]*v1alpha1.PodProbeMarker{m}).ProbesOf(p)
	later := metav1.NewTime(noon().Add(time.Minute))
	first := Mark(
		p, probes, Results{"m#a": {State: v1alpha1.ProbeFailed, Message: "2 players", LastProbeTime: noon(), LastTransitionTime: noon()}},
	)
	second := Mark(
		first, probes, Results{"m#a": {State: v1alpha1.ProbeFailed, Message: "1 player", LastProbeTime: later, LastTransitionTime: noon()}},
	)
	want := corev1.PodCondition{
		Type: "c", Status: corev1.ConditionFalse, Message: "1 player", LastProbeTime: later, LastTransitionTime: noon(),
	}
	if diff := cmp.Diff(want, second.Status.Conditions[1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestResultsOfAnotherPodAreNotTaken(t *testing.T) {
	s := &v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{{
		Name: "p", Namespace: "ns", UID: "before",
		ProbeStates: []v1alpha1.ContainerProbeState{{Name: "m#a", State: v1alpha1.ProbeSucceeded}},
	}}}
	if got := ResultsOf(askable("p"), s); len(got) > 0 {
		t.Errorf("results %v of a Pod that had the name before", got)
	}
}

func TestConditionsOfProvidersAreResults(t *testing.T) {
	m := asker("m", 0, "c")
	m.Spec.Probes[0].MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{
		{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{"idle": "true"}},
	}
	p := askable("p")
	probes, _ := NewMarkers([]*v1alpha1.PodProbeMarker{m}).ProbesOf(p)
	for status, want := range map[corev1.ConditionStatus]string{"True": "true", "False": "", "Unknown": "before"} {
		p := p.DeepCopy()
		p.Labels["idle"] = "before"
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "c", Status: status})
		after := Mark(p, probes, FromConditions(p, probes))
		if now := after.Status.Conditions[1].Status; now != status {
			t.Errorf("condition %s of the provider was made %s", status, now)
		}
		if after.Labels["idle"] != want {
			t.Errorf("condition %s: label %q, want %q", status, after.Labels["idle"], want)
		}
	}
}

func TestCounter(t *testing.T) {
	timing := TimingOf(&corev1.Probe{FailureThreshold: 3, SuccessThreshold: 2})
	var counter Counter
	if counter.Follow("c1") {
		t.Error("the first container has none before it")
	}
	var got strings.Builder
	for _, answer := range "ynnynnnnyy" {
		a := Outcome{State: v1alpha1.ProbeSucceeded}
		if answer == 'n' {
			a.State = v1alpha1.ProbeFailed
		}
		mark := "."
		if counter.Count(a, timing) {
			mark = string(answer)
		}
		got.WriteString(mark)
	}
	if want := "......nn.y"; got.String() != want {
		t.Errorf("results %s, want %s", got.String(), want)
	}
	if counter.Follow("c1") || !counter.Follow("c2") {
		t.Error("another container is another one, and only that")
	}
	if counter.Count(Outcome{State: v1alpha1.ProbeSucceeded}, timing) {
		t.Error("what the container before said counts for its successor")
	}
}

func TestTimingHasMinimums(t *testing.T) {
	want := Timing{Delay: time.Second, Timeout: time.Second, Period: time.Second, Successes: 1, Failures: 1}
	if diff := cmp.Diff(want, TimingOf(&corev1.Probe{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMessage(t *testing.T) {
	cases := map[string]struct{ printed, want string }{
		"a line":                    {"2 players\n", "2 players"},
		"not text":                  {"a\xffb", "a\uFFFDb"},
		"too long":                  {strings.Repeat("a", 2000), strings.Repeat("a", 1024)},
		"too long, cut in a letter": {strings.Repeat("a", 1023) + "é", strings.Repeat("a", 1023)},
	}
	for name, tc := range cases {
		if got := Message(tc.printed); got != tc.want || !utf8.ValidString(got) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestAnnotate(t *testing.T) {
	older, younger := asker("way", time.Minute, "c"), asker("gateway", 0, "d")
	asking := func(change func(*v1alpha1.PodContainerProbe)) []*v1alpha1.PodProbeMarker {
		m := younger.DeepCopy()
		change(&m.Spec.Probes[0])
		return []*v1alpha1.PodProbeMarker{m, older}
	}
	const one = `{"name":"a","containerName":"main","probe":{"exec":{"command":["ask"]}},"podConditionType":"c"}`
	const other = `{"name":"b","containerName":"main","probe":{"exec":{"command":["ask"]}},"podConditionType":"d"}`
	for name, tc := range map[string]struct {
		markers       []*v1alpha1.PodProbeMarker
		labels        map[string]string
		probes, names string
	}{
		"one marker": {markers: []*v1alpha1.PodProbeMarker{older}, probes: "[" + one + "]", names: "way"},
		"two of other names": {
			markers: asking(func(p *v1alpha1.PodContainerProbe) { p.Name = "b" }), probes: "[" + one + "," + other + "]",
			names: "gateway,way",
		},
		"two of the same name": {markers: asking(func(*v1alpha1.PodContainerProbe) {}), probes: "[" + one + "]", names: "way"},
		"two that write one condition": {
			markers: asking(func(p *v1alpha1.PodContainerProbe) { p.Name, p.PodConditionType = "b", "c" }), probes: "[" + one + "]",
			names: "way",
		},
		"one that shows as no condition": {
			markers: asking(func(p *v1alpha1.PodContainerProbe) { p.Name, p.PodConditionType = "b", "" }), probes: "[" + one + "]",
			names: "way",
		},
		"a container that there is not": {
			markers: asking(func(p *v1alpha1.PodContainerProbe) { p.Name, p.ContainerName = "b", "other" }), probes: "[" + one + "]",
			names: "way",
		},
		"no marker":                       {},
		"markers that select another Pod": {markers: []*v1alpha1.PodProbeMarker{older}, labels: map[string]string{"app": "other"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := askable("p")
			if tc.labels != nil {
				p.Labels = tc.labels
			}
			p.Annotations = map[string]string{"mine": "x"}
			markers := NewMarkers(tc.markers)
			edit := func() *corev1.Pod { return p }
			changed, err := markers.Annotate(p, edit)
			if err != nil || changed != (tc.probes != "") {
				t.Errorf("it is changed: %t, %v", changed, err)
			}
			want := map[string]string{"mine": "x"}
			if tc.probes != "" {
				want[keys.PodProbes], want[keys.PodProbeMarkers] = tc.probes, tc.names
			}
			if diff := cmp.Diff(want, p.Annotations); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again, err := markers.Annotate(p, edit); again || err != nil {
				t.Errorf("it is changed again: %t, %v", again, err)
			}
			if undone, err := NewMarkers(nil).Annotate(p, edit); undone != changed || err != nil || len(p.Annotations) != 1 {
				t.Errorf("what is not asked any more stays: %t, %v, %v", undone, err, p.Annotations)
			}
		})
	}
}
