package sidecarset

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/defaults"
	"github.com/seed-69ecc383/kruise/internal/rules/inject"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	idleImage = "idle:1"
	badImage  = "app:v4" // can't be pulled
)

// The SidecarSets: one is always there, the other one in some clusters, and it may go and come back.
const (
	firstSet  = "side"
	secondSet = "another"
)

// scenario is one user with a SidecarSet or two for the same Pods, owners that create and delete Pods and update them in place, and admission that
// puts sidecars into new Pods.
type scenario struct {
	promises.User
	pods int
}

func newScenario(w *promises.World) *scenario {
	s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}}
	w.Rig.Kubelet.IsBad = func(image string) bool { return image == badImage }
	s.create()
	if s.Chance(40) {
		s.createSecond()
	}
	for range 3 + s.Rand.Intn(5) {
		s.addPod()
	}
	return s
}

func (s *scenario) set(name string) *v1beta1.SidecarSet {
	set, _ := s.Cluster.Get(simulate.Key{Kind: v1beta1.GroupVersion.WithKind("SidecarSet"), Name: name}).(*v1beta1.SidecarSet)
	return set
}

// sets returns the SidecarSets that there are, in the order of their names.
func (s *scenario) sets() []*v1beta1.SidecarSet {
	var all []*v1beta1.SidecarSet
	for _, name := range []string{secondSet, firstSet} {
		if set := s.set(name); set != nil {
			all = append(all, set)
		}
	}
	return all
}

// sidecarsOf returns the containers of both lists.
func sidecarsOf(set *v1beta1.SidecarSet) []*v1beta1.SidecarContainer {
	var all []*v1beta1.SidecarContainer
	for _, list := range [][]v1beta1.SidecarContainer{set.Spec.Containers, set.Spec.InitContainers} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
}

func (s *scenario) create() {
	cold := v1beta1.SidecarContainer{Container: corev1.Container{Name: "log", Image: s.Image()}}
	hot := v1beta1.SidecarContainer{
		Container: corev1.Container{Name: "envoy", Image: s.Image()}, PodInjectPolicy: v1beta1.AfterAppContainerType,
		UpgradeStrategy: v1beta1.SidecarContainerUpgradeStrategy{UpgradeType: v1beta1.SidecarContainerHotUpgrade, HotUpgradeEmptyImage: idleImage},
	}
	native := v1beta1.SidecarContainer{Container: corev1.Container{Name: "native", Image: s.Image(), RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: firstSet}}
	switch s.Rand.Intn(4) {
	case 0:
		set.Spec.Containers = []v1beta1.SidecarContainer{hot}
	case 1:
		set.Spec.Containers = []v1beta1.SidecarContainer{cold, hot}
	case 2:
		set.Spec.Containers, set.Spec.InitContainers = []v1beta1.SidecarContainer{cold}, []v1beta1.SidecarContainer{native}
	default:
		set.Spec.Containers = []v1beta1.SidecarContainer{cold}
	}
	s.store(set)
}

func (s *scenario) createSecond() {
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: secondSet}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "agent", Image: s.Image()}}}
	s.store(set)
}

func (s *scenario) store(set *v1beta1.SidecarSet) {
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	s.limit(set)
	if err := defaults.SidecarSet(set); err != nil {
		panic(err)
	}
	if _, err := s.Cluster.Create(promises.UserActor, set); err != nil {
		panic(err)
	}
}

func (s *scenario) limit(set *v1beta1.SidecarSet) {
	set.Spec.UpdateStrategy.MaxUnavailable = s.Amount(4)
}

// addPod lets an owner of some kind create a Pod, which gets the sidecars unless admission is down.
func (s *scenario) addPod() {
	s.pods++
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("web-%d", s.pods), Namespace: []string{"default", "other"}[s.Rand.Intn(2)], Labels: map[string]string{"app": "web"},
	}}
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:v1"}}
	if s.Chance(30) {
		p.Labels["canary"] = "yes"
	}
	if s.Chance(95) {
		var all []*inject.Sidecars
		for _, set := range s.sets() {
			sidecars, err := inject.Compile(set)
			if err != nil {
				panic(err)
			}
			all = append(all, sidecars)
		}
		if _, err := inject.Into(p, all, inject.Options{Now: s.Cluster.Now()}); err != nil {
			panic(err)
		}
	}
	if _, err := s.Cluster.Create("owner", p); err != nil {
		panic(err)
	}
}

// act does something that a user, or the owner of a Pod, might do at any moment.
func (s *scenario) act() {
	sets := s.sets()
	set := sets[s.Rand.Intn(len(sets))]
	edit := func(change func(*v1beta1.SidecarSet)) {
		simulate.Update(s.Cluster, promises.UserActor, set, func(set *v1beta1.SidecarSet) {
			change(set)
			if err := defaults.SidecarSet(set); err != nil {
				panic(err)
			}
		})
	}
	strategy := func(set *v1beta1.SidecarSet) *v1beta1.SidecarSetUpdateStrategy { return &set.Spec.UpdateStrategy }
	container := func(set *v1beta1.SidecarSet) *v1beta1.SidecarContainer {
		all := sidecarsOf(set)
		return all[s.Rand.Intn(len(all))]
	}
	switch n := s.Rand.Intn(100); {
	case n < 30:
		edit(func(set *v1beta1.SidecarSet) { container(set).Image = s.Image() })
	case n < 36:
		edit(func(set *v1beta1.SidecarSet) {
			c := container(set)
			if c.Env = nil; s.Chance(50) {
				c.Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
			}
		})
	case n < 39:
		edit(func(set *v1beta1.SidecarSet) { set.Spec.Volumes = []corev1.Volume{{Name: "v" + s.Image()[5:]}} })
	case n < 46:
		edit(func(set *v1beta1.SidecarSet) { strategy(set).Partition, strategy(set).Selector = s.Amount(6), nil })
	case n < 50:
		edit(func(set *v1beta1.SidecarSet) {
			zero := intstr.FromInt32(0)
			strategy(set).Partition, strategy(set).Selector = &zero, &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}}
		})
	case n < 54:
		edit(s.limit)
	case n < 59:
		edit(func(set *v1beta1.SidecarSet) { strategy(set).Paused = !strategy(set).Paused })
	case n < 61:
		edit(func(set *v1beta1.SidecarSet) {
			strategy(set).Type = v1beta1.RollingUpdateSidecarSetStrategyType
			if s.Chance(50) {
				strategy(set).Type = v1beta1.NotUpdateSidecarSetStrategyType
			}
		})
	case n < 64:
		edit(func(set *v1beta1.SidecarSet) { set.Spec.CustomVersion = s.Image()[4:] })
	case n < 65:
		if second := s.set(secondSet); second != nil {
			s.Cluster.Delete(promises.UserActor, second)
		} else {
			s.createSecond()
		}
	case n < 73:
		s.addPod()
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
	case n < 30:
		s.Cluster.Delete("owner", p)
	case n < 55:
		simulate.Update(s.Cluster, "owner", p, func(p *corev1.Pod) {
			for i := range p.Spec.Containers {
				if c := &p.Spec.Containers[i]; c.Name == "app" {
					c.Image = fmt.Sprintf("app:v%d", 1+s.Rand.Intn(3))
				}
			}
		})
	case n < 65:
		simulate.Update(s.Cluster, promises.UserActor, p, func(p *corev1.Pod) { p.Labels["app"] = []string{"web", "stray"}[s.Rand.Intn(2)] })
	case n < 80:
		simulate.Update(s.Cluster, promises.UserActor, p, func(p *corev1.Pod) { p.Labels["canary"] = []string{"yes", "no"}[s.Rand.Intn(2)] })
	default:
		s.Meddle(p)
	}
}

// relent lifts what a user may set to keep a rollout from ending, and has owners give up Pods that nobody can mend.
func (s *scenario) relent() {
	for _, set := range s.sets() {
		simulate.Update(s.Cluster, promises.UserActor, set, func(set *v1beta1.SidecarSet) {
			zero, one := intstr.FromInt32(0), intstr.FromInt32(1)
			set.Spec.UpdateStrategy = v1beta1.SidecarSetUpdateStrategy{Type: v1beta1.RollingUpdateSidecarSetStrategyType, Partition: &zero, MaxUnavailable: &one}
			for _, c := range sidecarsOf(set) {
				if c.Image == badImage {
					c.Image = "app:v3"
				}
			}
		})
	}
	for _, p := range s.Pods() {
		if s.isLost(p) {
			s.Cluster.Delete("owner", p)
		}
	}
}

// isLost reports whether a sidecar of the Pod has a bad image that will not be replaced, because its SidecarSet is gone or differs in more than images.
func (s *scenario) isLost(p *corev1.Pod) bool {
	for name, containers := range map[string][]string{firstSet: {"log", "native", "envoy-1", "envoy-2"}, secondSet: {"agent"}} {
		set := s.set(name)
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			if c.Image != badImage || !slices.Contains(containers, c.Name) {
				continue
			}
			if set == nil || p.Labels["app"] != "web" {
				return true
			}
			hashes, err := sidecar.HashesOf(&set.Spec)
			records, readErr := sidecar.RecordsIn(p, keys.SidecarSetHashWithoutImage)
			if err != nil || readErr != nil || records[name].Hash != hashes.WithoutImage {
				return true
			}
		}
	}
	return false
}
