package invariant

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/rules/ephemeral"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// The rules that CheckEphemeralJob knows, besides RuleOver.
const (
	RuleAddedOnce            = "no Pod is given the containers of a job twice"
	RuleEphemeralParallelism = "no container of a job beyond parallelism"
	RuleEphemeralReplicas    = "no container of a job beyond replicas"
	RuleEphemeralTarget      = "no container for a Pod that the job is not for"
	RuleEphemeralPaused      = "no container of a job that is paused"
)

// ephemeralJobs is the history of EphemeralJobs and all Pods up to a change.
type ephemeralJobs struct {
	jobs       map[types.UID][]dated[*v1alpha1.EphemeralJob]
	pods       map[string]*corev1.Pod
	violations []Violation
}

// CheckEphemeralJob returns the promises that an EphemeralJob controller has broken in a history. What it had not seen of Pods is no excuse
// for a container beyond parallelism or replicas.
func CheckEphemeralJob(history []simulate.Change) []Violation {
	e := &ephemeralJobs{jobs: map[types.UID][]dated[*v1alpha1.EphemeralJob]{}, pods: map[string]*corev1.Pod{}}
	for _, c := range history {
		switch c.Key.Kind.Kind {
		case "EphemeralJob":
			e.recordJob(c)
		case "Pod":
			e.recordPod(c)
		}
	}
	return e.violations
}

func (e *ephemeralJobs) breaks(rule string, c simulate.Change, format string, args ...any) {
	e.violations = append(e.violations, Violation{Rule: rule, Revision: c.Revision, Text: fmt.Sprintf(format, args...)})
}

func (e *ephemeralJobs) recordJob(c simulate.Change) {
	uid := eitherOf(c).GetUID()
	after, exists := c.After.(*v1alpha1.EphemeralJob)
	e.jobs[uid] = append(e.jobs[uid], dated[*v1alpha1.EphemeralJob]{c.Revision, c.Time, c.Pass, c.Late, after})
	if before, existed := c.Before.(*v1alpha1.EphemeralJob); existed && exists && isDone(before) &&
		!equality.Semantic.DeepEqual(before.Status, after.Status) {
		e.breaks(RuleOver, c, "its status is changed")
	}
}

func isDone(job *v1alpha1.EphemeralJob) bool {
	return job.Status.Phase == v1alpha1.EphemeralJobSucceeded || job.Status.Phase == v1alpha1.EphemeralJobFailed
}

func (e *ephemeralJobs) recordPod(c simulate.Change) {
	before, _ := c.Before.(*corev1.Pod)
	after, exists := c.After.(*corev1.Pod)
	if before != nil && exists && c.Pass != nil && !c.Late && len(after.Spec.EphemeralContainers) > len(before.Spec.EphemeralContainers) {
		for _, uid := range ephemeral.Jobs(after) {
			if job := at(e.jobs[uid], c.Pass.Seen[v1alpha1.GroupVersion.WithKind("EphemeralJob")]); job != nil &&
				containersOf(after, uid) > containersOf(before, uid) {
				e.judge(c, job, before, after)
			}
		}
	}
	if exists {
		e.pods[c.Key.Name] = after
	} else {
		delete(e.pods, c.Key.Name)
	}
}

// containersOf returns the number of the Pod's containers that are the job's.
func containersOf(p *corev1.Pod, job types.UID) int {
	n := 0
	for i := range p.Spec.EphemeralContainers {
		alone := &corev1.Pod{Spec: corev1.PodSpec{EphemeralContainers: p.Spec.EphemeralContainers[i : i+1]}}
		if ephemeral.Has(alone, job) {
			n++
		}
	}
	return n
}

// judge judges the moment in which a Pod is given the containers of a job, which is as its controller had seen it.
func (e *ephemeralJobs) judge(c simulate.Change, job *v1alpha1.EphemeralJob, before, after *corev1.Pod) {
	switch {
	case isDone(job) || job.DeletionTimestamp != nil:
		e.breaks(RuleOver, c, "Pod %s is given containers", after.Name)
	case job.Spec.Paused:
		e.breaks(RuleEphemeralPaused, c, "Pod %s is given containers", after.Name)
	}
	if containersOf(before, job.UID) > 0 {
		e.breaks(RuleAddedOnce, c, "Pod %s has them", after.Name)
	}
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil || !selector.Matches(labels.Set(before.Labels)) || hasEnded(before) || before.DeletionTimestamp != nil {
		e.breaks(RuleEphemeralTarget, c, "Pod %s, labels %v, phase %s", after.Name, before.Labels, before.Status.Phase)
	}
	busy, all := 1, 1
	for _, p := range e.pods {
		if p.UID == after.UID || !ephemeral.Has(p, job.UID) {
			continue
		}
		all++
		if ephemeral.ProgressOf(p, job.UID).Busy {
			busy++
		}
	}
	if limit := job.Spec.Parallelism; limit != nil && busy > int(*limit) {
		e.breaks(RuleEphemeralParallelism, c, "containers run in %d Pods, parallelism is %d", busy, *limit)
	}
	if limit := job.Spec.Replicas; limit != nil && all > int(*limit) {
		e.breaks(RuleEphemeralReplicas, c, "%d Pods have them, replicas is %d", all, *limit)
	}
}

// EphemeralConverged returns what a job at rest, nil for none, has left undone.
func EphemeralConverged(cluster *simulate.Cluster, job *v1alpha1.EphemeralJob) []string {
	switch {
	case job == nil:
		return nil
	case isDone(job):
		if job.Status.CompletionTime == nil || len(job.Status.Conditions) != 2 {
			return []string{fmt.Sprintf("the job is over with the status %+v", job.Status)}
		}
		return nil
	case job.Status.Match > 0:
		return []string{fmt.Sprintf("nothing happens any more, and the job is not over: %+v", job.Status)}
	}
	var out []string
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return []string{err.Error()}
	}
	for _, object := range cluster.Of(corev1.SchemeGroupVersion.WithKind("Pod")) {
		p := object.(*corev1.Pod)
		if selector.Matches(labels.Set(p.Labels)) && !hasEnded(p) && ephemeral.Unfit(p, job.Spec.Template.EphemeralContainers) == "" {
			out = append(out, fmt.Sprintf("Pod %s is not seen", p.Name))
		}
	}
	return out
}
