package daemonset

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/simulate"
)

const (
	userActor = "user"
	hookActor = "hook controller"

	deleteHook = "hook/delete"
	updateHook = "hook/update"
)

// scenario is one user with one DaemonSet, an administrator whose nodes come, go and are tainted, and the controller behind the hooks.
type scenario struct {
	cluster *simulate.Cluster
	rand    *rand.Rand
	key     simulate.Key
	nodes   int
}

func newScenario(c *simulate.Cluster, r *rand.Rand) *scenario {
	s := &scenario{cluster: c, rand: r, key: simulate.Key{Kind: v1beta1.GroupVersion.WithKind("DaemonSet"), Namespace: "default", Name: "agent"}}
	for range 3 + r.Intn(4) {
		s.addNode()
	}
	s.create()
	return s
}

func (s *scenario) set() *v1beta1.DaemonSet {
	set, _ := s.cluster.Get(s.key).(*v1beta1.DaemonSet)
	return set
}

func (s *scenario) chance(percent int) bool { return s.rand.Intn(100) < percent }

func (s *scenario) image() string { return fmt.Sprintf("app:v%d", 1+s.rand.Intn(4)) }

func (s *scenario) options() Options { return Options{BindPods: s.chance(20)} }

// addNode lets a node come, perhaps one of a name that was there before.
func (s *scenario) addNode() {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", s.rand.Intn(10)), Labels: map[string]string{"disk": "ssd"}}}
	if s.chance(20) {
		node.Labels["disk"] = "hdd"
	}
	if s.chance(30) {
		node.Labels["canary"] = "yes"
	}
	if _, err := s.cluster.Create(userActor, node); err == nil {
		s.nodes++
	}
}

func (s *scenario) taint(node *corev1.Node) {
	simulate.Update(s.cluster, userActor, node, func(node *corev1.Node) {
		node.Spec.Taints = nil
		if s.chance(60) {
			node.Spec.Taints = []corev1.Taint{{
				Key:    []string{"k", "l"}[s.rand.Intn(2)],
				Effect: []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule}[s.rand.Intn(3)],
			}}
		}
	})
}

// create makes a random DaemonSet.
func (s *scenario) create() {
	labels := map[string]string{"app": "agent"}
	set := &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: s.key.Name, Namespace: s.key.Namespace}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: maps.Clone(labels)}
	set.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: s.image()}}},
	}
	if s.chance(30) {
		set.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	}
	if s.chance(30) {
		set.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "l", Operator: corev1.TolerationOpExists}}
	}
	set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateDaemonSetStrategyType
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateDaemonSet{}
	s.limit(set)
	if s.chance(30) {
		set.Spec.MinReadySeconds = int32(1 + s.rand.Intn(10))
	}
	if s.chance(30) {
		burst := intstr.FromInt32(int32(1 + s.rand.Intn(3)))
		set.Spec.BurstReplicas = &burst
	}
	if s.chance(30) {
		s.addHooks(set)
	}
	if s.chance(20) {
		set.Spec.ScaleStrategy = &v1beta1.DaemonSetScaleStrategy{PartitionedScaling: true}
		set.Spec.UpdateStrategy.RollingUpdate.Partition = s.amount(3)
	}
	if _, err := s.cluster.Create(userActor, set); err != nil {
		panic(err)
	}
}

func (s *scenario) addHooks(set *v1beta1.DaemonSet) {
	set.Spec.Lifecycle = &pub.Lifecycle{}
	template := &set.Spec.Template
	if s.chance(70) {
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
	if s.chance(50) {
		set.Spec.Lifecycle.InPlaceUpdate = &pub.LifecycleHook{LabelsHandler: map[string]string{updateHook: "held"}, MarkPodNotReady: s.chance(30)}
		template.Labels[updateHook] = "held"
	}
}

// amount returns a number up to most, or a percentage.
func (s *scenario) amount(most int) *intstr.IntOrString {
	value := intstr.FromInt32(int32(s.rand.Intn(most + 1)))
	if s.chance(40) {
		value = intstr.FromString(fmt.Sprintf("%d%%", 10*s.rand.Intn(11)))
	}
	return &value
}

// limit chooses how Pods are updated.
func (s *scenario) limit(set *v1beta1.DaemonSet) {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	rolling.Type, rolling.MaxSurge, rolling.MaxUnavailable, rolling.InPlaceUpdateStrategy = v1beta1.StandardRollingUpdateType, nil, nil, nil
	some := intstr.FromInt32(int32(1 + s.rand.Intn(2)))
	if s.chance(30) {
		some = intstr.FromString("40%")
	}
	if s.chance(40) {
		rolling.MaxSurge = &some
		return
	}
	rolling.MaxUnavailable = &some
	if s.chance(60) {
		rolling.Type = v1beta1.InPlaceRollingUpdateType
		if s.chance(30) {
			rolling.InPlaceUpdateStrategy = &v1beta1.DaemonSetInPlaceUpdateStrategy{GracePeriodSeconds: int32(1 + s.rand.Intn(6))}
		}
	}
}

// act does something that a user or an administrator might do at any moment.
func (s *scenario) act() {
	set := s.set()
	if set == nil {
		s.create()
		return
	}
	edit := func(change func(*v1beta1.DaemonSet)) { simulate.Update(s.cluster, userActor, set, change) }
	rolling := func(set *v1beta1.DaemonSet) *v1beta1.RollingUpdateDaemonSet {
		return set.Spec.UpdateStrategy.RollingUpdate
	}
	switch n := s.rand.Intn(100); {
	case n < 25:
		edit(func(set *v1beta1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = s.image() })
	case n < 28:
		edit(func(set *v1beta1.DaemonSet) {
			set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: s.image()}}
		})
	case n < 30:
		edit(func(set *v1beta1.DaemonSet) {
			set.Spec.UpdateStrategy.Type = v1beta1.OnDeleteDaemonSetStrategyType
			if s.chance(60) {
				set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateDaemonSetStrategyType
			}
		})
	case n < 38:
		edit(func(set *v1beta1.DaemonSet) { rolling(set).Partition = s.amount(6) })
	case n < 42:
		edit(func(set *v1beta1.DaemonSet) {
			rolling(set).Selector = nil
			if s.chance(60) {
				rolling(set).Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}}
			}
		})
	case n < 46:
		edit(s.limit)
	case n < 50:
		edit(func(set *v1beta1.DaemonSet) {
			paused := rolling(set).Paused == nil || !*rolling(set).Paused
			rolling(set).Paused = &paused
		})
	case n < 52:
		edit(func(set *v1beta1.DaemonSet) { set.Spec.MinReadySeconds = int32(s.rand.Intn(5)) })
	case n < 54:
		edit(func(set *v1beta1.DaemonSet) {
			set.Spec.Template.Spec.NodeSelector = nil
			if s.chance(50) {
				set.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
			}
		})
	case n < 55:
		s.cluster.Delete(userActor, set)
	case n < 75:
		s.actOnNode()
	default:
		s.actOnPod()
	}
}

func (s *scenario) actOnNode() {
	nodes := s.cluster.Of(corev1.SchemeGroupVersion.WithKind("Node"))
	if len(nodes) == 0 || s.chance(30) {
		s.addNode()
		return
	}
	node := nodes[s.rand.Intn(len(nodes))].(*corev1.Node)
	switch n := s.rand.Intn(100); {
	case n < 15:
		s.cluster.Delete(userActor, node)
	case n < 60:
		s.taint(node)
	case n < 80:
		simulate.Update(s.cluster, userActor, node, func(node *corev1.Node) {
			if _, is := node.Labels["canary"]; is {
				delete(node.Labels, "canary")
			} else {
				node.Labels["canary"] = "yes"
			}
		})
	default:
		simulate.Update(s.cluster, "kubelet", node, func(node *corev1.Node) { node.Status.Phase = corev1.NodePhase(s.image()) }) // a heartbeat
	}
}

func (s *scenario) pods() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, object := range s.cluster.Of(corev1.SchemeGroupVersion.WithKind("Pod")) {
		pods = append(pods, object.(*corev1.Pod))
	}
	return pods
}

func (s *scenario) actOnPod() {
	pods := s.pods()
	if len(pods) == 0 {
		return
	}
	p := pods[s.rand.Intn(len(pods))]
	switch n := s.rand.Intn(100); {
	case n < 40:
		s.cluster.Delete(userActor, p)
	case n < 50:
		simulate.Update(s.cluster, userActor, p, func(p *corev1.Pod) { p.Labels["app"] = "stray" })
	case n < 60:
		simulate.Update(s.cluster, userActor, p, func(p *corev1.Pod) { p.OwnerReferences = nil }) // it will be adopted again
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
	simulate.Update(s.cluster, userActor, s.set(), func(set *v1beta1.DaemonSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Paused = nil
		set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateDaemonSetStrategyType
		set.Spec.ScaleStrategy = nil
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
		}
		if maps.Equal(after.Labels, p.Labels) && slices.Equal(after.Finalizers, p.Finalizers) {
			continue
		}
		simulate.Update(s.cluster, hookActor, p, func(stored *corev1.Pod) { stored.Labels, stored.Finalizers = after.Labels, after.Finalizers })
		return true
	}
	return false
}
