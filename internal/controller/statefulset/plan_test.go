package statefulset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
	"github.com/seed-69ecc383/kruise/test/kit/build"
)

// situation is a StatefulSet and its Pods, each in a few words: the ordinal, "old" or "new", and what else is to be said of it.
type situation struct {
	set  func(*v1beta1.StatefulSet)
	pods []string
}

func parallel(set *v1beta1.StatefulSet) { set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }

func size(n int32) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) { set.Spec.Replicas = &n }
}

func unavailable(n int32) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) {
		value := intstr.FromInt32(n)
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = &value
	}
}

func all(changes ...func(*v1beta1.StatefulSet)) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) {
		for _, change := range changes {
			change(set)
		}
	}
}

// snapshot makes the objects. Pods are ready unless something else is said: starting, crashing, leaving, failed, named (for deletion).
func (s situation) snapshot(t *testing.T) Snapshot {
	t.Helper()
	set := &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "uid-web", Generation: 1}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{}
	set.Spec.Template = *build.Template("nginx:1")
	old := revisionOf(t, set, 1)
	set.Spec.Template = *build.Template("nginx:2")
	update := revisionOf(t, set, 2)
	set.Status.CurrentRevision = old.Name
	s.set(set)
	out := Snapshot{Set: set, Revisions: []*appsv1.ControllerRevision{old, update}, Now: build.After(60), Options: Options{ClaimRetention: true, StartOrdinal: true}}
	for _, words := range s.pods {
		out.Pods = append(out.Pods, podOf(set, words, old.Name, update.Name))
	}
	return out
}

func revisionOf(t *testing.T, set *v1beta1.StatefulSet, number int64) *appsv1.ControllerRevision {
	t.Helper()
	rev, err := revision.New(revision.Owner{Name: set.Name, Namespace: set.Namespace, Reference: *metav1.NewControllerRef(set, kind())}, &set.Spec.Template, 0)
	if err != nil {
		t.Fatal(err)
	}
	rev.Revision = number
	return rev
}

func podOf(set *v1beta1.StatefulSet, words, old, update string) *corev1.Pod {
	name := "web-" + strings.Fields(words)[0]
	b := build.Pod(name).Label("app", "web").Label(labelPodName, name).Node("node").Ready(build.Start())
	for _, word := range strings.Fields(words)[1:] {
		switch word {
		case "old":
			b.Revision(old)
		case "new":
			b.Revision(update)
		case "starting":
			b.NotReady()
		case "leaving":
			b.Deleting()
		case "failed":
			b.Phase(corev1.PodFailed)
		case "named":
			b.Label(keys.SpecifiedDelete, "true")
		}
	}
	p := b.Obj()
	if strings.Contains(words, "crashing") {
		p = b.NotReady().Obj()
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	}
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, kind())}
	return p
}

// steps are what a plan does, a line each: the verb, the object, and its revision where one is created.
func steps(t *testing.T, s Snapshot) []string {
	t.Helper()
	var out []string
	for _, a := range Plan(Classify(s)).Actions() {
		line := fmt.Sprintf("%s %s", a.Verb, a.Object().GetName())
		if p, ok := a.After.(*corev1.Pod); ok && a.Verb == "create" {
			line += map[string]string{"nginx:1": " old", "nginx:2": " new"}[p.Spec.Containers[0].Image]
		}
		out = append(out, line)
	}
	return out
}

func partition(n int32) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = &n }
}

func TestPlan(t *testing.T) {
	fiveOld := []string{"0 old", "1 old", "2 old", "3 old", "4 old"}
	for name, tc := range map[string]struct {
		situation
		want []string
	}{
		"the first of an ordered set":              {situation{set: size(3)}, []string{"create web-0 new"}},
		"the next once the one below is available": {situation{set: size(3), pods: []string{"0 new"}}, []string{"create web-1 new"}},
		"not before":                                     {situation{set: size(3), pods: []string{"0 new starting"}}, nil},
		"all of a parallel set":                          {situation{set: all(parallel, size(3))}, []string{"create web-0 new", "create web-1 new", "create web-2 new"}},
		"what is missing of a canary":                    {situation{set: all(parallel, size(3), partition(2)), pods: []string{"0 old"}}, []string{"create web-1 old", "create web-2 new"}},
		"an update takes the highest two":                {situation{set: all(parallel, size(5), unavailable(2)), pods: fiveOld}, []string{"delete web-4", "delete web-3"}},
		"the next when one is available":                 {situation{set: all(parallel, size(5), unavailable(2)), pods: []string{"0 old", "1 old", "2 old", "3 new starting", "4 new"}}, []string{"delete web-2"}},
		"none before that":                               {situation{set: all(parallel, size(5), unavailable(2)), pods: []string{"0 old", "1 old", "2 old", "3 new starting", "4 new starting"}}, nil},
		"a lower Pod that is down counts":                {situation{set: all(parallel, size(5)), pods: []string{"0 old", "1 new starting", "2 old", "3 old", "4 old"}}, nil},
		"but one that an update mends does not":          {situation{set: all(parallel, size(5)), pods: []string{"0 old", "1 old crashing", "2 old", "3 old", "4 old"}}, []string{"delete web-1"}},
		"nor does the partition give way":                {situation{set: all(parallel, size(5), partition(3)), pods: []string{"0 old", "1 old crashing", "2 old", "3 old", "4 old"}}, nil},
		"an ordered set mends the Pod that it waits for": {situation{set: size(3), pods: []string{"0 old crashing"}}, []string{"delete web-0"}},
		"unless the partition keeps it":                  {situation{set: all(size(3), partition(3)), pods: []string{"0 old crashing"}}, nil},
		"or it merely starts":                            {situation{set: size(3), pods: []string{"0 old starting"}}, nil},
		"an ordered update of two at a time":             {situation{set: all(size(3), unavailable(2)), pods: fiveOld[:3]}, []string{"delete web-2", "delete web-1"}},
		"an ordered set shrinks from above":              {situation{set: size(1), pods: []string{"0 new", "1 new", "2 new"}}, []string{"delete web-2"}},
		"broken or not":                                  {situation{set: size(1), pods: []string{"0 new", "1 new crashing", "2 new crashing"}}, []string{"delete web-2"}},
		"one by one":                                     {situation{set: size(1), pods: []string{"0 new", "1 new", "2 new leaving"}}, nil},
		"a parallel set shrinks at once":                 {situation{set: all(parallel, size(1)), pods: []string{"0 new starting", "1 new", "2 new"}}, []string{"delete web-2", "delete web-1"}},
		"what has failed is replaced":                    {situation{set: all(parallel, size(2)), pods: []string{"0 new failed", "1 new"}}, []string{"delete web-0"}},
		"a Pod on its way out is waited for":             {situation{set: size(2), pods: []string{"0 new leaving"}}, nil},
		"but holds up no other of a parallel set":        {situation{set: all(parallel, size(2)), pods: []string{"0 new leaving"}}, []string{"create web-1 new"}},
		"Pods named for deletion within the limit": {
			situation{set: all(parallel, size(5), unavailable(3)), pods: []string{"0 new", "1 new starting named", "2 new starting named", "3 new named", "4 new named"}},
			[]string{"delete web-4", "delete web-2", "delete web-1"},
		},
		"reserved Pods stand in for the new ones": {
			situation{set: all(parallel, size(3), func(set *v1beta1.StatefulSet) {
				set.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromString("0-1")}
			}), pods: []string{"0 new", "1 new", "2 new"}},
			[]string{"create web-3 new", "create web-4 new", "delete web-1"},
		},
		"scaling stops at its limit": {
			situation{set: all(parallel, size(9), func(set *v1beta1.StatefulSet) {
				two := intstr.FromInt32(2)
				set.Spec.ScaleStrategy = &v1beta1.StatefulSetScaleStrategy{MaxUnavailable: &two}
			}), pods: []string{"0 new", "1 new starting"}},
			[]string{"create web-2 new"},
		},
		"a paused update": {situation{set: all(parallel, size(2), func(set *v1beta1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = true }), pods: []string{"0 old named"}}, []string{"create web-1 new"}},
		"nothing while it is deleted": {situation{set: all(parallel, size(2), func(set *v1beta1.StatefulSet) {
			now := metav1.NewTime(build.Start())
			set.DeletionTimestamp = &now
		})}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, steps(t, tc.snapshot(t))); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, Plan(Classify(tc.snapshot(t))))
			}
		})
	}
}

func TestPlanSaysWhatItWaitsFor(t *testing.T) {
	s := situation{set: all(parallel, size(3)), pods: []string{"0 old", "1 old", "2 new starting"}}
	want := `StatefulSet default/web   replicas 3, pods 3, parallel, partition 0, maxUnavailable 1
  hold   web-1   up to 2 Pods wait: maxUnavailable 1 is used up
`
	if diff := cmp.Diff(want, Plan(Classify(s.snapshot(t))).String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStatusOfACanary(t *testing.T) {
	s := situation{set: all(parallel, size(3), partition(2)), pods: []string{"0 old", "1 old leaving", "2 new starting"}}
	snapshot := s.snapshot(t)
	v := Classify(snapshot)
	got := Status(v, Plan(v), apply.Outcome{})
	zero := int32(0)
	want := v1beta1.StatefulSetStatus{
		ObservedGeneration: 1, Replicas: 3, ReadyReplicas: 2, AvailableReplicas: 2, CurrentReplicas: 1, UpdatedReplicas: 1,
		CurrentRevision: snapshot.Revisions[0].Name, UpdateRevision: snapshot.Revisions[1].Name, CollisionCount: &zero, LabelSelector: "app=web",
		Conditions: []v1beta1.StatefulSetCondition{{
			Type: v1beta1.StatefulSetConditionWaiting, Status: corev1.ConditionTrue, Reason: "WaitDeletion",
			Message:            "web-1: it is being deleted; 1 more Pod is not in service",
			LastTransitionTime: metav1.NewTime(snapshot.Now),
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCanaryThatIsScaledToNothingStaysACanary: its Pods come back at the revisions that they had.
func TestCanaryThatIsScaledToNothingStaysACanary(t *testing.T) {
	s := situation{set: all(parallel, size(0), partition(2))}
	snapshot := s.snapshot(t)
	v := Classify(snapshot)
	if got := Status(v, Plan(v), apply.Outcome{}).CurrentRevision; got != snapshot.Revisions[0].Name {
		t.Errorf("the current revision is %s, want the old one, %s", got, snapshot.Revisions[0].Name)
	}
}

// TestProgress shows what is said of a rollout that was last seen to come on 59 seconds ago, with a deadline of 60 seconds.
func TestProgress(t *testing.T) {
	for name, tc := range map[string]struct {
		situation situation
		want      string
	}{
		"it waits for a Pod":               {situation{set: all(parallel, size(2)), pods: []string{"0 old", "1 new starting"}}, "True StatefulSetUpdated, looks again in 2s"},
		"a Pod more is ready":              {situation{set: all(parallel, size(2)), pods: []string{"0 old", "1 new"}}, "True StatefulSetUpdated, looks again in 1m1s"},
		"a surplus Pod less is there":      {situation{set: all(parallel, size(1)), pods: []string{"0 new starting"}}, "True StatefulSetUpdated, looks again in 1m1s"},
		"the partition keeps the rest":     {situation{set: all(parallel, size(2), partition(1)), pods: []string{"0 old", "1 new"}}, "True ProgressPartitionAvailable"},
		"it is paused":                     {situation{set: all(parallel, size(2), paused), pods: []string{"0 old", "1 new"}}, "True StatefulSetPaused"},
		"all is done":                      {situation{set: all(parallel, size(2)), pods: []string{"0 new", "1 new"}}, "True StatefulSetAvailable"},
		"the user updates Pods by himself": {situation{set: all(parallel, size(2), onDelete), pods: []string{"0 old", "1 new"}}, "True ProgressPartitionAvailable"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.situation.snapshot(t)
			deadline, since := int32(60), metav1.NewTime(s.Now.Add(-59*time.Second))
			s.Set.Spec.ProgressDeadlineSeconds = &deadline
			s.Set.Status.UpdateRevision, s.Set.Status.Replicas = s.Revisions[1].Name, 2
			s.Set.Status.UpdatedReplicas, s.Set.Status.ReadyReplicas = 1, 1
			s.Set.Status.Conditions = []v1beta1.StatefulSetCondition{{
				Type: v1beta1.StatefulSetConditionProgressing, Status: corev1.ConditionTrue, Reason: "StatefulSetUpdated", LastUpdateTime: &since,
			}}
			v := Classify(s)
			p := Plan(v)
			status := Status(v, p, apply.Outcome{})
			c := conditionsOf(&status).Get(string(v1beta1.StatefulSetConditionProgressing))
			got := fmt.Sprintf("%s %s", c.Status, c.Reason)
			if _, wait := v.progressing(); wait > 0 {
				got += fmt.Sprintf(", looks again in %s", wait)
				if p.Recheck == 0 || p.Recheck > wait {
					t.Errorf("the plan looks again in %s", p.Recheck)
				}
			}
			if got != tc.want {
				t.Errorf("Progressing is %q, want %q", got, tc.want)
			}
		})
	}
}

func paused(set *v1beta1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = true }

func onDelete(set *v1beta1.StatefulSet) {
	set.Spec.UpdateStrategy = v1beta1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
}
