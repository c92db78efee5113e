package probe

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Results are the answers of one Pod, by the names of the questions.
type Results map[string]v1alpha1.ContainerProbeState

// ResultsOf returns the answers of a Pod as the daemon has reported them.
func ResultsOf(p *corev1.Pod, s *v1alpha1.NodePodProbeStatus) Results {
	for i := range s.PodProbeStatuses {
		of := &s.PodProbeStatuses[i]
		if of.UID != string(p.UID) {
			continue
		}
		out := Results{}
		for _, state := range of.ProbeStates {
			out[state.Name] = state
		}
		return out
	}
	return nil
}

// Mark returns the Pod with the answers on it, or the Pod itself when they are.
func Mark(p *corev1.Pod, questions []Question, results Results) *corev1.Pod {
	after := p
	change := func() *corev1.Pod {
		if after == p {
			after = p.DeepCopy()
		}
		return after
	}
	for _, q := range questions {
		result, answered := results[q.Name()]
		if !answered {
			continue
		}
		if kind := corev1.PodConditionType(q.Probe.PodConditionType); kind != "" {
			want := condition(kind, result)
			if old := pod.Condition(after, kind); old == nil || old.Status != want.Status || old.Message != want.Message {
				setCondition(change(), want)
			}
		}
		follow(after, change, q.Probe.MarkerPolicy, result.State)
	}
	if equality.Semantic.DeepEqual(p, after) {
		return p // two policies that want the opposite of each other: the younger marker has its way, and has had it
	}
	return after
}

// condition returns how a result shows as a condition. An answer that is not known is no yes.
func condition(kind corev1.PodConditionType, result v1alpha1.ContainerProbeState) corev1.PodCondition {
	c := corev1.PodCondition{
		Type: kind, Status: corev1.ConditionFalse, Message: result.Message,
		LastProbeTime: result.LastProbeTime, LastTransitionTime: result.LastTransitionTime,
	}
	if result.State == v1alpha1.ProbeSucceeded {
		c.Status = corev1.ConditionTrue
	}
	return c
}

func setCondition(p *corev1.Pod, want corev1.PodCondition) {
	old := pod.Condition(p, want.Type)
	if old == nil {
		p.Status.Conditions = append(p.Status.Conditions, want)
		return
	}
	if old.Status == want.Status {
		want.LastTransitionTime = old.LastTransitionTime
	}
	want.ObservedGeneration = old.ObservedGeneration
	*old = want
}

// FromConditions returns the answers that the provider of a virtual node has written on a Pod itself.
func FromConditions(p *corev1.Pod, questions []Question) Results {
	out := Results{}
	for _, q := range questions {
		c := pod.Condition(p, corev1.PodConditionType(q.Probe.PodConditionType))
		if c == nil || c.Status == corev1.ConditionUnknown {
			continue
		}
		state := v1alpha1.ContainerProbeState{
			Name: q.Name(), State: v1alpha1.ProbeFailed, Message: c.Message, LastProbeTime: c.LastProbeTime, LastTransitionTime: c.LastTransitionTime,
		}
		if c.Status == corev1.ConditionTrue {
			state.State = v1alpha1.ProbeSucceeded
		}
		out[q.Name()] = state
	}
	return out
}

// follow puts the labels and annotations for an answer on the Pod, and takes off those for the other answer. One that is not known changes nothing.
func follow(p *corev1.Pod, change func() *corev1.Pod, policies []v1alpha1.ProbeMarkerPolicy, answer v1alpha1.ProbeState) {
	if answer != v1alpha1.ProbeSucceeded && answer != v1alpha1.ProbeFailed {
		return
	}
	var now, other v1alpha1.ProbeMarkerPolicy
	for _, policy := range policies {
		if policy.State == answer {
			now = policy
		} else {
			other = policy
		}
	}
	if differ(p.Labels, now.Labels, other.Labels) {
		p = change()
		p.Labels = replace(p.Labels, now.Labels, other.Labels)
	}
	if differ(p.Annotations, now.Annotations, other.Annotations) {
		p = change()
		p.Annotations = replace(p.Annotations, now.Annotations, other.Annotations)
	}
}

func differ(m, put, takeOff map[string]string) bool {
	for key, value := range put {
		if is, there := m[key]; !there || is != value {
			return true
		}
	}
	for key := range takeOff {
		_, keep := put[key]
		if _, there := m[key]; there && !keep {
			return true
		}
	}
	return false
}

// replace changes m, which may be nil.
func replace(m, put, takeOff map[string]string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	for key := range takeOff {
		delete(m, key)
	}
	for key, value := range put {
		m[key] = value
	}
	return m
}
