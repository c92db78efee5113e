package pullsecret

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

func TestPlan(t *testing.T) {
	yes := true
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	source := func(data string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "reg"}, Type: "a", Data: map[string][]byte{"a": []byte(data)}}
	}
	fixed := source("1")
	fixed.Immutable = &yes
	other := source("1")
	other.Type = "b"
	copyOf := func(of *corev1.Secret, jobs ...types.NamespacedName) *corev1.Secret {
		return pull.WithReferences(pull.NewCopy(of, "config", nil), jobs)
	}
	for name, tc := range map[string]struct {
		in      Snapshot
		does    string
		recheck time.Duration
	}{
		"nothing has changed, and nodes pull":            {Snapshot{Copy: copyOf(source("1"), key("a")), Source: source("1"), Jobs: []types.NamespacedName{key("a")}, Busy: true}, "", 5 * time.Second},
		"nothing has changed, and nobody pulls":          {Snapshot{Copy: copyOf(source("1"), key("a")), Source: source("1"), Jobs: []types.NamespacedName{key("a")}}, "", time.Minute},
		"the source has changed":                         {Snapshot{Copy: copyOf(source("1"), key("a")), Source: source("2"), Jobs: []types.NamespacedName{key("a")}, Busy: true}, "update the copy", 5 * time.Second},
		"the source can't be read":                       {Snapshot{Copy: copyOf(source("1"), key("a")), Jobs: []types.NamespacedName{key("a")}, Busy: true}, "", 5 * time.Second},
		"one job needs it no more":                       {Snapshot{Copy: copyOf(source("1"), key("a"), key("b")), Source: source("1"), Jobs: []types.NamespacedName{key("b")}, Busy: true}, "update the copy", 5 * time.Second},
		"no job needs it any more":                       {Snapshot{Copy: copyOf(source("1"), key("a"))}, "delete the copy", 0},
		"the source was replaced, and was fixed":         {Snapshot{Copy: copyOf(fixed, key("a")), Source: source("2"), Jobs: []types.NamespacedName{key("a")}, Busy: true}, "delete the copy", 5 * time.Second},
		"the source was replaced by one of another type": {Snapshot{Copy: copyOf(source("1"), key("a")), Source: other, Jobs: []types.NamespacedName{key("a")}, Busy: true}, "delete the copy", 5 * time.Second},
		"a Secret that is no copy":                       {Snapshot{Copy: source("1")}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan(tc.in)
			var does []string
			for _, a := range p.Actions() {
				does = append(does, a.What)
				if a.Verb == plan.Delete && a.AnyVersion {
					t.Error("a job that has just noted that it needs the copy would lose it")
				}
				if after, ok := a.After.(*corev1.Secret); ok {
					if diff := cmp.Diff(tc.in.Jobs, pull.ReferencesOf(after)); diff != "" {
						t.Errorf("jobs (-want +got):\n%s", diff)
					}
					if diff := cmp.Diff(tc.in.Source.Data, after.Data); diff != "" {
						t.Errorf("data (-want +got):\n%s", diff)
					}
				}
			}
			if got := strings.Join(does, ", "); got != tc.does || p.Recheck != tc.recheck {
				t.Errorf("does %q, again in %s, want %q, %s", got, p.Recheck, tc.does, tc.recheck)
			}
			if strings.Contains(p.String(), "MQ==") {
				t.Error("the plan tells the credentials")
			}
		})
	}
}

func TestNeeds(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "reg"}
	for name, tc := range map[string]struct {
		change func(*v1beta1.ImagePullJob)
		want   bool
	}{
		"a job that runs":              {func(*v1beta1.ImagePullJob) {}, true},
		"one that has completed":       {func(j *v1beta1.ImagePullJob) { j.Status.CompletionTime = &metav1.Time{} }, false},
		"one that is being deleted":    {func(j *v1beta1.ImagePullJob) { j.DeletionTimestamp = &metav1.Time{} }, false},
		"one of another namespace":     {func(j *v1beta1.ImagePullJob) { j.Namespace = "other" }, false},
		"one that names other Secrets": {func(j *v1beta1.ImagePullJob) { j.Spec.PullSecrets = []string{"x"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", Finalizers: []string{keys.ImagePullJobFinalizer}}}
			job.Spec.PullSecrets = []string{"reg"}
			tc.change(job)
			if got := needs(job, key); got != tc.want {
				t.Errorf("needs the Secret: %t, want %t", got, tc.want)
			}
		})
	}
}
