package inplace

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// reading returns the template of a container reader that takes annotation conf into its environment, and of another one.
func reading(conf string) *corev1.PodTemplateSpec {
	t := templateOf(container("reader", "reader:v1", fromField("CONF", "metadata.annotations['conf']")), container("other", "other:v1"))
	t.Annotations = map[string]string{"conf": conf}
	return t
}

// TestBeginRestartsWhatRunsWithAnotherValue: the annotation of a Pod was changed by hand, which restarts nothing, and then the template
// gets the same value.
func TestBeginRestartsWhatRunsWithAnotherValue(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"the daemon tells that it runs with the old value": {want: true},
		"it has been started again since": {
			change: func(p *corev1.Pod) {
				pod.ContainerStatus(p, "reader").ContainerID = ""
				node{daemon: true}.start(p, "reader")
			},
		},
		"no daemon tells": {change: func(p *corev1.Pod) { delete(p.Annotations, keys.RuntimeContainersMeta) }},
		"the daemon tells of another container": {
			change: func(p *corev1.Pod) { pod.ContainerStatus(p, "reader").ContainerID = "containerd://next" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := podOf(reading("1"))
			p.Annotations["conf"] = "2"
			if tc.change != nil {
				tc.change(p)
			}
			Begin(p, change(t, reading("1"), reading("2")), to("web-2"))
			if Pending(p) != tc.want || gate(p) == corev1.ConditionFalse != tc.want {
				t.Fatalf("the update is pending: %v, the gate is %s; want a restart: %v", Pending(p), gate(p), tc.want)
			}
			if !tc.want {
				return
			}
			step(t, p, 0)
			if Progress(p, everything()).Done {
				t.Fatal("the update is done before the container runs with the new value")
			}
			restarts := pod.ContainerStatus(p, "other").RestartCount
			node{daemon: true}.run(p)
			if got := Progress(p, everything()); !got.Done || pod.ContainerStatus(p, "other").RestartCount != restarts {
				t.Errorf("after the restart: %s; the other container was restarted: %v", got.Why,
					pod.ContainerStatus(p, "other").RestartCount != restarts)
			}
		})
	}
}

// TestTheLastOfManyChangesCounts: the template is changed back and forth before the container was restarted for the first change.
func TestTheLastOfManyChangesCounts(t *testing.T) {
	p := podOf(reading("1"))
	Begin(p, change(t, reading("1"), reading("2")), to("web-2"))
	step(t, p, 0)
	for i, change := range []Change{
		change(t, reading("2"), reading("1")), change(t, reading("1"), reading("2")), change(t, reading("2"), reading("1")),
	} {
		Begin(p, change, to([]string{"web-3", "web-4", "web-5"}[i]))
	}
	step(t, p, 0)
	node{daemon: true}.run(p)
	if got := Progress(p, everything()); !got.Done || p.Annotations["conf"] != "1" {
		t.Errorf("the update is done: %v (%s), with conf %s, want 1", got.Done, got.Why, p.Annotations["conf"])
	}
}

func TestStale(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   []string
	}{
		"it runs with the template's value": {change: func(*corev1.Pod) {}},
		"it was started with another value": {
			change: func(p *corev1.Pod) { startedWith(p, "1") }, want: []string{"reader"},
		},
		"its Pod's value was changed by hand, which restarts nothing": {
			change: func(p *corev1.Pod) { p.Annotations["conf"] = "3" },
		},
		"it came back with a value that was set by hand, and is still set": {
			change: func(p *corev1.Pod) { startedWith(p, "3"); p.Annotations["conf"] = "3" },
		},
		"its Pod's value was removed by hand": {change: func(p *corev1.Pod) { delete(p.Annotations, "conf") }},
		"no daemon tells": {
			change: func(p *corev1.Pod) { startedWith(p, "1"); delete(p.Annotations, keys.RuntimeContainersMeta) },
		},
		"its runtime does not tell the environment": {change: func(p *corev1.Pod) {
			metas := runtimeMeta(p)
			reader := metas["reader"]
			reader.Hashes.ExtractedEnvFromMetadataHash = 0
			write(p, pub.RuntimeContainerMetaSet{Containers: []pub.RuntimeContainerMeta{reader}}, keys.RuntimeContainersMeta)
		}},
		"the daemon tells of a container that is gone": {
			change: func(p *corev1.Pod) {
				startedWith(p, "1")
				pod.ContainerStatus(p, "reader").ContainerID = "containerd://next"
			},
		},
		"the kubelet is about to restart it for its image": {
			change: func(p *corev1.Pod) { startedWith(p, "1"); pod.Container(p, "reader").Image = "reader:v2" },
		},
		"its Pod has no readiness gate, by which the daemon knows when to restart it": {
			change: func(p *corev1.Pod) { startedWith(p, "1"); p.Spec.ReadinessGates = nil },
		},
		"an update is under way": {change: func(p *corev1.Pod) {
			startedWith(p, "1")
			pod.SetGate(p, corev1.PodCondition{Type: pub.InPlaceUpdateReady, Status: corev1.ConditionFalse}, at(0))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := podOf(reading("2"))
			tc.change(p)
			got := Stale(p, reading("2"), everything())
			if names := slices.Sorted(maps.Keys(got.RefMetadata)); !slices.Equal(names, tc.want) {
				t.Errorf("containers %v, want %v", names, tc.want)
			}
			if off := Stale(p, reading("2"), Options{}); off.TouchesContainers() {
				t.Error("environments are looked at although the feature is off")
			}
		})
	}
}

// startedWith has the node daemon tell that the reader was started with a value of conf.
func startedWith(p *corev1.Pod, conf string) {
	now := p.Annotations["conf"]
	p.Annotations["conf"] = conf
	node{daemon: true}.start(p, "reader")
	p.Annotations["conf"] = now
}

// TestAValueSetByHandLaterDoesNotReopenAnUpdate: an update of the environment is over once the Pod is back in service.
func TestAValueSetByHandLaterDoesNotReopenAnUpdate(t *testing.T) {
	p := podOf(reading("1"))
	Begin(p, change(t, reading("1"), reading("2")), to("web-2"))
	step(t, p, 0)
	node{daemon: true}.run(p)
	Finish(p, at(1))
	p.Annotations["conf"] = "3"
	if got := Progress(p, everything()); !got.Done {
		t.Errorf("an update is under way: %s", got.Why)
	}
}

// However updates, users who set annotations, the kubelet and time interleave: in the end no container runs with another value than the
// template's, if its Pod has that.
func TestNoContainerKeepsAnOldValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 20).Draw(t, "moves") {
			switch rapid.IntRange(0, 5).Draw(t, "move") {
			case 0:
				w.begin()
			case 1:
				w.advance()
			case 2:
				w.look()
			case 3:
				w.startOrResize(rapid.SampledFrom(w.template.Spec.Containers).Draw(t, "container").Name)
			case 4:
				p := w.pod.DeepCopy()
				p.Annotations[rapid.SampledFrom([]string{"x", "y"}).Draw(t, "key")] = rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value")
				w.set(p)
			default:
				w.clock++
			}
		}
		for range 60 {
			w.clock++
			if s := w.advance(); !s.Changed && !Pending(w.pod) && Progress(w.pod, everything()).Done {
				Finish(w.pod, at(w.clock))
				c := Stale(w.pod, w.template, everything())
				if !c.TouchesContainers() {
					w.checkEnvironments()
					return
				}
				after := w.pod.DeepCopy()
				Begin(after, c, to("web-again"))
				w.set(after)
			}
			w.look()
			for i := range w.template.Spec.Containers {
				w.startOrResize(w.template.Spec.Containers[i].Name)
			}
		}
		t.Fatalf("the update does not end: %s", Progress(w.pod, everything()).Why)
	})
}

// startOrResize has the kubelet bring a container to its spec. Only while the Pod is out of service it is restarted for its environment.
func (w *world) startOrResize(name string) {
	status := pod.ContainerStatus(w.pod, name)
	if gate(w.pod) == corev1.ConditionFalse || status.Image != w.seen[name] {
		w.start(name)
		return
	}
	status.Resources = pod.Container(w.pod, name).Resources.DeepCopy()
}

// checkEnvironments fails where a container runs with another environment than its Pod's, which is the template's.
func (w *world) checkEnvironments() {
	for i := range w.template.Spec.Containers {
		c := &w.template.Spec.Containers[i]
		same, any := true, false
		labels, annotations := environmentKeys(c)
		for _, key := range labels {
			same = same && w.pod.Labels[key] == w.template.Labels[key]
			any = any || w.template.Labels[key] != ""
		}
		for _, key := range annotations {
			same = same && w.pod.Annotations[key] == w.template.Annotations[key]
			any = any || w.template.Annotations[key] != ""
		}
		got := runtimeMeta(w.pod)[c.Name].Hashes.ExtractedEnvFromMetadataHash
		if want := EnvironmentHash(Environment(w.pod, pod.Container(w.pod, c.Name))); same && any && got != want {
			w.Fatalf("%s runs with another environment than the template gives it", c.Name)
		}
	}
}

// TestStaleByWhatTheOriginalTold: a Pod that is taken over has the annotation of the original's daemon, which says the same.
func TestStaleByWhatTheOriginalTold(t *testing.T) {
	p := recorded(t, "with a sidecar")
	template := &corev1.PodTemplateSpec{Spec: *p.Spec.DeepCopy()}
	template.Annotations = map[string]string{"conf": p.Annotations["conf"]}
	if got := Stale(p, template, everything()); got.TouchesContainers() {
		t.Errorf("a Pod that runs with its template's values is to be updated: %s", got)
	}
	p.Annotations["conf"], template.Annotations["conf"] = "other", "other"
	if got := slices.Sorted(maps.Keys(Stale(p, template, everything()).RefMetadata)); !slices.Equal(got, []string{"nginx"}) {
		t.Errorf("containers %v run with an old value, want nginx", got)
	}
}
