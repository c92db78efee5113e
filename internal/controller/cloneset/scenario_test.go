package cloneset

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// scenario is one user with one CloneSet, and the controller behind its hooks.
type scenario struct {
	promises.User
	key simulate.Key
}

func newScenario(w *promises.World) *scenario {
	s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}, key: simulate.Key{Kind: v1beta1.GroupVersion.WithKind("CloneSet"), Namespace: "default", Name: "web"}}
	s.create()
	return s
}

func (s *scenario) set() *v1beta1.CloneSet {
	set, _ := s.Cluster.Get(s.key).(*v1beta1.CloneSet)
	return set
}

// options are the choices of a manager.
func (s *scenario) options() Options {
	return Options{
		ShortHash: s.Chance(20), PartitionRollback: s.Chance(20), PreparingUpdateAsUpdate: s.Chance(20), RecreateOnClaimChange: s.Chance(20),
		InPlace: inplace.Options{VerticalScaling: s.Chance(50)},
	}
}

// create makes a random CloneSet.
func (s *scenario) create() {
	labels := map[string]string{"app": "web"}
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Name: s.key.Name, Namespace: s.key.Namespace}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: maps.Clone(labels)}
	set.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: s.Image()}, {Name: "side", Image: "side:v1"}}},
	}
	set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateCloneSetStrategyType
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{}
	s.scale(set)
	s.limit(set)
	s.choosePolicy(set)
	if s.Chance(30) {
		set.Spec.MinReadySeconds = int32(1 + s.Rand.Intn(10))
	}
	if s.Chance(30) {
		s.addHooks(set)
	}
	if s.Chance(25) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceStorage: resource.MustParse("1Gi"),
				}},
			},
		}}
		set.Spec.ScaleStrategy.EnablePVCReuse = s.Chance(50)
	}
	if s.Chance(20) {
		limit := intstr.FromInt32(int32(1 + s.Rand.Intn(3)))
		set.Spec.ScaleStrategy.MaxUnavailable = &limit
	}
	set.Spec.ScaleStrategy.ExcludePreparingDelete = s.Chance(20)
	if s.Chance(30) {
		deadline := int32(3 + s.Rand.Intn(30)) // such that some are late
		set.Spec.ProgressDeadlineSeconds = &deadline
	}
	if _, err := s.Cluster.Create(promises.UserActor, set); err != nil {
		panic(err)
	}
}

func (s *scenario) addHooks(set *v1beta1.CloneSet) {
	set.Spec.Lifecycle = &pub.Lifecycle{}
	template := &set.Spec.Template
	if s.Chance(60) {
		set.Spec.Lifecycle.PreDelete = s.PreDelete(template)
	}
	if s.Chance(60) {
		set.Spec.Lifecycle.InPlaceUpdate = s.InPlaceUpdate(template)
	}
	if s.Chance(30) {
		set.Spec.Lifecycle.PreNormal = s.PreNormal()
	}
}

func (s *scenario) scale(set *v1beta1.CloneSet) {
	replicas := int32(s.Rand.Intn(7))
	set.Spec.Replicas = &replicas
}

// limit sets maxUnavailable and maxSurge, at least one of them such that an update can move.
func (s *scenario) limit(set *v1beta1.CloneSet) {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	rolling.MaxUnavailable, rolling.MaxSurge = nil, nil
	one := intstr.FromInt32(int32(1 + s.Rand.Intn(2)))
	if s.Chance(50) {
		rolling.MaxSurge = &one
		if s.Chance(60) {
			rolling.MaxUnavailable = s.Amount(2)
		}
		return
	}
	if s.Chance(80) {
		rolling.MaxUnavailable = &one
	}
}

func (s *scenario) choosePolicy(set *v1beta1.CloneSet) {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	rolling.PodUpdatePolicy = []v1beta1.CloneSetPodUpdatePolicyType{
		v1beta1.RecreateCloneSetPodUpdatePolicyType, v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType,
		v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType, v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType,
	}[s.Rand.Intn(4)]
	rolling.InPlaceUpdateStrategy = nil
	if s.Chance(40) {
		rolling.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: int32(1 + s.Rand.Intn(6))}
	}
}

// act does something that a user might do at any moment.
func (s *scenario) act() {
	set := s.set()
	if set == nil {
		s.create()
		return
	}
	edit := func(change func(*v1beta1.CloneSet)) { simulate.Update(s.Cluster, promises.UserActor, set, change) }
	rolling := func(set *v1beta1.CloneSet) *v1beta1.RollingUpdateCloneSetStrategy {
		return set.Spec.UpdateStrategy.RollingUpdate
	}
	switch n := s.Rand.Intn(100); {
	case n < 30:
		edit(func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = s.Image() })
	case n < 33:
		edit(func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[1].Image = "side:v2" })
	case n < 36:
		edit(func(set *v1beta1.CloneSet) { set.Spec.Template.Labels["note"] = s.Image()[4:] })
	case n < 40:
		edit(func(set *v1beta1.CloneSet) {
			set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: s.Image()}}
		})
	case n < 44:
		edit(func(set *v1beta1.CloneSet) {
			set.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewMilliQuantity(int64(100+100*s.Rand.Intn(3)), resource.DecimalSI),
			}
		})
	case n < 45:
		edit(func(set *v1beta1.CloneSet) {
			set.Spec.UpdateStrategy.Type = v1beta1.OnDeleteCloneSetStrategyType
			if s.Chance(50) {
				set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateCloneSetStrategyType
			}
		})
	case n < 50:
		edit(s.scale)
	case n < 60:
		edit(func(set *v1beta1.CloneSet) { rolling(set).Partition = s.Amount(6) })
	case n < 64:
		edit(s.limit)
	case n < 67:
		edit(s.choosePolicy)
	case n < 72:
		edit(func(set *v1beta1.CloneSet) { rolling(set).Paused = !rolling(set).Paused })
	case n < 74:
		edit(func(set *v1beta1.CloneSet) { set.Spec.MinReadySeconds = int32(s.Rand.Intn(5)) })
	case n < 75:
		s.Delete(set)
	default:
		s.actOnPod(set)
	}
}

func (s *scenario) actOnPod(set *v1beta1.CloneSet) {
	pods := s.Pods()
	if len(pods) == 0 {
		return
	}
	p := pods[s.Rand.Intn(len(pods))]
	switch n := s.Rand.Intn(100); {
	case n < 25:
		s.Cluster.Delete(promises.UserActor, p)
	case n < 50:
		simulate.Update(s.Cluster, promises.UserActor, p, func(p *corev1.Pod) { p.Labels[keys.SpecifiedDelete] = "true" })
	case n < 70:
		simulate.Update(s.Cluster, promises.UserActor, set, func(set *v1beta1.CloneSet) {
			set.Spec.ScaleStrategy.PodsToDelete = append(set.Spec.ScaleStrategy.PodsToDelete, p.Name)
		})
	case n < 75:
		simulate.Update(s.Cluster, promises.UserActor, p, func(p *corev1.Pod) { p.Labels["app"] = "stray" })
	default:
		s.Meddle(p)
	}
}

// owner returns the CloneSet, or nil.
func (s *scenario) owner() client.Object {
	if set := s.set(); set != nil {
		return set
	}
	return nil
}

func (s *scenario) minReadySeconds() int32 {
	return s.set().Spec.MinReadySeconds
}

// rollOut gives the Pods another image.
func (s *scenario) rollOut() {
	simulate.Update(s.Cluster, promises.UserActor, s.set(), func(set *v1beta1.CloneSet) {
		set.Spec.Template.Spec.Containers[0].Image = "app:v9"
	})
}

// relent lifts what a user may set to keep a rollout from ending.
func (s *scenario) relent() {
	s.AwaitDeletion(s.key)
	if s.set() == nil {
		s.create()
	}
	simulate.Update(s.Cluster, promises.UserActor, s.set(), func(set *v1beta1.CloneSet) {
		rolling := set.Spec.UpdateStrategy.RollingUpdate
		rolling.Paused = false
		set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateCloneSetStrategyType
		// The controller looks once more in any case.
		set.Annotations = map[string]string{"user": "done"}
		if rolling.PodUpdatePolicy == v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType {
			rolling.PodUpdatePolicy = v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType
		}
	})
}
