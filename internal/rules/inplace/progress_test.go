package inplace

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

func TestParseImage(t *testing.T) {
	cases := map[string]struct {
		reference string
		want      image
	}{
		"a name alone":                    {"nginx", imageRef("docker.io/library/nginx", "latest", "")},
		"a name and a tag":                {"nginx:1.27", imageRef("docker.io/library/nginx", "1.27", "")},
		"a repository of a user":          {"user/app", imageRef("docker.io/user/app", "latest", "")},
		"a registry with a port":          {"reg:5000/nginx", imageRef("reg:5000/nginx", "latest", "")},
		"a registry with a port, and tag": {"reg:5000/a/b:v1", imageRef("reg:5000/a/b", "v1", "")},
		"this machine's registry":         {"localhost/app:v1", imageRef("localhost/app", "v1", "")},
		"the default registry":            {"docker.io/nginx", imageRef("docker.io/library/nginx", "latest", "")},
		"the default registry's index":    {"index.docker.io/nginx", imageRef("docker.io/library/nginx", "latest", "")},
		"another registry":                {"quay.io/app", imageRef("quay.io/app", "latest", "")},
		"a digest":                        {"nginx@sha256:ab", imageRef("docker.io/library/nginx", "", "sha256:ab")},
		"a tag and a digest":              {"nginx:1.27@sha256:ab", imageRef("docker.io/library/nginx", "", "sha256:ab")},
		"a digest alone":                  {"sha256:ab", imageRef("", "", "sha256:ab")},
		"nothing":                         {"", imageRef("docker.io/library/", "latest", "")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := parseImage(tc.reference); got != tc.want {
				t.Errorf("parseImage(%q) = %+v, want %+v", tc.reference, got, tc.want)
			}
		})
	}
}

func imageRef(name, tag, digest string) image { return image{name, tag, digest} }

func TestImageProgress(t *testing.T) {
	before := pub.InPlaceUpdateContainerStatus{ImageID: "reg/app@sha256:1", ContainerID: "containerd://1", Image: "reg/app:v1"}
	foreign := pub.InPlaceUpdateContainerStatus{ImageID: "reg/app@sha256:1"}
	status := func(image, imageID, containerID string) *corev1.ContainerStatus {
		return &corev1.ContainerStatus{Name: "app", Image: image, ImageID: imageID, ContainerID: containerID}
	}
	stuck := status("reg/app:v1", "reg/app@sha256:1", "containerd://1")
	stuck.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such tag"}
	missing := status("reg/app:v2", "", "")
	missing.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	cases := map[string]struct {
		image  string
		status *corev1.ContainerStatus
		last   pub.InPlaceUpdateContainerStatus
		want   string
	}{
		"the new image runs": {"reg/app:v2", status("reg/app:v2", "reg/app@sha256:2", "containerd://2"), before, ""},
		"the old image still runs": {
			"reg/app:v2",
			status("reg/app:v1", "reg/app@sha256:1", "containerd://1"),
			before,
			"container app runs reg/app:v1, not yet reg/app:v2",
		},
		"the new image can't be pulled": {
			"reg/app:v2",
			stuck,
			before,
			"container app runs reg/app:v1, not yet reg/app:v2: ImagePullBackOff (no such tag)",
		},
		"the container is not there yet": {
			"reg/app:v2",
			missing,
			before,
			"container app has not started reg/app:v2 yet: ContainerCreating",
		},
		"no status": {"reg/app:v2", nil, before, "container app has not started reg/app:v2 yet"},
		"both tags are the same image, of which the runtime names the old one": {
			"reg/app:v2", status("reg/app:v1", "reg/app@sha256:1", "containerd://2"), before, "",
		},
		"both tags are the same image, of which the runtime names the new one": {
			"reg/app:v2", status("reg/app:v2", "reg/app@sha256:1", "containerd://2"), before, "",
		},
		"the new image has a tag more, which the runtime names": {
			"reg/app:v2", status("reg/app:latest", "reg/app@sha256:2", "containerd://2"), before, "",
		},
		"the image before last has only now been reported": {
			"reg/app:v3", status("reg/app:v2", "reg/app@sha256:2", "containerd://2"),
			pub.InPlaceUpdateContainerStatus{ImageID: "reg/app@sha256:1", ContainerID: "containerd://1", Image: "reg/app:v2"},
			"container app runs reg/app:v2, not yet reg/app:v3",
		},
		"the container had not started when its image changed, and starts with the old one": {
			"reg/app:v2", status("reg/app:v1", "reg/app@sha256:1", "containerd://1"), pub.InPlaceUpdateContainerStatus{Image: "reg/app:v1"},
			"container app runs reg/app:v1, not yet reg/app:v2",
		},
		"the container had not started when its image changed, and starts with the new one": {
			"reg/app:v2", status("reg/app:v2", "reg/app@sha256:2", "containerd://1"), pub.InPlaceUpdateContainerStatus{Image: "reg/app:v1"}, "",
		},
		"the runtime names the image by its digest, and another one runs": {
			"reg/app:v2", status("sha256:cc", "sha256:cc", "containerd://2"), before, "",
		},
		"the runtime names the image by its digest, and the old one runs": {
			"reg/app:v2", status("sha256:cc", "reg/app@sha256:1", "containerd://1"), before, "container app runs sha256:cc, not yet reg/app:v2",
		},
		"the image is wanted by its digest, which runs": {
			"reg/app@sha256:2", status("reg/app:v2", "reg/app@sha256:2", "containerd://2"), before, "",
		},
		"the image is wanted by its digest, which does not run": {
			"reg/app@sha256:2", status("reg/app:v1", "reg/app@sha256:1", "containerd://1"), before,
			"container app runs reg/app:v1, not yet reg/app@sha256:2",
		},
		"the short name of an image that runs": {"nginx", status("docker.io/library/nginx:latest", "x", "containerd://1"), before, ""},
		"a registry's port is not a tag": {
			"reg:5000/nginx", status("reg:5000/nginx:latest", "reg/app@sha256:1", "containerd://1"), before, "",
		},
		"recorded by other software, another image runs": {"reg/app:v2", status("reg/app:v2", "x", "containerd://2"), foreign, ""},
		"recorded by other software, another image runs under another name": {
			"reg/app:v2", status("reg/app:latest", "x", "containerd://2"), foreign, "",
		},
		"recorded by other software, the same image runs": {
			"reg/app:v2", status("reg/app:v1", "reg/app@sha256:1", "containerd://2"), foreign, "container app runs reg/app:v1, not yet reg/app:v2",
		},
		"recorded by other software, the same image runs under its new name": {
			"reg/app:v2", status("reg/app:v2", "reg/app@sha256:1", "containerd://2"), foreign, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container("app", tc.image)}}}
			if tc.status != nil {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{*tc.status}
			}
			if diff := cmp.Diff(Verdict{Done: tc.want == "", Why: tc.want}, ImageProgress(p, "app", tc.last)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// update begins an update of the base template and starts its first batch.
func update(t *testing.T, edits ...func(*corev1.PodTemplateSpec)) *corev1.Pod {
	t.Helper()
	p := podOf(base())
	Begin(p, change(t, base(), changed(edits...)), to("web-2"))
	if !step(t, p, 0).Changed {
		t.Fatal("the first batch did not start")
	}
	return p
}

func TestResizeProgress(t *testing.T) {
	cpu := func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Resources = resources("200m", "64Mi") }
	cases := map[string]struct {
		edit func(*corev1.Pod)
		o    Options
		want string
	}{
		"not done yet":  {func(*corev1.Pod) {}, everything(), "container app is being resized"},
		"done":          {func(p *corev1.Pod) { node{}.start(p, "app") }, everything(), ""},
		"not looked at": {func(*corev1.Pod) {}, Options{}, ""},
		"no status of resources": {
			func(p *corev1.Pod) { pod.ContainerStatus(p, "app").Resources = nil }, everything(), "container app is being resized",
		},
		"done, and other containers tell nothing of resources": {
			func(p *corev1.Pod) { node{}.start(p, "app"); pod.ContainerStatus(p, "log").Resources = nil }, everything(), "",
		},
		"done, and a sidecar was put in that has none": {
			func(p *corev1.Pod) {
				node{}.start(p, "app")
				p.Spec.Containers = append(p.Spec.Containers, container("injected", "injected:v1"))
			}, everything(), "",
		},
		"infeasible": {
			func(p *corev1.Pod) {
				pod.SetCondition(p, corev1.PodCondition{
					Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: "Infeasible", Message: "the node has 1 cpu",
				}, at(1))
			}, everything(), "container app is being resized: Infeasible (the node has 1 cpu)",
		},
		"a resize in progress that failed": {
			func(p *corev1.Pod) {
				pod.SetCondition(p, corev1.PodCondition{
					Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue, Reason: "Error", Message: "cgroup",
				}, at(1))
			}, everything(), "container app is being resized: Error (cgroup)",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := update(t, cpu)
			tc.edit(p)
			if diff := cmp.Diff(Verdict{Done: tc.want == "", Why: tc.want}, Progress(p, tc.o)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAResizeChangesOnlyWhatTheTemplatesChange(t *testing.T) {
	p := podOf(base())
	p.Spec.Containers[0].Resources.Limits["example.io/device"] = resource.MustParse("1")
	is := changed(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Resources = resources("200m", "64Mi") })
	Begin(p, change(t, base(), is), to("web-2"))
	step(t, p, 0)
	want := resources("200m", "64Mi")
	want.Limits["example.io/device"] = resource.MustParse("1")
	if diff := cmp.Diff(want, p.Spec.Containers[0].Resources); diff != "" {
		t.Error(diff)
	}
	if state := stateOf(t, p); !state.UpdateResources || state.UpdateImages || state.LastContainerStatuses != nil {
		t.Errorf("the record is %+v", state)
	}
	if gate(p) != corev1.ConditionTrue {
		t.Error("a resize took the Pod out of service")
	}
}

func TestEnvironmentProgress(t *testing.T) {
	zone := func(t *corev1.PodTemplateSpec) { t.Labels["zone"] = "a" }
	daemon := node{daemon: true}
	cases := map[string]struct {
		edit func(*corev1.Pod)
		want string
	}{
		"not done yet": {func(*corev1.Pod) {}, "container log does not run with its new environment yet"},
		"done":         {func(p *corev1.Pod) { daemon.start(p, "log") }, ""},
		"no node daemon": {
			func(p *corev1.Pod) { delete(p.Annotations, keys.RuntimeContainersMeta) },
			"no node daemon tells whether container log runs with its new environment",
		},
		"done, and the daemon does not know another container": {
			func(p *corev1.Pod) {
				p.Spec.Containers = append(p.Spec.Containers, container("new", "new:v1", fromField("A", "metadata.labels['zone']")))
				daemon.start(p, "log")
			}, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := update(t, zone)
			tc.edit(p)
			if diff := cmp.Diff(Verdict{Done: tc.want == "", Why: tc.want}, Progress(p, everything())); diff != "" {
				t.Error(diff)
			}
			if got := pod.ContainerStatus(p, "app").RestartCount; got != 0 {
				t.Errorf("a container that does not take the label restarted %d times", got)
			}
		})
	}
}

func TestAnInjectorsVersionIsNoPartOfTheEnvironmentsHash(t *testing.T) {
	p := &corev1.Pod{}
	p.Annotations = map[string]string{"v": "2"}
	versioned := container(
		"log",
		"log:v1",
		fromField("SIDECARSET_VERSION", "metadata.annotations['v']"),
		fromField("SIDECARSET_VERSION_ALT", "metadata.annotations['w']"),
	)
	plain := container("log", "log:v1", fromField("NODE", "spec.nodeName"), fromField("NAME", "metadata.name"))
	if a, b := EnvironmentHash(Environment(p, &versioned)), EnvironmentHash(Environment(p, &plain)); a != b {
		t.Errorf("the hash is %d with an injector's version and %d without", a, b)
	}
}

// TestTheLastOfAName: a process is given the last value of a variable that is there twice, and no other could ever be found in it.
func TestTheLastOfAName(t *testing.T) {
	p := &corev1.Pod{}
	p.Labels = map[string]string{"a": "1", "b": "2"}
	c := container(
		"app",
		"app:v1",
		fromField("A", "metadata.labels['a']"),
		fromField("A", "metadata.labels['b']"),
		fromField("B", "metadata.labels['a']"),
		corev1.EnvVar{Name: "B", Value: "fixed"},
	)
	want := []corev1.EnvVar{{Name: "A", Value: "2"}}
	if diff := cmp.Diff(want, Environment(p, &c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEnvironmentHashDependsOnValuesNotOnOrder(t *testing.T) {
	p := &corev1.Pod{}
	p.Labels, p.Annotations = map[string]string{"a": "1"}, map[string]string{"b": "2"}
	one := container("app", "app:v1", fromField("A", "metadata.labels['a']"), fromField("B", "metadata.annotations['b']"))
	two := container("app", "app:v1", fromField("B", "metadata.annotations['b']"), fromField("A", "metadata.labels['a']"))
	was := EnvironmentHash(Environment(p, &one))
	if got := EnvironmentHash(Environment(p, &two)); got != was {
		t.Errorf("the hash of the other order is %d, want %d", got, was)
	}
	p.Labels["a"] = "2"
	if got := EnvironmentHash(Environment(p, &one)); got == was {
		t.Error("another value has the same hash")
	}
}
