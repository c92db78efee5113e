package spread_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/spread"
)

var now = time.Unix(1_800_000_000, 0)

// newSpread returns a WorkloadSpread of a kind, with subsets a, b and so on of these limits; "" for none.
func newSpread(apiVersion, kind string, limits ...string) *v1beta1.WorkloadSpread {
	s := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	s.Spec.TargetReference = &v1beta1.SpreadTargetReference{APIVersion: apiVersion, Kind: kind, Name: "web"}
	for i, limit := range limits {
		one := v1beta1.WorkloadSpreadSubset{Name: string(rune('a' + i))}
		if limit != "" {
			one.MaxReplicas = new(intstr.Parse(limit))
		}
		s.Spec.Subsets = append(s.Spec.Subsets, one)
	}
	return s
}

func deployment(limits ...string) *v1beta1.WorkloadSpread {
	return newSpread("apps/v1", "Deployment", limits...)
}

func fillOf(t testing.TB, s *v1beta1.WorkloadSpread, total int32) spread.Fill {
	t.Helper()
	out, err := spread.FillOf(s, total)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func limitsOf(t testing.TB, s *v1beta1.WorkloadSpread, total int32) []int32 {
	t.Helper()
	out, err := spread.Limits(s, total)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func podIn(name, version, subset, entry string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, ResourceVersion: "7", Labels: map[string]string{"pod-template-hash": version, "controller-revision-hash": "web-" + version},
	}}
	if subset != "" {
		p.Annotations = map[string]string{keys.MatchedWorkloadSpread: spread.Matched{Name: "web", Subset: subset, UID: entry}.String()}
	}
	return p
}

func TestLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		limits []string
		total  int32
		want   []int32
		wrong  bool
	}{
		"numbers":                  {[]string{"3", "0", ""}, 10, []int32{3, 0, -1}, false},
		"percentages":              {[]string{"30%", "70%"}, 10, []int32{3, 7}, false},
		"percentages of more":      {[]string{"30%", "70%"}, 20, []int32{6, 14}, false},
		"percentages round up":     {[]string{"33%", ""}, 10, []int32{4, -1}, false},
		"what is neither":          {[]string{"x"}, 10, nil, true},
		"a number below 0":         {[]string{"-1"}, 10, nil, true},
		"a percentage of no Pods":  {[]string{"30%"}, 0, []int32{0}, false},
		"no limit in the middle":   {[]string{"", "2"}, 10, []int32{-1, 2}, false},
		"more than there is a sum": {[]string{"100%", "100%"}, 3, []int32{3, 3}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := spread.Limits(deployment(tc.limits...), tc.total)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.wrong {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestTargetsAreComparedByGroupAndKind: of a CloneSet either version may be named.
func TestTargetsAreComparedByGroupAndKind(t *testing.T) {
	alpha, beta := newSpread("apps.kruise.io/v1alpha1", "CloneSet"), newSpread("apps.kruise.io/v1beta1", "CloneSet")
	if spread.TargetOf(alpha) != spread.TargetOf(beta) || !spread.IsBuiltIn(spread.TargetOf(beta).GroupKind) {
		t.Errorf("%v and %v differ, or are not known", spread.TargetOf(alpha), spread.TargetOf(beta))
	}
}

func TestOfOrdinal(t *testing.T) {
	s := newSpread("apps/v1", "StatefulSet", "5", "5", "")
	fill := fillOf(t, s, 12)
	var got []int
	for _, ordinal := range []int32{0, 4, 5, 9, 10, 11} {
		got = append(got, fill.OfOrdinal(ordinal, spread.Open(s)))
	}
	s.Status.SubsetStatuses = []v1beta1.WorkloadSpreadSubsetStatus{{Name: "a", Conditions: []metav1.Condition{{Type: "Schedulable", Status: "False"}}}}
	for _, ordinal := range []int32{0, 4, 5} {
		got = append(got, fill.OfOrdinal(ordinal, spread.Open(s)))
	}
	got = append(got, spread.Fill{Limits: []int32{5}}.OfOrdinal(5, []bool{true}))
	if diff := cmp.Diff([]int{0, 0, 1, 1, 2, 2, 1, 1, 2, -1}, got); diff != "" {
		t.Errorf("subsets (-want +got):\n%s", diff)
	}
}

func TestRecount(t *testing.T) {
	s := deployment("3", "")
	at := metav1.NewTime(now)
	s.Status.VersionedSubsetStatuses = map[string][]v1beta1.WorkloadSpreadSubsetStatus{
		"v1": {{Name: "a", Replicas: 3, CreatingPods: map[string]metav1.Time{"seen": at, "over": at, "unseen": at, "was": at}}, {Name: "gone", Replicas: 2}},
		"v0": {{Name: "a", Replicas: 3, DeletingPods: map[string]metav1.Time{"p0": at, "p9": at}}},
		"v9": {{Name: "a", Replicas: 1}},
	}
	over := podIn("p2", "v1", "a", "over")
	over.DeletionTimestamp, over.ResourceVersion = &at, "12"
	limits := limitsOf(t, s, 6)
	spread.Recount(s, limits, []*corev1.Pod{podIn("p0", "v0", "a", ""), podIn("p1", "v1", "a", "seen"), over, podIn("p3", "v1", "b", ""), podIn("p4", "v1", "", "")},
		map[string]bool{"was": true})
	want := v1beta1.WorkloadSpreadStatus{
		PodVersion: "12",
		SubsetStatuses: []v1beta1.WorkloadSpreadSubsetStatus{
			{Name: "a", Replicas: 2, MissingReplicas: 1, CreatingPods: map[string]metav1.Time{"unseen": at}, DeletingPods: map[string]metav1.Time{"p0": at}},
			{Name: "b", Replicas: 1, MissingReplicas: -1},
		},
		VersionedSubsetStatuses: map[string][]v1beta1.WorkloadSpreadSubsetStatus{
			"v1": {{Name: "a", Replicas: 1, MissingReplicas: 1, CreatingPods: map[string]metav1.Time{"unseen": at}}, {Name: "b", Replicas: 1, MissingReplicas: -1}},
			"v0": {{Name: "a", Replicas: 1, MissingReplicas: 3, DeletingPods: map[string]metav1.Time{"p0": at}}, {Name: "b", MissingReplicas: -1}},
		},
	}
	if diff := cmp.Diff(want, s.Status); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int32{1, -1}, spread.Rooms(s, limits, "v1", 6)); diff != "" {
		t.Errorf("room (-want +got):\n%s", diff)
	}
	// A version that nobody has seen has all the room, also where a stale one was dropped.
	if diff := cmp.Diff([]int32{3, -1}, spread.Rooms(s, limits, "v9", 6)); diff != "" {
		t.Errorf("room of a new version (-want +got):\n%s", diff)
	}
	if spread.IsAsNewAs("11", s) || !spread.IsAsNewAs("12", s) {
		t.Error("who has not seen Pod p2 may count")
	}
}

// TestCloneSetsCountVersionsDuringASurge: by versions alone an update in place would let each version fill the subset.
func TestCloneSetsCountVersionsDuringASurge(t *testing.T) {
	s := newSpread("apps.kruise.io/v1beta1", "CloneSet", "3", "")
	limits := limitsOf(t, s, 5)
	pods := []*corev1.Pod{podIn("p0", "v1", "a", ""), podIn("p1", "v1", "a", ""), podIn("p2", "v2", "a", ""), podIn("p3", "v1", "b", "")}
	spread.Recount(s, limits, pods, nil)
	if diff := cmp.Diff([]int32{0, -1}, spread.Rooms(s, limits, "v2", 5)); diff != "" {
		t.Errorf("a Pod is missing (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int32{2, -1}, spread.Rooms(s, limits, "v2", 4)); diff != "" {
		t.Errorf("a Pod beyond the replicas (-want +got):\n%s", diff)
	}
}

// TestUnschedulableCountsForAllVersions: a new version does not begin where the one before could not be scheduled.
func TestUnschedulableCountsForAllVersions(t *testing.T) {
	s := deployment("3", "")
	s.Status.SubsetStatuses = []v1beta1.WorkloadSpreadSubsetStatus{{Name: "a", Conditions: []metav1.Condition{{Type: "Schedulable", Status: "False"}}}}
	if diff := cmp.Diff([]int32{0, -1}, spread.Rooms(s, limitsOf(t, s, 5), "new", 5)); diff != "" {
		t.Errorf("room (-want +got):\n%s", diff)
	}
}

func TestExpire(t *testing.T) {
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	s := deployment("9")
	s.Status.VersionedSubsetStatuses = map[string][]v1beta1.WorkloadSpreadSubsetStatus{"v1": {{
		Name: "a", CreatingPods: map[string]metav1.Time{"old": ago(30 * time.Second), "new": ago(20 * time.Second)},
		DeletingPods: map[string]metav1.Time{"p": ago(15 * time.Second)},
	}}}
	creating, deleting, next := spread.Expire(s, now)
	if diff := cmp.Diff([]any{[]string{"old"}, []string{"p"}, 10 * time.Second}, []any{creating, deleting, next}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	left := s.Status.VersionedSubsetStatuses["v1"][0]
	if len(left.CreatingPods) != 1 || left.DeletingPods != nil {
		t.Errorf("left is %+v", left)
	}
}

func TestCosts(t *testing.T) {
	s := deployment("10", "10", "")
	var pods []*corev1.Pod
	for _, subset := range []string{"a", "b", "c", "gone"} {
		for i := range 20 {
			p := podIn(fmt.Sprint(subset, i), "v1", subset, "")
			p.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(i) * time.Second))
			pods = append(pods, p)
		}
	}
	counts := map[string]int{}
	costs := spread.Costs(s, fillOf(t, s, 60), pods, "v1")
	for p, cost := range costs {
		counts[fmt.Sprint(p.Name[:1], " ", cost)]++
	}
	want := map[string]int{"a 300": 10, "a -100": 10, "b 200": 10, "b -200": 10, "c 100": 20, "g -400": 20}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("costs (-want +got):\n%s", diff)
	}
	if costs[pods[19]] != -100 || costs[pods[0]] != 300 {
		t.Errorf("the youngest Pod costs %d, the oldest %d: the youngest is to go", costs[pods[19]], costs[pods[0]])
	}
	old := spread.Costs(s, fillOf(t, s, 60), []*corev1.Pod{podIn("x", "v0", "a", ""), podIn("y", "v0", "c", "")}, "v1")
	if got := slices.Sorted(maps.Values(old)); !slices.Equal(got, []int32{100, 300}) {
		t.Errorf("an old version costs %v: its first subset is to be drained first", old)
	}
}

func TestTally(t *testing.T) {
	over := podIn("over", "v1", "a", "")
	over.Status.Phase = corev1.PodSucceeded
	pods := []*corev1.Pod{
		podIn("1", "v1", "a", ""), podIn("2", "v1", "a", ""), podIn("3", "v1", "a", ""), podIn("4", "v0", "a", ""), over,
		podIn("5", "v1", "b", ""), podIn("6", "v1", "b", ""), podIn("7", "v1", "gone", ""), {ObjectMeta: metav1.ObjectMeta{Name: "8"}},
	}
	for name, tc := range map[string]struct {
		s    *v1beta1.WorkloadSpread
		want []int32
	}{
		"each version by itself":       {deployment("2", ""), []int32{6, 2, 1}},
		"of a CloneSet, all together":  {newSpread("apps.kruise.io/v1beta1", "CloneSet", "2", ""), []int32{6, 2, 2}},
		"nothing is above its limit":   {deployment("3", "2"), []int32{6, 2, 0}},
		"a subset that takes none now": {deployment("0", "2"), []int32{6, 2, 4}},
	} {
		tc.s.Status.Overflow = 7
		spread.Tally(tc.s, limitsOf(t, tc.s, 8), pods)
		if diff := cmp.Diff(tc.want, []int32{tc.s.Status.Assigned, tc.s.Status.Unassigned, tc.s.Status.Overflow}); diff != "" {
			t.Errorf("%s: assigned, unassigned, overflow (-want +got):\n%s", name, diff)
		}
	}
}

func parse[T any](t testing.TB, text string) T {
	t.Helper()
	var out T
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestInject(t *testing.T) {
	s := deployment("1", "")
	s.Spec.Subsets[0] = parse[v1beta1.WorkloadSpreadSubset](t, `
name: a
maxReplicas: 1
requiredNodeSelector: {matchExpressions: [{key: zone, operator: In, values: [a]}]}
preferredNodeSelector: [{weight: 1, preference: {matchExpressions: [{key: ssd, operator: Exists}]}}]
tolerations: [{key: spot, operator: Exists}]
`)
	s.Spec.Subsets[0].Patch = &runtime.RawExtension{Raw: []byte(`{"metadata":{"labels":{"subset":"a"}},"spec":{"priorityClassName":"low",` +
		`"containers":[{"name":"app","env":[{"name":"ZONE","value":"a"}]}]}}`)}
	p := parse[corev1.Pod](t, `
metadata: {generateName: web-, labels: {app: web}}
spec:
  priority: 7
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: arch, operator: In, values: [amd64]}]
        - matchExpressions: [{key: arch, operator: In, values: [arm64]}]
  containers: [{name: app, image: nginx}]
`)
	if err := spread.Inject(&p, s, spread.Given{Entry: "e1", Cost: 200}); err != nil {
		t.Fatal(err)
	}
	want := parse[corev1.Pod](t, `
metadata:
  generateName: web-
  labels: {app: web, subset: a}
  annotations:
    apps.kruise.io/matched-workloadspread: '{"name":"web","subset":"a","uid":"e1"}'
    controller.kubernetes.io/pod-deletion-cost: "200"
spec:
  priorityClassName: low
  tolerations: [{key: spot, operator: Exists}]
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: ssd, operator: Exists}]}}]
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: arch, operator: In, values: [amd64]}, {key: zone, operator: In, values: [a]}]
        - matchExpressions: [{key: arch, operator: In, values: [arm64]}, {key: zone, operator: In, values: [a]}]
  containers: [{name: app, image: nginx, env: [{name: ZONE, value: a}]}]
`)
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	bare := corev1.Pod{}
	if err := spread.Inject(&bare, s, spread.Given{Subset: 1}); err != nil || bare.Spec.Affinity != nil {
		t.Errorf("a subset that asks for nothing: error %v, affinity %v", err, bare.Spec.Affinity)
	}
	s.Spec.Subsets[1].Patch = &runtime.RawExtension{Raw: []byte(`{"spec":{"containers":"x"}}`)}
	if err := spread.Inject(&bare, s, spread.Given{Subset: 1}); err == nil {
		t.Error("a patch that does not fit is applied")
	}
}

func TestAdopt(t *testing.T) {
	s := deployment("1", "", "")
	s.Spec.Subsets[0].RequiredNodeSelector = &corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "In", Values: []string{"a"}}}}
	s.Spec.Subsets[2].PreferredNodeSelector = []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: corev1.NodeSelectorTerm{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "ssd", Operator: "Exists"}},
	}}}
	s.Spec.Subsets[1].Patch = &runtime.RawExtension{Raw: []byte(`{"metadata":{"labels":{"subset":"b"}}}`)}
	node := func(labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	}
	for name, tc := range map[string]struct {
		labels map[string]string
		node   *corev1.Node
		rooms  []int32
		want   int
	}{
		"the first that fits":                    {nil, node(map[string]string{"zone": "a"}), []int32{1, -1, -1}, 0},
		"a node outside of it":                   {nil, node(nil), []int32{1, -1, -1}, 2},
		"one that has room, of two that fit":     {map[string]string{"subset": "b"}, node(map[string]string{"zone": "a"}), []int32{0, -1, -1}, 1},
		"room counts where the labels are even":  {map[string]string{"subset": "b"}, node(nil), []int32{1, 0, -1}, 2},
		"the one whose labels it has":            {map[string]string{"subset": "b"}, node(nil), []int32{1, -1, 0}, 1},
		"a node that is preferred counts before": {map[string]string{"subset": "b"}, node(map[string]string{"ssd": "1"}), []int32{1, -1, 0}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}
			if got := spread.Adopt(s, tc.rooms, p, tc.node); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestIsStuck(t *testing.T) {
	unschedulable := parse[corev1.PodStatus](t, "{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}")
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-20 * time.Second))}, Status: unschedulable}
	if stuck, wait := spread.IsStuck(p, 30*time.Second, now); stuck || wait != 10*time.Second {
		t.Errorf("after 20 s of 30 it is stuck: %v, in %s", stuck, wait)
	}
	if stuck, _ := spread.IsStuck(p, 20*time.Second, now); !stuck {
		t.Error("after 20 s of 20 it is not stuck")
	}
	p.Spec.NodeName = "n"
	if stuck, _ := spread.IsStuck(p, time.Second, now); stuck {
		t.Error("it is stuck on a node")
	}
}

// TestLeasesLeaveRoomToOthers checks any course of leases: never more than there is, never more ahead than a quarter of what is left.
func TestLeasesLeaveRoomToOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		room, last := rapid.Int32Range(1, 2000).Draw(t, "room"), int32(0)
		for room > 0 {
			waiting := rapid.Int32Range(0, 50).Draw(t, "waiting")
			since := time.Duration(rapid.Int64Range(0, 4000).Draw(t, "milliseconds")) * time.Millisecond
			l := spread.NextLease(room, waiting, last, since)
			if l.Now < 1 || l.Now+l.Ahead > room || l.Ahead > 64 || l.Ahead > room/4 || l.Ahead > max(1, 2*last) {
				t.Fatalf("of %d for %d after %d: %+v", room, waiting, last, l)
			}
			if since > 2*spread.LeaseIdle && l.Ahead > 0 {
				t.Fatalf("%+v after %s of silence", l, since)
			}
			room, last = room-l.Now-l.Ahead, l.Ahead
		}
	})
}
