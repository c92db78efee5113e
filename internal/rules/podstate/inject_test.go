package podstate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

func all(string, string) bool { return true }

func prefer(weight int32, key, value string) corev1.PreferredSchedulingTerm {
	return corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
	}}}
}

func preferNode(weight int32, node string) corev1.PreferredSchedulingTerm {
	return corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
	}}}
}

func TestInject(t *testing.T) {
	node := func(name string, change ...func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: nodes()[name]}}
		for _, c := range change {
			c(n)
		}
		return n
	}
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	emptied := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoExecute}} }
	avoiding := state()
	avoiding.Spec.AvoidUnavailableNodes = true
	falling := state()
	falling.Spec.Fallback = &v1beta1.PersistentPodStateFallback{}
	full := corev1.PodSpec{
		NodeSelector: map[string]string{"disk": "ssd", zone: "a"},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{prefer(1, "disk", "ssd"), prefer(50, host, "n1")},
		}},
	}
	bound := map[string]string{keys.InjectedPodState: "pps"}
	restored := map[string]string{keys.InjectedPodState: "pps", "ip": "10.0.0.7"}
	addresses := func(s *v1beta1.PersistentPodState, told bool) {
		s.Spec.RecordPodIPs = told
		record := s.Status.PodStates["web-0"]
		record.PodIPs = []string{"10.0.0.7", "fd00::7"}
		s.Status.PodStates["web-0"] = record
	}
	cases := map[string]struct {
		change  func(*v1beta1.PersistentPodState)
		pod     func(*corev1.Pod)
		offered func(string, string) bool
		want    map[string]string
		labels  map[string]string
		spec    corev1.PodSpec
	}{
		"bound to where it ran":          {want: restored, spec: full},
		"over another value of the user": {pod: func(p *corev1.Pod) { p.Spec.NodeSelector[zone] = "c" }, want: restored, spec: full},
		"an annotation that it sets": {
			pod: func(p *corev1.Pod) { p.Annotations = map[string]string{"ip": "mine"} }, want: map[string]string{keys.InjectedPodState: "pps", "ip": "mine"}, spec: full,
		},
		"annotations are not to be restored": {change: func(s *v1beta1.PersistentPodState) { s.Spec.RestoreAnnotations = new(false) }, want: bound, spec: full},
		"its addresses are told": {
			change: func(s *v1beta1.PersistentPodState) { addresses(s, true) }, spec: full,
			want: map[string]string{keys.InjectedPodState: "pps", "ip": "10.0.0.7", keys.PreviousPodIPs: "10.0.0.7,fd00::7"},
		},
		"its addresses are not to be told": {change: func(s *v1beta1.PersistentPodState) { addresses(s, false) }, want: restored, spec: full},
		"labels are restored, but for those that it sets": {
			change: func(s *v1beta1.PersistentPodState) {
				s.Spec.PersistentPodLabels = []v1beta1.PersistentPodLabel{{Key: "shard"}, {Key: "role"}, {Key: "none"}}
				record := s.Status.PodStates["web-0"]
				record.Labels = map[string]string{"shard": "7", "role": "old", "else": "x"}
				s.Status.PodStates["web-0"] = record
			},
			pod: func(p *corev1.Pod) { p.Labels = map[string]string{"role": "new"} }, want: restored, spec: full,
			labels: map[string]string{"shard": "7", "role": "new"},
		},
		"nodes of before are preferred less and less": {
			change: func(s *v1beta1.PersistentPodState) {
				s.Spec.PreviousNodes = 2
				record := s.Status.PodStates["web-0"]
				record.PreviousNodes = []string{"n2", "n3", "n4"}
				s.Status.PodStates["web-0"] = record
			}, want: restored,
			spec: corev1.PodSpec{NodeSelector: full.NodeSelector, Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
					prefer(1, "disk", "ssd"), prefer(50, host, "n1"), preferNode(50, "n2"), preferNode(25, "n3"),
				},
			}}},
		},
		"nothing is recorded":  {change: func(s *v1beta1.PersistentPodState) { s.Status.PodStates = nil }},
		"no label is recorded": {change: func(s *v1beta1.PersistentPodState) { s.Status.PodStates["web-0"] = v1beta1.PodState{NodeName: "n1"} }},
		"it is on its way out": {change: func(s *v1beta1.PersistentPodState) { s.DeletionTimestamp = &metav1.Time{} }},
		"a Pod without a name": {pod: func(p *corev1.Pod) { p.Name = "" }},
		"a term without any recorded key": {
			change: func(s *v1beta1.PersistentPodState) {
				s.Spec.RequiredPersistentTopology = nil
				s.Spec.PreferredPersistentTopology[0].Preference.Keys = []string{"rack"}
			},
		},
		"its node is gone, and its zone is not": {
			offered: Offered(&falling.Spec, []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{host: "n5", zone: "a"}}}}), want: restored,
			spec: corev1.PodSpec{NodeSelector: full.NodeSelector, Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{prefer(1, "disk", "ssd")},
			}}},
		},
		"all is gone": {offered: Offered(&falling.Spec, nil)},
		"its node is cordoned, which is not asked": {offered: Offered(&falling.Spec, []*corev1.Node{node("n1", cordoned)}), want: restored, spec: full},
		"its node is cordoned":                     {offered: Offered(&avoiding.Spec, []*corev1.Node{node("n1", cordoned), node("n2")})},
		"its node is emptied":                      {offered: Offered(&avoiding.Spec, []*corev1.Node{node("n1", emptied), node("n2")})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := state()
			record := on("n1")
			record.Annotations = map[string]string{"ip": "10.0.0.7"}
			s.Status.PodStates = records{"web-0": record}
			if tc.change != nil {
				tc.change(s)
			}
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0"}, Spec: corev1.PodSpec{
				NodeSelector: map[string]string{"disk": "ssd"},
				Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{prefer(1, "disk", "ssd")},
				}},
			}}
			if tc.pod != nil {
				tc.pod(p)
			}
			if tc.offered == nil {
				tc.offered = all
			}
			after := p
			edited := 0
			edit := func() *corev1.Pod {
				edited++
				if edited == 1 {
					after = p.DeepCopy()
				}
				return after
			}
			Inject(p, s, tc.offered, edit)
			if tc.want == nil {
				if edited > 0 {
					t.Fatalf("it is changed:\n%s", cmp.Diff(p, after))
				}
				return
			}
			if diff := cmp.Diff(tc.want, after.Annotations) + cmp.Diff(tc.spec, after.Spec) + cmp.Diff(tc.labels, after.Labels); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			Inject(after, s, tc.offered, func() *corev1.Pod { t.Error("it is changed again"); return after })
		})
	}
}

func TestIsFor(t *testing.T) {
	s := state()
	for name, tc := range map[string]struct {
		controller *metav1.OwnerReference
		want       bool
	}{
		"its workload":            {&metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}, true},
		"in an older version":     {&metav1.OwnerReference{APIVersion: "apps/v1beta2", Kind: "StatefulSet", Name: "web"}, true},
		"another group":           {&metav1.OwnerReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet", Name: "web"}, false},
		"another kind":            {&metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web"}, false},
		"another name":            {&metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}, false},
		"a Pod without any owner": {nil, false},
	} {
		if got := IsFor(s, tc.controller); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestGenerate(t *testing.T) {
	target := v1beta1.PersistentPodStateTarget{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}
	annotations := func(pairs ...string) map[string]string {
		out := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	kept := v1beta1.PersistentPodStateBaseSpec{TargetRef: target, MaxAgeSeconds: new(int32(60))}
	withIP := kept
	withIP.PersistentPodAnnotations = []v1beta1.PersistentPodAnnotation{{Key: "ip"}}
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        *v1beta1.PersistentPodStateSpec
	}{
		"both": {
			annotations(keys.GeneratePodState, "true", keys.RequiredTopology, " a , b,a", keys.PreferredTopology, "c,d", keys.PersistentAnnotations, "ip , "),
			&v1beta1.PersistentPodStateSpec{
				PersistentPodStateBaseSpec:  withIP,
				RequiredPersistentTopology:  &v1beta1.NodeTopologyTerm{Keys: []string{"a", "b"}},
				PreferredPersistentTopology: []v1beta1.PreferredTopologyTerm{{Weight: 100, Preference: v1beta1.NodeTopologyTerm{Keys: []string{"c", "d"}}}},
			},
		},
		"one": {
			annotations(keys.GeneratePodState, "true", keys.RequiredTopology, "a"),
			&v1beta1.PersistentPodStateSpec{PersistentPodStateBaseSpec: kept, RequiredPersistentTopology: &v1beta1.NodeTopologyTerm{Keys: []string{"a"}}},
		},
		"no topology":   {annotations(keys.GeneratePodState, "true", keys.RequiredTopology, " ,", keys.PersistentAnnotations, "ip"), nil},
		"not wanted":    {annotations(keys.GeneratePodState, "false", keys.RequiredTopology, "a"), nil},
		"not asked for": {annotations(keys.RequiredTopology, "a"), nil},
	} {
		spec := v1beta1.PersistentPodStateSpec{}
		spec.MaxAgeSeconds = new(int32(60)) // what annotations can't say
		spec.PersistentPodAnnotations = []v1beta1.PersistentPodAnnotation{{Key: "old"}}
		wanted := Generate(tc.annotations, target, &spec)
		if wanted != (tc.want != nil) {
			t.Errorf("%s: wanted is %t", name, wanted)
			continue
		}
		if diff := cmp.Diff(tc.want, &spec); wanted && diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParseKinds(t *testing.T) {
	got, err := ParseKinds(`{"workloads":[{"Group":"game.kruise.io","Version":"v1alpha1","Kind":"GameServerSet"}]}`)
	want := []schema.GroupKind{{Group: "game.kruise.io", Kind: "GameServerSet"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	if got, err := ParseKinds(""); got != nil || err != nil {
		t.Errorf("no list is read as %v, %v", got, err)
	}
	if _, err := ParseKinds("{"); err == nil {
		t.Error("what is no JSON is read")
	}
}
