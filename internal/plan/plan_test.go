package plan

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestString(t *testing.T) {
	pod := func(name string) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	cases := map[string]struct {
		build func() Plan
		want  string
	}{
		"a plan with nothing to do is its summary": {
			build: func() Plan { return For("CloneSet default/web   5 pods").Plan() },
			want:  "CloneSet default/web   5 pods\n",
		},
		"writes come first, then holds, then the soonest recheck, and writes that follow others are not shown": {
			build: func() Plan {
				b := For("CloneSet default/web")
				b.Recheck(30*time.Second, "web-b becomes available")
				b.Recheck(12*time.Second, "web-a becomes available")
				b.Recheck(0, "never")
				b.Hold(Hold{Name: "web-c", Why: "maxUnavailable 1 is used"})
				b.Do(Action{Verb: UpdateStatus, After: pod("web-a"), What: "in place", Why: "web-66d is wanted"},
					Action{Verb: Update, After: pod("web-a")})
				b.Do(Action{Verb: Delete, Before: pod("web-d"), What: "scale in"})
				b.First(Action{Verb: Create, After: pod("web-66d"), What: "revision 2"})
				return b.Plan()
			},
			want: `CloneSet default/web
  create    web-66d   revision 2
  update    web-a     in place   web-66d is wanted
  delete    web-d     scale in
  hold      web-c     maxUnavailable 1 is used
  recheck   in 12s    web-a becomes available
`,
		},
		"a spec that can't be read stops all writes": {
			build: func() Plan {
				b := For("CloneSet default/web")
				b.Do(Action{Verb: Delete, Before: pod("web-d"), What: "scale in"})
				return b.Stop(errors.New(`partition "x" is not a percentage`))
			},
			want: "CloneSet default/web\n  problem   partition \"x\" is not a percentage\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.build().String()); diff != "" {
				t.Errorf("printed plan (-want +got):\n%s", diff)
			}
		})
	}
}
