package ephemeral

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/keys"
)

const job types.UID = "job-uid"

func container(name string, env ...corev1.EnvVar) corev1.EphemeralContainer {
	return corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: "busybox:1", Env: env}}
}

func of(job types.UID) corev1.EnvVar {
	return corev1.EnvVar{Name: keys.EphemeralJobID, Value: string(job)}
}

func podWith(containers ...corev1.EphemeralContainer) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "setup"}}, Containers: []corev1.Container{{Name: "app"}},
			EphemeralContainers: containers,
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func TestInto(t *testing.T) {
	p := podWith(container("other", of("other-uid")))
	before := p.DeepCopy()
	template := []corev1.EphemeralContainer{container("a", corev1.EnvVar{Name: "X", Value: "1"}), container("b", of("forged"))}
	got := Into(p, template, job)
	want := podWith(
		container("other", of("other-uid")), container("a", corev1.EnvVar{Name: "X", Value: "1"}, of(job)), container("b", of(job)),
	)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, p); diff != "" {
		t.Errorf("it changes the Pod that it was given:\n%s", diff)
	}
	if len(template[0].Env) != 1 {
		t.Errorf("it changes the template: %v", template)
	}
	if diff := cmp.Diff([]types.UID{"other-uid", job}, Jobs(got)); diff != "" {
		t.Errorf("the jobs of the Pod (-want +got):\n%s", diff)
	}
	if !Has(got, job) || Has(p, job) {
		t.Errorf("has: before %v, after %v", Has(p, job), Has(got, job))
	}
}

func TestRefusal(t *testing.T) {
	target := container("debug")
	target.TargetContainerName = "app"
	lost := container("debug")
	lost.TargetContainerName = "proxy"
	static := podWith()
	static.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		add  corev1.EphemeralContainer
		want string
	}{
		"a Pod like any other":                   {podWith(), container("debug"), ""},
		"another ephemeral container beside":     {podWith(container("shell")), container("debug"), ""},
		"a target that is there":                 {podWith(), target, ""},
		"a target that is not there":             {podWith(), lost, "it has no container proxy to target"},
		"an ephemeral container is no target":    {podWith(container("proxy")), lost, "it has no container proxy to target"},
		"somebody else's container of that name": {podWith(container("debug")), container("debug"), "it has a container debug already"},
		"a main container of that name":          {podWith(), container("app"), "it has a container app already"},
		"an init container of that name":         {podWith(), container("setup"), "it has a container setup already"},
		"a static Pod":                           {static, container("debug"), "it is a static Pod"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Unfit(tc.pod, []corev1.EphemeralContainer{tc.add}); got != tc.want {
				t.Errorf("Unfit() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestStand(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	waits := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	exited := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
	type states = map[string]corev1.ContainerState
	for name, tc := range map[string]struct {
		states states // of containers a and b, both the job's
		phase  corev1.PodPhase
		want   Progress
	}{
		"nothing is known yet": {want: Progress{State: Waiting, Busy: true}},
		"both wait": {
			states: states{"a": waits("ContainerCreating"), "b": waits("ImagePullBackOff")}, want: Progress{State: Waiting, Busy: true},
		},
		"one runs": {
			states: states{"a": waits("ContainerCreating"), "b": running}, want: Progress{State: Running, Busy: true},
		},
		"one runs, one is done": {states: states{"a": exited(0), "b": running}, want: Progress{State: Running, Busy: true}},
		"one waits, one is done": {
			states: states{"a": exited(0), "b": waits("")}, want: Progress{State: Waiting, Busy: true},
		},
		"both are done": {states: states{"a": exited(0), "b": exited(0)}, want: Progress{State: Succeeded}},
		"both have failed": {
			states: states{"a": exited(1), "b": exited(137)}, want: Progress{State: Failed, Why: "a exited with code 1"},
		},
		"one has failed and one still runs": {
			states: states{"a": running, "b": exited(2)}, want: Progress{State: Failed, Busy: true, Why: "b exited with code 2"},
		},
		"one has failed before one runs": {
			states: states{"a": exited(2), "b": running}, want: Progress{State: Failed, Busy: true, Why: "a exited with code 2"},
		},
		"one can't be started": {
			states: states{"a": waits("RunContainerError"), "b": exited(0)},
			want:   Progress{State: Failed, Why: "a can't be started: RunContainerError"},
		},
		"an image that nobody can read": {
			states: states{"a": waits("InvalidImageName"), "b": exited(0)},
			want:   Progress{State: Failed, Why: "a can't be started: InvalidImageName"},
		},
		"the Pod ends before they start": {
			phase: corev1.PodFailed, want: Progress{State: Failed, Why: "a was cut off by the end of the Pod"},
		},
		"the Pod ends while one is done": {
			states: states{"a": exited(0), "b": running}, phase: corev1.PodSucceeded,
			want: Progress{State: Failed, Why: "b was cut off by the end of the Pod"},
		},
		"the Pod ends after they have": {
			states: states{"a": exited(0), "b": exited(0)}, phase: corev1.PodFailed, want: Progress{State: Succeeded},
		},
		"another job's failure does not count": {
			states: states{"a": exited(0), "b": exited(0), "other": exited(1)}, want: Progress{State: Succeeded},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := podWith(container("a", of(job)), container("other", of("other-uid")), container("plain"), container("b", of(job)))
			for name, state := range tc.states {
				p.Status.EphemeralContainerStatuses = append(
					p.Status.EphemeralContainerStatuses, corev1.ContainerStatus{Name: name, State: state},
				)
			}
			if tc.phase != "" {
				p.Status.Phase = tc.phase
			}
			if diff := cmp.Diff(tc.want, ProgressOf(p, job)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := ProgressOf(podWith(container("plain")), job); got != (Progress{}) {
		t.Errorf("a Pod without containers of the job stands as %+v", got)
	}
}
