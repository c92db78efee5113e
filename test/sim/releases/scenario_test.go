package releases

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
	"github.com/seed-69ecc383/kruise/test/sim/native"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

var (
	rolloutKind = v1beta1.GroupVersion.WithKind("Rollout")
	batchKind   = v1beta1.GroupVersion.WithKind("BatchRelease")
)

// scenario is users with a Deployment and a Rollout, beside the controllers of Kubernetes.
type scenario struct {
	native.Controllers
	// calm means that the Deployment is not scaled and its Pods do not fail of themselves.
	calm bool
	// manifest is the Deployment as the repository of its users has it.
	manifest appsv1.DeploymentSpec
}

// populate creates a Deployment whose Pods run, and its Rollout.
func (s *scenario) populate() {
	s.manifest = appsv1.DeploymentSpec{
		Replicas: ptr.To(int32(2 + s.Rand.Intn(7))), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}},
		},
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: s.budget()},
	}
	s.create(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: *s.manifest.DeepCopy()})
	kubelet := simulate.NewKubelet(s.Cluster)
	for busy := true; busy; {
		busy = s.StepDeployment() || s.StepSets()
		for _, p := range s.Pods() {
			busy = kubelet.Step(p) || busy
		}
	}
	s.create(s.newRollout())
}

func (s *scenario) budget() *appsv1.RollingUpdateDeployment {
	b := &appsv1.RollingUpdateDeployment{MaxSurge: s.Amount(3), MaxUnavailable: s.Amount(3)}
	if b.MaxSurge.IntValue() == 0 && b.MaxUnavailable.IntValue() == 0 {
		b.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	}
	return b
}

func (s *scenario) create(object client.Object) {
	_, _ = s.Cluster.Create(promises.UserActor, object) // it may be there
}

func (s *scenario) newRollout() *v1beta1.Rollout {
	r := &v1beta1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"}}
	r.Spec.WorkloadRef = v1beta1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	r.Spec.Strategy.Canary = &v1beta1.CanaryStrategy{}
	r.Spec.Strategy.Canary.Steps = s.steps()
	return r
}

// steps returns three steps that wait for approval, the last of which updates all Pods.
func (s *scenario) steps() []v1beta1.Step {
	var out []v1beta1.Step
	for _, percent := range []int{10 + 10*s.Rand.Intn(3), 40 + 10*s.Rand.Intn(3), 100} {
		out = append(out, v1beta1.Step{Replicas: ptr.To(intstr.FromString(fmt.Sprintf("%d%%", percent)))})
	}
	return out
}

func (s *scenario) rollout() *v1beta1.Rollout {
	r, _ := s.Cluster.Get(simulate.Key{Kind: rolloutKind, Namespace: "default", Name: "demo"}).(*v1beta1.Rollout)
	return r
}

// act is what users do, their tools, and the controllers of Kubernetes.
func (s *scenario) act() {
	switch n := s.Rand.Intn(100); {
	case n < 35:
		s.StepDeployment()
	case n < 50:
		s.StepSets()
	case n < 65: // the tool writes the manifest back
		s.apply()
	case n < 72:
		s.manifest.Template.Spec.Containers[0].Image = s.Image()
		s.apply()
	case n < 75:
		if !s.calm {
			s.manifest.Replicas = ptr.To(int32(1 + s.Rand.Intn(9)))
			s.apply()
		}
	default:
		s.release()
	}
}

// release is what users do to the Rollout.
func (s *scenario) release() {
	r := s.rollout()
	if r == nil {
		s.create(s.newRollout())
		return
	}
	change := func(change func(*v1beta1.Rollout)) { simulate.Update(s.Cluster, promises.UserActor, r, change) }
	switch n := s.Rand.Intn(100); {
	case n < 50:
		s.approve()
	case n < 60:
		change(func(r *v1beta1.Rollout) { r.Spec.Strategy.Paused = !r.Spec.Strategy.Paused })
	case n < 65:
		change(func(r *v1beta1.Rollout) { r.Spec.Strategy.Canary.Steps = s.steps() })
	case n < 75:
		change(func(r *v1beta1.Rollout) {
			if r.Status.CanaryStatus != nil {
				r.Status.CanaryStatus.NextStepIndex = int32(s.Rand.Intn(6)) - 1
			}
		})
	case n < 85:
		change(func(r *v1beta1.Rollout) { r.Spec.Disabled = !r.Spec.Disabled })
	case n < 93:
		s.Cluster.Delete(promises.UserActor, r)
	default: // somebody does not want to wait for the end of the release
		change(func(r *v1beta1.Rollout) { r.Finalizers = nil })
		if r = s.rollout(); r != nil {
			s.Cluster.Delete(promises.UserActor, r)
		}
	}
}

// approve approves the step that waits for it.
func (s *scenario) approve() bool {
	r := s.rollout()
	if r == nil || r.Status.CurrentStepState != v1beta1.StepStatePaused || r.Status.CanaryStatus.CurrentStepState != v1beta1.StepStatePaused {
		return false
	}
	simulate.Update(s.Cluster, promises.UserActor, r, func(r *v1beta1.Rollout) {
		r.Status.CanaryStatus.CurrentStepState = v1beta1.StepStateReady
	})
	return true
}

// approveLate approves it some time, and reports whether a step waits.
func (s *scenario) approveLate() bool {
	r := s.rollout()
	waits := r != nil && r.Status.CurrentStepState == v1beta1.StepStatePaused
	return waits && (!s.Chance(20) || s.approve())
}

// relent lets the release come to its end.
func (s *scenario) relent() {
	s.apply()
	r := s.rollout()
	if r == nil {
		if s.Chance(50) {
			s.create(s.newRollout())
		}
		return
	}
	simulate.Update(s.Cluster, promises.UserActor, r, func(r *v1beta1.Rollout) { r.Spec.Strategy.Paused, r.Spec.Disabled = false, false })
}

// apply writes the manifest: in place of the whole object, or those of its fields that it names, of which paused may be one.
func (s *scenario) apply() {
	old := s.Deployment()
	now := old.DeepCopy()
	paused := now.Spec.Paused
	now.Spec = *s.manifest.DeepCopy()
	switch s.Rand.Intn(3) {
	case 0:
		now.Labels, now.Annotations = nil, nil
	case 1:
		now.Spec.Paused = paused
	}
	stored := s.admit(old, now)
	simulate.Update(s.Cluster, promises.UserActor, old, func(d *appsv1.Deployment) {
		d.Labels, d.Annotations, d.Spec = stored.Labels, stored.Annotations, stored.Spec
	})
}

// admit is the webhook.
func (s *scenario) admit(old, now *appsv1.Deployment) *appsv1.Deployment {
	r := s.rollout()
	isSelected := old.Labels[keys.WorkloadType] != "" || now.Labels[keys.WorkloadType] != ""
	if !isSelected || r == nil || r.DeletionTimestamp != nil || r.Spec.Disabled ||
		r.Status.Phase == v1beta1.RolloutPhaseDisabled || r.Status.Phase == v1beta1.RolloutPhaseDisabling {
		return now
	}
	kind, _ := steer.Of(schema.GroupKind{Group: "apps", Kind: "Deployment"}, v1beta1.RollingStylePartition)
	o := steer.Objects{Workload: now, ReplicaSets: s.Sets(), Pods: s.Pods(), Now: s.Cluster.Now()}
	if _, marked := steer.MarkOf(old); marked {
		o.Workload = kind.Guard(old, o)
		if o.Workload.GetLabels()[keys.WorkloadType] == "" {
			o.Workload = o.Workload.DeepCopyObject().(steer.Object)
			steer.Carry(old, o.Workload)
		}
	}
	if steer.IsRelease(old, now) && kind.Refuses(o) == "" {
		o.Workload = steer.Mark(kind.Freeze(o), r.Name)
	}
	return o.Workload.(*appsv1.Deployment)
}

// converged returns what is wrong, now that the cluster is at rest.
func (s *scenario) converged() (problems []string) {
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("at rest, "+format, args...))
	}
	d := s.Deployment()
	if !equality.Semantic.DeepEqual(d.Spec, s.manifest) {
		wrong("the spec is not the manifest: paused %t, %+v", d.Spec.Paused, d.Spec.Strategy)
	}
	for key := range d.Labels {
		if key != keys.WorkloadType {
			wrong("the Deployment has label %s", key)
		}
	}
	sets := s.Sets()
	fresh := replicasets.New(d, sets)
	if fresh == nil {
		wrong("no ReplicaSet has the template")
	}
	objects := []client.Object{d}
	for _, rs := range sets {
		objects = append(objects, rs)
	}
	for _, o := range objects {
		for _, key := range []string{keys.InProgressing, keys.DeploymentStrategy, keys.ControlInfo, keys.HeldReplicas} {
			if _, left := o.GetAnnotations()[key]; left {
				wrong("%s has annotation %s", o.GetName(), key)
			}
		}
		if rs, is := o.(*appsv1.ReplicaSet); is && (rs == fresh) != (*rs.Spec.Replicas == *d.Spec.Replicas) {
			wrong("ReplicaSet %s has %d replicas", rs.Name, *rs.Spec.Replicas)
		}
	}
	if n := len(s.Cluster.Of(batchKind)); n > 0 {
		wrong("%d BatchReleases are there", n)
	}
	if r := s.rollout(); r != nil && r.Status.Phase != v1beta1.RolloutPhaseHealthy {
		wrong("the Rollout is %+v", r.Status)
	}
	return problems
}
