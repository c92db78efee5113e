package broadcastjob

import (
	"fmt"
	"math/rand"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/simulate"
)

const userActor = "user"

// scenario is one user with one BroadcastJob after the other, and an administrator whose nodes come, go, are tainted and cordoned.
type scenario struct {
	cluster *simulate.Cluster
	rand    *rand.Rand
	key     simulate.Key
}

func newScenario(c *simulate.Cluster, r *rand.Rand) *scenario {
	s := &scenario{cluster: c, rand: r, key: simulate.Key{Kind: kind(), Namespace: "default", Name: "patch"}}
	for range 3 + r.Intn(4) {
		s.addNode()
	}
	s.create()
	return s
}

func (s *scenario) job() *v1beta1.BroadcastJob {
	job, _ := s.cluster.Get(s.key).(*v1beta1.BroadcastJob)
	return job
}

func (s *scenario) chance(percent int) bool { return s.rand.Intn(100) < percent }

func (s *scenario) addNode() {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", s.rand.Intn(8)), Labels: map[string]string{"disk": "ssd"}}}
	_, _ = s.cluster.Create(userActor, node) // the name may be taken
}

func (s *scenario) create() {
	job := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Name: s.key.Name, Namespace: s.key.Namespace}}
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "app", Image: "app:v1"}},
	}
	if s.chance(40) {
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		job.Spec.FailurePolicy.RestartLimit = int32(s.rand.Intn(2))
	}
	if s.chance(30) {
		job.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "l", Operator: corev1.TolerationOpExists}}
	}
	s.parallelism(job)
	policies := []v1beta1.FailurePolicyType{"", v1beta1.FailurePolicyTypeContinue, v1beta1.FailurePolicyTypeFailFast, v1beta1.FailurePolicyTypePause, v1beta1.FailurePolicyTypePause}
	job.Spec.FailurePolicy.Type = policies[s.rand.Intn(len(policies))]
	job.Spec.CompletionPolicy.Type = v1beta1.AlwaysComplete
	switch {
	case s.chance(25):
		job.Spec.CompletionPolicy.Type = v1beta1.NeverComplete
	case s.chance(30):
		seconds := int64(10 + s.rand.Intn(60))
		job.Spec.CompletionPolicy.ActiveDeadlineSeconds = &seconds
	case s.chance(30):
		seconds := int32(s.rand.Intn(20))
		job.Spec.CompletionPolicy.TTLSecondsAfterFinished = &seconds
	}
	job.Spec.Paused = s.chance(10)
	if _, err := s.cluster.Create(userActor, job); err != nil {
		panic(err)
	}
}

func (s *scenario) parallelism(job *v1beta1.BroadcastJob) {
	values := []intstr.IntOrString{intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("30%"), intstr.FromString("100%"), intstr.FromInt32(0)}
	job.Spec.Parallelism = nil
	if s.chance(80) {
		job.Spec.Parallelism = &values[s.rand.Intn(len(values))]
	}
}

// act does something that a user or an administrator might do at any moment.
func (s *scenario) act() {
	job := s.job()
	if job == nil {
		s.create()
		return
	}
	switch n := s.rand.Intn(100); {
	case n < 10:
		simulate.Update(s.cluster, userActor, job, s.parallelism)
	case n < 25:
		simulate.Update(s.cluster, userActor, job, func(job *v1beta1.BroadcastJob) { job.Spec.Paused = !job.Spec.Paused })
	case n < 30:
		simulate.Update(s.cluster, userActor, job, func(job *v1beta1.BroadcastJob) { job.Spec.Template.Spec.Containers[0].Image += "1" })
	case n < 33:
		s.cluster.Delete(userActor, job)
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
	change := func(change func(*corev1.Node)) { simulate.Update(s.cluster, userActor, node, change) }
	switch n := s.rand.Intn(100); {
	case n < 15:
		s.cluster.Delete(userActor, node)
	case n < 60:
		change(func(node *corev1.Node) {
			node.Spec.Taints = nil
			if s.chance(60) {
				effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule}
				node.Spec.Taints = []corev1.Taint{{Key: []string{"k", "l"}[s.rand.Intn(2)], Effect: effects[s.rand.Intn(3)]}}
			}
		})
	case n < 80:
		change(func(node *corev1.Node) { node.Spec.Unschedulable = !node.Spec.Unschedulable })
	default:
		change(func(node *corev1.Node) { node.Status.Phase = corev1.NodePhase(fmt.Sprint(s.rand.Intn(9))) }) // a heartbeat
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
	if s.chance(20) {
		s.cluster.Delete(userActor, p)
		return
	}
	simulate.Update(s.cluster, "rogue", p, func(p *corev1.Pod) {
		p.Annotations = map[string]string{"rogue": fmt.Sprint(s.rand.Intn(1000))}
	})
}

// runPods has a Pod that runs end, mostly well, and reports whether there was one.
func (s *scenario) runPods() bool {
	for _, p := range s.pods() {
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			continue
		}
		simulate.Update(s.cluster, "kubelet", p, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodSucceeded
			if s.chance(20) {
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
	simulate.Update(s.cluster, userActor, s.job(), func(job *v1beta1.BroadcastJob) {
		job.Spec.Paused, job.Spec.Parallelism = false, nil
	})
}

// goOn is a user who lets a job go on that has paused itself, and reports whether there was one.
func (s *scenario) goOn() bool {
	job := s.job()
	if job == nil || !job.Spec.Paused {
		return false
	}
	simulate.Update(s.cluster, userActor, job, func(job *v1beta1.BroadcastJob) { job.Spec.Paused = false })
	return true
}
