package cloneset

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-69ecc383/kruise/test/kit/scene"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/dump"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// configured returns a CloneSet of one Pod with two containers, the first of which takes an annotation into its environment.
func (e *env) configured(name string) *v1beta1.CloneSet {
	set := e.inPlace(name, 1)
	set.Spec.Template.Annotations = map[string]string{"app-config": "1", "note": "1"}
	fromAnnotation := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['app-config']"}}
	set.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "reader", Image: "nginx:alpine", Env: []corev1.EnvVar{{Name: "CONFIG", ValueFrom: fromAnnotation}}},
		{Name: "other", Image: "nginx:alpine"},
	}
	return set
}

func annotate(key, value string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { set.Spec.Template.Annotations[key] = value }
}

func TestAnnotationInTheEnvironmentRestartsItsContainer(t *testing.T) {
	e := newEnv(t)
	e.Must(e.Client.Create(e.Ctx, e.configured("reads")))
	e.settled("reads", 1, 1)
	before := e.pods("reads")[0]
	e.reportAsDaemon("reads", "1")

	t.Log("an annotation that no environment takes restarts nothing")
	e.edit("reads", annotate("note", "2"))
	e.settled("reads", 1, 1)
	if got := e.restarts("reads"); got != "reader 0, other 0" {
		t.Errorf("restarts are %s", got)
	}

	t.Log("one that an environment takes waits until the daemon of the node tells that the container runs with it")
	e.edit("reads", annotate("app-config", "2"))
	e.Eventually("the update has begun", func() error {
		p := e.pods("reads")[0]
		if p.Annotations["app-config"] != "2" || p.Labels[keys.LifecycleState] != "Updating" || scene.IsReady(&p) {
			return fmt.Errorf("annotations are %v, state is %s", p.Annotations, p.Labels[keys.LifecycleState])
		}
		return nil
	})
	if state := e.pods("reads")[0].Annotations[keys.InPlaceUpdateState]; !strings.Contains(state, `"updateEnvFromMetadata":true`) {
		t.Errorf("the in-place record is %s", state)
	}
	e.Always(time.Second, "the Pod is out of service until the daemon speaks", func() error {
		if p := e.pods("reads")[0]; scene.IsReady(&p) || p.Labels[keys.LifecycleState] != "Updating" {
			return fmt.Errorf("ready %v, state %s", scene.IsReady(&p), p.Labels[keys.LifecycleState])
		}
		return nil
	})
	e.patchPod(before.Name, func(p *corev1.Pod) { p.Annotations["sim.kruise.io/kill"] = "reader/1" })
	e.Eventually("the daemon has restarted the reader alone", func() error {
		if got := e.restarts("reads"); got != "reader 1, other 0" {
			return fmt.Errorf("restarts are %s", got)
		}
		return nil
	})
	e.reportAsDaemon("reads", "2")
	e.settled("reads", 1, 1)
	after := e.pods("reads")[0]
	if after.UID != before.UID || after.Labels[keys.LifecycleState] != "Normal" || e.restarts("reads") != "reader 1, other 0" {
		t.Errorf("UID %s, was %s; state %s; restarts %s", after.UID, before.UID, after.Labels[keys.LifecycleState], e.restarts("reads"))
	}
}

// A value that somebody has given to the Pod by hand restarts nothing, until the template gets the same one: then the container has to run
// with it.
func TestAValueSetByHandBeforeTheTemplateRestartsItsContainer(t *testing.T) {
	e := newEnv(t)
	e.Must(e.Client.Create(e.Ctx, e.configured("byhand")))
	e.settled("byhand", 1, 1)
	before := e.pods("byhand")[0]
	e.reportAsDaemon("byhand", "1")
	e.patchPod(before.Name, func(p *corev1.Pod) { p.Annotations["app-config"] = "2" })
	e.Always(time.Second, "nothing restarts", func() error {
		if p := e.pods("byhand")[0]; !scene.IsReady(&p) || p.Labels[keys.LifecycleState] != "Normal" {
			return fmt.Errorf("ready %v, state %s", scene.IsReady(&p), p.Labels[keys.LifecycleState])
		}
		return nil
	})
	e.edit("byhand", annotate("app-config", "2"))
	e.Eventually("the Pod is out of service until its container runs with the value", func() error {
		if p := e.pods("byhand")[0]; scene.IsReady(&p) || p.Labels[keys.LifecycleState] != "Updating" {
			return fmt.Errorf("ready %v, state %s", scene.IsReady(&p), p.Labels[keys.LifecycleState])
		}
		return nil
	})
	e.patchPod(before.Name, func(p *corev1.Pod) { p.Annotations["sim.kruise.io/kill"] = "reader/1" })
	e.Eventually("the daemon has restarted the reader alone", func() error {
		if got := e.restarts("byhand"); got != "reader 1, other 0" {
			return fmt.Errorf("restarts are %s", got)
		}
		return nil
	})
	e.reportAsDaemon("byhand", "2")
	e.settled("byhand", 1, 1)
	if after := e.pods("byhand")[0]; after.UID != before.UID || after.Labels[keys.LifecycleState] != "Normal" {
		t.Errorf("UID %s, was %s; state %s", after.UID, before.UID, after.Labels[keys.LifecycleState])
	}
}

// reportAsDaemon writes on the CloneSet's only Pod what the daemon of a node would find out about its containers, of which the reader runs with
// an environment that says config.
func (e *env) reportAsDaemon(name, config string) {
	e.Helper()
	hash := func(value any) uint64 {
		encoded, err := json.Marshal(value)
		e.Must(err)
		h := fnv.New32a()
		fmt.Fprintf(h, "%v", dump.ForHash(encoded))
		return uint64(h.Sum32())
	}
	p := e.pods(name)[0]
	var report pub.RuntimeContainerMetaSet
	for _, status := range p.Status.ContainerStatuses {
		meta := pub.RuntimeContainerMeta{Name: status.Name, ContainerID: status.ContainerID, RestartCount: status.RestartCount}
		for _, container := range p.Spec.Containers {
			if container.Name == status.Name {
				meta.Hashes.PlainHash = hash(map[string]string{"image": container.Image, "name": container.Name})
			}
		}
		if status.Name == "reader" {
			meta.Hashes.ExtractedEnvFromMetadataHash = hash([]corev1.EnvVar{{Name: "CONFIG", Value: config}})
		}
		report.Containers = append(report.Containers, meta)
	}
	encoded, err := json.Marshal(report)
	e.Must(err)
	e.patchPod(p.Name, func(p *corev1.Pod) { p.Annotations[keys.RuntimeContainersMeta] = string(encoded) })
}

// restarts lists how often each container of a CloneSet's only Pod was restarted, in the order of its spec.
func (e *env) restarts(name string) string {
	e.Helper()
	p := e.pods(name)[0]
	var out []string
	for _, container := range p.Spec.Containers {
		for _, status := range p.Status.ContainerStatuses {
			if status.Name == container.Name {
				out = append(out, fmt.Sprintf("%s %d", status.Name, status.RestartCount))
			}
		}
	}
	return strings.Join(out, ", ")
}

func TestContainersChangeInTheOrderOfTheirLaunchPriority(t *testing.T) {
	e := newEnv(t)
	set := e.inPlace("staged", 1)
	set.Spec.Template.Annotations = map[string]string{"sim.kruise.io/ready-delay": "500ms"}
	set.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "main", Image: "nginx:alpine"},
		{Name: "sidecar", Image: "nginx:alpine", Env: []corev1.EnvVar{{Name: keys.ContainerPriorityEnv, Value: "10"}}},
	}
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("staged", 1, 1)
	before := e.pods("staged")[0]
	h := e.record("staged")
	e.edit("staged", func(set *v1beta1.CloneSet) {
		for i := range set.Spec.Template.Spec.Containers {
			set.Spec.Template.Spec.Containers[i].Image = "nginx:mainline"
		}
	})
	e.settled("staged", 1, 1)
	after := e.pods("staged")[0]
	var state pub.InPlaceUpdateState
	e.Must(json.Unmarshal([]byte(after.Annotations[keys.InPlaceUpdateState]), &state))
	var batches [][]string
	for _, batch := range state.ContainerBatchesRecord {
		batches = append(batches, batch.Containers)
	}
	if diff := cmp.Diff([][]string{{"sidecar"}, {"main"}}, batches); diff != "" || after.UID != before.UID {
		t.Errorf("UID %s, was %s; batches (-want +got):\n%s", after.UID, before.UID, diff)
	}
	if got := e.restarts("staged"); got != "main 1, sidecar 1" {
		t.Errorf("restarts are %s", got)
	}
	h.read(func(h *history) {
		began := slices.IndexFunc(h.versions[after.Name], func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image == "nginx:mainline" })
		if began < 1 {
			t.Fatal("main was changed unseen")
		}
		judged := h.versions[after.Name][began-1]
		for _, status := range judged.Status.ContainerStatuses {
			if status.Name == "sidecar" && (!status.Ready || !strings.Contains(status.Image, "mainline")) {
				t.Errorf("main was changed while the sidecar ran %s, ready %v", status.Image, status.Ready)
			}
		}
	})
}

func TestPodIsOutOfServiceBeforeItsImageChanges(t *testing.T) {
	e := newEnv(t)
	e.Must(e.Client.Create(e.Ctx, e.inPlace("careful", 2)))
	e.settled("careful", 2, 2)
	h := e.record("careful")
	e.edit("careful", image("nginx:mainline"))
	e.settled("careful", 2, 2)
	want := []string{
		"nginx:alpine gate True ready true",
		"nginx:alpine gate False ready false",
		"nginx:mainline gate False ready false",
		"nginx:mainline gate True ready false", // the kubelet has the last word on Ready
		"nginx:mainline gate True ready true",
	}
	h.read(func(h *history) {
		for name, versions := range h.versions {
			var course []string
			for _, p := range versions {
				moment := fmt.Sprintf("%s gate %s ready %v", p.Spec.Containers[0].Image, gate(p), scene.IsReady(p))
				if len(course) == 0 || course[len(course)-1] != moment {
					course = append(course, moment)
				}
			}
			if diff := cmp.Diff(want, course); diff != "" {
				t.Errorf("the course of Pod %s (-want +got):\n%s", name, diff)
			}
			for _, p := range versions {
				c := p.Status.ContainerStatuses[0]
				isDone := c.Ready && strings.Contains(c.Image, "mainline")
				if p.Spec.Containers[0].Image == "nginx:mainline" && gate(p) == corev1.ConditionTrue && !isDone {
					t.Errorf("Pod %s is let back into service while it runs %s, ready %v", name, c.Image, c.Ready)
				}
			}
		}
	})
}

// gate returns the status of the condition by which in-place updates take a Pod out of service.
func gate(p *corev1.Pod) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == pub.InPlaceUpdateReady {
			return c.Status
		}
	}
	return ""
}
