package simnode

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// settled is the Sandbox of a Pod that has been running for a second, and the status it was last reported with.
func settled(t *testing.T, p *corev1.Pod) (Sandbox, Situation) {
	t.Helper()
	s := Situation{Pod: p, Now: epoch, Defaults: DefaultRules(), HostIP: "192.168.0.1"}
	box, _, err := Advance(Sandbox{IP: "10.0.0.1"}, s)
	if err != nil {
		t.Fatal(err)
	}
	s.Now = epoch.Add(time.Second)
	if box, _, err = Advance(box, s); err != nil {
		t.Fatal(err)
	}
	p.Status = Status(box, s)
	return box, s
}

func TestARunningPodsStatusIsAKubelets(t *testing.T) {
	p := pod("app=nginx:1.27", gated, gate(corev1.ConditionFalse))
	box, _ := settled(t, p)
	second := metav1.NewTime(epoch.Add(time.Second))
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) corev1.PodCondition {
		return corev1.PodCondition{
			Type: kind, Status: status, ObservedGeneration: 1, LastTransitionTime: second, Reason: reason, Message: message,
		}
	}
	want := corev1.PodStatus{
		ObservedGeneration: 1,
		Phase:              corev1.PodRunning,
		Conditions: []corev1.PodCondition{
			{Type: "InPlaceUpdateReady", Status: corev1.ConditionFalse},
			condition(corev1.PodReadyToStartContainers, corev1.ConditionTrue, "", ""),
			condition(corev1.PodInitialized, corev1.ConditionTrue, "", ""),
			condition(corev1.PodReady, corev1.ConditionFalse, "ReadinessGatesNotReady",
				`the status of pod readiness gate "InPlaceUpdateReady" is not "True", but False`),
			condition(corev1.ContainersReady, corev1.ConditionTrue, "", ""),
			condition(corev1.PodScheduled, corev1.ConditionTrue, "", ""),
		},
		HostIP:    "192.168.0.1",
		HostIPs:   []corev1.HostIP{{IP: "192.168.0.1"}},
		PodIP:     "10.0.0.1",
		PodIPs:    []corev1.PodIP{{IP: "10.0.0.1"}},
		StartTime: new(metav1.NewTime(epoch)),
		ContainerStatuses: []corev1.ContainerStatus{{
			Name:        "app",
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second}},
			Ready:       true,
			Image:       "docker.io/library/nginx:1.27",
			ImageID:     "docker.io/library/nginx@sha256:" + digest("docker.io/library/nginx:1.27"),
			ContainerID: box.Containers[0].ID,
			Started:     new(true),
			Resources:   &corev1.ResourceRequirements{},
		}},
	}
	if diff := cmp.Diff(want, p.Status); diff != "" {
		t.Errorf("status differs (-want +got):\n%s", diff)
	}
}

func TestPatchesSayOnlyWhatChanges(t *testing.T) {
	p := pod("app=nginx:1.27")
	_, s := settled(t, p)
	tests := map[string]struct {
		change func(*corev1.PodStatus)
		want   string
	}{
		"nothing, when nothing changed": {
			change: func(*corev1.PodStatus) {},
		},
		"nothing of conditions that others own": {
			change: func(status *corev1.PodStatus) {
				status.Conditions = append(status.Conditions, corev1.PodCondition{Type: "Theirs", Status: corev1.ConditionTrue})
			},
		},
		"a condition that lost its reason is told to lose it": {
			change: func(status *corev1.PodStatus) {
				status.Conditions[0] = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(epoch)}
			},
			want: `{"metadata":{"uid":"uid-of-web"},"status":{"conditions":[
				{"type":"Ready","status":"True","lastTransitionTime":"2030-01-01T00:00:00Z","reason":null,"message":null}]}}`,
		},
		"a condition of ours that ended is deleted": {
			change: func(status *corev1.PodStatus) { status.Conditions = status.Conditions[1:] },
			want:   `{"metadata":{"uid":"uid-of-web"},"status":{"conditions":[{"$patch":"delete","type":"Ready"}]}}`,
		},
		"the phase alone": {
			change: func(status *corev1.PodStatus) { status.Phase = corev1.PodFailed },
			want:   `{"metadata":{"uid":"uid-of-web"},"status":{"phase":"Failed"}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := s.Pod.DeepCopy()
			before.Status.Conditions = []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"},
				{Type: "Theirs", Status: corev1.ConditionFalse},
			}
			after := before.Status.DeepCopy()
			tc.change(after)
			got, err := patchOf(before, after)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decoded(t, []byte(tc.want)), decoded(t, got)); diff != "" {
				t.Errorf("patch differs (-want +got):\n%s", diff)
			}
		})
	}
}

func decoded(t *testing.T, body []byte) any {
	t.Helper()
	if len(body) == 0 {
		return nil
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestImagesAreKnownByTheirReference(t *testing.T) {
	tests := map[string]struct{ ref, name, id string }{
		"a short name gets the registry, the library and the tag that runtimes assume": {
			ref: "nginx", name: "docker.io/library/nginx:latest",
			id: "docker.io/library/nginx@sha256:" + digest("docker.io/library/nginx:latest"),
		},
		"a full name stays": {
			ref: "registry.example:5000/team/app:v1", name: "registry.example:5000/team/app:v1",
			id: "registry.example:5000/team/app@sha256:" + digest("registry.example:5000/team/app:v1"),
		},
		"a digest is the image's own": {
			ref:  "nginx@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			name: "docker.io/library/nginx@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			id:   "docker.io/library/nginx@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := resolve(tc.ref)
			if diff := cmp.Diff([]string{tc.name, tc.id}, []string{got.name, got.id}); diff != "" {
				t.Errorf("image differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnreadableAnnotationsAreReportedAndHaveNoEffect(t *testing.T) {
	for name, value := range map[string]struct{ key, value string }{
		"a delay without a unit": {AnnotationStartDelay, "5"},
		"a negative delay":       {AnnotationStopDelay, "-1s"},
		"an exit code too large": {AnnotationExitCode, "256"},
		"an unknown refusal":     {AnnotationFailResize, "No"},
		"an unknown annotation":  {annotationPrefix + "begin-delay", "1s"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod("app=nginx:1", annotated(value.key, value.value))
			_, next, err := Advance(Sandbox{}, Situation{Pod: p, Now: epoch, Defaults: DefaultRules()})
			if err == nil {
				t.Error("no complaint")
			}
			if want := epoch.Add(DefaultRules().Start); !next.Equal(want) {
				t.Errorf("starts at %v, want the default, %v", next, want)
			}
		})
	}
}

func TestJitterStaysWithinItsShareAndIsTheSameEachTime(t *testing.T) {
	defaults := DefaultRules()
	defaults.Jitter, defaults.Seed = 0.2, 7
	distinct := map[time.Duration]bool{}
	for i := range 100 {
		p := pod("app=nginx:1", func(p *corev1.Pod) { p.UID = types.UID(strconv.Itoa(i)) })
		rules, err := rulesFor(p, defaults)
		if err != nil {
			t.Fatal(err)
		}
		again, err := rulesFor(p, defaults)
		if err != nil {
			t.Fatal(err)
		}
		if rules.Start != again.Start {
			t.Fatalf("start delays differ: %v, %v", rules.Start, again.Start)
		}
		if rules.Start < 240*time.Millisecond || rules.Start > 360*time.Millisecond {
			t.Errorf("start delay %v is off by more than a fifth of 300ms", rules.Start)
		}
		distinct[rules.Start] = true
	}
	if len(distinct) < 90 {
		t.Errorf("100 pods have only %d different delays", len(distinct))
	}
}
