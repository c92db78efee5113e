package rollout

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// stored returns the revision of a template with one container, with labels on it.
func stored(t *testing.T, image string, labels ...string) *appsv1.ControllerRevision {
	t.Helper()
	rev, err := revision.New(revision.Owner{Name: "web", Namespace: "ns"}, &corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	rev.ResourceVersion = "1"
	for _, l := range labels {
		rev.Labels[l] = "true"
	}
	return rev
}

func TestPreDownload(t *testing.T) {
	const created, ignored = keys.RevisionPreDownloadCreated, keys.RevisionPreDownloadIgnored
	v1, v2 := stored(t, "nginx:1"), stored(t, "nginx:2")
	name := v2.Name + "-app"
	job := &v1beta1.ImagePullJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{keys.RevisionHash: revision.ShortHash(v2.Name)}},
	}
	older := job.DeepCopy()
	older.Name, older.Labels[keys.RevisionHash] = "older", "older"
	history := func(update *appsv1.ControllerRevision) revision.History {
		return revision.History{All: []*appsv1.ControllerRevision{v1, update}, Current: v1, Update: update.DeepCopy(), Stored: update}
	}
	unwritten := history(v2)
	unwritten.Stored = nil
	for name, tc := range map[string]struct {
		in   Workload
		done bool
		why  string // why pulling would be pointless
		want []string
	}{
		"an update begins":                       {in: Workload{History: history(v2)}, want: []string{"create " + name, "mark " + created}},
		"its revision is not written yet":        {in: Workload{History: unwritten}},
		"the job is there, the note is not":      {in: Workload{History: history(v2), PullJobs: []*v1beta1.ImagePullJob{job}}, want: []string{"mark " + created}},
		"somebody else has its name":             {in: Workload{History: history(v2), Taken: []string{name}}, want: []string{"mark " + created}},
		"it is noted":                            {in: Workload{History: history(stored(t, "nginx:2", created)), PullJobs: []*v1beta1.ImagePullJob{job}}},
		"nothing would be gained":                {in: Workload{History: history(v2)}, why: "why", want: []string{"mark " + ignored}},
		"that is noted":                          {in: Workload{History: history(stored(t, "nginx:2", ignored))}, why: "why"},
		"there is something to be gained by now": {in: Workload{History: history(stored(t, "nginx:2", ignored))}, want: []string{"create " + name, "mark " + created}},
		"another update was under way":           {in: Workload{History: history(stored(t, "nginx:2", created)), PullJobs: []*v1beta1.ImagePullJob{job, older}}, want: []string{"delete older"}},
		"the rollout is over":                    {in: Workload{History: history(stored(t, "nginx:2", created)), PullJobs: []*v1beta1.ImagePullJob{job}}, done: true, want: []string{"delete " + name, "mark nothing"}},
		"it has been for long":                   {in: Workload{History: history(v2)}, done: true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Object, tc.in.Selector = &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}, &metav1.LabelSelector{}
			b := plan.For("")
			tc.in.PreDownload(
				PreDownload{Old: []*appsv1.ControllerRevision{v1}, Pointless: func() string { return tc.why }, Done: tc.done},
				b,
			)
			if holds := b.Plan().Holds; len(holds) > 0 {
				t.Fatal(holds)
			}
			var got []string
			for _, a := range b.Plan().Actions() {
				if !a.Optional {
					t.Errorf("the update depends on %s", a.What)
				}
				got = append(got, describe(a))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func describe(a plan.Action) string {
	if rev, ok := a.After.(*appsv1.ControllerRevision); ok {
		for _, label := range []string{keys.RevisionPreDownloadCreated, keys.RevisionPreDownloadIgnored} {
			if rev.Labels[label] != "" {
				return "mark " + label
			}
		}
		return "mark nothing"
	}
	return strings.Join(slices.Compact([]string{string(a.Verb), a.Object().GetName()}), " ")
}
