package invariant

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// The rules that CheckBroadcastJob knows.
const (
	RuleOnce           = "no second Pod of a job for a node that has one"
	RuleJobParallelism = "no Pod of a job beyond parallelism"
	RuleOver           = "nothing new of a job that is over"
	RuleEnded          = "no Pod is deleted that has ended"
)

// broadcasts is the history of BroadcastJobs, their Pods and all nodes up to a change.
type broadcasts struct {
	jobs       map[types.UID]*broadcast
	nodes      map[string][]dated[*corev1.Node]
	violations []Violation
}

// broadcast is what happened to one job, and the Pods that it has.
type broadcast struct {
	versions []dated[*v1beta1.BroadcastJob]
	pods     map[string]*corev1.Pod
	// gone are the Pods that it had before.
	gone []dated[*corev1.Pod]
	// late are the revisions of creations whose outcome the controller did not know, by the name of the Pod.
	late map[string]int64
}

// CheckBroadcastJob returns the promises that a BroadcastJob controller has broken in a history. What it had not seen is no excuse for a
// second Pod on a node, nor for more Pods than parallelism allows, unless it comes of a creation that it had given up on.
func CheckBroadcastJob(history []simulate.Change) []Violation {
	b := &broadcasts{jobs: map[types.UID]*broadcast{}, nodes: map[string][]dated[*corev1.Node]{}}
	for _, c := range history {
		switch after := c.After; c.Key.Kind.Kind {
		case "Node":
			node, _ := after.(*corev1.Node)
			b.nodes[c.Key.Name] = append(b.nodes[c.Key.Name], dated[*corev1.Node]{c.Revision, c.Time, c.Pass, c.Late, node})
		case "BroadcastJob":
			b.recordJob(c)
		case "Pod":
			if owner := metav1.GetControllerOfNoCopy(eitherOf(c)); owner != nil && b.jobs[owner.UID] != nil {
				b.recordPod(c, b.jobs[owner.UID])
			}
		}
	}
	return b.violations
}

func (b *broadcasts) recordJob(c simulate.Change) {
	uid := eitherOf(c).GetUID()
	if b.jobs[uid] == nil {
		b.jobs[uid] = &broadcast{pods: map[string]*corev1.Pod{}, late: map[string]int64{}}
	}
	after, exists := c.After.(*v1beta1.BroadcastJob)
	b.jobs[uid].versions = append(b.jobs[uid].versions, dated[*v1beta1.BroadcastJob]{c.Revision, c.Time, c.Pass, c.Late, after})
	if before, existed := c.Before.(*v1beta1.BroadcastJob); existed && exists && isOver(before) &&
		!equality.Semantic.DeepEqual(before.Status, after.Status) {
		b.breaks(RuleOver, c, "its status is changed")
	}
}

func isOver(job *v1beta1.BroadcastJob) bool {
	return job.Status.Phase == v1beta1.BroadcastJobCompleted || job.Status.Phase == v1beta1.BroadcastJobFailed
}

func (b *broadcasts) breaks(rule string, c simulate.Change, format string, args ...any) {
	b.violations = append(b.violations, Violation{Rule: rule, Revision: c.Revision, Text: fmt.Sprintf(format, args...)})
}

func (b *broadcasts) recordPod(c simulate.Change, j *broadcast) {
	ours := c.Pass != nil && !c.Late
	if before, existed := c.Before.(*corev1.Pod); existed && ours && hasEnded(before) {
		b.breaks(RuleEnded, c, "Pod %s", before.Name)
	}
	after, exists := c.After.(*corev1.Pod)
	if c.Before == nil && ours {
		b.judgeCreation(c, j, after)
	}
	if c.Before == nil && c.Late {
		j.late[c.Key.Name] = c.Revision
	}
	if exists {
		j.pods[c.Key.Name] = after
	} else {
		j.gone = append(j.gone, dated[*corev1.Pod]{c.Revision, c.Time, c.Pass, c.Late, j.pods[c.Key.Name]})
		delete(j.pods, c.Key.Name)
	}
}

func hasEnded(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func (b *broadcasts) judgeCreation(c simulate.Change, j *broadcast, created *corev1.Pod) {
	job := at(j.versions, c.Pass.Seen[v1beta1.GroupVersion.WithKind("BroadcastJob")])
	if job == nil {
		return
	}
	if isOver(job) || job.DeletionTimestamp != nil {
		b.breaks(RuleOver, c, "Pod %s is created", created.Name)
	}
	fit, counted := nodefit.OfJob(&job.Spec.Template.Spec), map[string]bool{}
	for name, versions := range b.nodes {
		if node := at(versions, c.Pass.Seen[corev1.SchemeGroupVersion.WithKind("Node")]); node != nil && fit.On(node).Run {
			counted[name] = true
		}
	}
	if !counted[nodeOf(created)] {
		b.breaks(RuleNode, c, "Pod %s for node %s", created.Name, nodeOf(created))
	}
	active := 1
	for _, p := range j.pods {
		if nodeOf(p) == nodeOf(created) {
			b.breaks(RuleOnce, c, "node %s has %s and gets %s", nodeOf(p), p.Name, created.Name)
		}
		counted[nodeOf(p)] = true
		isUnknown := j.late[p.Name] > c.Pass.Seen[corev1.SchemeGroupVersion.WithKind("Pod")]
		if !isUnknown && !hasEnded(p) && p.DeletionTimestamp == nil && !hasRestartedTooOften(p, job) {
			active++
		}
	}
	if job.Spec.Parallelism == nil {
		return
	}
	for _, p := range j.gone {
		// A node counts while a Pod of the job is seen on it, and so does the share of it that may be active.
		if p.revision > c.Pass.Seen[corev1.SchemeGroupVersion.WithKind("Pod")] && p.object != nil {
			counted[nodeOf(p.object)] = true
		}
	}
	if limit, err := budget.Scaled(job.Spec.Parallelism, len(counted), budget.Up); err == nil && active > limit {
		b.breaks(RuleJobParallelism, c, "%d Pods are active, parallelism %s of %d nodes is %d", active, job.Spec.Parallelism, len(counted),
			limit)
	}
}

func hasRestartedTooOften(p *corev1.Pod, job *v1beta1.BroadcastJob) bool {
	restarts := int32(0)
	for i := range p.Status.ContainerStatuses {
		restarts += p.Status.ContainerStatuses[i].RestartCount
	}
	return p.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && restarts > job.Spec.FailurePolicy.RestartLimit
}

// BroadcastConverged returns what a job at rest, nil for none, has left undone.
func BroadcastConverged(cluster *simulate.Cluster, job *v1beta1.BroadcastJob) []string {
	if job == nil {
		return nil
	}
	var out []string
	pods := map[string]int{}
	for _, object := range cluster.Of(corev1.SchemeGroupVersion.WithKind("Pod")) {
		if p := object.(*corev1.Pod); metav1.IsControlledBy(p, job) {
			pods[nodeOf(p)]++
			if isOver(job) && !hasEnded(p) {
				out = append(out, fmt.Sprintf("Pod %s runs on after the job", p.Name))
			}
		}
	}
	if isOver(job) {
		if len(job.Status.Conditions) != 1 || job.Status.CompletionTime == nil || job.Status.Active != 0 {
			out = append(out, fmt.Sprintf("the job is over with the status %+v", job.Status))
		}
		return out
	}
	if job.Spec.CompletionPolicy.Type != v1beta1.NeverComplete && job.Status.Desired > 0 {
		out = append(out, fmt.Sprintf("nothing happens any more, and the job is not over: %+v", job.Status))
	}
	return append(out, missing(cluster.Of(corev1.SchemeGroupVersion.WithKind("Node")), job, pods)...)
}

func missing(nodes []client.Object, job *v1beta1.BroadcastJob, pods map[string]int) []string {
	var out []string
	fit := nodefit.OfJob(&job.Spec.Template.Spec)
	for _, object := range nodes {
		if node := object.(*corev1.Node); fit.On(node).Run && pods[node.Name] != 1 {
			out = append(out, fmt.Sprintf("node %s has %d Pods", node.Name, pods[node.Name]))
		}
	}
	return out
}
