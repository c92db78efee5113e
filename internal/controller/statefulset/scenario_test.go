package statefulset

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
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

// badImage is one that no node can pull.
const badImage = "app:bad"

// scenario is one user with one StatefulSet, and the controller behind its hooks.
type scenario struct {
	promises.User
	key simulate.Key
	// keepsClaims is true while the user has never let claims go.
	keepsClaims bool
}

func newScenario(w *promises.World) *scenario {
	s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}, key: simulate.Key{Kind: kind(), Namespace: "default", Name: "web"}, keepsClaims: true}
	s.create()
	return s
}

func (s *scenario) set() *v1beta1.StatefulSet {
	set, _ := s.Cluster.Get(s.key).(*v1beta1.StatefulSet)
	return set
}

func (s *scenario) image() string {
	if s.Chance(10) {
		return badImage
	}
	return fmt.Sprintf("app:v%d", 1+s.Rand.Intn(4))
}

// options are the choices of a manager.
func (s *scenario) options() Options {
	return Options{
		PreparingUpdateAsUpdate: s.Chance(20), ClaimRetention: s.Chance(90), StartOrdinal: true,
		InPlace: inplace.Options{VerticalScaling: s.Chance(50)},
	}
}

// create makes a random StatefulSet.
func (s *scenario) create() {
	labels := map[string]string{"app": "web"}
	set := &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: s.key.Name, Namespace: s.key.Namespace}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: maps.Clone(labels)}
	set.Spec.ServiceName = "web"
	set.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: s.image()}, {Name: "side", Image: "side:v1"}}},
	}
	set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	if s.Chance(60) {
		set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	}
	set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{}
	s.scale(set)
	s.limit(set)
	s.choosePolicy(set)
	if s.Chance(30) {
		seconds := int32(1 + s.Rand.Intn(10))
		set.Spec.UpdateStrategy.RollingUpdate.MinReadySeconds = &seconds
	}
	if s.Chance(30) {
		deadline := int32(3 + s.Rand.Intn(30)) // such that some are late
		set.Spec.ProgressDeadlineSeconds = &deadline
	}
	if s.Chance(30) {
		s.addHooks(set)
	}
	if s.Chance(50) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimTemplate("data")}
		s.retain(set)
	}
	if _, err := s.Cluster.Create(promises.UserActor, set); err != nil {
		panic(err)
	}
}

func claimTemplate(name string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: resource.MustParse("1Gi"),
			}},
		},
	}
}

func (s *scenario) addHooks(set *v1beta1.StatefulSet) {
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

// scale sets how many Pods are wanted, and which numbers they may have.
func (s *scenario) scale(set *v1beta1.StatefulSet) {
	replicas := int32(s.Rand.Intn(6))
	set.Spec.Replicas = &replicas
	if s.Chance(30) {
		set.Spec.Ordinals = &v1beta1.StatefulSetOrdinals{Start: int32(s.Rand.Intn(3))}
	}
	s.reserve(set)
	if s.Chance(20) && set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		set.Spec.ScaleStrategy = &v1beta1.StatefulSetScaleStrategy{MaxUnavailable: s.amount()}
	}
}

func (s *scenario) reserve(set *v1beta1.StatefulSet) {
	set.Spec.ReserveOrdinals = nil
	for range s.Rand.Intn(3) {
		entry := intstr.FromInt32(int32(s.Rand.Intn(6)))
		if first := s.Rand.Intn(5); s.Chance(30) {
			entry = intstr.FromString(fmt.Sprintf("%d-%d", first, first+s.Rand.Intn(3)))
		}
		set.Spec.ReserveOrdinals = append(set.Spec.ReserveOrdinals, entry)
	}
}

// amount returns a small number, or a percentage.
func (s *scenario) amount() *intstr.IntOrString {
	value := intstr.FromInt32(int32(1 + s.Rand.Intn(3)))
	if s.Chance(40) {
		value = intstr.FromString(fmt.Sprintf("%d%%", 10*(1+s.Rand.Intn(10))))
	}
	return &value
}

func (s *scenario) limit(set *v1beta1.StatefulSet) {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	rolling.MaxUnavailable = nil
	if s.Chance(70) {
		rolling.MaxUnavailable = s.amount()
	}
	rolling.UnorderedUpdate = nil
	if s.Chance(20) && set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		rolling.UnorderedUpdate = &v1beta1.UnorderedUpdateStrategy{PriorityStrategy: &pub.UpdatePriorityStrategy{
			OrderPriority: []pub.UpdatePriorityOrderTerm{{OrderedKey: labelPodIndex}},
		}}
	}
}

func (s *scenario) choosePolicy(set *v1beta1.StatefulSet) {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	rolling.PodUpdatePolicy = []v1beta1.PodUpdateStrategyType{
		v1beta1.RecreatePodUpdateStrategyType, v1beta1.InPlaceIfPossiblePodUpdateStrategyType,
		v1beta1.InPlaceIfPossiblePodUpdateStrategyType, v1beta1.InPlaceOnlyPodUpdateStrategyType,
	}[s.Rand.Intn(4)]
	rolling.InPlaceUpdateStrategy = nil
	if s.Chance(40) {
		rolling.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: int32(1 + s.Rand.Intn(6))}
	}
}

func (s *scenario) retain(set *v1beta1.StatefulSet) {
	both := []v1beta1.PersistentVolumeClaimRetentionPolicyType{
		v1beta1.RetainPersistentVolumeClaimRetentionPolicyType, v1beta1.DeletePersistentVolumeClaimRetentionPolicyType,
	}
	if s.Chance(40) {
		set.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: both[s.Rand.Intn(2)], WhenScaled: both[s.Rand.Intn(2)],
		}
		s.keepsClaims = s.keepsClaims && *set.Spec.PersistentVolumeClaimRetentionPolicy == v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: both[0], WhenScaled: both[0],
		}
	}
}

// act does something that a user might do at any moment.
func (s *scenario) act() {
	set := s.set()
	if set == nil {
		s.create()
		return
	}
	edit := func(change func(*v1beta1.StatefulSet)) { simulate.Update(s.Cluster, promises.UserActor, set, change) }
	rolling := func(set *v1beta1.StatefulSet) *v1beta1.RollingUpdateStatefulSetStrategy {
		return set.Spec.UpdateStrategy.RollingUpdate
	}
	switch n := s.Rand.Intn(100); {
	case n < 30:
		edit(func(set *v1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = s.image() })
	case n < 33:
		edit(func(set *v1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[1].Image = "side:v2" })
	case n < 36:
		edit(func(set *v1beta1.StatefulSet) { set.Spec.Template.Labels["note"] = s.image()[4:] })
	case n < 40:
		edit(func(set *v1beta1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: s.image()}}
		})
	case n < 41:
		edit(func(set *v1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
			if s.Chance(50) {
				set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
			}
		})
	case n < 46:
		edit(s.scale)
	case n < 50:
		edit(s.reserve)
	case n < 60:
		edit(func(set *v1beta1.StatefulSet) {
			partition := int32(s.Rand.Intn(6))
			rolling(set).Partition = &partition
		})
	case n < 64:
		edit(s.limit)
	case n < 67:
		edit(s.choosePolicy)
	case n < 71:
		edit(func(set *v1beta1.StatefulSet) { rolling(set).Paused = !rolling(set).Paused })
	case n < 73:
		edit(s.retain)
	case n < 74:
		edit(func(set *v1beta1.StatefulSet) {
			set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates[:0:0], claimTemplate("data"), claimTemplate("more"))
		})
	case n < 75:
		s.Delete(set)
	default:
		s.actOnPod()
	}
}

func (s *scenario) actOnPod() {
	pods := s.Pods()
	if len(pods) == 0 {
		return
	}
	p := pods[s.Rand.Intn(len(pods))]
	switch n := s.Rand.Intn(100); {
	case n < 35:
		s.Cluster.Delete(promises.UserActor, p)
	case n < 65:
		simulate.Update(s.Cluster, promises.UserActor, p, func(p *corev1.Pod) { p.Labels[keys.SpecifiedDelete] = "true" })
	case n < 75:
		// As deleting a StatefulSet does that leaves its Pods behind.
		simulate.Update(s.Cluster, promises.UserActor, p, func(p *corev1.Pod) { p.OwnerReferences = nil })
	default:
		s.Meddle(p)
	}
}

// owner returns the StatefulSet, or nil.
func (s *scenario) owner() client.Object {
	if set := s.set(); set != nil {
		return set
	}
	return nil
}

func (s *scenario) minReadySeconds() int32 {
	strategy := s.set().Spec.UpdateStrategy
	if n := strategy.RollingUpdate.MinReadySeconds; n != nil && strategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		return *n
	}
	return 0
}

// rollOut gives the Pods another image.
func (s *scenario) rollOut() {
	simulate.Update(s.Cluster, promises.UserActor, s.set(), func(set *v1beta1.StatefulSet) {
		set.Spec.Template.Spec.Containers[0].Image = "app:v8"
	})
}

// relent lifts what a user may set to keep a rollout from ending.
func (s *scenario) relent() {
	s.AwaitDeletion(s.key)
	if s.set() == nil {
		s.create()
	}
	zero := int32(0)
	simulate.Update(s.Cluster, promises.UserActor, s.set(), func(set *v1beta1.StatefulSet) {
		rolling := set.Spec.UpdateStrategy.RollingUpdate
		rolling.Paused = false
		set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		set.Spec.Template.Spec.Containers[0].Image = "app:v9"
		// What the partition keeps may never become ready, whose image is bad.
		rolling.Partition = &zero
		if rolling.PodUpdatePolicy == v1beta1.InPlaceOnlyPodUpdateStrategyType {
			rolling.PodUpdatePolicy = v1beta1.InPlaceIfPossiblePodUpdateStrategyType
		}
	})
}
