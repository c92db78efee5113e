package pull

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// TemplateHash returns the hash of what the jobs of a list have in common.
//
// Wire: jobs carry it in the label controller-revision-hash.
func TemplateHash(template *v1beta1.ImagePullJobTemplate) string {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, dump.ForHash(*template)) // a hash does not fail
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

// NewChild returns the job of a list for one image. It lives as long as the list: one that was deleted on its own would be missed, and made again.
func NewChild(list *v1beta1.ImageListPullJob, image string) *v1beta1.ImagePullJob {
	hash := TemplateHash(&list.Spec.ImagePullJobTemplate)
	sum := sha256.Sum256([]byte(string(list.UID) + "\x00" + hash + "\x00" + image))
	stem := list.Name[:min(len(list.Name), longestName-11)]
	return &v1beta1.ImagePullJob{
		ObjectMeta: metav1.ObjectMeta{
			Name: stem + "-" + hex.EncodeToString(sum[:5]), Namespace: list.Namespace,
			Labels:          map[string]string{appsv1.ControllerRevisionHashLabelKey: hash},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(list, v1beta1.GroupVersion.WithKind("ImageListPullJob"))},
		},
		Spec: v1beta1.ImagePullJobSpec{Image: image, ImagePullJobTemplate: childTemplate(list)},
	}
}

func childTemplate(list *v1beta1.ImageListPullJob) v1beta1.ImagePullJobTemplate {
	out := *list.Spec.ImagePullJobTemplate.DeepCopy()
	out.CompletionPolicy.TTLSecondsAfterFinished = nil
	return out
}

// IsChild reports whether a job is what a list wants for its image: by the hash that it carries or, as another version of this software may have
// made it, by what it says.
func IsChild(list *v1beta1.ImageListPullJob, job *v1beta1.ImagePullJob) bool {
	if job.Labels[appsv1.ControllerRevisionHashLabelKey] == TemplateHash(&list.Spec.ImagePullJobTemplate) {
		return true
	}
	has := *job.Spec.ImagePullJobTemplate.DeepCopy()
	has.CompletionPolicy.TTLSecondsAfterFinished = nil
	return equality.Semantic.DeepEqual(has, childTemplate(list))
}
