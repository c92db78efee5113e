package cloneset

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/simulate"
)

const (
	userActor = "user"
	hookActor = "hook controller"

	deleteHook = "hook/delete"
	updateHook = "hook/update"
	startHook  = "hook/start"
)

// scenario is one user with one CloneSet, and the controller behind its hooks.
type scenario struct {
	cluster *simulate.Cluster
	rand    *rand.Rand
	key     simulate.Key
}

func newScenario(c *simulate.Cluster, r *rand.Rand) *scenario {
	s := &scenario{cluster: c, rand: r, key: simulate.Key{Kind: v1beta1.GroupVersion.WithKind("CloneSet"), Namespace: "default", Name: "web"}}
	s.create()
	return s
}

func (s *scenario) set() *v1beta1.CloneSet {
	set, _ := s.cluster.Get(s.key).(*v1beta1.CloneSet)
	return set
}

func (s *scenario) chance(percent int) bool { return s.rand.Intn(100) < percent }

func (s *scenario) image() string { return fmt.Sprintf("app:v%d", 1+s.rand.Intn(4)) }

// options are the choices of a manager.
func (s *scenario) options() Options {
	return Options{
		ShortHash: s.chance(20), PartitionRollback: s.chance(20), PreparingUpdateAsUpdate: s.chance(20), RecreateOnClaimChange: s.chance(20),
		InPlace: inplace.Options{VerticalScaling: s.chance(50)},
	}
}

// create makes a random CloneSet.
func (s *scenario) create() {
	labels := map[string]string{"app": "web"}
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Name: s.key.Name, Namespace: s.key.Namespace}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: maps.Clone(labels)}
	set.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: s.image()}, {Name: "side", Image: "side:v1"}}},
	}
	set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateCloneSetStrategyType
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{}
	s.scale(set)
	s.limit(set)
	s.choosePolicy(set)
	if s.chance(30) {
		set.Spec.MinReadySeconds = int32(1 + s.rand.Intn(10))
	}
	if s.chance(30) {
		s.addHooks(set)
	}
	if s.chance(25) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceStorage: resource.MustParse("1Gi"),
				}},
			},
		}}
		set.Spec.ScaleStrategy.EnablePVCReuse = s.chance(50)
	}
	if s.chance(20) {
		limit := intstr.FromInt32(int32(1 + s.rand.Intn(3)))
		set.Spec.ScaleStrategy.MaxUnavailable = &limit
	}
	set.Spec.ScaleStrategy.ExcludePreparingDelete = s.chance(20)
	if s.chance(30) {
		deadline := int32(60 + s.rand.Intn(600))
		set.Spec.ProgressDeadlineSeconds = &deadline
	}
	if _, err := s.cluster.Create(userActor, set); err != nil {
		panic(err)
	}
}

func (s *scenario) addHooks(set *v1beta1.CloneSet) {
	set.Spec.Lifecycle = &pub.Lifecycle{}
	template := &set.Spec.Template
	if s.chance(60) {
		hook := &pub.LifecycleHook{MarkPodNotReady: s.chance(30)}
		if s.chance(50) {
			hook.LabelsHandler = map[string]string{deleteHook: "held"}
			template.Labels[deleteHook] = "held"
		} else {
			hook.FinalizersHandler = []string{deleteHook}
			template.Finalizers = append(template.Finalizers, deleteHook)
		}
		set.Spec.Lifecycle.PreDelete = hook
	}
	if s.chance(60) {
		set.Spec.Lifecycle.InPlaceUpdate = &pub.LifecycleHook{LabelsHandler: map[string]string{updateHook: "held"}, MarkPodNotReady: s.chance(30)}
		template.Labels[updateHook] = "held"
	}
	if s.chance(30) {
		set.Spec.Lifecycle.PreNormal = &pub.LifecycleHook{LabelsHandler: map[string]string{startHook: "done"}}
	}
}

func (s *scenario) scale(set *v1beta1.CloneSet) {
	replicas := int32(s.rand.Intn(7))
	set.Spec.Replicas = &replicas
}

// amount returns a number up to most, or a percentage.
func (s *scenario) amount(most int) *intstr.IntOrString {
	value := intstr.FromInt32(int32(s.rand.Intn(most + 1)))
	if s.chance(40) {
		value = intstr.FromString(fmt.Sprintf("%d%%", 10*s.rand.Intn(11)))
	}
	return &value
}

// limit sets maxUnavailable and maxSurge, at least one of them such that an update can move.
func (s *scenario) limit(set *v1beta1.CloneSet) {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	rolling.MaxUnavailable, rolling.MaxSurge = nil, nil
	one := intstr.FromInt32(int32(1 + s.rand.Intn(2)))
	if s.chance(50) {
		rolling.MaxSurge = &one
		if s.chance(60) {
			rolling.MaxUnavailable = s.amount(2)
		}
		return
	}
	if s.chance(80) {
		rolling.MaxUnavailable = &one
	}
}

func (s *scenario) choosePolicy(set *v1beta1.CloneSet) {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	rolling.PodUpdatePolicy = []v1beta1.CloneSetPodUpdatePolicyType{
		v1beta1.RecreateCloneSetPodUpdatePolicyType, v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType,
		v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType, v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType,
	}[s.rand.Intn(4)]
	rolling.InPlaceUpdateStrategy = nil
	if s.chance(40) {
		rolling.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: int32(1 + s.rand.Intn(6))}
	}
}

// act does something that a user might do at any moment.
func (s *scenario) act() {
	set := s.set()
	if set == nil {
		s.create()
		return
	}
	edit := func(change func(*v1beta1.CloneSet)) { simulate.Update(s.cluster, userActor, set, change) }
	rolling := func(set *v1beta1.CloneSet) *v1beta1.RollingUpdateCloneSetStrategy {
		return set.Spec.UpdateStrategy.RollingUpdate
	}
	switch n := s.rand.Intn(100); {
	case n < 30:
		edit(func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = s.image() })
	case n < 33:
		edit(func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[1].Image = "side:v2" })
	case n < 36:
		edit(func(set *v1beta1.CloneSet) { set.Spec.Template.Labels["note"] = s.image()[4:] })
	case n < 40:
		edit(func(set *v1beta1.CloneSet) {
			set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: s.image()}}
		})
	case n < 44:
		edit(func(set *v1beta1.CloneSet) {
			set.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewMilliQuantity(int64(100+100*s.rand.Intn(3)), resource.DecimalSI),
			}
		})
	case n < 45:
		edit(func(set *v1beta1.CloneSet) {
			set.Spec.UpdateStrategy.Type = v1beta1.OnDeleteCloneSetStrategyType
			if s.chance(50) {
				set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateCloneSetStrategyType
			}
		})
	case n < 50:
		edit(s.scale)
	case n < 60:
		edit(func(set *v1beta1.CloneSet) { rolling(set).Partition = s.amount(6) })
	case n < 64:
		edit(s.limit)
	case n < 67:
		edit(s.choosePolicy)
	case n < 72:
		edit(func(set *v1beta1.CloneSet) { rolling(set).Paused = !rolling(set).Paused })
	case n < 74:
		edit(func(set *v1beta1.CloneSet) { set.Spec.MinReadySeconds = int32(s.rand.Intn(5)) })
	case n < 75:
		s.cluster.Delete(userActor, set)
	default:
		s.actOnPod(set)
	}
}

func (s *scenario) pods() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, object := range s.cluster.Of(corev1.SchemeGroupVersion.WithKind("Pod")) {
		pods = append(pods, object.(*corev1.Pod))
	}
	return pods
}

func (s *scenario) actOnPod(set *v1beta1.CloneSet) {
	pods := s.pods()
	if len(pods) == 0 {
		return
	}
	p := pods[s.rand.Intn(len(pods))]
	switch n := s.rand.Intn(100); {
	case n < 25:
		s.cluster.Delete(userActor, p)
	case n < 50:
		simulate.Update(s.cluster, userActor, p, func(p *corev1.Pod) { p.Labels[keys.SpecifiedDelete] = "true" })
	case n < 70:
		simulate.Update(s.cluster, userActor, set, func(set *v1beta1.CloneSet) {
			set.Spec.ScaleStrategy.PodsToDelete = append(set.Spec.ScaleStrategy.PodsToDelete, p.Name)
		})
	case n < 75:
		simulate.Update(s.cluster, userActor, p, func(p *corev1.Pod) { p.Labels["app"] = "stray" })
	default:
		// Another controller writes to the Pod, which costs ours its precondition.
		simulate.Update(s.cluster, "rogue", p, func(p *corev1.Pod) {
			if p.Annotations == nil {
				p.Annotations = map[string]string{}
			}
			p.Annotations["rogue"] = fmt.Sprint(s.rand.Intn(1000))
		})
	}
}

// relent lifts what a user may set to keep a rollout from ending.
func (s *scenario) relent() {
	if s.set() == nil {
		s.create()
	}
	simulate.Update(s.cluster, userActor, s.set(), func(set *v1beta1.CloneSet) {
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

// answerHooks is the controller behind the hooks: it lets one Pod go on that waits for it, and reports whether there was one.
func (s *scenario) answerHooks() bool {
	for _, p := range s.pods() {
		after := p.DeepCopy()
		switch state := pub.LifecycleStateType(p.Labels[keys.LifecycleState]); {
		case state == pub.LifecycleStatePreparingDelete || p.DeletionTimestamp != nil:
			delete(after.Labels, deleteHook)
			after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == deleteHook })
		case state == pub.LifecycleStatePreparingUpdate:
			delete(after.Labels, updateHook)
		case state == pub.LifecycleStateUpdated:
			after.Labels[updateHook] = "held"
		case state == pub.LifecycleStatePreparingNormal && p.Spec.NodeName != "":
			after.Labels[startHook] = "done"
		}
		if maps.Equal(after.Labels, p.Labels) && slices.Equal(after.Finalizers, p.Finalizers) {
			continue
		}
		simulate.Update(s.cluster, hookActor, p, func(stored *corev1.Pod) { stored.Labels, stored.Finalizers = after.Labels, after.Finalizers })
		return true
	}
	return false
}
