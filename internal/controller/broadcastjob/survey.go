package broadcastjob

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Survey is a Snapshot sorted once into what the plan and the status both speak of.
type Survey struct {
	Snapshot
	// places are the nodes that fit the template or have a Pod, by name; those that are gone among them.
	places []*place
	// members are all Pods of the job.
	members []*member
	// desired is the number of nodes that the job is for, limit the most Pods that may be active.
	desired, limit int
	// active, succeeded and failed are numbers of Pods.
	active, succeeded, failed int
	verdict                   verdict
	// problem is what can't be read in the spec; nothing is planned then.
	problem error
}

// place is a node that fits the template or has a Pod.
type place struct {
	name string
	// node is nil when it is gone.
	node    *corev1.Node
	fits    bool
	members []*member
}

// class says how a Pod counts.
type class int

const (
	// active Pods are under way.
	active class = iota
	// succeeded Pods have ended well.
	succeeded
	// failed Pods have ended badly, or were restarted more often than is put up with.
	failed
	// leaving Pods are being deleted and have not ended; they count for nothing.
	leaving
)

// member is a Pod of the job.
type member struct {
	pod   *corev1.Pod
	class class
	// unfit says why the Pod must leave its node, empty when it may stay.
	unfit string
}

// Take sorts a snapshot.
func Take(s Snapshot) Survey {
	v := Survey{Snapshot: s}
	if s.Job.DeletionTimestamp != nil {
		return v
	}
	v.sort()
	if isFinished(s.Job) {
		return v
	}
	for _, p := range v.places {
		if p.counts() {
			v.desired++
		}
	}
	v.limit = math.MaxInt32
	if parallelism := s.Job.Spec.Parallelism; parallelism != nil {
		if v.limit, v.problem = budget.Scaled(parallelism, v.desired, budget.Up); v.problem != nil {
			v.problem = fmt.Errorf("reading parallelism: %w", v.problem)
			return v
		}
	}
	v.verdict, v.problem = v.judge()
	return v
}

// sort counts the Pods and finds out which node each is for.
func (v *Survey) sort() {
	byName := map[string]*place{}
	at := func(name string) *place {
		if byName[name] == nil {
			byName[name] = &place{name: name}
			v.places = append(v.places, byName[name])
		}
		return byName[name]
	}
	fit := nodefit.OfJob(&v.Job.Spec.Template.Spec)
	nodes := make(map[string]*corev1.Node, len(v.Nodes))
	for _, node := range v.Nodes {
		nodes[node.Name] = node
		if fit.On(node).Run {
			at(node.Name).fits = true
		}
	}
	for _, p := range v.Pods {
		m := &member{pod: p, class: classOf(p, v.Job)}
		v.members = append(v.members, m)
		switch m.class {
		case active:
			v.active++
		case succeeded:
			v.succeeded++
		case failed:
			v.failed++
		case leaving:
		}
		if name := nodefit.NodeOf(p); name != "" {
			at(name).members = append(at(name).members, m)
		}
	}
	for _, p := range v.places {
		p.node = nodes[p.name]
		for _, m := range p.members {
			m.unfit = p.rejects(m)
		}
	}
	slices.SortFunc(v.places, func(a, b *place) int { return cmp.Compare(a.name, b.name) })
	slices.SortFunc(v.members, func(a, b *member) int { return cmp.Compare(a.pod.Name, b.pod.Name) })
}

// classOf says how a Pod of the job counts. Restarts are failures only where containers are restarted, and only beyond the limit: with a limit of 2
// the third one.
func classOf(p *corev1.Pod, job *v1beta1.BroadcastJob) class {
	switch {
	case p.Status.Phase == corev1.PodSucceeded:
		return succeeded
	case p.Status.Phase == corev1.PodFailed:
		return failed
	case p.DeletionTimestamp != nil:
		return leaving
	case p.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && pod.Restarts(p) > job.Spec.FailurePolicy.RestartLimit:
		return failed
	}
	return active
}

// rejects says why a Pod must leave the node; empty when it may stay. What runs already goes on on a node that wants no new Pods, and what has ended is
// never cleared away: its node would get a second Pod as soon as it fits again.
func (p *place) rejects(m *member) string {
	switch {
	case m.class != active:
		return ""
	case p.node == nil:
		return fmt.Sprintf("node %s is gone", p.name)
	case p.fits:
		return ""
	case m.pod.Status.StartTime == nil && m.pod.Status.Phase == corev1.PodPending:
		return fmt.Sprintf("node %s does not fit the template any more, and the Pod has not started", p.name)
	case !nodefit.Endures(m.pod.Spec.Tolerations, p.node):
		return fmt.Sprintf("the Pod does not tolerate the taints of node %s", p.name)
	}
	return ""
}

// counts reports whether the job is for the node: it fits, or has a Pod that has not been sent away.
func (p *place) counts() bool {
	return p.fits || slices.ContainsFunc(p.members, func(m *member) bool { return m.unfit == "" })
}

// isDone reports whether nothing is left to do on the node.
func (p *place) isDone() bool {
	done := false
	for _, m := range p.members {
		switch m.class {
		case active:
			return false
		case succeeded, failed:
			done = true
		case leaving:
		}
	}
	return done
}

// isFinished reports whether the job is over, well or badly.
func isFinished(job *v1beta1.BroadcastJob) bool {
	return job.Status.Phase == v1beta1.BroadcastJobCompleted || job.Status.Phase == v1beta1.BroadcastJobFailed || finishedAt(job) != nil
}

// finishedAt returns when the job was over, or nil while it is not known to be.
func finishedAt(job *v1beta1.BroadcastJob) *metav1.Time {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if (c.Type == v1beta1.BroadcastJobComplete || c.Type == v1beta1.BroadcastJobFailure) && c.Status == corev1.ConditionTrue {
			if job.Status.CompletionTime != nil {
				return job.Status.CompletionTime
			}
			return &c.LastTransitionTime
		}
	}
	return nil
}
