package resourcedistribution

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/distribution"
)

func noon() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

func resource(value string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":"` + value + `"}}`)}
}

func owner() *v1beta1.ResourceDistribution {
	d := &v1beta1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "d-uid", Generation: 2}}
	d.Spec.Resource = resource("v")
	return d
}

// snapshot has the target namespaces a and b, with nothing in them.
func snapshot(t testing.TB) Snapshot {
	t.Helper()
	s := Snapshot{Owner: owner(), Now: noon(), Targets: []string{"a", "b"}, Namespaces: map[string]distribution.Namespace{"a": {}, "b": {}, "c": {}},
		Copies: map[string]client.Object{}, Verified: map[types.UID]string{}, Failed: map[string]error{},
		Found: map[string]distribution.Object{"a": nil, "b": nil}}
	source, err := distribution.Parse(s.Owner.Spec.Resource.Raw)
	if err != nil {
		t.Fatal(err)
	}
	s.Source = &source
	return s
}

// put makes an object that was looked at in a namespace: the copy, after change has had its way with it.
func put(s *Snapshot, namespace string, change ...func(*corev1.ConfigMap)) {
	c := s.Source.Copy(s.Owner, namespace, nil).(*corev1.ConfigMap)
	c.UID, c.ResourceVersion = types.UID(namespace+"-uid"), "5"
	for _, f := range change {
		f(c)
	}
	s.Found[namespace] = c
	if isOurs(c, s.Owner) {
		s.Copies[namespace] = c
	}
}

func foreign(c *corev1.ConfigMap) { c.OwnerReferences, c.Labels, c.Annotations = nil, nil, nil }

func edited(c *corev1.ConfigMap) { c.Data["k"] = "by hand" }

func TestPlan(t *testing.T) {
	older := func(c *corev1.ConfigMap) {
		c.Data["k"] = "old"
		c.Annotations["kruise.io/resourcedistribution.resource.hashcode"] = "old"
	}
	policy := func(p v1beta1.ResourceDistributionConflictPolicy) func(*Snapshot) {
		return func(s *Snapshot) { s.Owner.Spec.ConflictPolicy = p }
	}
	both := func(s *Snapshot) { put(s, "a"); put(s, "b") }
	with := func(namespace string, change ...func(*corev1.ConfigMap)) func(*Snapshot) {
		return func(s *Snapshot) { put(s, namespace, change...) }
	}
	frozenCopy := func(c *corev1.ConfigMap) { c.Immutable = new(true); c.Data["k"] = "old" }
	cases := map[string]struct {
		with  []func(*Snapshot)
		want  []string
		holds int
	}{
		"nothing is there":     {nil, []string{"create a/c", "create b/c"}, 0},
		"all is there":         {[]func(*Snapshot){both}, nil, 0},
		"edited by hand":       {[]func(*Snapshot){both, with("a", edited)}, []string{"update a/c"}, 0},
		"a foreign label":      {[]func(*Snapshot){both, with("a", func(c *corev1.ConfigMap) { c.Labels["x"] = "y" })}, nil, 0},
		"its owner taken off":  {[]func(*Snapshot){both, with("a", func(c *corev1.ConfigMap) { c.OwnerReferences = nil })}, []string{"update a/c"}, 0},
		"one of others":        {[]func(*Snapshot){both, with("a", foreign)}, nil, 1},
		"adopted, as the same": {[]func(*Snapshot){both, with("a", foreign), policy("Adopt")}, []string{"update a/c"}, 0},
		"not adopted":          {[]func(*Snapshot){both, with("a", foreign, edited), policy("Adopt")}, nil, 1},
		"overwritten":          {[]func(*Snapshot){both, with("a", foreign, edited), policy("Overwrite")}, []string{"update a/c"}, 0},
		"never one that others control": {[]func(*Snapshot){both, with("a", foreign, func(c *corev1.ConfigMap) {
			c.OwnerReferences = []metav1.OwnerReference{{UID: "other", Controller: new(true)}}
		}), policy("Overwrite")}, nil, 1},
		"nor one that others own": {[]func(*Snapshot){both, with("a", foreign, func(c *corev1.ConfigMap) {
			c.OwnerReferences = []metav1.OwnerReference{{UID: "other"}}
		}), policy("Overwrite")}, nil, 1},
		"never one of another ResourceDistribution": {[]func(*Snapshot){both, with("a", foreign, func(c *corev1.ConfigMap) {
			c.Labels = map[string]string{"apps.kruise.io/distributed-by": "other"}
		}), policy("Overwrite"), func(s *Snapshot) { s.Others = map[types.UID]bool{"other": true} }}, nil, 1},
		"one of a ResourceDistribution that is gone": {[]func(*Snapshot){both, with("a", foreign, func(c *corev1.ConfigMap) {
			c.Labels = map[string]string{"apps.kruise.io/distributed-by": "other"}
		}), policy("Overwrite")}, []string{"update a/c"}, 0},
		"no namespace":              {[]func(*Snapshot){both, func(s *Snapshot) { delete(s.Namespaces, "a"); delete(s.Found, "a"); delete(s.Copies, "a") }}, nil, 0},
		"a namespace that goes":     {[]func(*Snapshot){func(s *Snapshot) { s.Namespaces["a"] = distribution.Namespace{Deleting: true} }}, []string{"create b/c"}, 0},
		"not wanted any more":       {[]func(*Snapshot){both, with("c")}, []string{"delete c/c"}, 0},
		"immutable":                 {[]func(*Snapshot){both, with("a", frozenCopy)}, nil, 1},
		"immutable, to be replaced": {[]func(*Snapshot){both, with("a", frozenCopy), func(s *Snapshot) { s.Owner.Spec.ImmutablePolicy = "Replace" }}, []string{"delete a/c"}, 0},
		"a rollout that is paused":  {[]func(*Snapshot){with("a", older), func(s *Snapshot) { s.Owner.Spec.Rollout = &v1beta1.ResourceDistributionRollout{Paused: true} }}, []string{"create b/c"}, 0},
		"half of a rollout": {[]func(*Snapshot){with("a", older), with("b", older), func(s *Snapshot) {
			s.Owner.Spec.Rollout = &v1beta1.ResourceDistributionRollout{Percent: new(int32(50))}
		}}, []string{"update a/c"}, 0},
		"one that could not be read": {[]func(*Snapshot){both, func(s *Snapshot) { s.Failed["a"] = errors.New("busy") }}, nil, 0},
		"the source is not known":    {[]func(*Snapshot){func(s *Snapshot) { s.Problem, s.Source = errors.New("gone"), nil }}, nil, 1},
		"it is being deleted":        {[]func(*Snapshot){func(s *Snapshot) { s.Owner.DeletionTimestamp = &metav1.Time{} }}, nil, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := snapshot(t)
			for _, f := range tc.with {
				f(&s)
			}
			decided := Plan(Classify(s))
			var got []string
			for _, a := range decided.Actions() {
				got = append(got, fmt.Sprintf("%s %s/%s", a.Verb, a.Object().GetNamespace(), a.Object().GetName()))
				if a.Before != nil && (a.Before.GetUID() == "" || a.Before.GetResourceVersion() == "" || a.AnyVersion) {
					t.Errorf("%s is written on no condition", a.Before.GetNamespace())
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" || len(decided.Holds) != tc.holds {
				t.Errorf("(-want +got):\n%s%s", diff, decided)
			}
		})
	}
}

// TestStatus: the conditions in their order, of which each names its namespaces.
func TestStatus(t *testing.T) {
	s := snapshot(t)
	s.Targets = []string{"a", "b", "c", "d"}
	put(&s, "a")
	put(&s, "b", foreign)
	s.Found["c"] = nil
	before := metav1.NewTime(noon().Add(-time.Hour))
	was := v1beta1.ResourceDistributionCondition{}
	was.Type, was.Status, was.LastTransitionTime = v1beta1.ResourceDistributionConflictOccurred, metav1.ConditionTrue, before
	s.Owner.Status.Conditions = []v1beta1.ResourceDistributionCondition{was} // as an older manager may have left it
	v := Classify(s)
	decided := Plan(v)
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "c", errors.New("exceeded quota"))
	outcome := apply.Outcome{Results: []apply.Result{{Action: decided.Actions()[0], Err: quota}}}
	got := Status(v, decided, outcome)
	if got.Desired != 4 || got.Succeeded != 1 || got.Failed != 3 || got.Updated != 1 || got.ObservedGeneration != 2 {
		t.Errorf("the numbers are %+v", got.ResourceDistributionBaseStatus)
	}
	var text []string
	for _, c := range got.Conditions {
		text = append(text, fmt.Sprintf("%s %s %s", c.Type, c.Status, strings.Join(c.FailedNamespaces, ",")))
	}
	want := []string{
		"GetResourceFailed False ", "CreateResourceFailed True c", "UpdateResourceFailed False ", "DeleteResourceFailed False ",
		"ConflictOccurred True b", "NamespaceNotExists True d", "Ready False ",
	}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := got.Conditions[4]; !c.LastTransitionTime.Equal(&before) || got.Conditions[5].LastTransitionTime.Time != noon() {
		t.Errorf("the times are %v and %v", c.LastTransitionTime, got.Conditions[5].LastTransitionTime)
	}
	if got.Conditions[0].Reason != succeeded || !strings.Contains(got.Conditions[1].Reason, "exceeded quota") {
		t.Errorf("the reasons are %q and %q", got.Conditions[0].Reason, got.Conditions[1].Reason)
	}
	if reason := got.Conditions[6].Reason; reason != "3 of 4 namespaces lack their copy" {
		t.Errorf("it is not ready because %s", reason)
	}
	// A write that is waited with fails no less: the status says what it said.
	s.Owner.Status = got
	v = Classify(s)
	again := Status(v, plan.Plan{}, apply.Outcome{})
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("nothing was tried (-before +after):\n%s", diff)
	}
}
