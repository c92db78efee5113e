package broadcastjob

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// scenario is one user with one BroadcastJob after the other, and an administrator whose nodes come, go, are tainted and cordoned.
type scenario struct {
	promises.User
	key simulate.Key
}

func newScenario(w *promises.World) *scenario {
	s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}, key: simulate.Key{Kind: kind(), Namespace: "default", Name: "patch"}}
	for range 3 + w.Rand.Intn(4) {
		s.addNode()
	}
	s.create()
	return s
}

func (s *scenario) job() *v1beta1.BroadcastJob {
	job, _ := s.Cluster.Get(s.key).(*v1beta1.BroadcastJob)
	return job
}

func (s *scenario) addNode() {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", s.Rand.Intn(8)), Labels: map[string]string{"disk": "ssd"}}}
	_, _ = s.Cluster.Create(promises.UserActor, node) // the name may be taken
}

func (s *scenario) create() {
	job := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Name: s.key.Name, Namespace: s.key.Namespace}}
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "app", Image: "app:v1"}},
	}
	if s.Chance(40) {
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		job.Spec.FailurePolicy.RestartLimit = int32(s.Rand.Intn(2))
	}
	if s.Chance(30) {
		job.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "l", Operator: corev1.TolerationOpExists}}
	}
	s.parallelism(job)
	policies := []v1beta1.FailurePolicyType{"", v1beta1.FailurePolicyTypeContinue, v1beta1.FailurePolicyTypeFailFast, v1beta1.FailurePolicyTypePause, v1beta1.FailurePolicyTypePause}
	job.Spec.FailurePolicy.Type = policies[s.Rand.Intn(len(policies))]
	job.Spec.CompletionPolicy.Type = v1beta1.AlwaysComplete
	switch n := s.Rand.Intn(100); {
	case n < 25:
		job.Spec.CompletionPolicy.Type = v1beta1.NeverComplete
	case n < 50:
		seconds := int64(10 + s.Rand.Intn(60))
		job.Spec.CompletionPolicy.ActiveDeadlineSeconds = &seconds
	case n < 70:
		seconds := int32(s.Rand.Intn(20))
		job.Spec.CompletionPolicy.TTLSecondsAfterFinished = &seconds
	}
	job.Spec.Paused = s.Chance(10)
	if _, err := s.Cluster.Create(promises.UserActor, job); err != nil {
		panic(err)
	}
}

func (s *scenario) parallelism(job *v1beta1.BroadcastJob) {
	values := []intstr.IntOrString{intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("30%"), intstr.FromString("100%"), intstr.FromInt32(0)}
	job.Spec.Parallelism = nil
	if s.Chance(80) {
		job.Spec.Parallelism = &values[s.Rand.Intn(len(values))]
	}
}

// act does something that a user or an administrator might do at any moment.
func (s *scenario) act() {
	job := s.job()
	if job == nil {
		s.create()
		return
	}
	switch n := s.Rand.Intn(100); {
	case n < 10:
		simulate.Update(s.Cluster, promises.UserActor, job, s.parallelism)
	case n < 25:
		simulate.Update(s.Cluster, promises.UserActor, job, func(job *v1beta1.BroadcastJob) { job.Spec.Paused = !job.Spec.Paused })
	case n < 30:
		simulate.Update(s.Cluster, promises.UserActor, job, func(job *v1beta1.BroadcastJob) { job.Spec.Template.Spec.Containers[0].Image += "1" })
	case n < 33:
		s.Cluster.Delete(promises.UserActor, job)
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
	change := func(change func(*corev1.Node)) { simulate.Update(s.Cluster, promises.UserActor, node, change) }
	switch n := s.Rand.Intn(100); {
	case n < 15:
		s.Cluster.Delete(promises.UserActor, node)
	case n < 60:
		change(func(node *corev1.Node) {
			node.Spec.Taints = nil
			if s.Chance(60) {
				effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule}
				node.Spec.Taints = []corev1.Taint{{Key: []string{"k", "l"}[s.Rand.Intn(2)], Effect: effects[s.Rand.Intn(3)]}}
			}
		})
	case n < 80:
		change(func(node *corev1.Node) { node.Spec.Unschedulable = !node.Spec.Unschedulable })
	default:
		change(func(node *corev1.Node) { node.Status.Phase = corev1.NodePhase(fmt.Sprint(s.Rand.Intn(9))) }) // a heartbeat
	}
}

func (s *scenario) actOnPod() {
	pods := s.Pods()
	if len(pods) == 0 {
		return
	}
	p := pods[s.Rand.Intn(len(pods))]
	if s.Chance(20) {
		s.Cluster.Delete(promises.UserActor, p)
		return
	}
	s.Meddle(p)
}

// runPods has a Pod that runs end, mostly well, and reports whether there was one.
func (s *scenario) runPods() bool {
	for _, p := range s.Pods() {
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			continue
		}
		simulate.Update(s.Cluster, "kubelet", p, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodSucceeded
			if s.Chance(20) {
				p.Status.Phase = corev1.PodFailed
			}
		})
		return true
	}
	return false
}

// relent lifts what a user may set to keep a job from ending.
func (s *scenario) relent() {
	if s.job() == nil {
		return
	}
	simulate.Update(s.Cluster, promises.UserActor, s.job(), func(job *v1beta1.BroadcastJob) {
		job.Spec.Paused, job.Spec.Parallelism = false, nil
	})
}

// goOn is a user who lets a job go on that has paused itself, and reports whether there was one.
func (s *scenario) goOn() bool {
	job := s.job()
	if job == nil || !job.Spec.Paused {
		return false
	}
	simulate.Update(s.Cluster, promises.UserActor, job, func(job *v1beta1.BroadcastJob) { job.Spec.Paused = false })
	return true
}
