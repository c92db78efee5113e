package steer

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func value(v any) *intstr.IntOrString {
	switch v := v.(type) {
	case int:
		return ptr.To(intstr.FromInt32(int32(v)))
	case string:
		return ptr.To(intstr.FromString(v))
	}
	return nil
}

// cloneSetOf returns a CloneSet that goes from web-v1 to web-v2, with a partition or none.
func cloneSetOf(replicas int32, partition any) *v1beta1.CloneSet {
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Generation: 2, UID: "u"}}
	set.Spec.Replicas = &replicas
	if p := value(partition); p != nil {
		set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{Partition: p}
	}
	set.Status = v1beta1.CloneSetStatus{ObservedGeneration: 2, CurrentRevision: "web-v1", UpdateRevision: "web-v2"}
	return set
}

func statefulSetOf(replicas, partition int32) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Generation: 2, UID: "u"}}
	set.Spec.Replicas = &replicas
	set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition}
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: 2, CurrentRevision: "web-v1", UpdateRevision: "web-v2"}
	return set
}

func daemonSetOf(nodes int32, partition any) *v1beta1.DaemonSet {
	set := &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Generation: 2, UID: "u"}}
	if p := value(partition); p != nil {
		set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateDaemonSet{}
		set.Spec.UpdateStrategy.RollingUpdate.Partition = p
	}
	set.Status.ObservedGeneration, set.Status.DesiredNumberScheduled, set.Status.UpdateRevision = 2, nodes, "v2"
	return set
}

// pods returns ready Pods, so many of the old and of the new revision.
func pods(old, updated int) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range old + updated {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%03d", i), CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
		p.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "web-v1", keys.PodTemplateHash: "v1"}
		if i >= old {
			p.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "web-v2", keys.PodTemplateHash: "v2"}
		}
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}
		out = append(out, p)
	}
	return out
}

// readBy returns what a kind reads of a workload with a partition.
func readBy(k Kind, workload Object) reading {
	if of, is := k.(inPlace); is {
		k = of.partitioned
	}
	return k.(partitioned).read(workload)
}

func partitionIn(k Kind, workload Object) string {
	if p := readBy(k, workload).partition; p != nil {
		return p.String()
	}
	return "none"
}

func TestBatch(t *testing.T) {
	cases := map[string]struct {
		kind     Kind
		workload Object
		updated  int
		batch    Batch
		want     string
	}{
		"30% of a frozen CloneSet is a percentage":          {cloneSet(), cloneSetOf(10, "100%"), 0, Batch{Step: value("30%")}, "70%"},
		"3 of a frozen CloneSet is a number":                {cloneSet(), cloneSetOf(10, "100%"), 0, Batch{Step: value(3)}, "7"},
		"99% of 101 keeps one, which no percentage says":    {cloneSet(), cloneSetOf(101, "100%"), 0, Batch{Step: value("99%")}, "1"},
		"what is updated stays when a step is gone back to": {cloneSet(), cloneSetOf(10, "50%"), 5, Batch{Step: value("20%")}, "50%"},
		"a step that is gone back to stops its batch":       {cloneSet(), cloneSetOf(10, "50%"), 3, Batch{Step: value("20%")}, "7"},
		"a number of Pods stays when the workload grows":    {cloneSet(), cloneSetOf(20, 7), 3, Batch{Step: value(3)}, "17"},
		"a percentage follows when the workload grows":      {cloneSet(), cloneSetOf(20, "70%"), 3, Batch{Step: value("30%")}, "70%"},
		"a paused batch keeps what is old":                  {cloneSet(), cloneSetOf(10, "0%"), 4, Batch{Step: value("100%"), Paused: true}, "6"},
		"a batch that goes on after its pause":              {cloneSet(), cloneSetOf(10, 6), 4, Batch{Step: value("100%")}, "0%"},
		"a partition that somebody took away comes back":    {cloneSet(), cloneSetOf(10, nil), 2, Batch{Step: value(2)}, "8"},
		"the last two ordinals of a StatefulSet":            {nativeStatefulSet(), statefulSetOf(5, 32767), 0, Batch{Step: value(2)}, "3"},
		"95% of 10 rounds up to all":                        {nativeStatefulSet(), statefulSetOf(10, 5), 5, Batch{Step: value("95%")}, "0"},
		"half of the nodes of a DaemonSet":                  {daemonSet(), daemonSetOf(5, 32767), 0, Batch{Step: value("50%")}, "2"},
		"a rollback in batches of a CloneSet":               {cloneSet(), cloneSetOf(20, "100%"), 10, Batch{Step: value("20%"), Kept: ptr.To[int32](10)}, "8"},
		"a rollback in batches of a StatefulSet":            {nativeStatefulSet(), statefulSetOf(20, 32767), 10, Batch{Step: value("20%"), Kept: ptr.To[int32](10)}, "18"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := Objects{Workload: tc.workload, Now: now}
			o.Pods = pods(int(readBy(tc.kind, tc.workload).replicas)-tc.updated, tc.updated)
			before := copyOf(tc.workload)
			w, err := tc.kind.Batch(o, tc.batch)
			if err != nil {
				t.Fatal(err)
			}
			if got := partitionIn(tc.kind, w.Workload); got != tc.want {
				t.Errorf("partition %s, want %s", got, tc.want)
			}
			if diff := cmp.Diff(before, tc.workload); diff != "" {
				t.Errorf("what was read is changed (-was +is):\n%s", diff)
			}
			again, err := tc.kind.Batch(Objects{Workload: w.Workload, Pods: o.Pods, Now: now}, tc.batch)
			if err != nil || again.Workload != w.Workload {
				t.Errorf("the same batch again writes once more: %s, %v", partitionIn(tc.kind, again.Workload), err)
			}
		})
	}
}

// TestABatchIsExact: of any number of Pods, a batch updates as many as its step says, and never takes an update back.
func TestABatchIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.Int32Range(1, 300).Draw(t, "replicas")
		updated := rapid.Int32Range(0, replicas).Draw(t, "updated")
		step := value(int(rapid.Int32Range(1, 300).Draw(t, "pods")))
		if rapid.Bool().Draw(t, "by percentage") {
			step = value(fmt.Sprintf("%d%%", rapid.IntRange(1, 100).Draw(t, "percent")))
		}
		k, set := cloneSet(), cloneSetOf(replicas, "100%")
		o := Objects{Workload: set, Pods: pods(int(replicas-updated), int(updated)), Now: now}
		planned, err := k.Planned(o, step)
		if err != nil {
			t.Fatal(err)
		}
		w, err := k.Batch(o, Batch{Step: step})
		if err != nil {
			t.Fatal(err)
		}
		kept := k.(partitioned).kept(k.(partitioned).read(w.Workload))
		if want := replicas - max(planned, updated); kept != want {
			t.Errorf("step %s of %d, %d updated: %d are kept, want %d", step, replicas, updated, kept, want)
		}
	})
}

func TestFreezeAndPromote(t *testing.T) {
	for name, tc := range map[string]struct {
		kind          Kind
		before        Object
		frozen, after string
	}{
		"a CloneSet":            {cloneSet(), cloneSetOf(10, nil), "100%", "none"},
		"a StatefulSet":         {nativeStatefulSet(), statefulSetOf(10, 0), "32767", "0"},
		"an Advanced DaemonSet": {daemonSet(), daemonSetOf(10, nil), "32767", "none"},
		"an Advanced DaemonSet with a strategy": {daemonSet(), func() Object {
			set := daemonSetOf(10, 0)
			set.Spec.UpdateStrategy.RollingUpdate.Partition, set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil, value(2)
			return set
		}(), "32767", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			before := copyOf(tc.before)
			frozen := Mark(tc.kind.Freeze(Objects{Workload: tc.before}), "demo")
			frozen = Claim(frozen, metav1.OwnerReference{Kind: "BatchRelease", Name: "demo"})
			if got := partitionIn(tc.kind, frozen); got != tc.frozen {
				t.Errorf("frozen partition %s, want %s", got, tc.frozen)
			}
			o := Objects{Workload: frozen, Pods: pods(10, 0), Now: now}
			if f := tc.kind.See(o); !f.Frozen || !f.Marked {
				t.Errorf("it is not seen to be frozen: %+v", f)
			}
			over := Unmark(tc.kind, o)
			if got := partitionIn(tc.kind, over.Workload); got != tc.after {
				t.Errorf("partition %s at the end, want %s", got, tc.after)
			}
			if diff := cmp.Diff(before, over.Workload); diff != "" && name != "a StatefulSet" {
				if a := over.Workload.GetAnnotations(); len(a) > 0 {
					t.Errorf("the release leaves something behind (-before +after):\n%s", diff)
				}
			}
			if f := tc.kind.See(Objects{Workload: over.Workload, Now: now}); f.Frozen || f.Marked {
				t.Errorf("it is still frozen: %+v", f)
			}
		})
	}
}

func TestSee(t *testing.T) {
	marked := Mark(cloneSetOf(10, "70%"), "demo").(*v1beta1.CloneSet)
	named := cloneSetOf(10, nil)
	named.Labels = map[string]string{keys.RolloutID: "7"}
	named.Annotations = map[string]string{keys.RolloutID: "6"}
	leaving := pods(7, 3)
	leaving[9].DeletionTimestamp = &metav1.Time{Time: now}
	leaving[8].Status.Conditions = nil
	for name, tc := range map[string]struct {
		kind Kind
		o    Objects
		want string
	}{
		"a CloneSet in a release":    {cloneSet(), Objects{Workload: marked, Pods: pods(7, 3)}, "marked frozen settled web-v1>web-v2 3/3 of 10 id web-v2 v1>v2 mixed"},
		"Pods that leave or wait":    {cloneSet(), Objects{Workload: marked, Pods: leaving}, "marked frozen settled web-v1>web-v2 2/1 of 10 id web-v2 v1>v2 mixed"},
		"a partition of the user":    {cloneSet(), Objects{Workload: cloneSetOf(10, 3), Pods: pods(3, 7)}, "settled web-v1>web-v2 7/7 of 10 id web-v2 v1>v2 mixed"},
		"a release with a name":      {cloneSet(), Objects{Workload: named, Pods: pods(0, 10)}, "settled web-v1>web-v2 10/10 of 10 id 7 v1>v2"},
		"a StatefulSet":              {nativeStatefulSet(), Objects{Workload: statefulSetOf(5, 0), Pods: pods(5, 0)}, "settled web-v1>web-v2 0/0 of 5 id web-v2 web-v1>web-v2"},
		"a DaemonSet tells by Pods":  {daemonSet(), Objects{Workload: daemonSetOf(3, nil), Pods: pods(3, 0)}, "settled web-v1>v2 0/0 of 3 id v2 web-v1>v2"},
		"a DaemonSet of one version": {daemonSet(), Objects{Workload: daemonSetOf(3, nil), Pods: pods(0, 3)}, "settled v2>v2 3/3 of 3 id v2 web-v2>web-v2"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.Now = now
			f := tc.kind.See(tc.o)
			got := ""
			for word, is := range map[string]bool{"marked ": f.Marked} {
				if is {
					got += word
				}
			}
			if f.Frozen {
				got += "frozen "
			}
			if f.Settled {
				got += "settled "
			}
			got += fmt.Sprintf("%s>%s %d/%d of %d id %s %s>%s", f.Stable, f.Update, f.Updated, f.Ready, f.Replicas, f.ReleaseID, f.StableHash, f.PodHash)
			if f.Mixed {
				got += " mixed"
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAReplacedWorkloadStaysFrozen(t *testing.T) {
	old := Mark(cloneSetOf(10, "70%"), "demo")
	old.SetLabels(map[string]string{keys.WorkloadType: "cloneset", "app": "web"})
	for name, partition := range map[string]any{"left out": nil, "defaulted": 0} {
		replaced := cloneSetOf(10, partition)
		replaced.Labels = map[string]string{"app": "web"}
		stored := cloneSet().Guard(old, Objects{Workload: replaced})
		Carry(old, stored)
		if got := partitionIn(cloneSet(), stored); got != "70%" {
			t.Errorf("%s: partition %s, want 70%%", name, got)
		}
		if _, marked := MarkOf(stored); !marked || stored.GetLabels()[keys.WorkloadType] != "cloneset" {
			t.Errorf("%s: marks are lost: %v %v", name, stored.GetLabels(), stored.GetAnnotations())
		}
	}
	defaulted := cloneSetOf(10, 0)
	if w := cloneSet().Promote(Objects{Workload: defaulted}); w.Workload != defaulted {
		t.Error("a partition that defaulting has written is taken away, for ever")
	}
	promoted := cloneSet().Promote(Objects{Workload: old}).Workload
	if got := partitionIn(cloneSet(), cloneSet().Guard(old, Objects{Workload: promoted})); got != "none" {
		t.Errorf("the end of a release is taken back: partition %s", got)
	}
}

func TestBatchLabels(t *testing.T) {
	set := cloneSetOf(10, "50%")
	o := Objects{Workload: set, Pods: pods(5, 5), Now: now}
	count := func() map[string]int {
		n := map[string]int{}
		for _, p := range o.Pods {
			if p.Labels[keys.RolloutID] == "7" {
				n[p.Labels[keys.RolloutBatchID]]++
			}
		}
		return n
	}
	apply := func(changes []Change) {
		for _, c := range changes {
			for i := range o.Pods {
				if o.Pods[i].Name == c.Before.GetName() {
					o.Pods[i] = c.After.(*corev1.Pod)
				}
			}
		}
	}
	apply(BatchLabels(cloneSet(), o, "7", []int32{1, 5}, nil))
	if diff := cmp.Diff(map[string]int{"1": 1, "2": 4}, count()); diff != "" {
		t.Errorf("labels of batches (-want +got):\n%s", diff)
	}
	if again := BatchLabels(cloneSet(), o, "7", []int32{1, 5}, nil); len(again) > 0 {
		t.Errorf("%d labels are written again", len(again))
	}
	for i, p := range o.Pods { // the one of batch 1 is replaced
		if p.Labels[keys.RolloutBatchID] == "1" {
			o.Pods[i] = pods(0, 1)[0]
			o.Pods[i].Name = "new"
		}
	}
	apply(BatchLabels(cloneSet(), o, "7", []int32{1, 5}, nil))
	if diff := cmp.Diff(map[string]int{"1": 1, "2": 4}, count()); diff != "" {
		t.Errorf("labels after one Pod was replaced (-want +got):\n%s", diff)
	}
	if got := Labelled(cloneSet(), o, "7"); got != 5 {
		t.Errorf("%d Pods have the label, want 5", got)
	}
}

func TestOf(t *testing.T) {
	for name, tc := range map[string]struct {
		of    schema.GroupKind
		style rolloutsv1beta1.RollingStyle
		want  string
	}{
		"a CloneSet in batches":      {schema.GroupKind{Group: "apps.kruise.io", Kind: "CloneSet"}, rolloutsv1beta1.RollingStylePartition, "cloneset"},
		"a StatefulSet":              {schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, rolloutsv1beta1.RollingStylePartition, "statefulset"},
		"an Advanced StatefulSet":    {schema.GroupKind{Group: "apps.kruise.io", Kind: "StatefulSet"}, rolloutsv1beta1.RollingStylePartition, "statefulset"},
		"an Advanced DaemonSet":      {schema.GroupKind{Group: "apps.kruise.io", Kind: "DaemonSet"}, rolloutsv1beta1.RollingStylePartition, "daemonset"},
		"a StatefulSet in blueGreen": {schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, rolloutsv1beta1.RollingStyleBlueGreen, ""},
		"a ReplicaSet":               {schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, rolloutsv1beta1.RollingStylePartition, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if k, ok := Of(tc.of, tc.style); ok {
				got = k.Type()
			}
			if got != tc.want {
				t.Errorf("type %q, want %q", got, tc.want)
			}
		})
	}
}
