package daemonset

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// scenario is one user with one DaemonSet, an administrator whose nodes come, go and are tainted, and the controller behind the hooks.
type scenario struct {
	promises.User
	key   simulate.Key
	nodes int
}

func newScenario(w *promises.World) *scenario {
	s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}, key: simulate.Key{Kind: v1beta1.GroupVersion.WithKind("DaemonSet"), Namespace: "default", Name: "agent"}}
	for range 3 + s.Rand.Intn(4) {
		s.addNode()
	}
	s.create()
	return s
}

func (s *scenario) set() *v1beta1.DaemonSet {
	set, _ := s.Cluster.Get(s.key).(*v1beta1.DaemonSet)
	return set
}

func (s *scenario) options() Options { return Options{BindPods: s.Chance(20)} }

// addNode lets a node come, perhaps one of a name that was there before.
func (s *scenario) addNode() {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", s.Rand.Intn(10)), Labels: map[string]string{"disk": "ssd"}}}
	if s.Chance(20) {
		node.Labels["disk"] = "hdd"
	}
	if s.Chance(30) {
		node.Labels["canary"] = "yes"
	}
	if _, err := s.Cluster.Create(promises.UserActor, node); err == nil {
		s.nodes++
	}
}

func (s *scenario) taint(node *corev1.Node) {
	simulate.Update(s.Cluster, promises.UserActor, node, func(node *corev1.Node) {
		node.Spec.Taints = nil
		if s.Chance(60) {
			node.Spec.Taints = []corev1.Taint{{
				Key:    []string{"k", "l"}[s.Rand.Intn(2)],
				Effect: []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule}[s.Rand.Intn(3)],
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
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: s.Image()}}},
	}
	if s.Chance(30) {
		set.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	}
	if s.Chance(30) {
		set.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "l", Operator: corev1.TolerationOpExists}}
	}
	set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateDaemonSetStrategyType
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateDaemonSet{}
	s.limit(set)
	if s.Chance(30) {
		set.Spec.MinReadySeconds = int32(1 + s.Rand.Intn(10))
	}
	if s.Chance(30) {
		burst := intstr.FromInt32(int32(1 + s.Rand.Intn(3)))
		set.Spec.BurstReplicas = &burst
	}
	if s.Chance(30) {
		s.addHooks(set)
	}
	if s.Chance(20) {
		set.Spec.ScaleStrategy = &v1beta1.DaemonSetScaleStrategy{PartitionedScaling: true}
		set.Spec.UpdateStrategy.RollingUpdate.Partition = s.Amount(3)
	}
	if _, err := s.Cluster.Create(promises.UserActor, set); err != nil {
		panic(err)
	}
}

func (s *scenario) addHooks(set *v1beta1.DaemonSet) {
	set.Spec.Lifecycle = &pub.Lifecycle{}
	template := &set.Spec.Template
	if s.Chance(70) {
		set.Spec.Lifecycle.PreDelete = s.PreDelete(template)
	}
	if s.Chance(50) {
		set.Spec.Lifecycle.InPlaceUpdate = s.InPlaceUpdate(template)
	}
}

// limit chooses how Pods are updated.
func (s *scenario) limit(set *v1beta1.DaemonSet) {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	rolling.Type, rolling.MaxSurge, rolling.MaxUnavailable, rolling.InPlaceUpdateStrategy = v1beta1.StandardRollingUpdateType, nil, nil, nil
	some := intstr.FromInt32(int32(1 + s.Rand.Intn(2)))
	if s.Chance(30) {
		some = intstr.FromString("40%")
	}
	if s.Chance(40) {
		rolling.MaxSurge = &some
		return
	}
	rolling.MaxUnavailable = &some
	if s.Chance(60) {
		rolling.Type = v1beta1.InPlaceRollingUpdateType
		if s.Chance(30) {
			rolling.InPlaceUpdateStrategy = &v1beta1.DaemonSetInPlaceUpdateStrategy{GracePeriodSeconds: int32(1 + s.Rand.Intn(6))}
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
	edit := func(change func(*v1beta1.DaemonSet)) { simulate.Update(s.Cluster, promises.UserActor, set, change) }
	rolling := func(set *v1beta1.DaemonSet) *v1beta1.RollingUpdateDaemonSet {
		return set.Spec.UpdateStrategy.RollingUpdate
	}
	switch n := s.Rand.Intn(100); {
	case n < 25:
		edit(func(set *v1beta1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = s.Image() })
	case n < 28:
		edit(func(set *v1beta1.DaemonSet) {
			set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: s.Image()}}
		})
	case n < 30:
		edit(func(set *v1beta1.DaemonSet) {
			set.Spec.UpdateStrategy.Type = v1beta1.OnDeleteDaemonSetStrategyType
			if s.Chance(60) {
				set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateDaemonSetStrategyType
			}
		})
	case n < 38:
		edit(func(set *v1beta1.DaemonSet) { rolling(set).Partition = s.Amount(6) })
	case n < 42:
		edit(func(set *v1beta1.DaemonSet) {
			rolling(set).Selector = nil
			if s.Chance(60) {
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
		edit(func(set *v1beta1.DaemonSet) { set.Spec.MinReadySeconds = int32(s.Rand.Intn(5)) })
	case n < 54:
		edit(func(set *v1beta1.DaemonSet) {
			set.Spec.Template.Spec.NodeSelector = nil
			if s.Chance(50) {
				set.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
			}
		})
	case n < 55:
		s.Delete(set)
	case n < 75:
		s.actOnNode()
	default:
		s.actOnPod()
	}
}

func (s *scenario) actOnNode() {
	nodes := s.Cluster.Of(corev1.SchemeGroupVersion.WithKind("Node"))
	if len(nodes) == 0 || s.Chance(30) {
		s.addNode()
		return
	}
	node := nodes[s.Rand.Intn(len(nodes))].(*corev1.Node)
	switch n := s.Rand.Intn(100); {
	case n < 15:
		s.Cluster.Delete(promises.UserActor, node)
	case n < 60:
		s.taint(node)
	case n < 80:
		simulate.Update(s.Cluster, promises.UserActor, node, func(node *corev1.Node) {
			if _, is := node.Labels["canary"]; is {
				delete(node.Labels, "canary")
			} else {
				node.Labels["canary"] = "yes"
			}
		})
	default:
		simulate.Update(s.Cluster, "kubelet", node, func(node *corev1.Node) { node.Status.Phase = corev1.NodePhase(s.Image()) }) // a heartbeat
	}
}

func (s *scenario) actOnPod() {
	pods := s.Pods()
	if len(pods) == 0 {
		return
	}
	p := pods[s.Rand.Intn(len(pods))]
	switch n := s.Rand.Intn(100); {
	case n < 40:
		s.Cluster.Delete(promises.UserActor, p)
	case n < 50:
		simulate.Update(s.Cluster, promises.UserActor, p, func(p *corev1.Pod) { p.Labels["app"] = "stray" })
	case n < 60:
		simulate.Update(s.Cluster, promises.UserActor, p, func(p *corev1.Pod) { p.OwnerReferences = nil }) // it will be adopted again
	default:
		s.Meddle(p)
	}
}

// owner returns the DaemonSet, or nil.
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
	simulate.Update(s.Cluster, promises.UserActor, s.set(), func(set *v1beta1.DaemonSet) {
		set.Spec.Template.Spec.Containers[0].Image = "app:v9"
	})
}

// relent lifts what a user may set to keep a rollout from ending.
func (s *scenario) relent() {
	s.AwaitDeletion(s.key)
	if s.set() == nil {
		s.create()
	}
	simulate.Update(s.Cluster, promises.UserActor, s.set(), func(set *v1beta1.DaemonSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Paused = nil
		set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateDaemonSetStrategyType
		set.Spec.ScaleStrategy = nil
	})
}
