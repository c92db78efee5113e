package progress

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// Of returns how far a workload, a job or a Rollout has come, by its spec and its status.
func Of(o metav1.Object) (Progress, error) {
	p, err := read(o)
	if err != nil {
		return Progress{}, err
	}
	p.Code = p.code()
	return p, nil
}

func read(o metav1.Object) (Progress, error) {
	switch o := o.(type) {
	case *v1beta1.CloneSet:
		return cloneSet(o)
	case *v1beta1.StatefulSet:
		return statefulSet(o), nil
	case *v1beta1.DaemonSet:
		return daemonSet(o)
	case *v1beta1.UnitedDeployment:
		return unitedDeployment(o), nil
	case *v1beta1.SidecarSet:
		return sidecarSet(o), nil
	case *v1beta1.BroadcastJob:
		return broadcastJob(o), nil
	case *v1beta1.ImagePullJob:
		return imagePullJob(o), nil
	case *v1beta1.ImageListPullJob:
		return imageListPullJob(o), nil
	case *appsv1.Deployment:
		return deployment(o), nil
	case *appsv1.StatefulSet:
		return nativeStatefulSet(o), nil
	case *appsv1.DaemonSet:
		return nativeDaemonSet(o), nil
	case *batchv1.Job:
		return job(o), nil
	case *rolloutsv1beta1.Rollout:
		return ofRollout(o), nil
	}
	return Progress{}, fmt.Errorf("a %T has no progress", o)
}

// code returns why it stands where it does. The first that holds counts: what has to be mended, what a person has ordered, what it waits
// for.
func (p Progress) code() reason.Code {
	if !p.Seen {
		return reason.ControllerLag
	}
	if p.Failure != "" {
		return reason.OfFailure(p.Failure)
	}
	ordered := map[Reason]reason.Code{
		Paused: reason.HeldByPause, OnDelete: reason.OnDelete, NeedsApproval: reason.WaitApproval, NeedsRecreation: reason.InPlaceRefused,
		InvalidSpec: reason.InvalidSpec, GivenUp: reason.Stopped, Halted: reason.Stopped,
	}
	code, is := ordered[p.Reason]
	switch {
	case is:
		return code
	case p.waits != "":
		return p.waits
	case p.Reason == DeadlineExceeded:
		return reason.DeadlineExceeded
	case p.Phase == Done && p.held:
		return reason.HeldByPartition
	case p.Phase == Done:
		return reason.Nothing
	}
	return reason.Updating
}

// AtRest reports whether nothing happens, and nothing is waited for: a partition that was reached is as the user wants it.
func (p Progress) AtRest() bool { return p.Phase == Done && p.Failure == "" }

// at returns a time of a status; nil for none.
func at(t metav1.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t.Time
}

// value returns what a pointer points to, or what holds without one.
func value[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// seen reports whether a status is of the present spec.
func seen(observed int64, meta metav1.ObjectMeta) bool { return observed >= meta.Generation }
