package workloadspread

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/spread"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

const clone = "apps.kruise.io/v1beta1"

func TestExamples(t *testing.T) { newEnv(t).AcceptsExamples("workloadspread-*.yaml") }

// TestCloneSetFillsSubsetsInOrder is scenarios 1 to 3: Pods fill the subsets in order, those of the last one go first, and a smaller limit moves no Pod.
func TestCloneSetFillsSubsetsInOrder(t *testing.T) {
	e := newEnv(t)
	e.over(clone, "CloneSet", "web", "a=3", "b")
	e.workload(clone, "CloneSet", "web", 5)
	e.spreads("web", map[string]int{"a": 3, "b": 2})
	for _, p := range e.active() {
		m, _ := spread.MatchedOf(&p)
		terms := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		want := []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "In", Values: []string{m.Subset}}}}}
		if diff := cmp.Diff(want, terms); diff != "" || m.Name != "web" || p.Labels["subset"] != m.Subset || (m.UID != "") != (m.Subset == "a") {
			t.Errorf("Pod %s: %+v, labels %v, terms (-want +got):\n%s", p.Name, m, p.Labels, diff)
		}
	}
	e.costs(map[string][]string{"a": {"200", "200", "200"}, "b": {"100", "100"}})
	e.scale(clone, "CloneSet", "web", 3)
	e.spreads("web", map[string]int{"a": 3})
	before := names(e.active())
	e.tally("web", 3, 0, 0)
	e.patch(clone, "WorkloadSpread", "web", `{"spec":{"subsets":[{"name":"a","maxReplicas":1,"requiredNodeSelector":{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]}},
		{"name":"b","requiredNodeSelector":{"matchExpressions":[{"key":"zone","operator":"In","values":["b"]}]}}]}}`)
	e.costs(map[string][]string{"a": {"-100", "-100", "200"}})
	if after := names(e.active()); !slices.Equal(before, after) {
		t.Errorf("Pods %v became %v: a limit must move none", before, after)
	}
	e.tally("web", 3, 0, 2)
	kept := ""
	for _, p := range e.active() {
		if p.Annotations[corev1.PodDeletionCost] == "200" {
			kept = p.Name
		}
	}
	e.scale(clone, "CloneSet", "web", 2)
	e.spreads("web", map[string]int{"a": 2})
	if !slices.Contains(names(e.active()), kept) {
		t.Errorf("Pod %s is gone, which was not above the limit", kept)
	}
	e.scale(clone, "CloneSet", "web", 4)
	e.spreads("web", map[string]int{"a": 2, "b": 2})
}

// TestDeploymentRollsOutWithinTheLimits is scenario 4: during a rollout and after it, the new version has no more Pods in a subset than it takes. So it is when
// the Deployment is rolled back, to the hash of a version that was counted before.
func TestDeploymentRollsOutWithinTheLimits(t *testing.T) {
	e := newEnv(t)
	e.over("apps/v1", "Deployment", "web", "a=2", "b")
	e.workload("apps/v1", "Deployment", "web", 4)
	e.spreads("web", map[string]int{"a": 2, "b": 2})
	for _, image := range []string{"nginx:2", "nginx:1"} {
		e.patch("apps/v1", "Deployment", "web", `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"`+image+`"}]}}}}`)
		e.Eventually("all Pods run "+image, func() error {
			a, fresh := 0, 0
			for _, p := range e.active() {
				if p.Spec.Containers[0].Image != image {
					continue
				}
				fresh++
				if m, _ := spread.MatchedOf(&p); m.Subset == "a" {
					a++
				}
			}
			if a > 2 {
				t.Errorf("%d new Pods are in subset a, want 2 at most", a)
			}
			if fresh != 4 || len(e.active()) != 4 {
				return fmt.Errorf("%d of %d do", fresh, len(e.active()))
			}
			return nil
		})
		e.spreads("web", map[string]int{"a": 2, "b": 2})
		e.costs(map[string][]string{"a": {"200", "200"}, "b": {"100", "100"}})
	}
}

// TestPercentages is scenario 5: percentages follow the replicas.
func TestPercentages(t *testing.T) {
	e := newEnv(t)
	e.over("apps/v1", "Deployment", "web", "a=30%", "b=70%")
	e.workload("apps/v1", "Deployment", "web", 10)
	e.spreads("web", map[string]int{"a": 3, "b": 7})
	e.scale("apps/v1", "Deployment", "web", 20)
	e.spreads("web", map[string]int{"a": 6, "b": 14})
}

// TestStatefulSetsByOrdinal is scenario 6, for both kinds of StatefulSets.
func TestStatefulSetsByOrdinal(t *testing.T) {
	for _, apiVersion := range []string{"apps/v1", clone} {
		t.Run(strings.ReplaceAll(apiVersion, "/", "-"), func(t *testing.T) {
			e := newEnv(t)
			e.over(apiVersion, "StatefulSet", "web", "a=5", "b=5", "c")
			e.workload(apiVersion, "StatefulSet", "web", 12)
			e.spreads("web", map[string]int{"a": 5, "b": 5, "c": 2})
			for i, want := range []string{"a", "a", "a", "a", "a", "b", "b", "b", "b", "b", "c", "c"} {
				p := &corev1.Pod{}
				e.Read(fmt.Sprint("web-", i), p)
				if m, _ := spread.MatchedOf(p); m.Subset != want || m.UID != "" || p.Annotations[corev1.PodDeletionCost] != "" {
					t.Errorf("Pod %s is in %+v with cost %q, want %s, without an entry and a cost", p.Name, m, p.Annotations[corev1.PodDeletionCost], want)
				}
			}
		})
	}
}

// TestPodsFromBeforeAreTakenOver is scenario 7: Pods that were there before get the subset of their node, and the labels of its patch, unless the
// WorkloadSpread says not to.
func TestPodsFromBeforeAreTakenOver(t *testing.T) {
	for _, ignored := range []string{"", "True"} {
		t.Run("ignored="+ignored, func(t *testing.T) {
			e := newEnv(t)
			e.workload(clone, "CloneSet", "web", 6)
			e.Eventually("all Pods run", func() error {
				for _, p := range e.active() {
					if p.Spec.NodeName == "" {
						return errors.New("one has no node")
					}
				}
				if n := len(e.active()); n != 6 {
					return fmt.Errorf("there are %d", n)
				}
				return nil
			})
			o := e.Manifest(spreadOf(clone, "CloneSet", "web", "a=3", "b", "c", "drain"))
			o.SetAnnotations(map[string]string{"workloadspread.kruise.io/ignore-patch-existing-pods-metadata": ignored})
			e.Must(e.Client.Create(e.Ctx, o))
			e.Eventually("each Pod is in the subset of its node", func() error {
				for _, p := range e.active() {
					node := &corev1.Node{}
					e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Name: p.Spec.NodeName}, node))
					want, label := node.Labels["zone"], node.Labels["zone"]
					if ignored != "" {
						label = ""
					}
					if m, _ := spread.MatchedOf(&p); m.Subset != want || p.Labels["subset"] != label {
						return fmt.Errorf("Pod %s in zone %s is in %q with label %q", p.Name, want, m.Subset, p.Labels["subset"])
					}
				}
				return nil
			})
		})
	}
}

// TestDryRunChangesNothing is scenario 9.
func TestDryRunChangesNothing(t *testing.T) {
	e := newEnv(t)
	e.over(clone, "CloneSet", "web", "a=3", "b")
	e.workload(clone, "CloneSet", "web", 0)
	e.spreads("web", map[string]int{})
	before := e.AtRest(time.Second, "what is stored", func() string { return e.read("web").ResourceVersion })
	p := e.podOf("web")
	e.Must(e.Client.Create(e.Ctx, p, client.DryRunAll))
	e.Always(time.Second, "nothing is written", func() error {
		if after := e.read("web"); after.ResourceVersion != before {
			return fmt.Errorf("the status is %+v", after.Status)
		}
		return nil
	})
}

// podOf returns a new Pod of a CloneSet, as its controller would make it.
func (e *env) podOf(name string) *corev1.Pod {
	e.Helper()
	set := &v1beta1.CloneSet{}
	e.Read(name, set)
	p := newPod(e)
	p.Labels = set.Spec.Template.Labels
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, v1beta1.GroupVersion.WithKind("CloneSet"))}
	return p
}

func newPod(e *env) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, GenerateName: "made-"}}
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx:1"}}
	return p
}

// TestRoomOfARefusedPodComesBack is scenario 10: what was given to a Pod that a quota refuses is room again after 30 seconds, with an event.
func TestRoomOfARefusedPodComesBack(t *testing.T) {
	e := newEnv(t)
	e.over(clone, "CloneSet", "web", "a=1", "b")
	e.Make(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {pods: "0"}}}`)
	e.Eventually("the quota holds", func() error {
		quota := &corev1.ResourceQuota{}
		e.Read("none", quota)
		if len(quota.Status.Hard) == 0 {
			return errors.New("its status is empty")
		}
		return nil
	})
	e.workload(clone, "CloneSet", "web", 1)
	e.Eventually("the room is given away", func() error {
		if s := e.read("web").Status.SubsetStatuses; len(s) == 0 || len(s[0].CreatingPods) == 0 || s[0].MissingReplicas != 0 {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	e.scale(clone, "CloneSet", "web", 0)
	e.Eventually("the room comes back", func() error {
		s := e.read("web").Status.SubsetStatuses[0]
		if len(s.CreatingPods) > 0 || s.MissingReplicas != 1 {
			return fmt.Errorf("the status is %+v", s)
		}
		if !slices.Contains(e.Reasons("web"), "CreatePodFailed") {
			return errors.New("there is no event")
		}
		return nil
	})
}

// TestRefusals is scenario 13, and the other rules.
func TestRefusals(t *testing.T) {
	e := newEnv(t)
	e.over(clone, "CloneSet", "web", "a=3", "b")
	refused := func(what, want, text string) {
		t.Helper()
		err := e.Client.Create(e.Ctx, e.Manifest(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	second := strings.Replace(spreadOf("apps.kruise.io/v1alpha1", "CloneSet", "web", "a"), "metadata: {name: web}", "metadata: {name: other}", 1)
	refused("another one for the same workload", "WorkloadSpread web spreads this workload already", second)
	refused("three subsets with 200 seconds", "must be 147 at most with 3 subsets", spreadOf(clone, "CloneSet", "x", "a=1", "b=1", "c")+
		"\n  scheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 200}}")
	refused("a kind that nobody lists", "TargetReference's GroupKind is not permitted.", spreadOf("example.com/v1", "TFJob", "x", "a"))
	refused("percentages of more than all", "must not be more than 100% in all", spreadOf("apps/v1", "Deployment", "x", "a=70%", "b=40%"))
	refused("percentages of less than all", "must be 100% in all", spreadOf("apps/v1", "Deployment", "x", "a=70%", "b=20%"))
	refused("numbers and percentages", "must be of the same type", spreadOf("apps/v1", "Deployment", "x", "a=7", "b=20%", "c"))
	refused("percentages of a StatefulSet", "must be a number", spreadOf("apps/v1", "StatefulSet", "x", "a=30%", "b"))
	refused("two subsets of a name", "Duplicate value", spreadOf("apps/v1", "Deployment", "x", "a", "a"))
	refused("no subset", "spec.subsets", spreadOf("apps/v1", "Deployment", "x"))
	refused("a term that the API server does not know", "its Pods would not be valid", strings.Replace(
		spreadOf("apps/v1", "Deployment", "x", "a"), "operator: In", "operator: Like", 1))
	err := scene.TryEdit(e.Env, "web", &v1beta1.WorkloadSpread{}, func(s *v1beta1.WorkloadSpread) { s.Spec.TargetReference.Name = "other" })
	if err == nil || !strings.Contains(err.Error(), "is immutable") {
		t.Errorf("another target: %v", err)
	}
	scene.Edit(e.Env, "web", &v1beta1.WorkloadSpread{}, func(s *v1beta1.WorkloadSpread) {
		s.Spec.TargetReference.APIVersion = "apps.kruise.io/v1alpha1"
	})
}

// TestPriorityOfAPatch is scenario 15.
func TestPriorityOfAPatch(t *testing.T) {
	e := newEnv(t)
	class := e.Namespace + "-low"
	priority := e.Manifest(fmt.Sprintf(`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %s}, value: -7}`, class))
	priority.SetNamespace("")
	e.Must(e.Client.Create(e.Ctx, priority))
	e.CleanUp(priority)
	o := e.Manifest(spreadOf(clone, "CloneSet", "web", "a"))
	subsets, _, _ := unstructured.NestedSlice(o.Object, "spec", "subsets")
	subsets[0].(map[string]any)["patch"] = map[string]any{"spec": map[string]any{"priorityClassName": class}}
	e.Must(unstructured.SetNestedSlice(o.Object, subsets, "spec", "subsets"))
	e.Must(e.Client.Create(e.Ctx, o))
	e.workload(clone, "CloneSet", "web", 1)
	e.spreads("web", map[string]int{"a": 1})
	if p := e.active()[0]; p.Spec.PriorityClassName != class || p.Spec.Priority == nil || *p.Spec.Priority != -7 {
		t.Errorf("the Pod has class %q and priority %v", p.Spec.PriorityClassName, p.Spec.Priority)
	}
}

// TestBothVersions is scenario 16: what is written in the older version is read in the newer one.
func TestBothVersions(t *testing.T) {
	e := newEnv(t)
	text := strings.NewReplacer("v1beta1\nkind: WorkloadSpread", "v1alpha1\nkind: WorkloadSpread", "requiredNodeSelector:", "requiredNodeSelectorTerm:").
		Replace(spreadOf("apps/v1", "Deployment", "web", "a=1", "b"))
	e.Make(text)
	s := e.read("web")
	if r := s.Spec.Subsets[0].RequiredNodeSelector; r == nil || r.MatchExpressions[0].Values[0] != "a" {
		t.Errorf("the subset is %+v", s.Spec.Subsets[0])
	}
	e.workload("apps/v1", "Deployment", "web", 3)
	e.spreads("web", map[string]int{"a": 1, "b": 2})
}

// TestReplacedPodsComeBackToTheirSubset deletes Pods of a subset that is full again and again: their replacements get their room, however fast they come.
func TestReplacedPodsComeBackToTheirSubset(t *testing.T) {
	e := newEnv(t)
	e.over("apps/v1", "Deployment", "web", "a=3", "b=3")
	e.workload("apps/v1", "Deployment", "web", 6)
	want := map[string]int{"a": 3, "b": 3}
	e.spreads("web", want)
	for range 5 {
		for i, p := range e.active() {
			if i%2 == 0 {
				e.Must(e.Client.Delete(e.Ctx, &p, client.GracePeriodSeconds(0)))
			}
		}
		e.Eventually("there are six again", func() error {
			if n := len(e.active()); n != 6 {
				return fmt.Errorf("there are %d", n)
			}
			return nil
		})
		if got := e.subsets(); !maps.Equal(got, want) {
			t.Errorf("the subsets are %v, want %v", got, want)
		}
	}
}

// TestAJobOfManyPods spreads the Pods of a Job; those that are over do not count.
func TestAJobOfManyPods(t *testing.T) {
	e := newEnv(t)
	e.over("batch/v1", "Job", "work", "a=50%", "b")
	e.Make(`
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec:
  parallelism: 4
  completions: 8
  template:
    metadata: {annotations: {sim.kruise.io/run-for: 1s}}
    spec: {restartPolicy: Never, containers: [{name: app, image: "busybox:1"}]}`)
	e.Eventually("the Job is complete", func() error {
		a := 0
		for _, p := range e.active() {
			if m, _ := spread.MatchedOf(&p); m.Subset == "a" {
				a++
			}
		}
		if a > 2 {
			t.Errorf("%d Pods are in subset a, want 2 at most", a)
		}
		if over := len(e.Pods()) - len(e.active()); over < 8 {
			return fmt.Errorf("%d Pods are over", over)
		}
		return nil
	})
	e.spreads("work", map[string]int{})
}
