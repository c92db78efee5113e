package imagepulljob

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

// Options are the choices made for the whole controller at start-up.
type Options struct {
	// Sources reads the Secrets that jobs name.
	Sources *observe.Sources
	// Seal encrypts credentials for the daemon of a node.
	Seal pull.Sealer `json:"-"`
	// SystemNamespace is where the Pods of the daemons are, if they run as Pods.
	SystemNamespace string
	// Extra is how much longer than a job needs it a tag is kept in NodeImages.
	Extra time.Duration
}

// Kind is the controller of ImagePullJobs.
func Kind(o Options) loop.Kind[*v1beta1.ImagePullJob, State, v1beta1.ImagePullJobStatus] {
	return loop.Kind[*v1beta1.ImagePullJob, State, v1beta1.ImagePullJobStatus]{
		Name: "imagepulljob",
		Indexes: func(ctx context.Context, indexer client.FieldIndexer) error {
			return observe.AddControllerIndex(ctx, indexer, &v1beta1.ImagePullJob{})
		},
		Watches: func(cached observe.Reader) []loop.Watch {
			j := jobs{cached, o.SystemNamespace}
			return []loop.Watch{
				loop.Affected(&v1beta1.NodeImage{}, j.ofNodeImage),
				loop.Affected(&corev1.Node{}, j.ofNode),
				loop.Affected(&corev1.Pod{}, j.ofPod),
			}
		},
		Read:     o.read,
		Plan:     Plan,
		Status:   Status,
		StatusOf: func(o *v1beta1.ImagePullJob) *v1beta1.ImagePullJobStatus { return &o.Status },
		Exact:    true, // a finished job must not run again
	}
}

// jobs finds the jobs that a change concerns.
type jobs struct {
	observe.Reader
	systemNamespace string
}

// ofNodeImage returns the jobs that asked for a tag of which a NodeImage says something new, and all running ones when a NodeImage comes,
// goes, or changes its labels.
func (j jobs) ofNodeImage(ctx context.Context, before, after *v1beta1.NodeImage) ([]types.NamespacedName, error) {
	if before == nil || after == nil || !maps.Equal(before.Labels, after.Labels) {
		return j.running(ctx, "", nil)
	}
	if before.ResourceVersion == after.ResourceVersion {
		return nil, nil
	}
	if len(before.Spec.Images) >= v1beta1.MaxNodeImages && len(after.Spec.Images) < v1beta1.MaxNodeImages {
		return j.running(ctx, "", nil) // others may have waited for a free place in the list
	}
	was, is := claimsOf(before), claimsOf(after)
	concerned := map[types.NamespacedName]bool{}
	for _, sides := range [][2]map[claim]bool{{was, is}, {is, was}} {
		for c := range sides[0] {
			if !sides[1][c] {
				concerned[c.job] = true
			}
		}
	}
	asked := slices.Collect(maps.Keys(concerned))
	if len(before.Status.CredentialsKey) > 0 || len(after.Status.CredentialsKey) == 0 {
		return asked, nil
	}
	waiting, err := j.running(ctx, "", func(job *v1beta1.ImagePullJob) bool { return len(job.Spec.PullSecrets) > 0 })
	return append(asked, waiting...), err
}

// claim is what a NodeImage says about one tag to a job that wants it.
type claim struct {
	job             types.NamespacedName
	repository, tag string
	version         int64
	phase           v1beta1.ImagePullPhase
	// ttl is how long the tag is kept: a job that never completes pulls again then.
	ttl int32
	// key is that of the daemon, for a tag with credentials.
	key string
}

func claimsOf(n *v1beta1.NodeImage) map[claim]bool {
	out := map[claim]bool{}
	for repository, image := range n.Spec.Images {
		for i := range image.Tags {
			tag := &image.Tags[i]
			c := claim{repository: repository, tag: tag.Tag, version: tag.Version}
			if status := pull.StatusOf(n, repository, tag); status != nil {
				c.phase = status.Phase
			}
			if tag.PullPolicy != nil {
				c.ttl = ptr.Deref(tag.PullPolicy.TTLSecondsAfterFinished, 0)
			}
			if len(tag.Credentials) > 0 {
				c.key = string(n.Status.CredentialsKey)
			}
			for _, owner := range tag.OwnerReferences {
				if owner.Kind == "ImagePullJob" {
					c.job = types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}
					out[c] = true
				}
			}
		}
	}
	return out
}

// ofNode returns the running jobs when a node comes, goes, or becomes ready or not. Jobs read labels of nodes from NodeImages.
func (j jobs) ofNode(ctx context.Context, before, after *corev1.Node) ([]types.NamespacedName, error) {
	if before != nil && after != nil && isReady(before) == isReady(after) {
		return nil, nil
	}
	return j.running(ctx, "", nil)
}

// ofPod returns the running jobs that select a Pod which comes to a node, or leaves it, or changes its labels, and all running jobs when it
// is the Pod of a daemon that begins or ceases to serve.
func (j jobs) ofPod(ctx context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
	is, was := cmp.Or(after, before), cmp.Or(before, after)
	if is.Namespace == j.systemNamespace && is.Labels[keys.ControlPlane] == keys.ControlPlaneDaemon {
		if before != nil && after != nil && serves(before) == serves(after) {
			return nil, nil
		}
		return j.running(ctx, "", nil)
	}
	same := before != nil && after != nil && before.Spec.NodeName == after.Spec.NodeName && before.Status.Phase == after.Status.Phase &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) && maps.Equal(before.Labels, after.Labels)
	if same || was.Spec.NodeName == "" && is.Spec.NodeName == "" {
		return nil, nil
	}
	return j.running(ctx, is.Namespace, func(job *v1beta1.ImagePullJob) bool {
		if job.Spec.PodSelector == nil {
			return false
		}
		selector, err := metav1.LabelSelectorAsSelector(&job.Spec.PodSelector.LabelSelector)
		return err == nil && (selector.Matches(labels.Set(is.Labels)) || selector.Matches(labels.Set(was.Labels)))
	})
}

// running returns the unfinished jobs that a change concerns; all of them without concerned.
func (j jobs) running(ctx context.Context, namespace string, concerned func(*v1beta1.ImagePullJob) bool) ([]types.NamespacedName, error) {
	var list v1beta1.ImagePullJobList
	all, err := observe.List(ctx, j, &list, &list.Items, client.InNamespace(namespace))
	return observe.Keys(all, func(job *v1beta1.ImagePullJob) bool {
		return job.Status.CompletionTime == nil && (concerned == nil || concerned(job))
	}), err
}
