package daemonset

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

func now() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// fleet is a DaemonSet with nodes n0, n1 and so on, each with an available Pod of the image app:v1, which is not the template's.
func fleet(tb testing.TB, nodes int, strategy string) Snapshot {
	tb.Helper()
	set := &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "default", UID: "uid", Generation: 2}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	set.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}},
	}
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateDaemonSet{}
	if err := yaml.Unmarshal([]byte(strategy), set.Spec.UpdateStrategy.RollingUpdate); err != nil {
		tb.Fatal(err)
	}
	old, err := newRevision(set, 0)
	if err != nil {
		tb.Fatal(err)
	}
	old.Revision = 1
	set.Spec.Template.Spec.Containers[0].Image = "app:v2"
	s := Snapshot{Set: set, Now: now(), Revisions: []*appsv1.ControllerRevision{old}}
	for i := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), UID: types.UID(fmt.Sprint("node-", i))}}
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("agent-%d", i), Namespace: "default", UID: types.UID(fmt.Sprint("pod-", i)), ResourceVersion: "1",
				Labels:          map[string]string{"app": "agent", appsv1.ControllerRevisionHashLabelKey: revision.ShortHash(old.Name)},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, kind())},
			},
			Spec: corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
				Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now().Add(-time.Hour)),
			}}},
		}
		s.Nodes, s.Pods = append(s.Nodes, node), append(s.Pods, p)
	}
	return s
}

func TestPlans(t *testing.T) {
	for name, tc := range map[string]struct {
		strategy string
		change   func(*Snapshot)
		want     string
	}{
		"the last nodes first, within the budget": {
			strategy: "{maxUnavailable: 2}",
			want: `DaemonSet default/agent   nodes 4, pods 4, maxUnavailable 2
  create   agent-569f9d6758   revision 2   the template is new
  delete   agent-3            delete       its node is to be at agent-569f9d6758
  delete   agent-2            delete       its node is to be at agent-569f9d6758
  hold     n1                 2 nodes wait: maxUnavailable 2 is used up, 2 have no available Pod
`,
		},
		"a surge": {
			strategy: "{maxSurge: 25%, partition: 1}",
			want: `DaemonSet default/agent   nodes 4, pods 4, partition 1, maxSurge 1 (25%)
  create   agent-569f9d6758   revision 2                           the template is new
  create   agent-pwgns        on n3 at revision agent-569f9d6758   it takes the place of agent-3
  hold     n2                 2 nodes wait: maxSurge 1 is used up
`,
		},
		"a broken node is mended first, and one that fits no more is cleared": {
			strategy: "{maxUnavailable: 1}",
			change: func(s *Snapshot) {
				s.Pods[1].Status.Conditions = nil
				s.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute}}
			},
			want: `DaemonSet default/agent   nodes 3, pods 4, maxUnavailable 1
  create   agent-569f9d6758   revision 2   the template is new
  delete   agent-0            delete       its node does not fit the template any more
  delete   agent-1            delete       its node is to be at agent-569f9d6758
  hold     n3                 2 nodes wait: maxUnavailable 1 is used up, 1 have no available Pod
`,
		},
		"Pods that have ended, one of them again": {
			strategy: "{paused: true}",
			change: func(s *Snapshot) {
				s.Pods[0].Status.Phase, s.Pods[1].Status.Phase, s.Pods[2].Status.Phase = corev1.PodFailed, corev1.PodSucceeded, corev1.PodFailed
				s.Failures = map[string]Failure{"n2": {Count: 3, Last: s.Now.Add(-time.Second)}}
			},
			want: `DaemonSet default/agent   nodes 4, pods 4, paused, maxUnavailable 1
  create    agent-569f9d6758   revision 2   the template is new
  delete    agent-0            delete       it has failed
  delete    agent-1            delete       it has ended
  hold      agent-0            Found failed daemon pod default/agent-0 on node n0, will try to kill it
  hold      agent-2            it has ended, as 3 before it on n2: it is not replaced at once
  hold                         the update is paused: 1 nodes are not at agent-569f9d6758
  recheck   in 3s              agent-2 may be replaced
`,
		},
		"a Pod of a surge that its node keeps no longer waits for its hook": {
			strategy: "{maxSurge: 1}",
			change: func(s *Snapshot) {
				s.Set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{LabelsHandler: map[string]string{"drain": "wanted"}}}
				s.Nodes[3].Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
				s.Pods[3].Labels["drain"], s.Pods[3].Labels[keys.LifecycleState] = "wanted", string(pub.LifecycleStatePreparingDelete)
			},
			want: `DaemonSet default/agent   nodes 3, pods 4, maxSurge 1
  create   agent-569f9d6758   revision 2                           the template is new
  create   agent-p67bl        on n2 at revision agent-569f9d6758   it takes the place of agent-2
  hold     agent-3            its preDelete hook holds it
  hold     n1                 2 nodes wait: maxSurge 1 is used up
`,
		},
		"a surge leaves alone what the partition keeps, be its node fit or not": {
			strategy: "{maxSurge: 1, partition: 100%}",
			change: func(s *Snapshot) {
				s.Nodes[3].Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
			},
			want: `DaemonSet default/agent   nodes 3, pods 4, partition 3 (100%), maxSurge 1
  create   agent-569f9d6758   revision 2   the template is new
`,
		},
		"a surge leaves alone what the node selector leaves out": {
			strategy: "{maxSurge: 1, selector: {matchLabels: {canary: \"yes\"}}}",
			change: func(s *Snapshot) {
				s.Nodes[3].Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
			},
			want: `DaemonSet default/agent   nodes 3, pods 4, nodes with canary=yes, maxSurge 1
  create   agent-569f9d6758   revision 2   the template is new
`,
		},
		"a Pod on a node that is gone makes up for none": {
			strategy: "{maxSurge: 1}",
			change: func(s *Snapshot) {
				s.Nodes[2].Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
				s.Nodes, s.Pods[0].Status.Conditions = s.Nodes[:3], nil
			},
			want: `DaemonSet default/agent   nodes 2, pods 4, maxSurge 1
  create   agent-569f9d6758   revision 2                           the template is new
  create   agent-wwsx6        on n0 at revision agent-569f9d6758   it takes the place of agent-0
  hold     n1                 1 nodes wait: maxSurge 1 is used up
`,
		},
		"a paused update": {
			strategy: "{paused: true}",
			want: `DaemonSet default/agent   nodes 4, pods 4, paused, maxUnavailable 1
  create   agent-569f9d6758   revision 2   the template is new
  hold                        the update is paused: 4 nodes are not at agent-569f9d6758
`,
		},
		"orphans are taken over before anything else": {
			strategy: "{}",
			change:   func(s *Snapshot) { s.Orphans, s.Pods = s.Pods[3:], s.Pods[:3] },
			want: `DaemonSet default/agent   nodes 4, pods 3, maxUnavailable 1
  create   agent-569f9d6758   revision 2   the template is new
  update   agent-3            adopt        it has the labels of a Pod of this DaemonSet, and no controller
`,
		},
		"an empty selector": {
			strategy: "{}",
			change:   func(s *Snapshot) { s.Set.Spec.Selector = &metav1.LabelSelector{} },
			want: `DaemonSet default/agent
  problem   This daemon set is selecting all pods. A non-empty selector is required.
  hold         This daemon set is selecting all pods. A non-empty selector is required.
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fleet(t, 4, tc.strategy)
			if tc.change != nil {
				tc.change(&s)
			}
			got := Plan(Classify(s)).String()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, got)
			}
		})
	}
}

// TestRecordedDaemonSetIsAtRest looks at a DaemonSet, its revision and its Pods as a cluster of the original stored them: there is nothing to write.
func TestRecordedDaemonSetIsAtRest(t *testing.T) {
	text, err := os.ReadFile("testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Set       *v1beta1.DaemonSet
		Revisions []*appsv1.ControllerRevision
		Pods      []*corev1.Pod
	}
	if err := yaml.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	s := Snapshot{Set: recorded.Set, Pods: recorded.Pods, Revisions: recorded.Revisions, Now: now().AddDate(1, 0, 0)}
	for _, p := range s.Pods {
		s.Nodes = append(s.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodefit.NodeOf(p)}})
	}
	v := Classify(s)
	p := Plan(v)
	if !p.Empty() || len(p.Holds) > 0 {
		t.Errorf("planned:\n%s", p)
	}
	if diff := cmp.Diff(recorded.Set.Status, Status(v, p, apply.Outcome{})); diff != "" {
		t.Errorf("status (-recorded +got):\n%s", diff)
	}
}

func TestBackOff(t *testing.T) {
	m := &memory{}
	at := now()
	var got []string
	for range 12 {
		m.deleted("uid", 1, "n1", at)
		wait := m.failures("uid", 1)["n1"].retry().Sub(at)
		got = append(got, wait.String())
		at = at.Add(wait)
	}
	want := "1s 2s 4s 8s 16s 32s 1m4s 2m8s 4m16s 8m32s 15m0s 15m0s"
	if strings.Join(got, " ") != want {
		t.Errorf("waits are %v, want %s", got, want)
	}
	if f := m.failures("uid", 2); f != nil {
		t.Errorf("another generation remembers %v", f)
	}
	m.deleted("uid", 1, "n2", at.Add(31*time.Minute))
	if f := m.failures("uid", 1)["n1"]; f.Count != 0 {
		t.Errorf("a node that was quiet for long is remembered with %d failures", f.Count)
	}
}

// BenchmarkPass decides for 5000 nodes of which all are to be updated.
func BenchmarkPass(b *testing.B) {
	s := fleet(b, 5000, "{maxUnavailable: 10%}")
	for b.Loop() {
		v := Classify(s)
		p := Plan(v)
		Status(v, p, apply.Outcome{})
	}
}
