package pull

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// The limits of a pull whose job sets none.
const (
	DefaultTimeout      = 600 * time.Second
	DefaultBackoffLimit = 3
)

// A job that never completes has each node pull again after about a day. A pull of such a job may take no longer than half an hour, or than
// one attempt if that may take longer.
const (
	repeatAfter    = 24 * time.Hour
	repeatSpread   = 10 * time.Minute
	repeatDeadline = 30 * time.Minute
	ttlSpread      = 300 * time.Second
)

// The most that a job can ask of a node, whatever its spec says: nodes are shared. Wire: users' manifests may hold more, so more is not
// refused.
const (
	MaxTimeout      = 2 * time.Hour
	MaxBackoffLimit = 10
)

// Timeout returns how long one attempt of a job's pull may take.
func Timeout(p *v1beta1.PullPolicy) time.Duration {
	if p == nil || p.TimeoutSeconds == nil {
		return DefaultTimeout
	}
	return min(time.Duration(*p.TimeoutSeconds)*time.Second, MaxTimeout)
}

// backoffLimit returns how often a node tries again.
func backoffLimit(p *v1beta1.PullPolicy) int32 {
	if p == nil || p.BackoffLimit == nil || *p.BackoffLimit < 0 {
		return DefaultBackoffLimit
	}
	return min(*p.BackoffLimit, MaxBackoffLimit)
}

// Repeats reports whether a job never completes.
func Repeats(job *v1beta1.ImagePullJob) bool {
	return job.Spec.CompletionPolicy.Type == v1beta1.NeverComplete
}

// Policy returns the limits of the pull of a job on one node. Extra is added to the TTL; seed spreads the moments at which the tags of many
// nodes are removed.
//
// A job that completes keeps a tag for T + extra + 0..299 s, where T is its own time to live, or else its deadline, or else all its
// retries: with the defaults 600 s x 3 + 300 s + 0..299 s = 2100..2399 s. One that never completes keeps it for a day, ten minutes more or
// less.
func Policy(job *v1beta1.ImagePullJob, extra time.Duration, seed string) *v1beta1.ImageTagPullPolicy {
	spec := job.Spec.PullPolicy
	timeout, retries := int32(Timeout(spec).Seconds()), backoffLimit(spec)
	out := &v1beta1.ImageTagPullPolicy{TimeoutSeconds: &timeout, BackoffLimit: &retries}
	completion := job.Spec.CompletionPolicy
	var ttl time.Duration
	if Repeats(job) {
		ttl = repeatAfter - repeatSpread + spread(seed, 2*repeatSpread)
		deadline := max(int64(repeatDeadline.Seconds()), int64(timeout))
		out.ActiveDeadlineSeconds = &deadline
	} else {
		ttl = Timeout(spec) * time.Duration(retries)
		if deadline := completion.ActiveDeadlineSeconds; deadline != nil {
			seconds := min(*deadline, math.MaxInt32) // 68 years: more overflow a duration
			out.ActiveDeadlineSeconds, ttl = &seconds, time.Duration(seconds)*time.Second
		}
		if own := completion.TTLSecondsAfterFinished; own != nil {
			ttl = time.Duration(*own) * time.Second
		}
		ttl += extra + spread(seed, ttlSpread)
	}
	seconds := int32(min(ttl, maxTTL) / time.Second)
	out.TTLSecondsAfterFinished = &seconds
	return out
}

// maxTTL is the longest time that fits the field, in whole seconds.
const maxTTL = (1<<31 - 1) * time.Second

// spread returns a whole number of seconds from 0 to below width, the same for the same seed.
func spread(seed string, width time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(seed)) // a hash does not fail
	return time.Duration(h.Sum32()%uint32(width/time.Second)) * time.Second
}

// merge returns the limits of a round that two jobs want: the longer times, and the retries of the one that came last.
func merge(before, last *v1beta1.ImageTagPullPolicy) *v1beta1.ImageTagPullPolicy {
	if before == nil {
		return last
	}
	out := last.DeepCopy()
	longer := func(a, b *int32) *int32 {
		if a != nil && (b == nil || *a > *b) {
			return a
		}
		return b
	}
	out.TimeoutSeconds = longer(before.TimeoutSeconds, last.TimeoutSeconds)
	out.TTLSecondsAfterFinished = longer(before.TTLSecondsAfterFinished, last.TTLSecondsAfterFinished)
	if limit := before.ActiveDeadlineSeconds; limit == nil || out.ActiveDeadlineSeconds != nil && *limit > *out.ActiveDeadlineSeconds {
		out.ActiveDeadlineSeconds = limit
	}
	return out
}

// TemplateHash returns the hash of what the jobs of a list have in common.
//
// Wire: jobs carry it in the label controller-revision-hash.
func TemplateHash(template *v1beta1.ImagePullJobTemplate) string {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, dump.ForHash(*template)) // a hash does not fail
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

// NewChild returns the job of a list for one image, without a TTL of its own: the list would create a job that was deleted again.
func NewChild(list *v1beta1.ImageListPullJob, image string) *v1beta1.ImagePullJob {
	hash := TemplateHash(&list.Spec.ImagePullJobTemplate)
	return &v1beta1.ImagePullJob{
		ObjectMeta: metav1.ObjectMeta{
			Name: nameOf(list.Name, string(list.UID)+"\x00"+hash+"\x00"+image, 5), Namespace: list.Namespace,
			Labels:          map[string]string{appsv1.ControllerRevisionHashLabelKey: hash},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(list, v1beta1.GroupVersion.WithKind("ImageListPullJob"))},
		},
		Spec: v1beta1.ImagePullJobSpec{Image: image, ImagePullJobTemplate: withoutTTL(&list.Spec.ImagePullJobTemplate)},
	}
}

// nameOf returns a stem, cut to fit the 253 characters of a name, with so many bytes of the hash of a text.
func nameOf(stem, text string, bytes int) string {
	sum := sha256.Sum256([]byte(text))
	return stem[:min(len(stem), 253-1-2*bytes)] + "-" + hex.EncodeToString(sum[:bytes])
}

func withoutTTL(template *v1beta1.ImagePullJobTemplate) v1beta1.ImagePullJobTemplate {
	out := *template.DeepCopy()
	out.CompletionPolicy.TTLSecondsAfterFinished = nil
	return out
}

// IsChild reports whether a job is what a list wants for its image: by its hash or, for a job that another version of Kruise has made, by
// its spec.
func IsChild(list *v1beta1.ImageListPullJob, job *v1beta1.ImagePullJob) bool {
	if job.Labels[appsv1.ControllerRevisionHashLabelKey] == TemplateHash(&list.Spec.ImagePullJobTemplate) {
		return true
	}
	return equality.Semantic.DeepEqual(withoutTTL(&job.Spec.ImagePullJobTemplate), withoutTTL(&list.Spec.ImagePullJobTemplate))
}
