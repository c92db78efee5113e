package invariant

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/recreate"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// The rules that CheckContainerRecreate knows, besides RuleOver.
const (
	RuleEndedWithReason = "no request ends without its reason"
	RuleHeldDuringGrace = "the grace of a request begins when its Pod is out of service"
	RuleGraceBeginsOnce = "the grace of a request begins once"
)

type recreations struct {
	pods       map[string]*corev1.Pod
	violations []Violation
}

// CheckContainerRecreate returns the promises that a controller of ContainerRecreateRequests has broken in a history.
func CheckContainerRecreate(history []simulate.Change) []Violation {
	r := &recreations{pods: map[string]*corev1.Pod{}}
	for _, c := range history {
		if p, is := eitherOf(c).(*corev1.Pod); is {
			delete(r.pods, p.Name)
			if c.After != nil {
				r.pods[p.Name] = p
			}
		}
		before, existed := c.Before.(*v1beta1.ContainerRecreateRequest)
		after, exists := c.After.(*v1beta1.ContainerRecreateRequest)
		if existed && exists {
			r.changed(c, before, after)
		}
	}
	return r.violations
}

func (r *recreations) breaks(rule string, c simulate.Change, format string, args ...any) {
	r.violations = append(r.violations, Violation{Rule: rule, Revision: c.Revision, Text: fmt.Sprintf(format, args...)})
}

func (r *recreations) changed(c simulate.Change, before, after *v1beta1.ContainerRecreateRequest) {
	if before.Status.CompletionTime != nil {
		is, was := after.Status.DeepCopy(), before.Status.DeepCopy()
		if len(was.ContainerStatusSnapshot) == 0 { // may be added
			is.ContainerStatusSnapshot, was.ContainerStatusSnapshot = nil, nil
		}
		if !equality.Semantic.DeepEqual(is, was) {
			r.breaks(RuleOver, c, "the status of request %s is changed", after.Name)
		}
		return
	}
	since, now := preRecreateGrace(before), preRecreateGrace(after)
	p := r.pods[after.Spec.PodName]
	isThere := p != nil && string(p.UID) == after.Labels[keys.RecreatePodUID]
	switch {
	case since != nil && (now == nil || !now.LastTransitionTime.Equal(&since.LastTransitionTime)):
		r.breaks(RuleGraceBeginsOnce, c, "that of request %s", after.Name)
	case since == nil && now != nil && !c.Late && isThere && hasToBeHeld(p) && !slices.Contains(HeldBy(p), after.Namespace+"/"+after.Name):
		r.breaks(RuleHeldDuringGrace, c, "Pod %s of request %s is in service", p.Name, after.Name)
	}
	if c.Pass == nil || after.Status.CompletionTime == nil {
		return
	}
	age := c.Time.Sub(after.CreationTimestamp.Time)
	deadline := after.Spec.ActiveDeadlineSeconds
	switch {
	case !isThere || p.DeletionTimestamp != nil:
	case deadline != nil && age >= time.Duration(*deadline)*time.Second:
	case (before.Status.Phase == "" || pod.IsFinished(p)) && age >= time.Minute:
	default:
		r.breaks(RuleEndedWithReason, c, "request %s is ended after %s: %s", after.Name, age, after.Status.Message)
	}
}

func preRecreateGrace(r *v1beta1.ContainerRecreateRequest) *metav1.Condition {
	return meta.FindStatusCondition(r.Status.Conditions, v1beta1.ContainerRecreateRequestPreRecreateGrace)
}

func hasToBeHeld(p *corev1.Pod) bool {
	return pod.IsActive(p) && pod.HasReadinessGate(p, pub.KruisePodReady)
}

// HeldBy returns the requests, as namespace/name, that keep a Pod out of service.
func HeldBy(p *corev1.Pod) []string {
	c := pod.Condition(p, pub.KruisePodReady)
	if c == nil || c.Message == "" {
		return nil
	}
	var marks []struct{ UserAgent, Key string }
	if err := json.Unmarshal([]byte(c.Message), &marks); err != nil {
		return nil
	}
	var out []string
	for _, mark := range marks {
		if mark.UserAgent == "ContainerRecreateRequest" {
			out = append(out, mark.Key)
		}
	}
	return out
}

// ContainerRecreateConverged returns what a request that has ended has left undone.
func ContainerRecreateConverged(cluster *simulate.Cluster, r *v1beta1.ContainerRecreateRequest) []string {
	var out []string
	if _, active := r.Labels[keys.RecreateActive]; active || len(r.Finalizers) > 0 {
		out = append(out, fmt.Sprintf("request %s has ended, and has labels %v and finalizers %v", r.Name, r.Labels, r.Finalizers))
	}
	key := simulate.Key{Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Namespace: r.Namespace, Name: r.Spec.PodName}
	p, _ := cluster.Get(key).(*corev1.Pod)
	succeeded := meta.IsStatusConditionTrue(r.Status.Conditions, v1beta1.ContainerRecreateRequestConditionSucceeded)
	isThere := p != nil && string(p.UID) == r.Labels[keys.RecreatePodUID] && pod.IsActive(p)
	if succeeded && isThere && len(recreate.Snapshot(r, p)) > 0 && len(r.Status.ContainerStatusSnapshot) == 0 {
		out = append(out, fmt.Sprintf("request %s tells nothing of its new containers", r.Name))
	}
	return out
}
