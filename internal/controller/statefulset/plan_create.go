package statefulset

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/lifecycle"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Labels by which a Pod says its name and its ordinal. Wire: those of the StatefulSets of Kubernetes.
const (
	labelPodName  = appsv1.StatefulSetPodNameLabel
	labelPodIndex = appsv1.PodIndexLabel
)

// newPod returns the writes that create the Pod of a slot at the revision: what its claims need, then the Pod. Where a former claim is
// still on its way out, there are none, and wait says so.
func (v *State) newPod(s *slot, rev *appsv1.ControllerRevision) (chain plan.Chain, wait string, err error) {
	template, err := v.workload.History.Template(rev, &v.Set.Spec.Template)
	if err != nil {
		return nil, "", err
	}
	p := v.podOf(template, rev, s)
	for i := range v.Set.Spec.VolumeClaimTemplates {
		fresh := v.newClaim(&v.Set.Spec.VolumeClaimTemplates[i], s.ordinal)
		have := v.claims[fresh.Name]
		switch {
		case have == nil:
			chain = append(chain, v.createClaim(fresh, p.Name))
		case have.DeletionTimestamp != nil:
			return nil, "", fmt.Errorf("creating pod %s: its claim %s is being deleted", p.Name, have.Name)
		case v.isGarbage(have):
			return nil, fmt.Sprintf("its claim %s is about to go along with the Pod or the StatefulSet before it; it gets a new one then", have.Name), nil
		default:
			if kept := v.keepClaim(have, nil, true); kept != nil {
				chain = append(chain, *kept)
			}
		}
	}
	claim.Mount(p, v.Set.Name, strconv.Itoa(int(s.ordinal)), v.Set.Spec.VolumeClaimTemplates)
	return append(chain, plan.Action{
		Verb: plan.Create, Concern: plan.Scale, After: p,
		What:  "at revision " + rev.Name,
		Event: eventSuccessfulCreate, EventMessage: fmt.Sprintf("create Pod %s in StatefulSet %s successful", p.Name, v.Set.Name),
		FailedEvent: eventFailedCreate,
	}), "", nil
}

func (v *State) podOf(template *corev1.PodTemplateSpec, rev *appsv1.ControllerRevision, s *slot) *corev1.Pod {
	p := v.workload.NewPod(template, rev)
	p.Name = s.name
	p.Spec.Hostname, p.Spec.Subdomain = s.name, v.Set.Spec.ServiceName
	p.Labels[labelPodName] = s.name
	p.Labels[labelPodIndex] = strconv.Itoa(int(s.ordinal))
	v.start(p)
	return p
}

// start gives a new Pod its first lifecycle state, and the readiness gates by which it will be taken out of service. A Pod that nothing
// ever takes out of service has none, and so becomes ready without a write of ours.
func (v *State) start(p *corev1.Pod) {
	hooks := v.workload.Lifecycle
	state := pub.LifecycleStateNormal
	if hooks != nil && hooks.PreNormal != nil && !lifecycle.AllHooked(p, hooks.PreNormal) {
		state = pub.LifecycleStatePreparingNormal
	}
	lifecycle.Enter(p, state, hooks, v.Now)
	if v.inPlace() {
		pod.AddReadinessGates(p, pub.InPlaceUpdateReady)
	}
	if lifecycle.MarksNotReady(hooks) {
		pod.AddReadinessGates(p, pub.KruisePodReady)
	}
}
