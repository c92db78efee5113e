package daemonset

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// daemonScheduler is the scheduler of Pods that need none, because they are created with their node.
const daemonScheduler = "kubernetes.io/daemonset-controller"

// pods makes the Pods of one pass.
type pods struct {
	*Survey
	used sets.Set[string]
}

func (v *Survey) newPods() *pods {
	out := &pods{Survey: v, used: sets.New(v.Taken...)}
	for _, p := range v.Pods {
		out.used.Insert(p.Name)
	}
	return out
}

// create returns the write that creates the Pod of a node at a revision.
func (n *pods) create(at *place, rev *appsv1.ControllerRevision, why string) (plan.Action, error) {
	template, err := n.history.Template(rev, &n.Set.Spec.Template)
	if err != nil {
		return plan.Action{}, err
	}
	p := n.podOf(template, rev, at.name)
	p.Name = n.name(at, rev)
	return plan.Action{
		Verb: plan.Create, Concern: plan.Scale, After: p,
		What: fmt.Sprintf("on %s at revision %s", at.name, rev.Name), Why: why,
		Event: eventSuccessfulCreate, EventMessage: "Created pod: " + p.Name, FailedEvent: eventFailedCreate,
	}, nil
}

func (n *pods) podOf(template *corev1.PodTemplateSpec, rev *appsv1.ControllerRevision, node string) *corev1.Pod {
	p := pod.New(template, n.Set, kind())
	maps.Copy(p.Labels, n.workload().RevisionLabels(rev))
	if generation := n.Set.Annotations[keys.TemplateGeneration]; generation != "" {
		p.Labels[keys.PodTemplateGeneration] = generation
	}
	pod.AddReadinessGates(p, n.gates()...)
	p.Spec.Tolerations = nodefit.Tolerations(&p.Spec)
	if n.Options.BindPods {
		p.Spec.NodeName, p.Spec.SchedulerName = node, daemonScheduler
	} else {
		nodefit.Pin(&p.Spec, node)
	}
	return p
}

// gates returns the readiness gates by which new Pods can be taken out of service; each Pod that has any costs a write more.
func (n *pods) gates() []corev1.PodConditionType {
	if n.inPlace() {
		return []corev1.PodConditionType{pub.InPlaceUpdateReady, pub.KruisePodReady}
	}
	if hooks := n.Set.Spec.Lifecycle; hooks != nil && hooks.PreDelete != nil && hooks.PreDelete.MarkPodNotReady {
		return []corev1.PodConditionType{pub.KruisePodReady}
	}
	return nil
}

// name returns the name of the Pod of a node at a revision.
func (n *pods) name(at *place, rev *appsv1.ControllerRevision) string {
	return pod.NewName(n.Set.Name, n.used, string(n.Set.UID), at.name, string(at.node.UID), rev.Name)
}
