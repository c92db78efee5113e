package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// surgeRows are what kubectl shows of the canary with surge, at its four moments.
var surgeRows = []string{"5 1 0 5 6", "5 2 2 5 5", "5 3 2 5 6", "5 5 5 5 5"}

func TestSurgeWithPartition(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			e := newEnv(t)
			o := e.object(e.manifest("cloneset-surge-partition.yaml"))
			if version == "v1beta1" {
				set := e.plain("demo", 5)
				set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
					MaxSurge: percent("20%"), MaxUnavailable: number(0), Partition: number(3),
				}
				e.must(shared.Client.Create(e.ctx, set))
			} else {
				e.must(shared.Client.Create(e.ctx, o))
			}
			e.settled("demo", 5, 5)
			h := e.record("demo")
			e.edit("demo", image("nginx:mainline"))
			e.settled("demo", 5, 2)
			if got := e.cloneSet("demo").Status; got.CurrentRevision == got.UpdateRevision || got.ExpectedUpdatedReplicas != 2 {
				t.Errorf("at partition 3: current %s, update %s, expected updated %d", got.CurrentRevision, got.UpdateRevision, got.ExpectedUpdatedReplicas)
			}
			e.edit("demo", partition(0))
			e.settled("demo", 5, 5)
			e.must(h.inOrder(surgeRows...))
			h.read(func(h *history) {
				if h.fewestAvailable < 5 || h.mostPods > 6 {
					t.Errorf("there were as few as %d available and as many as %d Pods, want 5 and 6; rows %q", h.fewestAvailable, h.mostPods, h.rows)
				}
			})
		})
	}
}

func percent(text string) *intstr.IntOrString { v := intstr.FromString(text); return &v }
func number(n int32) *intstr.IntOrString      { v := intstr.FromInt32(n); return &v }

func TestPartitionKeepsOldPods(t *testing.T) {
	e := newEnv(t)
	e.create(e.manifest("cloneset-basic.yaml"))
	e.settled("sample", 5, 5)
	e.edit("sample", func(set *v1beta1.CloneSet) { partition(3)(set); image("nginx:mainline")(set) })
	set := e.settled("sample", 5, 2)
	if set.Status.UpdateRevision != "sample-56dfb978d4" || set.Status.ExpectedUpdatedReplicas != 2 {
		t.Errorf("update revision %s on %d expected Pods", set.Status.UpdateRevision, set.Status.ExpectedUpdatedReplicas)
	}
	old := slices.DeleteFunc(e.pods("sample"), func(p corev1.Pod) bool { return p.Labels["controller-revision-hash"] != "sample-d4d4fb5bd" })
	if len(old) != 3 {
		t.Errorf("%d Pods are at the old revision, want 3", len(old))
	}

	t.Log("growing with a partition adds Pods of the new revision")
	e.edit("sample", replicas(6))
	e.settled("sample", 6, 3)
}

func TestPercentPartition(t *testing.T) {
	e := newEnv(t)
	set := e.inPlace("mostly", 10)
	set.Spec.UpdateStrategy.RollingUpdate.Partition = percent("99%")
	e.must(shared.Client.Create(e.ctx, set))
	e.settled("mostly", 10, 10)
	e.edit("mostly", image("nginx:mainline"))
	e.settled("mostly", 10, 1)
	e.edit("mostly", func(set *v1beta1.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Partition = percent("100%")
		image("nginx:1.27")(set)
	})
	got := e.settled("mostly", 10, 0)
	if got.Status.ExpectedUpdatedReplicas != 0 {
		t.Errorf("expected updated replicas are %d at 100%%, want 0", got.Status.ExpectedUpdatedReplicas)
	}
}

func TestSurgeIsNoMoreThanNeeded(t *testing.T) {
	e := newEnv(t)
	set := e.plain("frugal", 8)
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		Partition: number(6), MaxSurge: percent("50%"), MaxUnavailable: number(0),
	}
	e.must(shared.Client.Create(e.ctx, set))
	e.settled("frugal", 8, 8)
	h := e.record("frugal")
	e.edit("frugal", image("nginx:mainline"))
	e.settled("frugal", 8, 2)
	h.read(func(h *history) {
		if h.mostPods > 10 || h.fewestAvailable < 8 {
			t.Errorf("there were %d Pods at most and %d available at least, want 10 and 8", h.mostPods, h.fewestAvailable)
		}
	})
}

func TestRecreateStreamsWithinMaxUnavailable(t *testing.T) {
	e := newEnv(t)
	e.must(shared.Client.Create(e.ctx, e.plain("stream", 10)))
	e.settled("stream", 10, 10)
	h := e.record("stream")
	before := uids(e.pods("stream"))
	e.edit("stream", image("nginx:mainline"))
	e.settled("stream", 10, 10)
	h.read(func(h *history) {
		if h.fewestAvailable < 8 || h.mostPods > 10 {
			t.Errorf("as few as %d were available and there were as many as %d, want 8 and 10", h.fewestAvailable, h.mostPods)
		}
	})
	for _, uid := range uids(e.pods("stream")) {
		if slices.Contains(before, uid) {
			t.Errorf("Pod %s was not recreated", uid)
		}
	}
}

func TestPausedStillScales(t *testing.T) {
	e := newEnv(t)
	e.must(shared.Client.Create(e.ctx, e.plain("paused", 5)))
	e.settled("paused", 5, 5)
	e.edit("paused", func(set *v1beta1.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Paused = true
		image("nginx:mainline")(set)
	})
	e.settled("paused", 5, 0)
	e.always(time.Second, "no Pod is updated while paused", func() error {
		if n := e.cloneSet("paused").Status.UpdatedReplicas; n > 0 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	e.edit("paused", replicas(7))
	e.settled("paused", 7, 2)
	e.edit("paused", func(set *v1beta1.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = false })
	e.settled("paused", 7, 7)
}

func TestInPlaceKeepsPods(t *testing.T) {
	e := newEnv(t)
	e.must(shared.Client.Create(e.ctx, e.inPlace("steady", 5)))
	e.settled("steady", 5, 5)
	before := e.pods("steady")
	h := e.record("steady")
	e.edit("steady", image("nginx:mainline"))
	e.settled("steady", 5, 5)
	after := e.pods("steady")
	for i := range before {
		e.sameButImage(&before[i], &after[i], "nginx:mainline")
	}
	h.read(func(h *history) {
		if h.fewestAvailable < 4 {
			t.Errorf("as few as %d Pods were available, want 4", h.fewestAvailable)
		}
		for name, states := range h.states {
			if !slices.Equal(states, []string{"Updating", "Normal"}) && !slices.Equal(states, []string{"Normal", "Updating", "Normal"}) {
				t.Errorf("Pod %s went through %v", name, states)
			}
		}
	})

	t.Log("a change that can't go in place recreates")
	e.edit("steady", func(set *v1beta1.CloneSet) {
		set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	})
	e.settled("steady", 5, 5)
	for _, name := range names(e.pods("steady")) {
		if slices.Contains(names(before), name) {
			t.Errorf("Pod %s was not recreated", name)
		}
	}
}

// sameButImage checks that a Pod was updated in place: all that makes it itself is the same, its container restarted once with the image.
func (e *env) sameButImage(before, after *corev1.Pod, image string) {
	e.Helper()
	if before.UID != after.UID || before.Status.PodIP != after.Status.PodIP || before.Spec.NodeName != after.Spec.NodeName {
		e.Errorf("Pod %s: UID, IP, node were %s, %s, %s and are %s, %s, %s", before.Name,
			before.UID, before.Status.PodIP, before.Spec.NodeName, after.UID, after.Status.PodIP, after.Spec.NodeName)
	}
	was, is := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]
	if after.Spec.Containers[0].Image != image || is.RestartCount != was.RestartCount+1 || is.ImageID == was.ImageID {
		e.Errorf("Pod %s: image %s, restarts %d after %d, imageID %s after %s", after.Name,
			after.Spec.Containers[0].Image, is.RestartCount, was.RestartCount, is.ImageID, was.ImageID)
	}
	state := after.Annotations[keys.InPlaceUpdateState]
	for _, want := range []string{`"updateImages":true`, was.ImageID} {
		if !strings.Contains(state, want) {
			e.Errorf("Pod %s: in-place record %s lacks %s", after.Name, state, want)
		}
	}
	if _, grace := after.Annotations[keys.InPlaceUpdateGrace]; grace {
		e.Errorf("Pod %s still has the record of a planned update", after.Name)
	}
}

func TestInPlaceWithGrace(t *testing.T) {
	e := newEnv(t)
	text := strings.Replace(e.manifest("cloneset-inplace-grace.yaml"), "gracePeriodSeconds: 10", "gracePeriodSeconds: 5", 1)
	e.create(strings.Replace(text, "replicas: 5", "replicas: 1", 1))
	e.settled("graceful", 1, 1)
	before := e.pods("graceful")[0]
	e.edit("graceful", image("nginx:mainline"))
	pod := func() *corev1.Pod { return &e.pods("graceful")[0] }
	var began time.Time
	e.eventually("the Pod is NotReady with its old image and a planned update", func() error {
		p := pod()
		_, planned := p.Annotations[keys.InPlaceUpdateGrace]
		if !planned || p.Spec.Containers[0].Image != "nginx:alpine" || isReady(p) {
			return fmt.Errorf("planned %v, image %s, ready %v", planned, p.Spec.Containers[0].Image, isReady(p))
		}
		began = time.Now()
		return nil
	})
	e.eventually("the image changes", func() error {
		if got := pod().Spec.Containers[0].Image; got != "nginx:mainline" {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
	if waited := time.Since(began); waited < 4*time.Second {
		t.Errorf("the image changed after %s, want 5 s of grace", waited)
	}
	e.settled("graceful", 1, 1)
	after := e.pods("graceful")[0]
	e.sameButImage(&before, &after, "nginx:mainline")

	t.Log("rolled back during the grace period, the Pod keeps its image and is ready again")
	e.edit("graceful", image("nginx:alpine"))
	e.eventually("the next update is planned", func() error {
		if _, planned := pod().Annotations[keys.InPlaceUpdateGrace]; !planned {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	e.edit("graceful", image("nginx:mainline"))
	e.settled("graceful", 1, 1)
	if p := pod(); p.Spec.Containers[0].Image != "nginx:mainline" || !isReady(p) || p.UID != before.UID {
		t.Errorf("image %s, ready %v, UID %s, was %s", p.Spec.Containers[0].Image, isReady(p), p.UID, before.UID)
	}
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func TestMetadataChangesRestartNothing(t *testing.T) {
	e := newEnv(t)
	set := e.inPlace("labelled", 3)
	set.Spec.Template.Annotations = map[string]string{"config": "1", "obsolete": "x"}
	e.must(shared.Client.Create(e.ctx, set))
	e.settled("labelled", 3, 3)
	before := e.pods("labelled")
	e.edit("labelled", func(set *v1beta1.CloneSet) {
		set.Spec.Template.Annotations = map[string]string{"config": "2"}
		set.Spec.Template.Labels["tier"] = "web"
	})
	updated := e.settled("labelled", 3, 3)
	after := e.pods("labelled")
	for i := range after {
		p := &after[i]
		if p.UID != before[i].UID || p.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("Pod %s was recreated or restarted", p.Name)
		}
		if p.Annotations["config"] != "2" || p.Annotations["obsolete"] != "" || p.Labels["tier"] != "web" ||
			p.Labels["controller-revision-hash"] != updated.Status.UpdateRevision {
			t.Errorf("Pod %s has labels %v, annotations %v", p.Name, p.Labels, p.Annotations)
		}
	}
}

func TestInPlaceOnly(t *testing.T) {
	e := newEnv(t)
	set := e.plain("strict", 3)
	set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType
	e.must(shared.Client.Create(e.ctx, set))
	e.settled("strict", 3, 3)
	before := uids(e.pods("strict"))
	e.refused(e.tryEdit("strict", func(set *v1beta1.CloneSet) {
		set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	}), "spec.template", "InPlaceOnly")
	e.refused(e.tryEdit("strict", func(set *v1beta1.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = number(1)
	}), "maxSurge", "InPlaceOnly")
	e.edit("strict", image("nginx:mainline"))
	e.settled("strict", 3, 3)
	if after := uids(e.pods("strict")); !slices.Equal(before, after) {
		t.Errorf("Pods are %v, were %v", after, before)
	}
}

func TestOnDelete(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			e := newEnv(t)
			if version == "v1alpha1" {
				e.create(strings.Replace(e.manifest("cloneset-basic.yaml"), "replicas: 5", "replicas: 3\n  updateStrategy: {type: OnDelete}", 1))
			} else {
				set := e.plain("sample", 3)
				set.Spec.UpdateStrategy = v1beta1.CloneSetUpdateStrategy{Type: v1beta1.OnDeleteCloneSetStrategyType}
				e.must(shared.Client.Create(e.ctx, set))
			}
			e.settled("sample", 3, 3)
			before := uids(e.pods("sample"))
			e.edit("sample", image("nginx:mainline"))
			e.settled("sample", 3, 0)
			e.always(time.Second, "no Pod is touched", func() error {
				if after := uids(e.pods("sample")); !slices.Equal(before, after) {
					return fmt.Errorf("Pods are %v, were %v", after, before)
				}
				return nil
			})
			victim := e.pods("sample")[0]
			e.must(shared.Client.Delete(e.ctx, &victim))
			e.settled("sample", 3, 1)
			for _, p := range e.pods("sample") {
				if p.Labels["controller-revision-hash"] == victim.Labels["controller-revision-hash"] {
					e.patchPod(p.Name, func(p *corev1.Pod) { p.Labels[keys.SpecifiedDelete] = "true" })
					break
				}
			}
			e.settled("sample", 3, 2)
		})
	}
}

func TestUpdateByWeight(t *testing.T) {
	e := newEnv(t)
	text := strings.Replace(e.manifest("cloneset-order.yaml"), "replicas: 10", "replicas: 6", 1)
	e.create(strings.Replace(text, "updateStrategy:", "updateStrategy:\n    type: InPlaceIfPossible\n    maxUnavailable: 1", 1))
	e.settled("ordered", 6, 6)
	order := e.labelAll("ordered", "test-key", "", "bar", "foo", "", "bar", "foo")
	h := e.record("ordered")
	e.edit("ordered", image("nginx:mainline"))
	e.settled("ordered", 6, 6)
	e.inLabelOrder(h, order, []string{"foo", "foo", "bar", "bar", "", ""})
}

func TestUpdateByTrailingInteger(t *testing.T) {
	e := newEnv(t)
	set := e.inPlace("counted", 4)
	set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = number(1)
	set.Spec.UpdateStrategy.RollingUpdate.PriorityStrategy = &pub.UpdatePriorityStrategy{
		OrderPriority: []pub.UpdatePriorityOrderTerm{{OrderedKey: "some-label-key"}},
	}
	e.must(shared.Client.Create(e.ctx, set))
	e.settled("counted", 4, 4)
	order := e.labelAll("counted", "some-label-key", "a-3", "a-10", "a-1", "")
	h := e.record("counted")
	e.edit("counted", image("nginx:mainline"))
	e.settled("counted", 4, 4)
	e.inLabelOrder(h, order, []string{"", "a-10", "a-3", "a-1"})
}

func TestUpdateScattered(t *testing.T) {
	e := newEnv(t)
	set := e.inPlace("scattered", 10)
	set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = number(1)
	set.Spec.UpdateStrategy.RollingUpdate.ScatterStrategy = pub.UpdateScatterStrategy{{Key: "foo", Value: "bar"}}
	e.must(shared.Client.Create(e.ctx, set))
	e.settled("scattered", 10, 10)
	order := e.labelAll("scattered", "foo", "bar", "", "", "bar", "", "", "bar", "", "", "")
	h := e.record("scattered")
	e.edit("scattered", image("nginx:mainline"))
	e.settled("scattered", 10, 10)
	e.inLabelOrder(h, order, []string{"bar", "", "", "", "", "bar", "", "", "", "bar"})
}

// labelAll gives each Pod, in the order of names, one of the values, and returns them by name; an empty value is no label.
func (e *env) labelAll(name, key string, values ...string) map[string]string {
	e.Helper()
	out := map[string]string{}
	for i, p := range e.pods(name) {
		out[p.Name] = values[i]
		if values[i] != "" {
			e.patchPod(p.Name, func(p *corev1.Pod) { p.Labels[key] = values[i] })
		}
	}
	return out
}

func (e *env) inLabelOrder(h *history, values map[string]string, want []string) {
	e.Helper()
	h.read(func(h *history) {
		var got []string
		for _, name := range h.updated {
			got = append(got, values[name])
		}
		if !slices.Equal(got, want) {
			e.Errorf("Pods were updated in the order %q, want %q", got, want)
		}
	})
}

func TestHistoryLimit(t *testing.T) {
	e := newEnv(t)
	set := e.inPlace("forgetful", 1)
	two := int32(2)
	set.Spec.RevisionHistoryLimit = &two
	e.must(shared.Client.Create(e.ctx, set))
	e.settled("forgetful", 1, 1)
	for i := range 6 {
		e.edit("forgetful", image(fmt.Sprintf("nginx:1.%d", i)))
		e.settled("forgetful", 1, 1)
	}
	e.eventually("two old revisions and the live one are left", func() error {
		revisions := e.revisions("forgetful")
		if len(revisions) != 3 || revisions[0][:1] != "5" {
			return fmt.Errorf("revisions are %v", revisions)
		}
		return nil
	})
}

func TestRevisionNameIsTaken(t *testing.T) {
	e := newEnv(t)
	e.must(shared.Client.Create(e.ctx, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "sample-d4d4fb5bd", Namespace: e.namespace},
		Data:       runtime.RawExtension{Raw: []byte(`{"taken":true}`)},
		Revision:   1,
	}))
	e.create(e.manifest("cloneset-basic.yaml"))
	set := e.settled("sample", 5, 5)
	if set.Status.CollisionCount == nil || *set.Status.CollisionCount != 1 || set.Status.UpdateRevision == "sample-d4d4fb5bd" {
		t.Errorf("collision count is %v, update revision %s", set.Status.CollisionCount, set.Status.UpdateRevision)
	}
}

func TestRevertRemovesThePendingSurge(t *testing.T) {
	e := newEnv(t)
	set := e.plain("undone", 1)
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{MaxSurge: number(1), MaxUnavailable: number(0)}
	e.must(shared.Client.Create(e.ctx, set))
	e.settled("undone", 1, 1)
	before := uids(e.pods("undone"))
	e.edit("undone", image("nginx:fail-pull"))
	e.eventually("the surge Pod is there", func() error {
		if n := len(e.pods("undone")); n != 2 {
			return fmt.Errorf("%d Pods are", n)
		}
		return nil
	})
	e.edit("undone", image("nginx:alpine"))
	e.settled("undone", 1, 1)
	if after := uids(e.pods("undone")); !slices.Equal(before, after) {
		t.Errorf("the Pod is %v, was %v", after, before)
	}
}

func TestClaimTemplatesOfAnOldRevision(t *testing.T) {
	e := newEnv(t)
	set := e.plain("twofold", 2)
	claim := func(name string) corev1.PersistentVolumeClaim {
		c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}
		return c
	}
	mount := func(names ...string) []corev1.VolumeMount {
		var out []corev1.VolumeMount
		for _, n := range names {
			out = append(out, corev1.VolumeMount{Name: n, MountPath: "/" + n})
		}
		return out
	}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("a"), claim("b")}
	set.Spec.Template.Spec.Containers[0].VolumeMounts = mount("a", "b")
	e.must(shared.Client.Create(e.ctx, set))
	e.settled("twofold", 2, 2)
	e.edit("twofold", func(set *v1beta1.CloneSet) {
		set.Spec.VolumeClaimTemplates = set.Spec.VolumeClaimTemplates[:1]
		set.Spec.Template.Spec.Containers[0].VolumeMounts = mount("a")
		set.Spec.UpdateStrategy.RollingUpdate.Partition = percent("100%")
		replicas(3)(set)
	})
	e.settled("twofold", 3, 0)
	for _, p := range e.pods("twofold") {
		if n := len(p.Spec.Containers[0].VolumeMounts); n < 2 {
			t.Errorf("Pod %s of the old revision has %d mounts", p.Name, n)
		}
	}
}

func TestClaimTemplatesChangeAlongWithAnImage(t *testing.T) {
	e := newEnv(t)
	o := e.object(e.manifest("cloneset-claims.yaml"))
	e.must(setNested(o, "InPlaceIfPossible", "spec", "updateStrategy", "type"))
	e.must(shared.Client.Create(e.ctx, o))
	e.settled("sample-data", 5, 5)
	before := uids(e.pods("sample-data"))
	e.edit("sample-data", func(set *v1beta1.CloneSet) {
		set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = quantity("30Gi")
		image("nginx:mainline")(set)
	})
	e.settled("sample-data", 5, 5)
	if after := uids(e.pods("sample-data")); !slices.Equal(before, after) {
		t.Errorf("Pods are %v, were %v", after, before)
	}
	for _, c := range e.claims("sample-data") {
		if got := c.Spec.Resources.Requests.Storage().String(); got != "20Gi" {
			t.Errorf("claim %s asks for %s, want 20Gi as before", c.Name, got)
		}
	}
}

func TestProgressDeadline(t *testing.T) {
	e := newEnv(t)
	set := e.plain("hurried", 2)
	deadline := int32(5)
	set.Spec.ProgressDeadlineSeconds = &deadline
	e.must(shared.Client.Create(e.ctx, set))
	e.settled("hurried", 2, 2)
	e.awaitCondition("hurried", v1beta1.CloneSetConditionProgressing, "True CloneSetAvailable")
	e.edit("hurried", image("nginx:never-ready"))
	e.awaitCondition("hurried", v1beta1.CloneSetConditionProgressing, "True CloneSetUpdated")
	e.awaitCondition("hurried", v1beta1.CloneSetConditionProgressing, "False ProgressDeadlineExceeded")
	e.edit("hurried", image("nginx:mainline"))
	e.awaitCondition("hurried", v1beta1.CloneSetConditionProgressing, "True CloneSetAvailable")
	e.edit("hurried", func(set *v1beta1.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Paused = true
		image("nginx:never-ready")(set)
	})
	e.awaitCondition("hurried", v1beta1.CloneSetConditionProgressing, "True CloneSetPaused")
	e.always(7*time.Second, "a pause does not time out", func() error {
		if got := e.condition("hurried", v1beta1.CloneSetConditionProgressing); got != "True CloneSetPaused" {
			return fmt.Errorf("Progressing is %s", got)
		}
		return nil
	})
}

func TestRoundTripThroughTheOlderVersion(t *testing.T) {
	e := newEnv(t)
	set := e.plain("kept", 2)
	set.Spec.ScaleStrategy = v1beta1.CloneSetScaleStrategy{ExcludePreparingDelete: true, EnablePVCReuse: true, MaxUnavailable: percent("50%")}
	seconds, pods := int32(120), int32(1)
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType,
		Partition:       percent("10%"), MaxUnavailable: number(1), MaxSurge: number(1), Paused: true,
		ScatterStrategy: pub.UpdateScatterStrategy{{Key: "a", Value: "b"}},
		InPlaceUpdateStrategy: &v1beta1.InPlaceUpdateStrategy{
			GracePeriodSeconds: 3, ImagePreDownloadParallelism: number(2),
			ImagePreDownloadTimeoutSeconds: &seconds, ImagePreDownloadMinUpdatedReadyPods: &pods,
		},
	}
	e.must(shared.Client.Create(e.ctx, set))
	before := e.cloneSet("kept").Spec
	older := e.object("apiVersion: apps.kruise.io/v1alpha1\nkind: CloneSet\nmetadata: {name: kept}\n")
	e.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		e.must(shared.Client.Get(e.ctx, client.ObjectKeyFromObject(older), older))
		older.SetLabels(map[string]string{"edited": "true", keys.ScalingExcludePreparingDelete: "true"})
		return shared.Client.Update(e.ctx, older)
	}))
	after := e.cloneSet("kept")
	if after.Labels["edited"] != "true" {
		t.Errorf("labels are %v", after.Labels)
	}
	if diff := difference(before, after.Spec); diff != "" {
		t.Errorf("the spec changed on its way through v1alpha1 (-was +is):\n%s", diff)
	}
}
