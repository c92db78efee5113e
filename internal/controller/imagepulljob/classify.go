package imagepulljob

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/order"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

// State is a Snapshot, classified once for the plan and the status.
type State struct {
	Snapshot
	want pull.Want
	// nodes are those that the job selects and that have a NodeImage, in the order in which they are asked.
	nodes []*node
	// elsewhere are the NodeImages of others that the job has yet asked for something that it does not want any more.
	elsewhere []*v1beta1.NodeImage
	// awaited are nodes that the job selects and that will have a NodeImage soon; absent those that it names and that do not exist.
	awaited, absent []string
	parallelism     int
	// unread are the Secrets that the job names and that can't be had, and why.
	unread []string
	// problem is what can't be read in the spec; nothing is planned then.
	problem error
}

// node is one node of a job.
type node struct {
	name  string
	image *v1beta1.NodeImage
	ready bool
	pull.NodeState
}

// pulls reports whether the node takes one of the places of the job: one that is not Ready, or whose daemon is not, may never answer and
// delays no other.
func (n *node) pulls() bool { return n.State == pull.Pulling && n.ready }

// awaitsKey reports whether the node is asked later, because its daemon has published no key that credentials can be sealed with: it has
// just started, or is of an earlier version. One that does not get any key is asked at last, and fails with what its daemon can say.
func (v *State) awaitsKey(n *node) bool {
	begun := v.Job.Status.StartTime
	return n.LacksKey && n.ready && (begun == nil || v.Now.Sub(begun.Time) < pull.ResponseTimeout)
}

// failed reports whether nothing more is to be expected of the node.
func (n *node) failed() bool { return n.State == pull.Failed || n.Full }

// Classify returns the state of a snapshot.
func Classify(s Snapshot) State {
	v := State{Snapshot: s}
	if s.Job.DeletionTimestamp != nil || s.Job.Status.CompletionTime != nil {
		return v
	}
	var image pull.Reference
	if image, v.problem = pull.ParseReference(s.Job.Spec.Image); v.problem != nil {
		return v
	}
	if v.parallelism, v.problem = parallelism(s.Job.Spec.Parallelism); v.problem != nil {
		return v
	}
	v.want = pull.Want{Image: image, Job: s.Job, Seal: s.Options.Seal, Extra: s.Options.Extra, Now: s.Now}
	v.readCredentials()
	v.problem = v.sortNodes()
	return v
}

func parallelism(value *intstr.IntOrString) (int, error) {
	switch {
	case value == nil:
		return 1, nil
	case value.Type == intstr.Int && value.IntVal >= 0:
		return value.IntValue(), nil
	case value.Type == intstr.String:
		if n, err := strconv.ParseUint(value.StrVal, 10, 31); err == nil {
			return int(n), nil
		}
	}
	return 0, fmt.Errorf("parallelism is %s, want a number of 0 or more", value)
}

// readCredentials collects the credentials in the job's Secrets, and says which of these can't be had.
func (v *State) readCredentials() {
	var secrets []*corev1.Secret
	for _, source := range v.Sources {
		switch {
		case source.Missing:
			v.unread = append(v.unread, fmt.Sprintf("there is no Secret %s", source.Name))
		case source.Secret == nil:
			v.unread = append(v.unread, source.Problem)
			v.want.Unsettled = true
		case !pull.HoldsCredentials(source.Secret):
			v.unread = append(v.unread,
				fmt.Sprintf("Secret %s is of type %s, which holds no credentials of registries", source.Name, source.Secret.Type))
		default:
			secrets = append(secrets, source.Secret)
		}
	}
	var err error
	if v.want.Credentials, err = pull.NewCredentials(string(v.Job.UID), v.want.Image, secrets); err != nil {
		v.unread = append(v.unread, err.Error())
	}
}

// sortNodes finds the nodes of the job.
func (v *State) sortNodes() error {
	selected, err := v.selection()
	if err != nil {
		return err
	}
	nodes := map[string]*corev1.Node{}
	for _, n := range v.Nodes {
		nodes[n.Name] = n
	}
	serving := map[string]bool{}
	for _, p := range v.Daemons {
		serving[p.Spec.NodeName] = serving[p.Spec.NodeName] || serves(p)
	}
	known := map[string]bool{}
	for _, image := range v.NodeImages {
		known[image.Name] = true
		state := v.want.StateOn(image)
		if !selected.has(image.Name, image.Labels) || image.DeletionTimestamp != nil {
			if state.Stale {
				v.elsewhere = append(v.elsewhere, image)
			}
			continue
		}
		at, exists := nodes[image.Name]
		v.nodes = append(v.nodes, &node{
			name: image.Name, image: image, NodeState: state,
			// One without a node was made for a test, which plays its daemon.
			ready: !exists || isReady(at) && (len(v.Daemons) == 0 || serving[image.Name]),
		})
	}
	for _, n := range v.Nodes {
		joins := n.DeletionTimestamp == nil && n.Labels[keys.NodeType] != keys.NodeTypeVirtual && isReady(n)
		if joins && !known[n.Name] && selected.has(n.Name, n.Labels) {
			v.awaited = append(v.awaited, n.Name)
		}
	}
	for name := range selected.names {
		if nodes[name] == nil && !known[name] && v.Job.Spec.PodSelector == nil {
			v.absent = append(v.absent, name)
		}
	}
	slices.Sort(v.awaited)
	slices.Sort(v.absent)
	slices.SortFunc(v.nodes, func(a, b *node) int {
		return cmp.Or(cmp.Compare(selected.names[a.name], selected.names[b.name]), cmp.Compare(a.name, b.name))
	})
	return nil
}

// serves reports whether the Pod of a daemon answers for its node.
func serves(p *corev1.Pod) bool { return p.DeletionTimestamp == nil && pod.IsReady(p) }

func isReady(n *corev1.Node) bool {
	_, ready := pull.ReadySince(n)
	return ready
}

// selection is which nodes a job selects: by name, with the place in the order, or by label. Neither means all.
type selection struct {
	names  map[string]int
	labels labels.Selector
}

func (s selection) has(name string, of map[string]string) bool {
	if s.names != nil {
		_, ok := s.names[name]
		return ok
	}
	return s.labels == nil || s.labels.Matches(labels.Set(of))
}

func (v *State) selection() (selection, error) {
	spec := v.Job.Spec
	switch {
	case spec.PodSelector != nil:
		if _, err := metav1.LabelSelectorAsSelector(&spec.PodSelector.LabelSelector); err != nil {
			return selection{}, fmt.Errorf("reading podSelector: %w", err)
		}
		return v.placesOfPods()
	case spec.Selector == nil:
		return selection{}, nil
	case len(spec.Selector.Names) > 0:
		out := selection{names: map[string]int{}}
		for _, name := range spec.Selector.Names {
			out.names[name] = 0
		}
		return out, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&spec.Selector.LabelSelector)
	if err != nil {
		return selection{}, fmt.Errorf("reading selector: %w", err)
	}
	if selector.Empty() {
		return selection{}, nil
	}
	return selection{labels: selector}, nil
}

// counts are the numbers of the status.
type counts struct {
	active, succeeded, failed int
	failedNodes               []string
}

// count counts every node once. Once the deadline is over, all that have not succeeded have failed.
func (v *State) count() counts {
	var c counts
	over := v.isOverdue()
	for _, n := range v.nodes {
		switch {
		case n.State == pull.Succeeded:
			c.succeeded++
		case n.failed() || over:
			c.failed++
			c.failedNodes = append(c.failedNodes, n.name)
		case n.State == pull.Pulling:
			c.active++
		}
	}
	slices.Sort(c.failedNodes)
	return c
}

// untilDeadline returns how long the job may still take, if there is a limit.
func (v *State) untilDeadline() (left time.Duration, limited bool) {
	if pull.Repeats(v.Job) {
		return 0, false
	}
	return plan.UntilDeadline(v.Job.Status.StartTime, v.Job.Spec.CompletionPolicy.ActiveDeadlineSeconds, v.Now)
}

// isOverdue reports whether the job did not get done in time.
func (v *State) isOverdue() bool {
	left, limited := v.untilDeadline()
	return limited && left <= 0 && !v.allAnswered()
}

// allAnswered reports whether every node has the image or has given up, and no more nodes are to be expected: a job that names nodes or
// Pods waits for the first of them, and every job for the NodeImages of nodes that have just come.
func (v *State) allAnswered() bool {
	for _, n := range v.nodes {
		if n.State != pull.Succeeded && !n.failed() {
			return false
		}
	}
	chosen := v.Job.Spec.PodSelector != nil || v.Job.Spec.Selector != nil && len(v.Job.Spec.Selector.Names) > 0
	return len(v.awaited) == 0 && (len(v.nodes) > 0 || !chosen)
}

// isOver reports whether the job is over now.
func (v *State) isOver() bool {
	return !pull.Repeats(v.Job) && (v.isOverdue() || v.allAnswered())
}

// placesOfPods returns the nodes of the selected Pods, in the order in which the workload that controls the job updates them: where the
// update comes first the image is needed first.
func (v *State) placesOfPods() (selection, error) {
	var pods []*corev1.Pod
	for _, p := range v.Pods {
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if p.DeletionTimestamp == nil && !ended && p.Spec.NodeName != "" {
			pods = append(pods, p)
		}
	}
	pods, err := v.Workload.sort(pods)
	if err != nil {
		return selection{}, fmt.Errorf("ordering Pods: %w", err)
	}
	out := selection{names: map[string]int{}}
	for i, p := range pods {
		if _, known := out.names[p.Spec.NodeName]; !known {
			out.names[p.Spec.NodeName] = i
		}
	}
	return out, nil
}

func (w Workload) sort(pods []*corev1.Pod) ([]*corev1.Pod, error) {
	switch {
	case w.CloneSet != nil:
		var s order.Strategy
		if rolling := w.CloneSet.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
			s.Priority, s.Scatter = rolling.PriorityStrategy, rolling.ScatterStrategy
		}
		return order.Sort(pods, pods, s)
	case w.StatefulSet != nil:
		slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(number(b), number(a)) })
		if rolling := w.StatefulSet.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.UnorderedUpdate != nil {
			return pods, order.ByPriority(pods, rolling.UnorderedUpdate.PriorityStrategy)
		}
	case w.DaemonSet != nil:
		slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(b.Spec.NodeName, a.Spec.NodeName) })
	default:
		slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Spec.NodeName, b.Spec.NodeName) })
	}
	return pods, nil
}

// number returns the number of a Pod of a StatefulSet; -1 for a Pod without one.
func number(p *corev1.Pod) int32 {
	if _, n, ok := ordinal.Split(p.Name); ok {
		return n
	}
	return -1
}
