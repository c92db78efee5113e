package pull

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// TestRoundsOfAnyCourse: whatever jobs, nodes and users do, tags stay sorted and unique, versions only grow, and a job that asks is answered.
func TestRoundsOfAnyCourse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		jobs := []*v1beta1.ImagePullJob{newJob("one", nil), newJob("two", nil), newJob("three", nil)}
		gone := map[types.UID]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			job := rapid.SampledFrom(jobs).Draw(t, "job")
			tag := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tag")
			repository := rapid.SampledFrom([]string{"nginx", "redis"}).Draw(t, "repository")
			before := versions(n)
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				w := wants(job, repository, tag)
				if w.StateOn(n).State != NotRequested {
					continue
				}
				after, err := w.Request(n)
				if err != nil {
					t.Fatal(err)
				}
				if got := w.StateOn(after); got.State != Pulling || got.Stale {
					t.Fatalf("after asking the node is seen as %+v", got)
				}
				n = after
				delete(gone, job.UID)
			case 1:
				for _, has := range n.Spec.Images[repository].Tags {
					if has.Tag == tag {
						n = answered(n, repository, tag, v1beta1.ImagePhaseSucceeded)
					}
				}
			case 2:
				gone[job.UID] = true
			default:
				cleaned, _ := CleanUp(n, References{Owner: func(r corev1.ObjectReference) OwnerState {
					if gone[r.UID] {
						return Gone
					}
					return Running
				}, SecretGone: none}, now)
				if cleaned != nil {
					n = cleaned
				}
			}
			after := versions(n)
			for key, version := range before {
				if newer, still := after[key]; still && newer < version {
					t.Fatalf("%s went from version %d to %d", key, version, newer)
				}
			}
		}
	})
}

func versions(n *v1beta1.NodeImage) map[string]int64 {
	out := map[string]int64{}
	for repository, image := range n.Spec.Images {
		last := ""
		for _, tag := range image.Tags {
			if tag.Tag <= last {
				panic(fmt.Sprintf("tags of %s are not sorted: %v", repository, image.Tags))
			}
			last = tag.Tag
			out[repository+":"+tag.Tag] = tag.Version
		}
	}
	return out
}
