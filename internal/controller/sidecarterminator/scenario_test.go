package sidecarterminator

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/terminate"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// scenario is Pods that do their work and end, on a node with a daemon or on a virtual one.
type scenario struct {
	promises.User
	made int
	// silent says that the daemon does nothing, clumsy that it often stops nothing of what it was asked to.
	silent, clumsy bool
}

func newScenario(w *promises.World) *scenario {
	s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}}
	w.Rig.Sound = true // a container that has ended does not come back
	s.silent, s.clumsy = s.Chance(20), s.Chance(30)
	for _, node := range []*corev1.Node{
		{ObjectMeta: metav1.ObjectMeta{Name: "real"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "virtual", Labels: map[string]string{keys.NodeType: keys.NodeTypeVirtual}}},
	} {
		if _, err := s.Cluster.Create(promises.UserActor, node); err != nil {
			panic(err)
		}
	}
	for range 2 + s.Rand.Intn(3) {
		s.addPod()
	}
	return s
}

func (s *scenario) addPod() {
	s.made++
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("work-", s.made)}}
	p.Spec.NodeName, p.Spec.RestartPolicy = "real", corev1.RestartPolicyNever
	virtual := s.Chance(20)
	if virtual {
		p.Spec.NodeName = "virtual"
	}
	if s.Chance(40) {
		p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
	for i := range 1 + s.Rand.Intn(2) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint("main-", i), Image: "app:v1"})
	}
	for i := range 1 + s.Rand.Intn(2) {
		c := corev1.Container{Name: fmt.Sprint("side-", i), Image: "side:v1"}
		if virtual || s.Chance(30) {
			c.Env = append(c.Env, corev1.EnvVar{Name: keys.TerminateSidecarWithImageEnv, Value: "ends:v1"})
		}
		if len(c.Env) == 0 || s.Chance(50) {
			c.Env = append(c.Env, corev1.EnvVar{Name: keys.TerminateSidecarEnv, Value: "true"})
		}
		if s.Chance(30) {
			c.Env = append(c.Env, corev1.EnvVar{Name: keys.TerminateSidecarIgnoreExitCodeEnv, Value: "true"})
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	if _, err := s.Cluster.Create(promises.UserActor, p); err != nil {
		panic(err)
	}
}

// act does something that a user might do at any moment.
func (s *scenario) act() {
	pods := s.Pods()
	switch n := s.Rand.Intn(100); {
	case n < 30 && s.made < 12:
		s.addPod()
	case n < 40 && len(pods) > 0:
		s.Cluster.Delete(promises.UserActor, pods[s.Rand.Intn(len(pods))])
	case len(pods) > 0:
		s.Meddle(pods[s.Rand.Intn(len(pods))])
	}
}

// relent has the daemon do what it is asked for.
func (s *scenario) relent() { s.silent, s.clumsy = false, false }

// stop has a container of a running Pod end, and reports whether it ran.
func (s *scenario) stop(p *corev1.Pod, container string, code int32) (stopped bool) {
	simulate.Update(s.Cluster, "kubelet", p, func(p *corev1.Pod) {
		for i := range p.Status.ContainerStatuses {
			if c := &p.Status.ContainerStatuses[i]; c.Name == container && c.State.Running != nil {
				c.State, stopped = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}, true
			}
		}
	})
	return stopped
}

// work has a main container end that has been running, or a sidecar with the image that ends by itself, and reports whether there was one.
func (s *scenario) work() bool {
	for _, p := range s.Pods() {
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			continue
		}
		for _, c := range p.Status.ContainerStatuses {
			code := int32(0)
			if isMain(c.Name) && p.Spec.RestartPolicy == corev1.RestartPolicyNever && s.Chance(30) {
				code = 1
			}
			if (isMain(c.Name) || strings.HasPrefix(c.Image, "ends")) && s.stop(p, c.Name, code) {
				return true
			}
		}
	}
	return false
}

// daemon carries a request out, and reports whether there was one.
func (s *scenario) daemon() bool {
	for _, object := range s.Cluster.Of(v1beta1.GroupVersion.WithKind("ContainerRecreateRequest")) {
		r := object.(*v1beta1.ContainerRecreateRequest)
		if s.silent || r.Status.Phase == v1beta1.ContainerRecreateRequestCompleted {
			continue
		}
		p, _ := s.Cluster.Get(simulate.Key{Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Namespace: r.Namespace, Name: r.Spec.PodName}).(*corev1.Pod)
		for _, c := range r.Spec.Containers {
			if p != nil && (!s.clumsy || s.Chance(50)) {
				s.stop(p, c.Name, 143)
			}
		}
		now := metav1.NewTime(s.Cluster.Now()).Rfc3339Copy()
		simulate.Update(s.Cluster, "daemon", r, func(r *v1beta1.ContainerRecreateRequest) {
			r.Status.Phase, r.Status.CompletionTime = v1beta1.ContainerRecreateRequestCompleted, &now
		})
		return true
	}
	return false
}

// kubelets end a Pod whose containers have all ended, or stop what runs in one that was ended, and report whether there was one.
func (s *scenario) kubelets() bool {
	for _, p := range s.Pods() {
		running := slices.IndexFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Running != nil })
		switch {
		case p.Status.Phase == corev1.PodRunning && running < 0 && len(p.Status.ContainerStatuses) > 0:
			phase := corev1.PodSucceeded
			if slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Terminated.ExitCode != 0 }) {
				phase = corev1.PodFailed
			}
			simulate.Update(s.Cluster, "kubelet", p, func(p *corev1.Pod) { p.Status.Phase = phase })
			return true
		case (p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed) && running >= 0:
			return s.stop(p, p.Status.ContainerStatuses[running].Name, 137)
		}
	}
	return false
}

// converged returns what is wrong, now that the cluster is at rest.
func (s *scenario) converged() (problems []string) {
	requests := map[string]int{}
	for _, object := range s.Cluster.Of(v1beta1.GroupVersion.WithKind("ContainerRecreateRequest")) {
		requests[object.(*v1beta1.ContainerRecreateRequest).Spec.PodName]++
	}
	for _, p := range s.Pods() {
		done, _ := terminate.IsDone(p)
		if done && p.Status.Phase == corev1.PodRunning && requests[p.Name] < mostRequests {
			problems = append(problems, fmt.Sprintf("at rest, %s has done its work and goes on, after %d requests", p.Name, requests[p.Name]))
		}
	}
	return problems
}
