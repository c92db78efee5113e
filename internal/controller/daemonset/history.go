package daemonset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/defaults"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

func readHistory(s Snapshot) (revision.History, error) {
	return revision.Read(s.Revisions, revision.Wanted{
		Make: func(collisionCount int32) (*appsv1.ControllerRevision, error) {
			return newRevision(s.Set, collisionCount)
		},
		Same:           defaults.Equivalent,
		Owner:          ownerReference(s.Set),
		CollisionCount: s.Set.Status.CollisionCount,
	})
}

// newRevision makes the revision of the present template.
//
// Wire: a DaemonSet's revisions say their hash by the label by which its Pods do, as those of Kubernetes.
func newRevision(set *v1beta1.DaemonSet, collisionCount int32) (*appsv1.ControllerRevision, error) {
	rev, err := revision.New(revision.OwnerOf(set, kind()), &set.Spec.Template, collisionCount)
	if err != nil {
		return nil, err
	}
	rev.Labels[appsv1.ControllerRevisionHashLabelKey] = rev.Labels[keys.RevisionHash]
	delete(rev.Labels, keys.RevisionHash)
	return rev, nil
}

func ownerReference(set *v1beta1.DaemonSet) metav1.OwnerReference {
	return *metav1.NewControllerRef(set, kind())
}

// updates tells whether Pods are at the update revision, and finds out once for each of their revisions.
type updates struct {
	history revision.History
	// generation is what the DaemonSet was told about its template by older software; empty when nothing.
	generation string
	known      map[string]bool
}

// has reports whether the Pod is at the update revision: by its label, because its revision holds the same template, or, where its revision is not
// stored any more, by the number of its template.
func (u *updates) has(p *corev1.Pod) bool {
	label := p.Labels[appsv1.ControllerRevisionHashLabelKey]
	answer, known := u.known[label]
	if known {
		return answer
	}
	rev := u.history.Of(p)
	if rev == nil {
		return u.generation != "" && p.Labels[keys.PodTemplateGeneration] == u.generation
	}
	answer = u.history.MeansUpdate(rev)
	u.known[label] = answer
	return answer
}
