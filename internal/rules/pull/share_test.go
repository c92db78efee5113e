package pull

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// TestANamespaceGetsItsShare: the jobs of one namespace can't fill the list of a node.
func TestANamespaceGetsItsShare(t *testing.T) {
	ownedBy := func(namespace string, owners int) (out []corev1.ObjectReference) {
		for i := range owners {
			out = append(out, corev1.ObjectReference{Namespace: namespace, UID: types.UID(fmt.Sprint(namespace, i))})
		}
		return out
	}
	list := func(namespace string, repositories, tags, owners int) *v1beta1.NodeImage {
		n := &v1beta1.NodeImage{}
		n.Spec.Images = map[string]v1beta1.ImageSpec{}
		for i := range repositories {
			var image v1beta1.ImageSpec
			for j := range tags {
				image.Tags = append(image.Tags, v1beta1.ImageTagSpec{Tag: fmt.Sprintf("%04d", j), OwnerReferences: ownedBy(namespace, owners)})
			}
			n.Spec.Images[fmt.Sprint("repository-", i)] = image
		}
		return n
	}
	job := newJob("job", nil) // of namespace ns
	for name, tc := range map[string]struct {
		n    *v1beta1.NodeImage
		by   Want
		full bool
	}{
		"a place is left":                           {list("ns", 191, 1, 1), wants(job, "nginx", "1"), false},
		"the namespace has its share":               {list("ns", 192, 1, 1), wants(job, "nginx", "1"), true},
		"others have as many":                       {list("others", 192, 1, 1), wants(job, "nginx", "1"), false},
		"users have as many":                        {list("others", 192, 1, 0), wants(job, "nginx", "1"), false},
		"others have all":                           {list("others", 256, 1, 1), wants(job, "nginx", "1"), true},
		"a tag of a repository that is there":       {list("ns", 256, 1, 1), wants(job, "repository-0", "1"), false},
		"its tags are the share of the namespace":   {list("ns", 1, 192, 1), wants(job, "repository-0", "1"), true},
		"its tags are all of others":                {list("others", 1, 256, 1), wants(job, "repository-0", "1"), true},
		"a tag that is there":                       {list("ns", 256, 1, 1), wants(job, "repository-0", "0000"), false},
		"its owners are the share of the namespace": {list("ns", 1, 1, 768), wants(job, "repository-0", "0000"), true},
		"its owners are of others":                  {list("others", 1, 1, 768), wants(job, "repository-0", "0000"), false},
	} {
		if got := tc.by.StateOn(tc.n).Full; got != tc.full {
			t.Errorf("%s: full %t, want %t", name, got, tc.full)
		}
	}
}

// TestLimitsOfAJob: a node gives a job no more time and attempts than the most, whatever the spec says.
func TestLimitsOfAJob(t *testing.T) {
	job := newJob("job", func(j *v1beta1.ImagePullJob) {
		j.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: ptr(int32(1 << 30)), BackoffLimit: ptr(int32(1 << 30))}
	})
	p := Policy(job, 0, "")
	if *p.TimeoutSeconds != 7200 || *p.BackoffLimit != 10 || time.Duration(*p.TTLSecondsAfterFinished)*time.Second > 21*time.Hour {
		t.Errorf("the limits are %d s, %d retries, kept for %d s", *p.TimeoutSeconds, *p.BackoffLimit, *p.TTLSecondsAfterFinished)
	}
}
