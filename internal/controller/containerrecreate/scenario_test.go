package containerrecreate

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/recreate"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// scenario is somebody who asks to recreate containers of Pods that come and go, and the daemon of their node.
type scenario struct {
	promises.User
	kubelet *simulate.Kubelet
	made    int
	// silent says that the daemon does nothing at first, older that it tells nothing of new containers, and blind that it does not see Pods.
	silent, older, blind bool
}

func newScenario(w *promises.World) *scenario {
	s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}, kubelet: w.Rig.Kubelet}
	s.silent, s.older = s.Chance(15), s.Chance(40)
	s.blind = s.older && s.Chance(50)
	for range 2 + s.Rand.Intn(3) {
		s.addPod()
	}
	return s
}

func (s *scenario) addPod() {
	s.made++
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p-", s.Rand.Intn(5))}}
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: "app:v1"}, {Name: "side", Image: "side:v1"}}
	if s.Chance(70) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: pub.KruisePodReady}}
	}
	_, _ = s.Cluster.Create(promises.UserActor, p) // the name may be taken
}

func (s *scenario) requests() []*v1beta1.ContainerRecreateRequest {
	var out []*v1beta1.ContainerRecreateRequest
	for _, object := range s.Cluster.Of(v1beta1.GroupVersion.WithKind("ContainerRecreateRequest")) {
		out = append(out, object.(*v1beta1.ContainerRecreateRequest))
	}
	return out
}

// ask makes a request as admission does: only for a Pod whose containers run.
func (s *scenario) ask(p *corev1.Pod) {
	if len(p.Status.ContainerStatuses) < 2 || !pod.IsActive(p) {
		return
	}
	s.made++
	r := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("r-", s.made)}}
	r.Spec.PodName, r.Spec.Containers = p.Name, []v1beta1.ContainerRecreateRequestContainer{{Name: "main"}}
	if s.Chance(40) {
		r.Spec.Containers = append(r.Spec.Containers, v1beta1.ContainerRecreateRequestContainer{Name: "side"})
	}
	r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{OrderedRecreate: s.Chance(50), ForceRecreate: s.Chance(20)}
	if s.Chance(60) {
		r.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(s.Rand.Intn(10)))
	}
	if s.Chance(50) {
		r.Spec.ActiveDeadlineSeconds = new(int64(3 + s.Rand.Intn(60)))
	}
	if s.Chance(30) {
		r.Spec.TTLSecondsAfterFinished = new(int32(s.Rand.Intn(60)))
	}
	recreate.Fill(r, p, &corev1.Node{})
	if _, err := s.Cluster.Create(promises.UserActor, r); err != nil {
		panic(err)
	}
}

// act does something that a user, or the owner of the Pods, might do at any moment.
func (s *scenario) act() {
	pods, requests := s.Pods(), s.requests()
	switch n := s.Rand.Intn(100); {
	case n < 15 || len(pods) == 0:
		s.addPod()
	case n < 60:
		s.ask(pods[s.Rand.Intn(len(pods))])
	case n < 70:
		s.Cluster.Delete(promises.UserActor, pods[s.Rand.Intn(len(pods))])
	case n < 80 && len(requests) > 0:
		s.Cluster.Delete(promises.UserActor, requests[s.Rand.Intn(len(requests))])
	case n < 90 && len(requests) > 0:
		simulate.Update(s.Cluster, promises.UserActor, requests[s.Rand.Intn(len(requests))], func(r *v1beta1.ContainerRecreateRequest) {
			r.Labels["mine"] = fmt.Sprint(s.Rand.Intn(1000))
		})
	default:
		s.Meddle(pods[s.Rand.Intn(len(pods))])
	}
}

// daemon does the next thing that the daemons of all nodes do, and reports whether there was any.
func (s *scenario) daemon() bool {
	if s.silent {
		s.silent = s.Chance(95)
		return false
	}
	byPod := map[string][]*v1beta1.ContainerRecreateRequest{}
	for _, r := range s.requests() {
		if r.Labels[keys.RecreateActive] == "true" {
			byPod[r.Spec.PodName] = append(byPod[r.Spec.PodName], r)
		}
	}
	for _, r := range s.requests() {
		current, waiting := recreate.Pick(byPod[r.Spec.PodName])
		for _, other := range waiting {
			if other.Status.Phase == "" {
				return s.write(other, func(s *recreate.Status) { s.Phase = v1beta1.ContainerRecreateRequestPending })
			}
		}
		if current != nil && current.Name == r.Name && s.carryOut(r) {
			return true
		}
	}
	return false
}

func (s *scenario) write(r *v1beta1.ContainerRecreateRequest, change func(*recreate.Status)) bool {
	before := r.ResourceVersion
	return simulate.Update(
		s.Cluster, "daemon", r, func(r *v1beta1.ContainerRecreateRequest) { change(&r.Status) },
	).GetResourceVersion() != before
}

// carryOut takes a request a step further, as package restart does, and reports whether anything has changed.
func (s *scenario) carryOut(r *v1beta1.ContainerRecreateRequest) bool {
	if r.Status.Phase != v1beta1.ContainerRecreateRequestRecreating {
		return s.write(r, func(s *recreate.Status) { s.Phase = v1beta1.ContainerRecreateRequestRecreating })
	}
	if left, begun := recreate.GraceLeft(r, s.Cluster.Now()); !begun {
		return false
	} else if left > 0 {
		s.Cluster.Sleep(left)
		return true
	}
	p := s.podOf(r)
	if p == nil || !pod.IsActive(p) {
		return false
	}
	observed := recreate.Observed{Request: r, Pod: p, Now: s.Cluster.Now(), Containers: map[string]recreate.Container{}}
	for _, c := range p.Status.ContainerStatuses {
		observed.Containers[c.Name] = recreate.Container{
			ID: c.ContainerID, RestartCount: c.RestartCount, State: recreate.Running, StartedAt: s.Cluster.Now().Add(-time.Minute),
		}
	}
	if s.blind {
		observed.Pod = nil
	}
	step := recreate.Next(observed)
	changed := s.write(r, func(status *recreate.Status) {
		status.ContainerRecreateStates = step.States
		if step.Complete && !s.older {
			status.ContainerStatusSnapshot = recreate.Snapshot(r, p)
		}
		if step.Complete {
			recreate.Complete(status, "", s.Cluster.Now())
		}
	})
	if step.Kill != nil {
		s.kubelet.RestartContainer(p, step.Kill.Name)
		return true
	}
	return changed
}

// isCutOff reports whether a request waits for containers of a Pod that has failed: nothing but a deadline, or the end of the Pod, ends it.
func (s *scenario) isCutOff(r *v1beta1.ContainerRecreateRequest) bool {
	p := s.podOf(r)
	return p != nil && pod.IsFinished(p) && r.Spec.ActiveDeadlineSeconds == nil
}

// podOf returns the Pod that a request was made for; nil when it is gone.
func (s *scenario) podOf(r *v1beta1.ContainerRecreateRequest) *corev1.Pod {
	key := simulate.Key{Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Namespace: r.Namespace, Name: r.Spec.PodName}
	if p, _ := s.Cluster.Get(key).(*corev1.Pod); p != nil && string(p.UID) == r.Labels[keys.RecreatePodUID] {
		return p
	}
	return nil
}
