package ephemeraljob

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// scenario is one user with one EphemeralJob after the other, for Pods that others make, label, end and delete.
type scenario struct {
	promises.User
	key  simulate.Key
	made int
}

func newScenario(w *promises.World) *scenario {
	s := &scenario{
		User: promises.User{Cluster: w.Cluster, Rand: w.Rand},
		key:  simulate.Key{Kind: v1alpha1.GroupVersion.WithKind("EphemeralJob"), Namespace: "default", Name: "shell"},
	}
	for range 3 + w.Rand.Intn(6) {
		s.addPod()
	}
	s.create()
	return s
}

func (s *scenario) job() *v1alpha1.EphemeralJob {
	job, _ := s.Cluster.Get(s.key).(*v1alpha1.EphemeralJob)
	return job
}

func (s *scenario) addPod() {
	s.made++
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", s.made), Namespace: "default", Labels: map[string]string{"app": s.app()}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}},
	}
	if s.Chance(10) {
		p.Spec.Containers[0].Name = "shell" // as the container of some jobs
	}
	if _, err := s.Cluster.Create(promises.UserActor, p); err != nil {
		panic(err)
	}
}

func (s *scenario) app() string {
	if s.Chance(20) {
		return "other"
	}
	return "web"
}

func (s *scenario) create() {
	job := jobWith()
	job.UID, job.Status = "", v1alpha1.EphemeralJobStatus{}
	s.parallelism(job)
	s.made++
	template := &job.Spec.Template
	if s.Chance(50) {
		template.EphemeralContainers[0].Name = fmt.Sprintf("shell-%d", s.made)
	}
	if s.Chance(30) {
		second := template.EphemeralContainers[0].DeepCopy()
		second.Name += "-2"
		template.EphemeralContainers = append(template.EphemeralContainers, *second)
	}
	if s.Chance(40) {
		job.Spec.Replicas = ptr(int32(1 + s.Rand.Intn(5)))
	}
	switch n := s.Rand.Intn(100); {
	case n < 25:
		job.Spec.ActiveDeadlineSeconds = ptr(int64(10 + s.Rand.Intn(60)))
	case n < 50:
		job.Spec.TTLSecondsAfterFinished = ptr(int32(s.Rand.Intn(20)))
	}
	job.Spec.Paused = s.Chance(10)
	if _, err := s.Cluster.Create(promises.UserActor, job); err != nil {
		panic(err)
	}
}

func (s *scenario) parallelism(job *v1alpha1.EphemeralJob) {
	job.Spec.Parallelism = nil
	if s.Chance(80) {
		job.Spec.Parallelism = ptr(int32(s.Rand.Intn(4)))
	}
}

// act does something that a user, or the owner of the Pods, might do at any moment.
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
		simulate.Update(s.Cluster, promises.UserActor, job, func(job *v1alpha1.EphemeralJob) { job.Spec.Paused = !job.Spec.Paused })
	case n < 30:
		simulate.Update(
			s.Cluster, promises.UserActor, job, func(job *v1alpha1.EphemeralJob) { job.Spec.Replicas = ptr(int32(1 + s.Rand.Intn(6))) },
		)
	case n < 36:
		s.Cluster.Delete(promises.UserActor, job)
	case n < 50:
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
	case n < 20:
		s.Cluster.Delete(promises.UserActor, p)
	case n < 40:
		simulate.Update(s.Cluster, promises.UserActor, p, func(p *corev1.Pod) { p.Labels["app"] = s.app() })
	case n < 50:
		simulate.Update(s.Cluster, "kubelet", p, func(p *corev1.Pod) {
			if p.Spec.NodeName != "" {
				p.Status.Phase = corev1.PodSucceeded
			}
		})
	default:
		s.Meddle(p)
	}
}

// endContainers has an ephemeral container that runs end, mostly well, and reports whether there was one.
func (s *scenario) endContainers() bool {
	for _, p := range s.Pods() {
		for i := range p.Status.EphemeralContainerStatuses {
			if p.Status.EphemeralContainerStatuses[i].State.Running == nil || p.Status.Phase != corev1.PodRunning {
				continue
			}
			code := int32(0)
			if s.Chance(15) {
				code = 1
			}
			simulate.Update(s.Cluster, "kubelet", p, func(p *corev1.Pod) {
				p.Status.EphemeralContainerStatuses[i].State = corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{ExitCode: code},
				}
			})
			return true
		}
	}
	return false
}

// relent lifts what a user may set to keep a job from ending.
func (s *scenario) relent() {
	if s.job() == nil {
		return
	}
	simulate.Update(s.Cluster, promises.UserActor, s.job(), func(job *v1alpha1.EphemeralJob) {
		job.Spec.Paused, job.Spec.Parallelism = false, ptr[int32](2)
	})
}
