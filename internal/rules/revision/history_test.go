package revision

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/test/kit/build"
)

// of returns the revision of a template with that image, which is stored under the number.
func of(t testing.TB, image string, number int64) *appsv1.ControllerRevision {
	t.Helper()
	rev, err := New(Owner{Name: "web", Namespace: "default"}, build.Template(image), 0)
	if err != nil {
		t.Fatal(err)
	}
	rev.Revision = number
	return rev
}

func names(revisions []*appsv1.ControllerRevision) []string {
	var out []string
	for _, rev := range revisions {
		out = append(out, rev.Name)
	}
	return out
}

func TestSort(t *testing.T) {
	number3 := build.Revision("a", 3, "{}")
	number2 := build.Revision("c", 2, "{}")
	sameAge := build.Revision("b", 2, "{}")
	older := build.Revision("d", 2, "{}")
	older.CreationTimestamp.Time = build.Start()
	history := []*appsv1.ControllerRevision{number3, number2, older, sameAge}
	Sort(history)
	if diff := cmp.Diff([]string{"d", "b", "c", "a"}, names(history)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestResolve(t *testing.T) {
	written := func(number int64) *appsv1.ControllerRevision { // without the creation timestamp, and in another order of keys
		rev := build.Revision(
			"web-other",
			number,
			`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"v1","resources":{}}]},"metadata":{"labels":{"app":"web"}},"$patch":"replace"}}}`,
		)
		return rev
	}
	cases := map[string]struct {
		history []*appsv1.ControllerRevision
		want    string // verb, name of the template's image or of the object, number
	}{
		"the first revision":          {nil, "create v1 1"},
		"the newest again":            {[]*appsv1.ControllerRevision{of(t, "v0", 1), of(t, "v1", 2)}, "reuse v1 2"},
		"an older one again":          {[]*appsv1.ControllerRevision{of(t, "v1", 4), of(t, "v0", 7)}, "raise v1 8"},
		"a history that isn't sorted": {[]*appsv1.ControllerRevision{of(t, "v0", 7), of(t, "v1", 4)}, "raise v1 8"},
		"a new one":                   {[]*appsv1.ControllerRevision{of(t, "v0", 7)}, "create v1 8"},
		"the newest, as another program would write it":   {[]*appsv1.ControllerRevision{of(t, "v0", 1), written(2)}, "reuse web-other 2"},
		"an older one, as another program would write it": {[]*appsv1.ControllerRevision{written(1), of(t, "v0", 2)}, "raise web-other 3"},
		"of two equal ones the newer":                     {[]*appsv1.ControllerRevision{written(1), of(t, "v1", 2)}, "reuse v1 2"},
		"a revision that can't be read": {
			[]*appsv1.ControllerRevision{build.Revision("web-bad", 3, `{"spec":7}`)},
			"create v1 4",
		},
	}
	image := map[string]string{of(t, "v1", 0).Name: "v1", of(t, "v0", 0).Name: "v0"}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Resolve(tc.history, of(t, "v1", 0))
			what := got.Update.Name
			if known, ok := image[what]; ok {
				what = known
			}
			if diff := cmp.Diff(tc.want, fmt.Sprintf("%s %s %d", got.Verb, what, got.Update.Revision)); diff != "" {
				t.Errorf("resolution (-want +got):\n%s", diff)
			}
		})
	}
}

// TestARevisionOfAnotherWorkload is no part of the history, and tells what a Pod runs that is at it.
func TestARevisionOfAnotherWorkload(t *testing.T) {
	theirs := func(image string, number int64) *appsv1.ControllerRevision {
		rev := of(t, image, number)
		rev.Name = fmt.Sprintf("web-theirs%d", number)
		rev.OwnerReferences = []metav1.OwnerReference{{UID: "theirs", Controller: ptr.To(true)}}
		return rev
	}
	same, older := theirs("v1", 7), theirs("v0", 6)
	h, err := Read([]*appsv1.ControllerRevision{same, older}, Wanted{
		Owner: metav1.OwnerReference{UID: "ours", Controller: ptr.To(true)},
		Make: func(n int32) (*appsv1.ControllerRevision, error) {
			return New(Owner{Name: "web", Namespace: "default"}, build.Template("v1"), n)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if h.Stored != nil || h.Update.Revision != 1 || len(h.All) > 0 || len(h.Unused(0)) > 0 {
		t.Errorf("stored %v, number %d, all %v", h.Stored != nil, h.Update.Revision, names(h.All))
	}
	for _, rev := range []*appsv1.ControllerRevision{same, older} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: rev.Name}}}
		if got := h.Of(p); got != rev || h.MeansUpdate(got) != (rev == same) || h.IsUpdate(p) {
			t.Errorf("a Pod at %s is at %v", rev.Name, got)
		}
	}
}

func TestCollides(t *testing.T) {
	candidate := of(t, "v1", 0)
	cases := map[string]struct {
		data, name string
		want       bool
	}{
		"another template under the name":       {string(of(t, "v0", 0).Data.Raw), candidate.Name, true},
		"another template under another name":   {string(of(t, "v0", 0).Data.Raw), "web-x", false},
		"the same template under the name":      {string(candidate.Data.Raw), candidate.Name, false},
		"bytes under the name that say nothing": {`{}`, candidate.Name, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Collides([]*appsv1.ControllerRevision{build.Revision(tc.name, 1, tc.data)}, candidate); got != tc.want {
				t.Errorf("collides is %t, want %t", got, tc.want)
			}
		})
	}
}

func TestStale(t *testing.T) {
	var history []*appsv1.ControllerRevision
	for _, number := range []int64{3, 1, 6, 2, 5, 4} {
		history = append(history, build.Revision(fmt.Sprintf("r%d", number), number, "{}"))
	}
	cases := map[string]struct {
		live  []string
		limit int32
		want  []string
	}{
		"the limit is of those that aren't live":       {[]string{"r6", "r1"}, 2, []string{"r2", "r3"}},
		"a limit of none keeps the live ones":          {[]string{"r6", "r1"}, 0, []string{"r2", "r3", "r4", "r5"}},
		"fewer than the limit":                         {[]string{"r6"}, 10, nil},
		"a limit below none":                           {[]string{"r6", "r5", "r4", "r3", "r2"}, -1, []string{"r1"}},
		"all are live":                                 {[]string{"r1", "r2", "r3", "r4", "r5", "r6"}, 0, nil},
		"as many as the limit":                         {[]string{"r6"}, 5, nil},
		"one more than the limit: the lowest one goes": {[]string{"r6"}, 4, []string{"r1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := names(history)
			live := func(rev *appsv1.ControllerRevision) bool {
				for _, name := range tc.live {
					if rev.Name == name {
						return true
					}
				}
				return false
			}
			if diff := cmp.Diff(tc.want, names(Stale(history, live, tc.limit))); diff != "" {
				t.Errorf("stale (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, names(history)); diff != "" {
				t.Errorf("the history has changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestHistoriesOfAnyCourse plays template changes, back and forth, and what a controller writes after each.
func TestHistoriesOfAnyCourse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var history []*appsv1.ControllerRevision
		for _, image := range rapid.SliceOfN(rapid.IntRange(0, 4), 1, 12).Draw(t, "images") {
			candidate, err := New(Owner{Name: "web"}, build.Template(fmt.Sprint("v", image)), 0)
			if err != nil {
				t.Fatal(err)
			}
			before := snapshot(history)
			found := Resolve(history, candidate)
			if diff := cmp.Diff(before, snapshot(history)); diff != "" {
				t.Fatalf("Resolve has changed the history:\n%s", diff)
			}
			history = storedAfter(history, found)
			if found.Update.Name != candidate.Name {
				t.Fatalf("the template's revision is %s, want %s", found.Update.Name, candidate.Name)
			}
			for _, rev := range history {
				if rev != found.Update && rev.Revision >= found.Update.Revision {
					t.Fatalf("%s has number %d, not below the newest, %d", rev.Name, rev.Revision, found.Update.Revision)
				}
			}
			if again := Resolve(history, candidate); again.Verb != Reuse || again.Update != found.Update {
				t.Fatalf("once it is stored, the same template asks to %s %s", again.Verb, again.Update.Name)
			}
		}
	})
}

func snapshot(history []*appsv1.ControllerRevision) []appsv1.ControllerRevision {
	out := make([]appsv1.ControllerRevision, 0, len(history))
	for _, rev := range history {
		out = append(out, *rev.DeepCopy())
	}
	return out
}

// storedAfter returns the history after a resolution has been written.
func storedAfter(history []*appsv1.ControllerRevision, r Resolution) []*appsv1.ControllerRevision {
	var out []*appsv1.ControllerRevision
	for _, rev := range history {
		if rev.Name != r.Update.Name {
			out = append(out, rev)
		}
	}
	return append(out, r.Update)
}
