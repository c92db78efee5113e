package cloneset

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

func readHistory(s Snapshot) (revision.History, error) {
	return revision.Read(s.Revisions, revision.Wanted{
		Make: func(collisionCount int32) (*appsv1.ControllerRevision, error) {
			return newRevision(s.Set, collisionCount)
		},
		Renew:          func(rev *appsv1.ControllerRevision) error { return rememberClaimTemplates(rev, s.Set) },
		Owner:          ownerReference(s.Set),
		CollisionCount: s.Set.Status.CollisionCount,
		Current:        s.Set.Status.CurrentRevision,
	})
}

// newRevision makes the revision of the present template.
func newRevision(set *v1beta1.CloneSet, collisionCount int32) (*appsv1.ControllerRevision, error) {
	rev, err := revision.New(revision.OwnerOf(set, kind()), &set.Spec.Template, collisionCount)
	if err != nil {
		return nil, err
	}
	return rev, rememberClaimTemplates(rev, set)
}

// rememberClaimTemplates notes the present claim templates on a revision, because its data holds the Pod template alone: Pods that are
// created at this revision later on must get the claims that their template mounts.
func rememberClaimTemplates(rev *appsv1.ControllerRevision, set *v1beta1.CloneSet) error {
	if rev.Annotations == nil {
		rev.Annotations = map[string]string{}
	}
	rev.Annotations[keys.RevisionClaimTemplatesHash] = claim.TemplatesHash(set.Spec.VolumeClaimTemplates)
	delete(rev.Annotations, keys.RevisionClaimTemplates)
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	encoded, err := claim.EncodeTemplates(set.Spec.VolumeClaimTemplates)
	if err != nil {
		return fmt.Errorf("noting the claim templates: %w", err)
	}
	rev.Annotations[keys.RevisionClaimTemplates] = encoded
	return nil
}

func ownerReference(set *v1beta1.CloneSet) metav1.OwnerReference {
	return *metav1.NewControllerRef(set, kind())
}
