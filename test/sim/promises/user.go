package promises

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	// UserActor is who a user's changes are by.
	UserActor = "user"
	hookActor = "hook controller"

	deleteHook = "hook/delete"
	updateHook = "hook/update"
	startHook  = "hook/start"
)

// User acts in a cluster as chance has it, and is the controller behind the hooks of Pods as well.
type User struct {
	Cluster *simulate.Cluster
	Rand    *rand.Rand
}

// Chance is true in so many of 100 cases.
func (u User) Chance(percent int) bool { return u.Rand.Intn(100) < percent }

// Image returns one of four images.
func (u User) Image() string { return fmt.Sprintf("app:v%d", 1+u.Rand.Intn(4)) }

// Amount returns a number from 0 to most, or a percentage in tens.
func (u User) Amount(most int) *intstr.IntOrString {
	value := intstr.FromInt32(int32(u.Rand.Intn(most + 1)))
	if u.Chance(40) {
		value = intstr.FromString(fmt.Sprintf("%d%%", 10*u.Rand.Intn(11)))
	}
	return &value
}

// Pods returns all Pods of the cluster.
func (u User) Pods() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, object := range u.Cluster.Of(corev1.SchemeGroupVersion.WithKind("Pod")) {
		pods = append(pods, object.(*corev1.Pod))
	}
	return pods
}

// Delete deletes a workload, with its Pods or without.
func (u User) Delete(workload client.Object) {
	if u.Chance(50) {
		u.Cluster.Orphan(UserActor, workload)
		return
	}
	u.Cluster.Delete(UserActor, workload)
}

// AwaitDeletion lets the garbage collector work until the object of that name, if it is being deleted, is gone.
func (u User) AwaitDeletion(key simulate.Key) {
	for object := u.Cluster.Get(key); object != nil && object.GetDeletionTimestamp() != nil; object = u.Cluster.Get(key) {
		u.Cluster.Housekeep()
	}
}

// Meddle writes to a Pod as yet another controller might, which costs ours its precondition.
func (u User) Meddle(p *corev1.Pod) {
	simulate.Update(u.Cluster, "rogue", p, func(p *corev1.Pod) {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations["rogue"] = fmt.Sprint(u.Rand.Intn(1000))
	})
}

// PreDelete returns a hook, by a label or a finalizer of the template, that holds Pods that are to go until AnswerHooks lets them.
func (u User) PreDelete(template *corev1.PodTemplateSpec) *pub.LifecycleHook {
	hook := &pub.LifecycleHook{MarkPodNotReady: u.Chance(30)}
	if u.Chance(50) {
		hook.LabelsHandler = map[string]string{deleteHook: "held"}
		template.Labels[deleteHook] = "held"
	} else {
		hook.FinalizersHandler = []string{deleteHook}
		template.Finalizers = append(template.Finalizers, deleteHook)
	}
	return hook
}

// InPlaceUpdate returns a hook, by a label of the template, that holds Pods that are to be updated until AnswerHooks lets them.
func (u User) InPlaceUpdate(template *corev1.PodTemplateSpec) *pub.LifecycleHook {
	template.Labels[updateHook] = "held"
	return &pub.LifecycleHook{LabelsHandler: map[string]string{updateHook: "held"}, MarkPodNotReady: u.Chance(30)}
}

// PreNormal returns a hook that holds new Pods until AnswerHooks lets them.
func (u User) PreNormal() *pub.LifecycleHook {
	return &pub.LifecycleHook{LabelsHandler: map[string]string{startHook: "done"}}
}

// AnswerHooks is the controller behind the hooks: it lets one Pod go on that waits for it, and reports whether there was one.
func (u User) AnswerHooks() bool {
	for _, p := range u.Pods() {
		after := &metav1.ObjectMeta{Labels: maps.Clone(p.Labels), Finalizers: slices.Clone(p.Finalizers)}
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
		default:
			continue
		}
		if maps.Equal(after.Labels, p.Labels) && slices.Equal(after.Finalizers, p.Finalizers) {
			continue
		}
		simulate.Update(u.Cluster, hookActor, p,
			func(stored *corev1.Pod) { stored.Labels, stored.Finalizers = after.Labels, after.Finalizers })
		return true
	}
	return false
}
