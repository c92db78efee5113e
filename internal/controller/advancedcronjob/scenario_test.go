package advancedcronjob

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// scenario is one user with one AdvancedCronJob, and the controllers that run its jobs.
type scenario struct {
	promises.User
	key simulate.Key
}

func newScenario(w *promises.World) *scenario {
	s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}, key: simulate.Key{Kind: kind(), Namespace: "default", Name: "nightly"}}
	s.create()
	return s
}

func (s *scenario) cron() *v1beta1.AdvancedCronJob {
	job, _ := s.Cluster.Get(s.key).(*v1beta1.AdvancedCronJob)
	return job
}

func (s *scenario) pick(schedules ...string) string { return schedules[s.Rand.Intn(len(schedules))] }

func (s *scenario) schedule() string {
	return s.pick("* * * * *", "*/2 * * * *", "@every 20s", "@every 1m", "TZ=Asia/Kolkata */3 * * * *", "0 0 1 1 *", "not a schedule")
}

func (s *scenario) create() {
	job := &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Name: s.key.Name, Namespace: s.key.Namespace}}
	job.Spec.Schedule = s.schedule()
	policies := []v1beta1.ConcurrencyPolicy{"", v1beta1.AllowConcurrent, v1beta1.ForbidConcurrent, v1beta1.ReplaceConcurrent}
	job.Spec.ConcurrencyPolicy = policies[s.Rand.Intn(len(policies))]
	if s.Chance(30) {
		seconds := int64(s.Rand.Intn(60))
		job.Spec.StartingDeadlineSeconds = &seconds
	}
	for _, limit := range []**int32{&job.Spec.SuccessfulJobsHistoryLimit, &job.Spec.FailedJobsHistoryLimit} {
		if s.Chance(60) {
			n := int32(s.Rand.Intn(3))
			*limit = &n
		}
	}
	switch s.Rand.Intn(3) {
	case 0:
		job.Spec.Template.JobTemplate = &batchv1.JobTemplateSpec{}
	case 1:
		job.Spec.Template.BroadcastJobTemplate = &v1beta1.BroadcastJobTemplateSpec{}
	default:
		job.Spec.Template.ImageListPullJobTemplate = &v1beta1.ImageListPullJobTemplateSpec{}
	}
	if _, err := s.Cluster.Create(promises.UserActor, job); err != nil {
		panic(err)
	}
}

// jobs returns all that was made and is still there.
func (s *scenario) jobs() []client.Object {
	var out []client.Object
	for _, k := range jobKinds() {
		out = append(out, s.Cluster.Of(k.gvk)...)
	}
	return out
}

// act does something that a user might do at any moment.
func (s *scenario) act() {
	job := s.cron()
	if job == nil {
		s.create()
		return
	}
	edit := func(change func(*v1beta1.AdvancedCronJob)) {
		simulate.Update(s.Cluster, promises.UserActor, job, change)
	}
	switch n := s.Rand.Intn(100); {
	case n < 15:
		edit(func(job *v1beta1.AdvancedCronJob) {
			paused := job.Spec.Paused == nil || !*job.Spec.Paused
			job.Spec.Paused = &paused
		})
	case n < 25:
		edit(func(job *v1beta1.AdvancedCronJob) { job.Spec.Schedule = s.schedule() })
	case n < 28:
		s.Cluster.Delete(promises.UserActor, job)
	case n < 40:
		s.Cluster.Sleep(time.Duration(s.Rand.Intn(200)) * time.Minute)
	case n < 60:
		if jobs := s.jobs(); len(jobs) > 0 {
			s.Cluster.Delete(promises.UserActor, jobs[s.Rand.Intn(len(jobs))])
		}
	default:
		s.Cluster.Sleep(time.Duration(s.Rand.Intn(40)) * time.Second)
	}
}

// finish has a job finish, and reports whether there was one that had not.
func (s *scenario) finish() bool {
	for _, k := range jobKinds() {
		for _, object := range s.Cluster.Of(k.gvk) {
			if !k.progressOf(object).finished && object.GetDeletionTimestamp() == nil {
				s.end(object)
				return true
			}
		}
	}
	return false
}

func (s *scenario) end(object client.Object) {
	now, well := metav1.NewTime(s.Cluster.Now().Truncate(time.Second)), s.Chance(70)
	switch job := object.(type) {
	case *batchv1.Job:
		simulate.Update(s.Cluster, "job controller", job, func(job *batchv1.Job) {
			kind := batchv1.JobFailed
			if well {
				kind = batchv1.JobComplete
			}
			job.Status.StartTime = &now
			job.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue}}
		})
	case *v1beta1.BroadcastJob:
		simulate.Update(s.Cluster, "job controller", job, func(job *v1beta1.BroadcastJob) {
			kind := v1beta1.BroadcastJobFailure
			if well {
				kind = v1beta1.BroadcastJobComplete
			}
			job.Status.StartTime = &now
			job.Status.Conditions = []v1beta1.BroadcastJobCondition{{Type: kind, Status: corev1.ConditionTrue}}
		})
	case *v1beta1.ImageListPullJob:
		simulate.Update(s.Cluster, "job controller", job, func(job *v1beta1.ImageListPullJob) {
			job.Status.StartTime, job.Status.CompletionTime, job.Status.Desired = &now, &now, 1
			if well {
				job.Status.Succeeded = 1
			}
		})
	default:
		panic(fmt.Sprintf("there are no jobs of type %T", object))
	}
}

// relent lets no slot come any more within the time that the cluster has to come to rest.
func (s *scenario) relent() {
	if s.cron() == nil {
		s.create()
	}
	simulate.Update(s.Cluster, promises.UserActor, s.cron(), func(job *v1beta1.AdvancedCronJob) {
		job.Spec.Schedule, job.Spec.Paused = "0 0 1 1 *", nil
	})
}
