package podunavailablebudget

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// ByBudget is the index of Pods by the budget that their annotations name.
const ByBudget = "kruise.budget"

// AddIndexes adds the index ByBudget to a cache.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1.Pod{}, ByBudget, budgetKeys); err != nil {
		return fmt.Errorf("indexing Pods by their budgets: %w", err)
	}
	return nil
}

func budgetKeys(object client.Object) []string {
	if name := disruption.Related(object.GetAnnotations()); name != "" {
		return []string{name}
	}
	return nil
}

// Snapshot is all that one pass looks at.
type Snapshot struct {
	Budget *v1beta1.PodUnavailableBudget
	// Pods are the active Pods that the budget guards.
	Pods []*corev1.Pod
	// Total is how many of them there should be.
	Total int32
	// Silent are the workloads that do not say how many Pods they should have, so that those that are there count.
	Silent []string
	// Polled means that nothing tells when a number of replicas changes.
	Polled bool
	// Problem is why neither the Pods nor the total are known; nil if they are.
	Problem error
	// Pending is how long it takes until all requests on the Pods are judged: the budget is not in force before. Zero for most.
	Pending time.Duration
	// Links are the Pods whose annotations name the wrong budget, or none.
	Links []Link
	Now   time.Time
}

// Link is a Pod whose annotations are to name a budget; none if To is empty.
type Link struct {
	Pod *corev1.Pod
	To  string
}

// Surveyor makes the reads of a pass.
type Surveyor struct {
	Scales *observe.Scales
	Now    func() time.Time
	// InForce says how long it takes until all requests on the Pods of a namespace are judged; nil where nobody has to be waited for.
	InForce func(namespace string) time.Duration
}

// Observe makes every read of a pass.
func (v Surveyor) Observe(ctx context.Context, r observe.Reader, b *v1beta1.PodUnavailableBudget) (Snapshot, error) {
	c := &census{Workloads: observe.Workloads{Reader: r, Scales: v.Scales}, budget: b}
	s := Snapshot{Budget: b, Now: v.Now()}
	if v.InForce != nil && b.Status.ObservedGeneration == 0 {
		s.Pending = v.InForce(b.Namespace)
	}
	if s.Problem = c.survey(ctx); s.Problem != nil {
		return s, ctx.Err()
	}
	slices.Sort(c.silent)
	s.Pods, s.Total, s.Silent, s.Polled = c.pods, c.total, c.silent, c.polled
	var err error
	s.Links, err = c.links(ctx)
	return s, err
}

// census finds the Pods of a budget, and how many there should be.
type census struct {
	observe.Workloads
	budget *v1beta1.PodUnavailableBudget
	// target is the workload that the budget names; nil if it names none, or one that is gone.
	target *observe.Workload
	pods   []*corev1.Pod
	total  int32
	silent []string
	polled bool
}

// survey finds the Pods, and counts how many there should be.
func (c *census) survey(ctx context.Context) error {
	if err := c.find(ctx); err != nil {
		return err
	}
	if total, said := disruption.ProtectedTotal(c.budget); said {
		c.total = total
		return nil
	}
	return c.count(ctx)
}

// find finds the Pods.
func (c *census) find(ctx context.Context) error {
	if c.budget.Spec.TargetReference == nil {
		selector := disruption.SelectorOf(c.budget)
		if selector == nil {
			return nil
		}
		return c.take(c.SelectedPods(ctx, c.budget.Namespace, selector))
	}
	ref := c.budget.Spec.TargetReference
	target, err := c.Get(ctx, c.budget.Namespace, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Name)
	if err != nil {
		return err
	}
	if c.target = target; target == nil {
		// Of a workload that is gone those Pods are left that were linked while it was there.
		return c.take(c.linked(ctx))
	}
	c.polled = target.Polled
	if target.UID != "" && !target.Polled {
		return c.owned(ctx)
	}
	return c.descended(ctx)
}

func (c *census) take(pods []*corev1.Pod, err error) error {
	for _, p := range pods {
		if pod.IsActive(p) {
			c.pods = append(c.pods, p)
		}
	}
	return err
}

// owned takes the Pods that the target controls, itself or by its ReplicaSets.
func (c *census) owned(ctx context.Context) error {
	if err := c.take(c.Pods(ctx, c.budget.Namespace, c.target.UID)); err != nil || c.target.Kind != "Deployment" {
		return err
	}
	sets, err := c.ReplicaSets(ctx, c.budget.Namespace, c.target.UID)
	if err != nil {
		return err
	}
	for _, set := range sets {
		if err := c.take(c.Pods(ctx, c.budget.Namespace, set)); err != nil {
			return err
		}
	}
	return nil
}

// descended takes the Pods above which the target stands somewhere, or else those that its scale selects.
func (c *census) descended(ctx context.Context) error {
	all, err := c.SelectedPods(ctx, c.budget.Namespace, labels.Everything())
	if err != nil {
		return err
	}
	for _, p := range all {
		candidate, _, err := c.candidate(ctx, p)
		if err != nil {
			return err
		}
		if candidate.IsGuardedBy(c.budget) {
			if err := c.take([]*corev1.Pod{p}, nil); err != nil {
				return err
			}
		}
	}
	selector, err := labels.Parse(c.target.Selector)
	if len(c.pods) > 0 || err != nil || selector.Empty() {
		return nil // a selector that can't be read selects nothing
	}
	return c.take(c.SelectedPods(ctx, c.budget.Namespace, selector))
}

// linked returns the Pods whose annotations name the budget.
func (c *census) linked(ctx context.Context) ([]*corev1.Pod, error) {
	options := []client.ListOption{client.InNamespace(c.budget.Namespace)}
	if c.Indexed {
		options = append(options, client.MatchingFields{ByBudget: c.budget.Name}, client.UnsafeDisableDeepCopy)
	}
	var list corev1.PodList
	if err := c.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("listing Pods: %w", err)
	}
	var out []*corev1.Pod
	for i := range list.Items {
		if disruption.Related(list.Items[i].Annotations) == c.budget.Name {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// count adds up how many Pods there should be.
func (c *census) count(ctx context.Context) error {
	if c.budget.Spec.TargetReference != nil {
		if c.target != nil {
			c.add(c.target, int32(len(c.pods)))
		}
		return nil
	}
	there := map[observe.Owner]int32{}
	known := map[types.UID]observe.Owner{}
	for _, p := range c.pods {
		controller := metav1.GetControllerOfNoCopy(p)
		if controller == nil {
			continue
		}
		owner, ok := known[controller.UID]
		if !ok {
			chain, _, err := c.Chain(ctx, p)
			if err != nil {
				return err
			}
			owner = maker(chain)
			known[controller.UID] = owner
		}
		there[owner]++
	}
	for owner, pods := range there {
		w, err := c.Get(ctx, c.budget.Namespace, owner.GroupVersionKind, owner.Name)
		if err != nil {
			return err
		}
		if w != nil {
			c.polled = c.polled || w.Polled
			c.add(w, pods)
		}
	}
	return nil
}

// maker returns the workload that says how many Pods there should be: the owner of a ReplicaSet, which has several in a rollout, and else the Pod's own
// controller. What stands above a workload may count in other units than Pods.
func maker(chain []observe.Owner) observe.Owner {
	if len(chain) > 1 && chain[0].Kind == "ReplicaSet" && chain[0].Group == "apps" {
		return chain[1]
	}
	return chain[0]
}

// add adds what a workload should have; of one that does not say, what it has.
func (c *census) add(w *observe.Workload, pods int32) {
	switch {
	case w.Deleting:
	case w.Replicas == nil:
		c.silent = append(c.silent, w.Kind+" "+w.Name)
		c.total += pods
	default:
		c.total += *w.Replicas
	}
}

func (c *census) candidate(ctx context.Context, p *corev1.Pod) (candidate disruption.Candidate, complete bool, err error) {
	chain, complete, err := c.Chain(ctx, p)
	candidate.Labels = p.Labels
	for _, owner := range chain {
		candidate.Owners = append(candidate.Owners, disruption.Reference{GroupKind: owner.GroupKind(), Name: owner.Name})
	}
	return candidate, complete, err
}

// links finds the Pods of the budget that name none, or one that does not exist or does not want them, and those that name the budget and are not its
// own any more.
func (c *census) links(ctx context.Context) ([]Link, error) {
	all, err := c.Budgets(ctx, c.budget.Namespace)
	if err != nil {
		return nil, err
	}
	linked, err := c.linked(ctx)
	if err != nil {
		return nil, err
	}
	mine := make(map[string]bool, len(c.pods))
	var out []Link
	for _, p := range c.pods {
		mine[p.Name] = true
		if disruption.Related(p.Annotations) == c.budget.Name {
			continue
		}
		to, err := c.choose(ctx, all, p)
		if err != nil {
			return nil, err
		}
		if to == c.budget.Name {
			out = append(out, Link{Pod: p, To: to})
		}
	}
	for _, p := range linked {
		if mine[p.Name] || !pod.IsActive(p) {
			continue
		}
		to, err := c.choose(ctx, all, p)
		if err != nil {
			return nil, err
		}
		if to != c.budget.Name {
			out = append(out, Link{Pod: p, To: to})
		}
	}
	return out, nil
}

// choose returns the budget that the annotations of a Pod are to name. One that is there and wants the Pod stays, and so does any as long as it is not
// known whose the Pod is.
func (c *census) choose(ctx context.Context, all []*v1beta1.PodUnavailableBudget, p *corev1.Pod) (string, error) {
	named := disruption.Related(p.Annotations)
	candidate, complete, err := c.candidate(ctx, p)
	if err != nil {
		return "", err
	}
	for _, b := range all {
		if b.Name == named && (candidate.IsGuardedBy(b) || !complete && b.Spec.TargetReference != nil) {
			return named, nil
		}
	}
	if best := disruption.Choose(all, candidate); best != nil {
		return best.Name, nil
	}
	if slices.Contains(c.pods, p) {
		return c.budget.Name, nil // by the selector of a scale
	}
	return "", nil
}

// Count computes the numbers of a budget anew, for whoever judges a request before the controller has come to it. surplus says that there are more
// Pods than there should be, so that deletions are judged by disruption.Counts.ForSurplus.
func (v Surveyor) Count(ctx context.Context, r observe.Reader, b *v1beta1.PodUnavailableBudget) (counts disruption.Counts, surplus bool, err error) {
	s, err := v.Observe(ctx, r, b)
	if err != nil {
		return disruption.Counts{}, false, err
	}
	counts, err = s.judge()
	return counts, s.IsSurplus(), err
}
