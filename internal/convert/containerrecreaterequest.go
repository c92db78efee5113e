package convert

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/recreate"
)

// recreateToHub reads what v1alpha1 spells differently of a request: it tells of the grace and of the new containers by annotations. One
// that can't be read says nothing. All other fields are the same.
func recreateToHub(src *v1alpha1.ContainerRecreateRequest, dst *v1beta1.ContainerRecreateRequest) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	dst.Status.Conditions = src.Status.DeepCopy().Conditions
	if text, there := dst.Annotations[keys.RecreateUnreadyAcquired]; there {
		dst.Annotations = without(dst.Annotations, keys.RecreateUnreadyAcquired)
		since, err := time.Parse(time.RFC3339, text)
		known := meta.FindStatusCondition(dst.Status.Conditions, v1beta1.ContainerRecreateRequestPreRecreateGrace)
		switch {
		case err != nil:
		case known == nil:
			recreate.BeginGrace(&dst.Status, since)
		default: // whoever has changed it is to be told that it can't be
			known.LastTransitionTime = metav1.NewTime(since)
		}
	}
	if text, there := dst.Annotations[keys.RecreateSyncContainerStatuses]; there {
		dst.Annotations = without(dst.Annotations, keys.RecreateSyncContainerStatuses)
		var snapshot []v1beta1.ContainerRecreateRequestSyncContainerStatus
		if err := json.Unmarshal([]byte(text), &snapshot); err == nil {
			dst.Status.ContainerStatusSnapshot = snapshot
		}
	}
}

// recreateFromHub spells in v1alpha1 what is different there.
func recreateFromHub(src *v1beta1.ContainerRecreateRequest, dst *v1alpha1.ContainerRecreateRequest) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	dst.Status.Conditions = src.Status.DeepCopy().Conditions
	for _, key := range []string{keys.RecreateUnreadyAcquired, keys.RecreateSyncContainerStatuses} {
		dst.Annotations = without(dst.Annotations, key)
	}
	grace := meta.FindStatusCondition(src.Status.Conditions, v1beta1.ContainerRecreateRequestPreRecreateGrace)
	if grace != nil && grace.Status == metav1.ConditionTrue {
		dst.Annotations = with(dst.Annotations, keys.RecreateUnreadyAcquired, grace.LastTransitionTime.UTC().Format(time.RFC3339))
	}
	if len(src.Status.ContainerStatusSnapshot) > 0 {
		if text, err := json.Marshal(src.Status.ContainerStatusSnapshot); err == nil {
			dst.Annotations = with(dst.Annotations, keys.RecreateSyncContainerStatuses, string(text))
		}
	}
}
