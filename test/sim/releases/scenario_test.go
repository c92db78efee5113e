package releases

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// scenario is users with a Deployment and a Rollout, beside the controllers of Kubernetes.
type scenario struct {
	native.Controllers
	people people
	// calm means that the Deployment is not scaled and its Pods do not fail of themselves.
	calm bool
	// manifest is the Deployment as the repository of its users has it.
	manifest appsv1.DeploymentSpec
	// stored changes what the webhook stores, by mistake; nil for none.
	stored func(*appsv1.Deployment)
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
	s.people.create(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: *s.manifest.DeepCopy()})
	kubelet := simulate.NewKubelet(s.Cluster)
	for busy := true; busy; {
		busy = s.StepDeployment() || s.StepSets()
		for _, p := range s.Pods() {
			busy = kubelet.Step(p) || busy
		}
	}
	s.people.create(s.people.newRollout())
}

func (s *scenario) budget() *appsv1.RollingUpdateDeployment {
	b := &appsv1.RollingUpdateDeployment{MaxSurge: s.Amount(3), MaxUnavailable: s.Amount(3)}
	if b.MaxSurge.IntValue() == 0 && b.MaxUnavailable.IntValue() == 0 {
		b.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	}
	return b
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
		s.people.release()
	}
}

// relent lets the release come to its end.
func (s *scenario) relent() {
	s.apply()
	s.people.relent()
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
	o := steer.Objects{Workload: now, ReplicaSets: s.Sets(), Pods: s.Pods(), Now: s.Cluster.Now()}
	stored := s.people.admit(old, now, o).(*appsv1.Deployment)
	if s.stored != nil {
		stored = stored.DeepCopy()
		s.stored(stored)
	}
	simulate.Update(s.Cluster, promises.UserActor, old, func(d *appsv1.Deployment) {
		d.Labels, d.Annotations, d.Spec = stored.Labels, stored.Annotations, stored.Spec
	})
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
		for _, key := range []string{
			keys.InProgressing, keys.DeploymentStrategy, keys.OriginalDeploymentStrategy, keys.ControlInfo, keys.HeldReplicas,
		} {
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
	if r := s.people.rollout(); r != nil && r.Status.Phase != v1beta1.RolloutPhaseHealthy {
		wrong("the Rollout is %+v", r.Status)
	}
	return problems
}
