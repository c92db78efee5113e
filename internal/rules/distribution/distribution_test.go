package distribution

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

func names(all ...string) v1beta1.ResourceDistributionNamespaces {
	var out v1beta1.ResourceDistributionNamespaces
	for _, name := range all {
		out.List = append(out.List, v1beta1.ResourceDistributionNamespace{Name: name})
	}
	return out
}

func TestTargets(t *testing.T) {
	there := map[string]Namespace{
		"team-": {}, "team-a": {}, "team-b-old": {}, "a-x-b": {},
		"a": {}, "b": {Labels: map[string]string{"x": "1"}}, "c": {}, "kube-system": {Labels: map[string]string{"x": "1"}}, "kube-public": {},
	}
	x := metav1.LabelSelector{MatchLabels: map[string]string{"x": "1"}}
	cases := map[string]struct {
		targets v1beta1.ResourceDistributionTargets
		from    string
		want    []string
	}{
		"none": {},
		"the example": {targets: v1beta1.ResourceDistributionTargets{
			ResourceDistributionNamedTargets: v1beta1.ResourceDistributionNamedTargets{IncludedNamespaces: names("a", "d"), ExcludedNamespaces: names("b")},
			NamespaceSelector:                x,
		}, want: []string{"a", "d"}},
		"by label":           {targets: v1beta1.ResourceDistributionTargets{NamespaceSelector: x}, want: []string{"b"}},
		"all":                {targets: v1beta1.ResourceDistributionTargets{ResourceDistributionNamedTargets: v1beta1.ResourceDistributionNamedTargets{AllNamespaces: true}}, want: []string{"a", "a-x-b", "b", "c", "team-", "team-a", "team-b-old"}},
		"all but that of it": {targets: v1beta1.ResourceDistributionTargets{ResourceDistributionNamedTargets: v1beta1.ResourceDistributionNamedTargets{AllNamespaces: true}}, from: "c", want: []string{"a", "a-x-b", "b", "team-", "team-a", "team-b-old"}},
		"by pattern": {targets: v1beta1.ResourceDistributionTargets{ResourceDistributionNamedTargets: v1beta1.ResourceDistributionNamedTargets{
			IncludedNamespaces: v1beta1.ResourceDistributionNamespaces{Patterns: []string{"team-*", "kube-*", "*-x-*"}},
			ExcludedNamespaces: v1beta1.ResourceDistributionNamespaces{Patterns: []string{"*-old"}},
		}}, want: []string{"a-x-b", "team-", "team-a"}},
		"all but by pattern": {targets: v1beta1.ResourceDistributionTargets{ResourceDistributionNamedTargets: v1beta1.ResourceDistributionNamedTargets{
			AllNamespaces: true, ExcludedNamespaces: v1beta1.ResourceDistributionNamespaces{Patterns: []string{"team*", "a*"}},
		}}, want: []string{"b", "c"}},
		"the system is listed": {targets: v1beta1.ResourceDistributionTargets{ResourceDistributionNamedTargets: v1beta1.ResourceDistributionNamedTargets{IncludedNamespaces: names("kube-system", "kube-public", "c")}}, want: []string{"c"}},
	}
	for name, tc := range cases {
		spec := &v1beta1.ResourceDistributionSpec{Targets: tc.targets}
		if tc.from != "" {
			spec.ResourceFrom = &v1beta1.DistributedResourceSource{Namespace: tc.from}
		}
		got, err := Targets(spec, there)
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		for _, target := range got {
			if !Concerns(spec, target, there[target].Labels) {
				t.Errorf("%s: a change of %s concerns nobody", name, target)
			}
		}
	}
	wrong := &v1beta1.ResourceDistributionSpec{}
	wrong.Targets.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}
	if _, err := Targets(wrong, there); err == nil {
		t.Error("a selector that can't be read is read")
	}
	if Concerns(wrong, "a", nil) {
		t.Error("a selector that can't be read selects")
	}
}

// TestReach: the share is rounded up, a larger one holds the smaller one, and none are others.
func TestReach(t *testing.T) {
	var all []string
	for i := range 30 {
		all = append(all, fmt.Sprint("ns-", i))
	}
	rapid.Check(t, func(t *rapid.T) {
		some := all[:rapid.IntRange(0, 30).Draw(t, "namespaces")]
		reach := func(percent int32) map[string]bool {
			return Reach(some, &v1beta1.ResourceDistributionRollout{Percent: &percent})
		}
		low := rapid.Int32Range(0, 100).Draw(t, "low")
		high := rapid.Int32Range(low, 100).Draw(t, "high")
		small, large := reach(low), reach(high)
		if want := (len(some)*int(low) + 99) / 100; len(small) != want {
			t.Fatalf("%d percent of %d are %d, want %d", low, len(some), len(small), want)
		}
		for name := range small {
			if !large[name] || !slices.Contains(some, name) {
				t.Fatalf("%s is reached by %d percent and not by %d", name, low, high)
			}
		}
	})
	if n := len(Reach(all, nil)); n != 30 {
		t.Errorf("without a rollout %d are reached", n)
	}
	if n := len(Reach(all, &v1beta1.ResourceDistributionRollout{Paused: true})); n != 0 {
		t.Errorf("while it is paused %d are reached", n)
	}
}

func source(t testing.TB, text string) Source {
	t.Helper()
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func owner() *v1beta1.ResourceDistribution {
	return &v1beta1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "d-uid"}}
}

func TestParse(t *testing.T) {
	s := source(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull","namespace":"x","labels":{"a":"b"}},"stringData":{"k":"v"}}`)
	secret := s.Object.(*corev1.Secret)
	if string(secret.Data["k"]) != "v" || secret.StringData != nil || secret.Type != corev1.SecretTypeOpaque || secret.Namespace != "" || secret.Labels["a"] != "b" {
		t.Errorf("it is read as %+v", secret)
	}
	if len(s.Hash) != 64 {
		t.Errorf("the hash is %q", s.Hash)
	}
	for name, text := range map[string]string{
		"another kind": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`, "another group": `{"apiVersion":"x/v1","kind":"Secret","metadata":{"name":"p"}}`,
		"no name": `{"apiVersion":"v1","kind":"Secret"}`, "no object": `[]`, "what is no text": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":1}}`,
	} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s is read", name)
		}
	}
	if a, b := From(secret), From(secret.DeepCopy()); a.Hash != b.Hash || len(a.Hash) != 64 {
		t.Error("the same object has another hash")
	}
}

func TestCopy(t *testing.T) {
	old := source(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","labels":{"gone":"1","kept":"1"},"annotations":{"note":"old"}},"data":{"k":"old"}}`)
	now := source(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","labels":{"kept":"2"}},"data":{"k":"new"}}`)
	was := old.Copy(owner(), "ns", nil).(*corev1.ConfigMap)
	was.UID, was.ResourceVersion = "uid", "7"
	was.Labels["foreign"], was.Annotations["foreign"], was.Finalizers = "1", "1", []string{"example.com/held"}
	is := now.Copy(owner(), "ns", was).(*corev1.ConfigMap)
	declared := is.Annotations[keys.DistributedKeys]
	wantLabels := map[string]string{"kept": "2", "foreign": "1", keys.DistributedBy: "d-uid"}
	wantNotes := map[string]string{"foreign": "1", keys.DistributedFrom: "d", keys.DistributedHash: now.Hash, keys.DistributedKeys: declared}
	if diff := cmp.Diff(wantLabels, is.Labels) + cmp.Diff(wantNotes, is.Annotations) + cmp.Diff(map[string]string{"k": "new"}, is.Data); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Equal(is.Finalizers, []string{"example.com/held"}) || !metav1.IsControlledBy(is, owner()) || is.Namespace != "ns" || is.ResourceVersion != "7" {
		t.Errorf("the metadata are %+v", is.ObjectMeta)
	}
	if IsSame(was, is) || !IsSame(is, now.Copy(owner(), "ns", is)) {
		t.Error("what was copied is to be copied again")
	}
	retained := owner()
	retained.Spec.DeletionPolicy = v1beta1.RetainCopies
	if kept := now.Copy(retained, "ns", is); len(kept.GetOwnerReferences()) > 0 || IsSame(is, kept) {
		t.Error("a copy that is to stay is owned")
	}
}

func TestCopiesNameTheirNamespace(t *testing.T) {
	expanding := owner()
	expanding.Spec.ExpandNamespace = true
	settings := source(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","labels":{"of":"$(namespace)"},"annotations":{"to":"x.$(namespace)"}},"data":{"$(namespace)":"db.$(namespace).svc $(name)"}}`)
	secret := source(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"user":"$(namespace)-$(namespace)"}}`)
	for _, namespace := range []string{"a", "b"} {
		c := settings.Copy(expanding, namespace, nil).(*corev1.ConfigMap)
		if c.Labels["of"] != namespace || c.Annotations["to"] != "x."+namespace || c.Data["$(namespace)"] != "db."+namespace+".svc $(name)" {
			t.Errorf("the copy in %s is %+v", namespace, c)
		}
		if !IsSame(c, settings.Copy(expanding, namespace, c)) {
			t.Errorf("the copy in %s is to be copied again", namespace)
		}
		if s := secret.Copy(expanding, namespace, nil).(*corev1.Secret); string(s.Data["user"]) != namespace+"-"+namespace {
			t.Errorf("the Secret in %s says %s", namespace, s.Data["user"])
		}
	}
	if c := settings.Copy(owner(), "a", nil).(*corev1.ConfigMap); c.Labels["of"] != "$(namespace)" {
		t.Errorf("nobody has asked for it: %+v", c)
	}
	if settings.Object.GetLabels()["of"] != "$(namespace)" {
		t.Error("the source has changed")
	}
}

func TestSame(t *testing.T) {
	made := func(change func(*corev1.Secret)) *corev1.Secret {
		s := source(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"k":"v"}}`).Copy(owner(), "ns", nil).(*corev1.Secret)
		change(s)
		return s
	}
	base := made(func(*corev1.Secret) {})
	for name, tc := range map[string]struct {
		change              func(*corev1.Secret)
		same, content, anew bool
	}{
		"nothing":            {func(*corev1.Secret) {}, true, true, false},
		"data":               {func(s *corev1.Secret) { s.Data["k"] = []byte("w") }, false, false, false},
		"further data":       {func(s *corev1.Secret) { s.Data["l"] = []byte("w") }, false, false, false},
		"a label":            {func(s *corev1.Secret) { s.Labels["x"] = "y" }, false, true, false},
		"the owner":          {func(s *corev1.Secret) { s.OwnerReferences = nil }, false, true, false},
		"the type":           {func(s *corev1.Secret) { s.Type = "other" }, false, false, true},
		"immutable":          {func(s *corev1.Secret) { s.Immutable = new(true) }, false, false, true},
		"a managed field":    {func(s *corev1.Secret) { s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}} }, true, true, false},
		"what the user gave": {func(s *corev1.Secret) { s.StringData = map[string]string{"k": "v"} }, true, true, false},
	} {
		other := made(tc.change)
		if IsSame(other, base) != tc.same || SameContent(other, base) != tc.content || NeedsNew(other, base) != tc.anew {
			t.Errorf("%s: same %t, content %t, anew %t", name, IsSame(other, base), SameContent(other, base), NeedsNew(other, base))
		}
	}
}

// TestACopyStaysOne: whatever stands in the place, a copy made over it is not to be made again, and nothing foreign is lost.
func TestACopyStaysOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.SampledFrom([]string{"1", "2"}))
		drawn := func(what string) Source {
			c := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{
				Name: "c", Labels: some.Draw(t, what+" labels"), Annotations: some.Draw(t, what+" annotations"),
			}, Data: some.Draw(t, what+" data")}
			raw, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		of := owner()
		if besides := some.Draw(t, "besides"); len(besides) > 0 {
			of.Spec.Copies = &v1beta1.DistributedCopies{Labels: besides}
		}
		was := drawn("first").Copy(of, "ns", nil)
		labels := was.GetLabels()
		labels["foreign"] = "1"
		was.SetLabels(labels)
		next := drawn("second")
		if rapid.Bool().Draw(t, "nothing besides any more") {
			of.Spec.Copies = nil
		}
		is := next.Copy(of, "ns", was)
		if !IsSame(is, next.Copy(of, "ns", is)) || !SameContent(is, next.Object) {
			t.Fatalf("it is to be written again:\n%s", cmp.Diff(is, next.Copy(of, "ns", is)))
		}
		want := maps.Clone(next.Object.GetLabels())
		if want == nil {
			want = map[string]string{}
		}
		if of.Spec.Copies != nil {
			maps.Copy(want, of.Spec.Copies.Labels)
		}
		want["foreign"], want[keys.DistributedBy] = "1", "d-uid"
		if diff := cmp.Diff(want, is.GetLabels()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
