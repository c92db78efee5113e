package sidecarset

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// TestOnlyTheSidecarRestarts updates one image: the Pod stays what it is, and its own container runs on.
func TestOnlyTheSidecarRestarts(t *testing.T) {
	e := newEnv(t)
	e.newLog("{maxUnavailable: 1}")
	e.newPods(1, "sim.kruise.io/ready-delay.log: 4s") // a status follows its Pods by up to a second
	e.counts(1, 1, 1, 1)
	before := e.pod("web-0")
	if imageOf(before, "log") != "log:1" || before.Annotations["kruise.io/sidecarset-injected-list"] != e.Namespace {
		t.Fatalf("the Pod has no sidecar: %s", e.describe())
	}
	written := e.watchCounts()
	e.image("log:2")
	e.counts(1, 1, 1, 1)
	if steps := written(); !slices.Contains(steps, "1 0") {
		t.Errorf("updated, and of these ready, were %v, want the Pod to be the one before it is the other", steps)
	}
	after := e.pod("web-0")
	if after.UID != before.UID || after.Status.PodIP != before.Status.PodIP || restartsOf(after, "app") != 0 || restartsOf(after, "log") != 1 || imageOf(after, "log") != "log:2" {
		t.Errorf("want only the sidecar to restart once:\n%s", e.describe())
	}
	const key = "kruise.io/sidecarset-hash"
	if after.Annotations[key+"-without-image"] != before.Annotations[key+"-without-image"] || after.Annotations[key] == before.Annotations[key] {
		t.Errorf("hashes before %v and after %v", before.Annotations, after.Annotations)
	}
	var records map[string]struct{ Hash, ControllerRevision string }
	e.Must(json.Unmarshal([]byte(after.Annotations[key]), &records))
	set := e.set()
	if record := records[set.Name]; record.Hash != set.Annotations[key] || record.ControllerRevision != set.Status.LatestRevision {
		t.Errorf("the Pod says %+v, the SidecarSet %s at %s", record, set.Annotations[key], set.Status.LatestRevision)
	}
	e.Eventually("the Pod says that it can be updated", func() error {
		if got, want := condition(e.pod("web-0"), "SidecarSetUpgradable"), fmt.Sprintf(`True {%q:true}`, set.Name); got != want {
			return fmt.Errorf("it says %q, not %q", got, want)
		}
		return nil
	})
}

// watchCounts follows the SidecarSet, and returns a function that stops it and returns the numbers of updated Pods, and of those that are ready of
// them, one after the other.
func (e *env) watchCounts() func() []string {
	e.Helper()
	var steps []string
	stop, err := shared.Follow(e.Ctx, &v1beta1.SidecarSetList{}, "", func(event watch.Event) {
		if set, isSet := event.Object.(*v1beta1.SidecarSet); isSet && set.Name == e.Namespace {
			steps = append(steps, fmt.Sprint(set.Status.UpdatedPods, " ", set.Status.UpdatedReadyPods))
		}
	})
	e.Must(err)
	return func() []string {
		e.Must(stop())
		return steps
	}
}

// TestOtherChangesWaitForNewPods changes a variable: Pods say that they can't follow, until they are created anew or the change is taken back.
func TestOtherChangesWaitForNewPods(t *testing.T) {
	e := newEnv(t)
	e.newLog("{maxUnavailable: 1}")
	e.newPods(2)
	e.counts(2, 2, 2, 2)
	setEnv := func(env ...corev1.EnvVar) {
		e.edit(func(set *v1beta1.SidecarSet) { set.Spec.Containers[0].Env = env })
	}
	setEnv(corev1.EnvVar{Name: "LEVEL", Value: "debug"})
	says := func(want string) {
		e.Eventually("the Pods say "+want, func() error {
			for _, p := range e.pods() {
				if got := condition(p, "SidecarSetUpgradable"); got != want {
					return fmt.Errorf("%s says %q", p.Name, got)
				}
			}
			return nil
		})
	}
	says(fmt.Sprintf(`False {%q:false}`, e.Namespace))
	e.Eventually("there is an event", func() error {
		if n := len(slices.DeleteFunc(e.Reasons(e.Namespace), func(reason string) bool { return reason != "NotUpgradablePods" })); n != 1 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	e.counts(2, 0, 2, 0)
	if c := e.set().Status.Conditions[0]; c.Reason != v1beta1.SidecarSetImmutableFieldChanged || e.set().Status.NotUpgradablePods != 2 {
		t.Errorf("condition %+v of %+v", c, e.set().Status)
	}
	e.Must(e.Delete(e.Ctx, e.pod("web-1"), client.GracePeriodSeconds(0)))
	e.Must(e.Create(e.Ctx, webPod(e.Namespace, "web-9")))
	e.counts(2, 1, 2, 1)
	e.Must(e.Delete(e.Ctx, e.pod("web-9"), client.GracePeriodSeconds(0)))
	setEnv()
	back := time.Now()
	says(fmt.Sprintf(`True {%q:true}`, e.Namespace))
	if took := time.Since(back); took > 30*time.Second {
		t.Errorf("it took %v until the Pods say that they can be updated again", took)
	}
	e.counts(1, 1, 1, 1)
	if restarts := restartsOf(e.pod("web-0"), "log"); restarts != 0 {
		t.Errorf("the sidecar restarted %d times", restarts)
	}
}

// watchRollout follows all Pods, and returns a function that stops it and returns the most of them that were not ready at once.
func (e *env) watchRollout() func() int {
	down := map[types.UID]bool{}
	most := 0
	stop, err := shared.Follow(e.Ctx, &corev1.PodList{}, e.Namespace, func(event watch.Event) {
		p, isPod := event.Object.(*corev1.Pod)
		if !isPod {
			return // a bookmark
		}
		delete(down, p.UID)
		if event.Type != watch.Deleted && !isReady(p) {
			down[p.UID] = true
		}
		most = max(most, len(down))
	})
	e.Must(err)
	return func() int {
		e.Must(stop())
		return most
	}
}

// TestPartitionAndMaxUnavailable rolls an image out in two steps, and never has more Pods out of service than allowed.
func TestPartitionAndMaxUnavailable(t *testing.T) {
	e := newEnv(t)
	e.newLog("{maxUnavailable: 20%, partition: 3}")
	e.newPods(10)
	e.counts(10, 10, 10, 10)
	stop := e.watchRollout()
	e.image("log:2")
	e.counts(10, 7, 10, 7)
	e.Always(scene.QuietPeriod, "the partition keeps three", func() error { return e.countsAre(10, 7, 10, 7) })
	zero := intstr.FromInt32(0)
	e.edit(func(set *v1beta1.SidecarSet) { set.Spec.UpdateStrategy.Partition = &zero })
	e.counts(10, 10, 10, 10)
	if most := stop(); most > 2 || most == 0 {
		t.Errorf("%d Pods were out of service at once, want 1 or 2", most)
	}
}

func TestSmallPercentages(t *testing.T) {
	e := newEnv(t)
	e.newLog("{maxUnavailable: 5%, partition: 95%}")
	e.newPods(6)
	e.image("log:2")
	e.counts(6, 1, 6, 1)
	e.Always(scene.QuietPeriod, "one is updated", func() error { return e.countsAre(6, 1, 6, 1) })
	all := intstr.FromString("100%")
	e.edit(func(set *v1beta1.SidecarSet) {
		set.Spec.UpdateStrategy.Partition = &all
		set.Spec.Containers[0].Image = "log:3"
	})
	e.Always(scene.QuietPeriod, "none is updated", func() error { return e.countsAre(6, 0, 6, 0) })
	stop := e.watchRollout()
	none := intstr.FromString("0%")
	e.edit(func(set *v1beta1.SidecarSet) { set.Spec.UpdateStrategy.Partition = &none })
	e.counts(6, 6, 6, 6)
	if most := stop(); most != 1 {
		t.Errorf("%d Pods were out of service at once, want 1", most)
	}
}

// TestABrokenImageIsMended gives Pods an image that can't be pulled and then a better one, which must reach the broken Pod first.
func TestABrokenImageIsMended(t *testing.T) {
	e := newEnv(t)
	e.newLog("{maxUnavailable: 1}")
	e.newPods(4)
	e.image("log:fail-pull")
	e.Eventually("the budget is used up by the broken Pod", func() error {
		if c := e.set().Status.Conditions[0]; c.Reason != v1beta1.SidecarSetBudgetExhausted || !strings.Contains(c.Message, "log waits with") {
			return fmt.Errorf("condition %s: %s", c.Reason, c.Message)
		}
		return nil
	})
	e.Always(scene.QuietPeriod, "one Pod is broken", func() error { return e.countsAre(4, 1, 3, 0) })
	e.image("log:2")
	e.counts(4, 4, 4, 4)
}

func TestSelectedPodsAreUpdated(t *testing.T) {
	e := newEnv(t)
	e.newLog("{maxUnavailable: 2, selector: {matchLabels: {canary: \"true\"}}}")
	e.newPods(8)
	choose := func(name string) {
		p := e.pod(name)
		patched := p.DeepCopy()
		patched.Labels["canary"] = "true"
		e.Must(e.Patch(e.Ctx, patched, client.MergeFrom(p)))
	}
	choose("web-1")
	choose("web-2")
	e.image("log:2")
	e.counts(8, 2, 8, 2)
	choose("web-5")
	e.counts(8, 3, 8, 3)
	e.Always(scene.QuietPeriod, "three are updated", func() error { return e.countsAre(8, 3, 8, 3) })
}

// TestPauses: one pause keeps new Pods free of sidecars, the other one existing Pods free of updates.
func TestPauses(t *testing.T) {
	e := newEnv(t)
	e.newLog("{maxUnavailable: 3}")
	e.newPods(2)
	e.edit(func(set *v1beta1.SidecarSet) {
		set.Spec.InjectionStrategy.Paused = true
		set.Spec.Containers[0].Image = "log:2"
	})
	e.counts(2, 2, 2, 2)
	e.edit(func(set *v1beta1.SidecarSet) {
		set.Spec.UpdateStrategy.Paused = true
		set.Spec.Containers[0].Image = "log:3"
	})
	e.Always(scene.QuietPeriod, "the update is paused", func() error { return e.countsAre(2, 0, 2, 0) })
	if c := e.set().Status.Conditions[0]; c.Reason != v1beta1.SidecarSetPaused {
		t.Errorf("condition %+v", c)
	}
	e.edit(func(set *v1beta1.SidecarSet) {
		set.Spec.UpdateStrategy.Paused = false
		set.Spec.UpdateStrategy.Type = v1beta1.NotUpdateSidecarSetStrategyType
	})
	e.Always(scene.QuietPeriod, "nothing is updated", func() error { return e.countsAre(2, 0, 2, 0) })
}

// TestPodsThatVanish deletes Pods in the middle of a rollout, which must go on.
func TestPodsThatVanish(t *testing.T) {
	e := newEnv(t)
	e.newLog("{maxUnavailable: 2}")
	e.newPods(12)
	e.image("log:2")
	for i := range 6 {
		e.Must(e.Delete(e.Ctx, e.pod(fmt.Sprintf("web-%d", 2*i)), client.GracePeriodSeconds(0)))
	}
	e.counts(6, 6, 6, 6)
}

// passes returns how often the controller has looked at the SidecarSet of this test, as the manager's log tells.
func (e *env) passes() int {
	e.Helper()
	log, err := os.ReadFile(shared.Manager.Log())
	e.Must(err)
	count := 0
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "Plan in full") && strings.Contains(line, "object.name="+e.Namespace+" ") {
			count++
		}
	}
	return count
}

// ownedPods is how many Pods the owners have; more of them are for measuring by hand.
var ownedPods = flag.Int("owned-pods", 9, "number of Pods that three owners share in TestThePodsOfWorkloads")

// TestThePodsOfWorkloads updates a sidecar in the Pods of three kinds of owners, one of which updates its own containers in place at the same time.
func TestThePodsOfWorkloads(t *testing.T) {
	e := newEnv(t)
	all, each := int32(*ownedPods), *ownedPods/3
	limit := max(2, *ownedPods/50)
	e.newLog(fmt.Sprintf("{maxUnavailable: %d}", limit))
	template := `template: {metadata: {labels: {app: web, owner: %[2]s}}, spec: {containers: [{name: app, image: "app:1"}]}}`
	replicas := *ownedPods - 2*each // the first has what is left over
	for _, text := range []string{
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: %[1]d, selector: {matchLabels: {owner: d}}, ` + template + "}}",
		`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {replicas: %[1]d, serviceName: s, podManagementPolicy: Parallel, selector: {matchLabels: {owner: s}}, ` + template + "}}",
		`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: c}, spec: {replicas: %[1]d, selector: {matchLabels: {owner: c}}, updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly, maxUnavailable: 1}}, ` + template + "}}",
	} {
		name := text[strings.Index(text, "{name: ")+len("{name: "):][:1]
		e.apply(fmt.Sprintf(text, replicas, name))
		replicas = each
	}
	clones := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "c"}}
	e.Eventually("all Pods are ready", func() error { return e.ready(int(all)) })
	e.counts(all, all, all, all)
	before := map[string]bool{}
	for _, p := range e.pods() {
		before[string(p.UID)] = true
	}
	stop := e.watchRollout()
	began, cpu, passes := time.Now(), e.ManagerSeconds(), e.passes()
	e.image("log:2")
	e.counts(all, all, all, all)
	most := stop()
	t.Logf("%d Pods of three owners were updated in %s, with at most %d of %d out of service, in %d passes and %.2f s of CPU time of the manager",
		all, time.Since(began).Round(time.Millisecond), most, limit, e.passes()-passes, e.ManagerSeconds()-cpu)
	if most > limit {
		t.Errorf("%d Pods were out of service at once, want at most %d", most, limit)
	}
	set := &v1beta1.CloneSet{}
	scene.Edit(e.Env, "c", set, func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = "app:2" })
	e.image("log:3")
	e.counts(all, all, all, all)
	e.Eventually("the CloneSet is updated, too", func() error {
		e.Must(e.Get(e.Ctx, client.ObjectKeyFromObject(clones), set))
		if set.Status.UpdatedReadyReplicas != int32(each) {
			return fmt.Errorf("%d of its Pods are", set.Status.UpdatedReadyReplicas)
		}
		return nil
	})
	for _, p := range e.pods() {
		own := int32(0)
		if p.Labels["owner"] == "c" {
			own = 1
		}
		if !before[string(p.UID)] || restartsOf(p, "log") != 2 || restartsOf(p, "app") != own {
			t.Errorf("%s: the sidecar restarted %d times, the Pod's own container %d times", p.Name, restartsOf(p, "log"), restartsOf(p, "app"))
		}
	}
}

// TestARefusingPodHoldsBackNoOther has a rule of the cluster refuse the update of one Pod. It is the first in the order, and its place is all there is.
func TestARefusingPodHoldsBackNoOther(t *testing.T) {
	e := newEnv(t)
	e.newLog("{maxUnavailable: 1, priorityStrategy: {weightPriority: [{weight: 9, matchSelector: {matchLabels: {guarded: \"yes\"}}}]}}")
	e.newPods(3)
	p := e.pod("web-0")
	guarded := p.DeepCopy()
	guarded.Labels["guarded"] = "yes"
	e.Must(e.Patch(e.Ctx, guarded, client.MergeFrom(p)))
	policy := e.applyForAll(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: ` + e.Namespace + `}, spec: {
		matchConstraints: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ` + e.Namespace + `}}, resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods]}]},
		validations: [{expression: "!('guarded' in object.metadata.labels) || object.spec.containers == oldObject.spec.containers", message: "is guarded"}]}}`)
	e.applyForAll(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: ` + e.Namespace + `}, spec: {policyName: ` + e.Namespace + `, validationActions: [Deny]}}`)
	e.Eventually("the rule holds", func() error {
		p := e.pod("web-0")
		p.Spec.Containers[0].Image = "app:refused"
		if err := e.Update(e.Ctx, p, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "is guarded") {
			return fmt.Errorf("the update is not refused by it: %w", err)
		}
		return nil
	})
	e.image("log:2")
	e.counts(3, 2, 3, 2)
	e.Must(e.Delete(e.Ctx, policy))
	e.counts(3, 3, 3, 3)
}

// TestNamespacesAreSelectedByLabel takes the label off a namespace: its Pods no longer count, and get no new image.
func TestNamespacesAreSelectedByLabel(t *testing.T) {
	e := newEnv(t)
	label := func(value any) {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": value}}})
		e.Must(err)
		e.Must(e.Patch(e.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace}}, client.RawPatch(types.MergePatchType, patch)))
	}
	label(e.Namespace)
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace}}
	e.Must(yaml.UnmarshalStrict([]byte(`{selector: {matchLabels: {app: web}}, namespaceSelector: {matchLabels: {team: `+e.Namespace+`}}, containers: [{name: agent, image: "log:1"}]}`), &set.Spec))
	e.create(set)
	e.newPods(2)
	e.counts(2, 2, 2, 2)
	label(nil)
	e.counts(0, 0, 0, 0)
	e.image("log:2")
	e.Always(scene.QuietPeriod, "nothing is updated", func() error { return e.countsAre(0, 0, 0, 0) })
	label(e.Namespace)
	e.counts(2, 2, 2, 2)
	if got := imageOf(e.pod("web-0"), "agent"); got != "log:2" {
		t.Errorf("the sidecar has %s, want log:2", got)
	}
}
