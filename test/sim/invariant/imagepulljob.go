package invariant

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// The promises of an ImagePullJob.
const (
	RuleParallelism = "parallelism"
	RuleAskedOnce   = "every node is asked once"
	RuleOthersTags  = "the tags of others stay"
)

// CheckImagePullJob returns where a history breaks the promises to the one job in it, which is for all nodes, does not change, and does not
// repeat.
func CheckImagePullJob(history []simulate.Change) []Violation {
	var found []Violation
	var job *v1beta1.ImagePullJob
	// What could not be known when the next node was asked excuses one node more.
	pulling, late := map[string]bool{}, map[string]bool{}
	for _, c := range history {
		if j, ok := c.After.(*v1beta1.ImagePullJob); ok {
			job = j
		}
		if c.Key.Kind.Kind != "NodeImage" || job == nil {
			continue
		}
		after, _ := c.After.(*v1beta1.NodeImage)
		before, _ := c.Before.(*v1beta1.NodeImage)
		delete(pulling, c.Key.Name)
		if after == nil {
			delete(late, c.Key.Name)
			continue
		}
		asks := tagOf(after, job.UID) != nil && (before == nil || tagOf(before, job.UID) == nil)
		if asks && c.Late {
			late[c.Key.Name] = true
		}
		if isPulling(after, job.UID) && !late[c.Key.Name] {
			pulling[c.Key.Name] = true
		}
		if c.Pass == nil || before == nil {
			continue
		}
		violate := func(rule, text string, args ...any) {
			found = append(found, Violation{Rule: rule, Revision: c.Revision, Text: fmt.Sprintf(text, args...)})
		}
		if most := job.Spec.Parallelism.IntValue(); asks && !c.Late && len(pulling) > most {
			violate(RuleParallelism, "%d nodes pull, %d may", len(pulling), most)
		}
		was, is := tagOf(before, job.UID), tagOf(after, job.UID)
		if was != nil && is != nil && was.Version != is.Version {
			violate(RuleAskedOnce, "node %s is asked for round %d after %d", after.Name, is.Version, was.Version)
		}
		if !equality.Semantic.DeepEqual(othersTags(before, job.UID), othersTags(after, job.UID)) {
			violate(RuleOthersTags, "node %s: %v became %v", after.Name, othersTags(before, job.UID), othersTags(after, job.UID))
		}
	}
	return found
}

// tagOf returns the tag that a job wants of a node; nil when it has not asked.
func tagOf(n *v1beta1.NodeImage, job types.UID) *v1beta1.ImageTagSpec {
	for _, image := range n.Spec.Images {
		for i := range image.Tags {
			if isOwner(&image.Tags[i], job) {
				return &image.Tags[i]
			}
		}
	}
	return nil
}

func isOwner(tag *v1beta1.ImageTagSpec, job types.UID) bool {
	return slices.ContainsFunc(tag.OwnerReferences, func(r corev1.ObjectReference) bool { return r.UID == job })
}

func isPulling(n *v1beta1.NodeImage, job types.UID) bool {
	for repository, image := range n.Spec.Images {
		for i := range image.Tags {
			tag := &image.Tags[i]
			if !isOwner(tag, job) {
				continue
			}
			return !slices.ContainsFunc(n.Status.ImageStatuses[repository].Tags, func(s v1beta1.ImageTagStatus) bool {
				return s.Tag == tag.Tag && s.Version == tag.Version && s.CompletionTime != nil
			})
		}
	}
	return false
}

// othersTags returns what others want of a node, by repository and tag.
func othersTags(n *v1beta1.NodeImage, job types.UID) map[string]v1beta1.ImageTagSpec {
	out := map[string]v1beta1.ImageTagSpec{}
	for repository, image := range n.Spec.Images {
		for _, tag := range image.Tags {
			if !isOwner(&tag, job) {
				out[repository+":"+tag.Tag] = tag
			}
		}
	}
	return out
}
