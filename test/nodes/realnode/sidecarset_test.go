package realnode

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// sidecars are a SidecarSet with a sidecar of each kind: one that restarts, one that is a restartable init container, and one in two containers.
const sidecars = `
selector: {matchLabels: {app: sided}}
namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: real}}
containers:
- {name: cold, image: "busybox:1", command: [sleep, "100000"]}
- name: hot
  image: busybox:1
  command: [sleep, "100000"]
  upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: "busybox:idle"}
initContainers:
- {name: native, image: "busybox:1", command: [sleep, "100000"], restartPolicy: Always}
`

// updateSidecars changes the images of all kinds of sidecars in real containers: each runs its new image in the end, the Pod's own container the same
// process, and the hot sidecar was served by one of its containers all the time.
func (w *world) updateSidecars() {
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "real"}}
	w.Must(yaml.UnmarshalStrict([]byte(sidecars), &set.Spec))
	w.Must(w.Client.Create(w.Ctx, set))
	grace := int64(1)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "sided", Namespace: namespace, Labels: map[string]string{"app": "sided"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []corev1.Container{{Name: "web", Image: "nginx:alpine"}},
		},
	}
	w.Must(w.Client.Create(w.Ctx, p))
	w.sidecarsAre("1", "hot-1", "hot-2")
	before := w.sided()
	w.run(before, "web", "sh", "-c", "echo kept > /tmp/note")
	for i, working := range []string{"hot-2", "hot-1"} {
		version := fmt.Sprint(i + 2)
		w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(set), set))
		for _, list := range [][]v1beta1.SidecarContainer{set.Spec.Containers, set.Spec.InitContainers} {
			for j := range list {
				name, _, _ := strings.Cut(list[j].Image, ":")
				list[j].Image = name + ":" + version
			}
		}
		w.Must(w.Client.Update(w.Ctx, set))
		idle := map[string]string{"hot-1": "hot-2", "hot-2": "hot-1"}[working]
		w.sidecarsAre(version, working, idle)
	}
	after := w.sided()
	if after.UID != before.UID || after.Status.PodIP != before.Status.PodIP || pod.ContainerStatus(after, "web").RestartCount != 0 {
		w.Errorf("the Pod was %s at %s, is %s at %s, its own container restarted %d times", before.UID, before.Status.PodIP,
			after.UID, after.Status.PodIP, pod.ContainerStatus(after, "web").RestartCount)
	}
	if note := w.run(after, "web", "cat", "/tmp/note"); note != "kept" {
		w.Errorf("the Pod's own container finds %q", note)
	}
	for name, want := range map[string]int32{"cold": 2, "native": 2, "hot-1": 2, "hot-2": 2} {
		if got := pod.LastingStatus(after, name).RestartCount; got != want {
			w.Errorf("container %s restarted %d times, want %d", name, got, want)
		}
	}
}

func (w *world) sided() *corev1.Pod {
	w.Helper()
	p := &corev1.Pod{}
	w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: "sided"}, p))
	return p
}

// sidecarsAre waits until every sidecar runs the image of a version, and the container that does not work is idle.
func (w *world) sidecarsAre(version, working, idle string) {
	w.Helper()
	w.Eventually("all sidecars are at version "+version, func() error {
		set := &v1beta1.SidecarSet{}
		w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Name: "real"}, set))
		if s := set.Status; s.ObservedGeneration != set.Generation || s.UpdatedReadyPods != 1 {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	p := w.sided()
	for container, want := range map[string]string{"cold": version, "native": version, working: version, idle: "idle"} {
		if got := w.run(p, container, "cat", "/etc/image-tag"); got != want {
			w.Errorf("container %s runs %q, want %q", container, got, want)
		}
	}
}

// hotSidecar is a SidecarSet with a sidecar in two containers and nothing else that could keep its Pods from being ready.
const hotSidecar = `
selector: {matchLabels: {app: hot-sided}}
namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: real}}
containers:
- name: proxy
  image: busybox:1
  command: [sh, -c, "trap 'exit 0' TERM; while true; do sleep 0.1; done"]
  upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: "busybox:idle"}
`

// upgradeHot takes a sidecar from one of its two containers to the other and back. Of all the versions of its Pod there is none that is not ready: a
// kubelet ends a container, pulls and starts the next one in one go, and reports the Pod after that.
func (w *world) upgradeHot() {
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "real-hot"}}
	w.Must(yaml.UnmarshalStrict([]byte(hotSidecar), &set.Spec))
	w.Must(w.Client.Create(w.Ctx, set))
	h := w.follow()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "hot-sided", Namespace: namespace, Labels: map[string]string{"app": "hot-sided"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:alpine"}}},
	}
	w.Must(w.Client.Create(w.Ctx, p))
	want := []string{"1 idle proxy-1"}
	w.becomes(p, want[0])
	for i, steps := range [][]string{{"1 2 proxy-2", "idle 2 proxy-2"}, {"3 2 proxy-1", "3 idle proxy-1"}} {
		w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(set), set))
		set.Spec.Containers[0].Image = fmt.Sprintf("busybox:%d", i+2)
		w.Must(w.Client.Update(w.Ctx, set))
		w.becomes(p, steps[1])
		want = append(want, steps...)
	}
	w.Must(h.stop())
	h.neverUnready(w.T, p.Name)
	var got []string
	for _, v := range h.versions {
		if v.pod.Name == p.Name {
			got = append(got, proxies(v.pod))
		}
	}
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		w.Errorf("the images of both containers, and which one works (-want +got):\n%s", diff)
	}
}

// proxies tells the tags of the images of both containers of the hot sidecar, and which one works.
func proxies(p *corev1.Pod) string {
	var out []string
	for _, name := range []string{"proxy-1", "proxy-2"} {
		if c := pod.Container(p, name); c != nil {
			_, tag, _ := strings.Cut(c.Image, ":")
			out = append(out, tag)
		}
	}
	working, err := sidecar.WorkingIn(p)
	if err != nil {
		return err.Error()
	}
	return strings.Join(append(out, working["proxy"]), " ")
}

// becomes waits until the containers of the hot sidecar are as proxies tells it, run their images and are ready.
func (w *world) becomes(p *corev1.Pod, want string) {
	w.Helper()
	w.Eventually("the containers of the hot sidecar are "+want, func() error {
		w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(p), p))
		set := &v1beta1.SidecarSet{}
		w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Name: "real-hot"}, set))
		if got := proxies(p); got != want || !pod.IsReady(p) || set.Status.UpdatedReadyPods != 1 {
			return fmt.Errorf("they are %s, and the status is %+v", got, set.Status)
		}
		return nil
	})
	for i, tag := range strings.Fields(want)[:2] {
		if got := w.run(p, fmt.Sprintf("proxy-%d", i+1), "cat", "/etc/image-tag"); got != tag {
			w.Errorf("container proxy-%d runs %q, want %q", i+1, got, tag)
		}
	}
}
