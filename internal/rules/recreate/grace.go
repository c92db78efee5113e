package recreate

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// settle is added to the grace: the time of the condition has whole seconds.
const settle = 100 * time.Millisecond

func unreadyGrace(r *v1beta1.ContainerRecreateRequest) (time.Duration, bool) {
	if r.Spec.Strategy == nil || r.Spec.Strategy.UnreadyGracePeriodSeconds == nil {
		return 0, false
	}
	return time.Duration(*r.Spec.Strategy.UnreadyGracePeriodSeconds) * time.Second, true
}

// NeedsGrace reports whether the Pod has yet to be taken out of service for a request under way.
func NeedsGrace(r *v1beta1.ContainerRecreateRequest) bool {
	_, wanted := unreadyGrace(r)
	return wanted && r.Status.Phase == v1beta1.ContainerRecreateRequestRecreating && grace(r) == nil
}

// BeginGrace notes that the grace has begun. Doing it again does not prolong it.
func BeginGrace(s *v1beta1.ContainerRecreateRequestStatus, now time.Time) {
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type:   v1beta1.ContainerRecreateRequestPreRecreateGrace,
		Status: metav1.ConditionTrue,
		Reason: v1beta1.ContainerRecreateRequestPreRecreateGrace,
		// Wire: users' tools show it.
		Message:            "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain",
		LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	})
}

// GraceLeft returns how long the Pod has to stay out of service before its first container is stopped. Without a beginning it does not end: begun is
// false, and the manager has to act first.
func GraceLeft(r *v1beta1.ContainerRecreateRequest, now time.Time) (left time.Duration, begun bool) {
	period, wanted := unreadyGrace(r)
	if !wanted {
		return 0, true
	}
	since := grace(r)
	if since == nil {
		return 0, false
	}
	return max(0, since.LastTransitionTime.Add(period+settle).Sub(now)), true
}

func grace(r *v1beta1.ContainerRecreateRequest) *metav1.Condition {
	c := meta.FindStatusCondition(r.Status.Conditions, v1beta1.ContainerRecreateRequestPreRecreateGrace)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return c
}
