package inplace

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// world is a Pod, the kubelet that may lag behind its spec, and the template that it is to follow.
type world struct {
	*rapid.T
	pod      *corev1.Pod
	seen     map[string]string // images, as the kubelet last saw them
	template *corev1.PodTemplateSpec
	original *corev1.PodTemplateSpec
	revision int
	clock    float64
}

func newWorld(t *rapid.T) *world {
	template := templateOf()
	for i := range rapid.IntRange(1, 4).Draw(t, "containers") {
		c := container(fmt.Sprintf("c%d", i), fmt.Sprintf("c%d:v0", i))
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		if rapid.Bool().Draw(t, "has a priority") {
			c.Env = append(c.Env, barrier(fmt.Sprint(rapid.IntRange(-1, 1).Draw(t, "priority"))))
		}
		for _, key := range []string{"x", "y"} {
			if rapid.Bool().Draw(t, "takes "+key) {
				c.Env = append(
					c.Env,
					fromField("L_"+key, "metadata.labels['"+key+"']"),
					fromField("A_"+key, "metadata.annotations['"+key+"']"),
				)
			}
		}
		template.Spec.Containers = append(template.Spec.Containers, c)
	}
	w := &world{T: t, template: template, original: template.DeepCopy(), pod: podOf(template)}
	w.pod.Labels["users"], w.pod.Annotations["users"] = "own", "own"
	w.pod.Generation = 1
	w.look()
	return w
}

// look has the kubelet see the Pod's present spec.
func (w *world) look() {
	w.seen = images(w.pod)
	w.pod.Status.ObservedGeneration = w.pod.Generation
}

// start has the kubelet bring a container to the spec that it last saw. The node daemon restarts none for its environment that the kubelet is
// about to restart for its image.
func (w *world) start(name string) {
	spec := pod.Container(w.pod, name)
	if running := pod.ContainerStatus(w.pod, name).Image; running == w.seen[name] && running != spec.Image {
		return
	}
	wanted := spec.Image
	spec.Image = w.seen[name]
	node{daemon: true}.start(w.pod, name)
	spec.Image = wanted
}

// set writes the Pod, as the API server does.
func (w *world) set(p *corev1.Pod) {
	if !equality.Semantic.DeepEqual(w.pod.Spec, p.Spec) {
		p.Generation++
	}
	w.pod = p
}

// edit draws another template. The keys x and y, which containers take, are never removed: that would restart nothing.
func (w *world) edit() *corev1.PodTemplateSpec {
	next := w.template.DeepCopy()
	for i := range next.Spec.Containers {
		c := &next.Spec.Containers[i]
		if rapid.IntRange(0, 1).Draw(w.T, "touched") == 0 {
			continue
		}
		c.Image = fmt.Sprintf("%s:v%d", c.Name, rapid.IntRange(0, 3).Draw(w.T, "version"))
		c.Resources.Requests[corev1.ResourceCPU] = *resource.NewQuantity(int64(rapid.IntRange(1, 2).Draw(w.T, "cpu")), resource.DecimalSI)
	}
	for _, key := range []string{"x", "y", "z"} {
		for _, side := range []*map[string]string{&next.Labels, &next.Annotations} {
			switch value := rapid.SampledFrom([]string{"", "1", "2"}).Draw(w.T, key); {
			case value == "" && key == "z":
				delete(*side, key)
			case value == "":
			case *side == nil:
				*side = map[string]string{key: value}
			default:
				(*side)[key] = value
			}
		}
	}
	return next
}

func (w *world) begin() {
	next := w.edit()
	c, refusal := DiffTemplates(w.template, next, everything())
	if refusal != nil {
		w.Fatal(refusal)
	}
	before := c.String()
	w.revision++
	target := to(fmt.Sprintf("web-%d", w.revision+1))
	target.GraceSeconds, target.Now = int32(rapid.IntRange(0, 3).Draw(w.T, "grace")), at(w.clock)
	after := w.pod.DeepCopy()
	Begin(after, c, target)
	if diff := cmp.Diff(w.pod.Spec, after.Spec); diff != "" {
		w.Fatalf("Begin changed the spec: %s", diff)
	}
	if again, _ := DiffTemplates(w.template, next, everything()); before != c.String() || !cmp.Equal(again, c) {
		w.Fatal("Begin changed the change, which other Pods share")
	}
	w.template = next
	w.set(after)
}

func (w *world) advance() Step {
	after := w.pod.DeepCopy()
	s := Advance(after, everything(), at(w.clock))
	if s.Problem != nil {
		w.Fatal(s.Problem)
	}
	if !s.Changed {
		if diff := cmp.Diff(w.pod, after); diff != "" {
			w.Fatalf("Advance changed the Pod and says that it did not: %s", diff)
		}
	}
	w.set(after)
	return s
}

// check holds at every moment.
func (w *world) check() {
	rest := w.pod.Spec.DeepCopy()
	want := w.original.Spec.DeepCopy()
	for i := range rest.Containers {
		rest.Containers[i].Image, rest.Containers[i].Resources = "", corev1.ResourceRequirements{}
		want.Containers[i].Image, want.Containers[i].Resources = "", corev1.ResourceRequirements{}
	}
	if diff := cmp.Diff(want, rest, cmpopts.IgnoreFields(corev1.PodSpec{}, "ReadinessGates")); diff != "" {
		w.Fatalf("more than images and resources changed: %s", diff)
	}
	if w.pod.Labels["users"] != "own" || w.pod.Annotations["users"] != "own" {
		w.Fatal("what a user set on the Pod was changed")
	}
	if !Progress(w.pod, everything()).Done {
		return
	}
	for i := range w.pod.Spec.Containers {
		c := &w.pod.Spec.Containers[i]
		status := pod.ContainerStatus(w.pod, c.Name)
		if wanted := w.template.Spec.Containers[i].Image; c.Image != wanted || status.Image != wanted || w.seen[c.Name] != wanted {
			w.Fatalf("the update is done, and %s has %s and runs %s instead of %s", c.Name, c.Image, status.Image, wanted)
		}
		if got, want := runtimeMeta(w.pod)[c.Name].Hashes.ExtractedEnvFromMetadataHash, EnvironmentHash(Environment(w.pod, c)); got != want {
			w.Fatalf("the update is done, and the environment of %s is not", c.Name)
		}
		if !equality.Semantic.DeepEqual(w.template.Spec.Containers[i].Resources, *status.Resources) {
			w.Fatalf("the update is done, and %s has the resources %v", c.Name, status.Resources)
		}
	}
	for _, key := range []string{"x", "y", "z"} {
		if w.pod.Labels[key] != w.template.Labels[key] || w.pod.Annotations[key] != w.template.Annotations[key] {
			w.Fatalf("the update is done, and the Pod has %s=%q and %q", key, w.pod.Labels[key], w.pod.Annotations[key])
		}
	}
}

// However updates, the kubelet and time interleave: only images, resources and metadata change; what is called done is done; and it ends.
func TestUpdatesEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 20).Draw(t, "moves") {
			switch rapid.IntRange(0, 4).Draw(t, "move") {
			case 0:
				w.begin()
			case 1:
				w.advance()
			case 2:
				w.look()
			case 3:
				w.start(rapid.SampledFrom(w.template.Spec.Containers).Draw(t, "container").Name)
			default:
				w.clock++
			}
			w.check()
		}
		for range 20 {
			w.clock++
			s := w.advance()
			w.check()
			if Progress(w.pod, everything()).Done && !s.Changed {
				Finish(w.pod, at(w.clock))
				if gate(w.pod) != corev1.ConditionTrue || Pending(w.pod) {
					t.Fatal("the update is done, and the Pod is out of service")
				}
				return
			}
			w.look()
			for i := range w.template.Spec.Containers {
				w.start(w.template.Spec.Containers[i].Name)
			}
		}
		t.Fatalf("the update does not end: %s", Progress(w.pod, everything()).Why)
	})
}
