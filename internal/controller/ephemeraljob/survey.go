package ephemeraljob

import (
	"cmp"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/rules/ephemeral"
	"github.com/seed-69ecc383/kruise/internal/rules/order"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Survey is a Snapshot sorted once into what the plan and the status both speak of.
type Survey struct {
	Snapshot
	// targets are the Pods that the job is for: those that have its containers, and then those that are to get them, in that order.
	targets []target
	// unfit are Pods that the selector matches and that can't take the containers, by name.
	unfit []unfit
	// waiting, running, succeeded and failed are numbers of Pods that have the containers, absent of those that are to get them.
	waiting, running, succeeded, failed, absent int
	// busy is the number of Pods in which a container runs or may still start.
	busy    int
	verdict verdict
	// problem is what can't be read in the spec; nothing is planned then.
	problem error
}

// target is a Pod that the job is for.
type target struct {
	pod *corev1.Pod
	ephemeral.Standing
}

// unfit is a Pod that can't take the containers.
type unfit struct{ name, why string }

// Take sorts a snapshot.
func Take(s Snapshot) Survey {
	v := Survey{Snapshot: s}
	if s.Job.DeletionTimestamp != nil || isOver(s.Job) {
		return v
	}
	if _, v.problem = selectorOf(s.Job); v.problem == nil && len(s.Job.Spec.Template.EphemeralContainers) == 0 {
		v.problem = errors.New("template has no ephemeralContainers: add one")
	}
	if v.problem == nil {
		v.choose()
		v.count()
	}
	v.verdict = v.judge()
	return v
}

// choose finds the Pods that the job is for. A Pod that has the containers stays one whatever becomes of its labels. Of the others come first those
// that have a node, and of these the oldest: the order stays the same from pass to pass, so that a controller that knows less than another one did
// before wants what that one wanted, and no more.
func (v *Survey) choose() {
	containers := v.Job.Spec.Template.EphemeralContainers
	var candidates []target
	for _, p := range v.Pods {
		t := target{p, ephemeral.Stand(p, v.Job.UID)}
		switch {
		case t.State != ephemeral.Absent:
			v.targets = append(v.targets, t)
		case !pod.IsActive(p):
		default:
			if why := ephemeral.Refusal(p, containers); why != "" {
				v.unfit = append(v.unfit, unfit{p.Name, why})
				continue
			}
			candidates = append(candidates, t)
		}
	}
	slices.SortFunc(v.targets, func(a, b target) int { return byAge(a.pod, b.pod) })
	slices.SortFunc(v.unfit, func(a, b unfit) int { return cmp.Compare(a.name, b.name) })
	slices.SortFunc(candidates, func(a, b target) int {
		return cmp.Or(order.FalseFirst(v.isRefused(a.pod), v.isRefused(b.pod)), order.FalseFirst(!pod.IsScheduled(a.pod), !pod.IsScheduled(b.pod)), byAge(a.pod, b.pod))
	})
	if limit := v.Job.Spec.Replicas; limit != nil {
		room := max(0, int(*limit)-len(v.targets))
		candidates = candidates[:min(room, len(candidates))]
	}
	v.targets = append(v.targets, candidates...)
}

// isRefused reports whether the API server did not let the Pod have the containers a moment ago: others get their turn first.
func (v *Survey) isRefused(p *corev1.Pod) bool {
	_, refused := v.Refused[p.UID]
	return refused
}

func byAge(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

func (v *Survey) count() {
	for _, t := range v.targets {
		switch t.State {
		case ephemeral.Absent:
			v.absent++
		case ephemeral.Waiting:
			v.waiting++
		case ephemeral.Running:
			v.running++
		case ephemeral.Succeeded:
			v.succeeded++
		case ephemeral.Failed:
			v.failed++
		}
		if t.Busy {
			v.busy++
		}
	}
}

// parallelism is the most Pods in which containers may run at the same time.
func parallelism(job *v1alpha1.EphemeralJob) int {
	if job.Spec.Parallelism == nil {
		return 1
	}
	return int(*job.Spec.Parallelism)
}

// isOver reports whether the job is over, well or badly.
func isOver(job *v1alpha1.EphemeralJob) bool {
	return job.Status.Phase == v1alpha1.EphemeralJobSucceeded || job.Status.Phase == v1alpha1.EphemeralJobFailed
}

// defaultTTLSeconds is how long a finished job is kept where the user does not say.
const defaultTTLSeconds = 1800

// finishedAt returns when a job finished. Older controllers did not always write it down.
func finishedAt(job *v1alpha1.EphemeralJob) *metav1.Time {
	if job.Status.CompletionTime != nil {
		return job.Status.CompletionTime
	}
	at := &job.CreationTimestamp
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.LastTransitionTime.After(at.Time) {
			at = &c.LastTransitionTime
		}
	}
	return at
}
