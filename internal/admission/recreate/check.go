package recreate

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// leastDeadline is the shortest deadline in which something can be done at all, in seconds.
const leastDeadline = 3

// sidecarTerminated is the condition of a Pod whose main containers have ended: its sidecars may still have to be stopped.
const sidecarTerminated corev1.PodConditionType = "SidecarTerminated"

// written judges a new request by itself.
func written(r *v1beta1.ContainerRecreateRequest) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if r.Spec.PodName == "" {
		errs = append(errs, field.Required(spec.Child("podName"), "podName can not be empty"))
	}
	if len(r.Spec.Containers) == 0 {
		errs = append(errs, field.Required(spec.Child("containers"), "containers can not be empty"))
	}
	seen := map[string]bool{}
	for i, c := range r.Spec.Containers {
		at := spec.Child("containers").Index(i)
		switch {
		case c.Name == "":
			errs = append(errs, field.Required(at.Child("name"), "name the container"))
		case seen[c.Name]:
			errs = append(errs, field.Invalid(at.Child("name"), c.Name, fmt.Sprintf("can not recreate %s multi times", c.Name)))
		}
		seen[c.Name] = true
		for _, filled := range []struct {
			name  string
			given bool
		}{{"preStop", c.PreStop != nil}, {"ports", len(c.Ports) > 0}, {"statusContext", c.StatusContext != nil}} {
			if filled.given {
				errs = append(errs, field.Forbidden(at.Child(filled.name), "is filled in when the request is created: leave it out"))
			}
		}
	}
	if d := r.Spec.ActiveDeadlineSeconds; d != nil && *d < leastDeadline {
		errs = append(errs, field.Invalid(spec.Child("activeDeadlineSeconds"), *d, "activeDeadlineSeconds can not be less than 3s"))
	}
	if ttl := r.Spec.TTLSecondsAfterFinished; ttl != nil && *ttl < 0 {
		errs = append(errs, field.Invalid(spec.Child("ttlSecondsAfterFinished"), *ttl, notNegative))
	}
	if r.Spec.Strategy != nil {
		errs = append(errs, strategy(r.Spec.Strategy, spec.Child("strategy"))...)
	}
	return errs
}

const notNegative = "must not be negative"

func strategy(s *v1beta1.ContainerRecreateRequestStrategy, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch s.FailurePolicy {
	case "", v1beta1.ContainerRecreateRequestFailurePolicyFail, v1beta1.ContainerRecreateRequestFailurePolicyIgnore:
	default:
		errs = append(errs, field.NotSupported(at.Child("failurePolicy"), s.FailurePolicy, []v1beta1.ContainerRecreateRequestFailurePolicyType{
			v1beta1.ContainerRecreateRequestFailurePolicyFail, v1beta1.ContainerRecreateRequestFailurePolicyIgnore,
		}))
	}
	if g := s.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		errs = append(errs, field.Invalid(at.Child("terminationGracePeriodSeconds"), *g, notNegative))
	}
	if g := s.UnreadyGracePeriodSeconds; g != nil && *g < 0 {
		errs = append(errs, field.Invalid(at.Child("unreadyGracePeriodSeconds"), *g, notNegative))
	}
	if s.MinStartedSeconds < 0 {
		errs = append(errs, field.Invalid(at.Child("minStartedSeconds"), s.MinStartedSeconds, notNegative))
	}
	return errs
}

// answerable judges a new request by its Pod: somebody has to be there who answers it, and every container must have run.
func answerable(r *v1beta1.ContainerRecreateRequest, p *corev1.Pod) field.ErrorList {
	at := field.NewPath("spec", "podName")
	ended := pod.Condition(p, sidecarTerminated)
	switch {
	case p.DeletionTimestamp != nil, pod.IsFinished(p) && (ended == nil || ended.Status != corev1.ConditionTrue):
		return field.ErrorList{field.Invalid(at, p.Name, "not support to recreate containers in an inactive Pod")}
	case p.Spec.NodeName == "":
		return field.ErrorList{field.Invalid(at, p.Name, "not support to recreate containers in a Pod that is not bound to a node yet")}
	}
	if wrong := validation.IsValidLabelValue(p.Spec.NodeName); len(wrong) > 0 {
		return field.ErrorList{field.Invalid(at, p.Name, fmt.Sprintf("the name of the Pod's node, %s, can't be the value of a label, by which the node's daemon would find the request: %s", p.Spec.NodeName, wrong[0]))}
	}
	var errs field.ErrorList
	for i, c := range r.Spec.Containers {
		at := field.NewPath("spec", "containers").Index(i).Child("name")
		status := pod.LastingStatus(p, c.Name)
		switch {
		case pod.LastingContainer(p, c.Name) == nil:
			errs = append(errs, field.Invalid(at, c.Name, fmt.Sprintf("container %s not found in Pod", c.Name)))
		case status == nil || status.ContainerID == "":
			errs = append(errs, field.Invalid(at, c.Name, fmt.Sprintf("no containerID of %s in Pod, maybe the container has not been initialized", c.Name)))
		}
	}
	return errs
}

// kept checks that a change keeps the request what it was: only how long it is kept, and a deadline where there was none, may change.
func kept(before, after *v1beta1.ContainerRecreateRequest, inOlderVersion bool) error {
	was, is := before.Spec.DeepCopy(), after.Spec.DeepCopy()
	if shorter(was.TTLSecondsAfterFinished, is.TTLSecondsAfterFinished) {
		was.TTLSecondsAfterFinished, is.TTLSecondsAfterFinished = nil, nil
	}
	if d := is.ActiveDeadlineSeconds; was.ActiveDeadlineSeconds == nil && d != nil {
		if *d < leastDeadline {
			return errors.New("activeDeadlineSeconds can not be less than 3s")
		}
		is.ActiveDeadlineSeconds = nil
	}
	if !equality.Semantic.DeepEqual(was, is) {
		return errors.New("spec of ContainerRecreateRequest is immutable: make another request")
	}
	for _, key := range []string{keys.RecreatePodUID, keys.RecreateNodeName} {
		if before.Labels[key] != after.Labels[key] {
			return fmt.Errorf("label %s of ContainerRecreateRequest is immutable", key)
		}
	}
	if !inOlderVersion {
		return nil
	}
	// What is a condition here is an annotation there, which anybody who may write the request could write.
	since := meta.FindStatusCondition(before.Status.Conditions, v1beta1.ContainerRecreateRequestPreRecreateGrace)
	now := meta.FindStatusCondition(after.Status.Conditions, v1beta1.ContainerRecreateRequestPreRecreateGrace)
	if since != nil && (now == nil || !now.LastTransitionTime.Equal(&since.LastTransitionTime)) {
		return fmt.Errorf("annotation %s of ContainerRecreateRequest is immutable", keys.RecreateUnreadyAcquired)
	}
	return nil
}

// shorter reports whether a request is kept for a shorter time than before.
func shorter(before, after *int32) bool {
	return after != nil && *after >= 0 && (before == nil || *after < *before)
}
