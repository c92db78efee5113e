package podunavailablebudget

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Snapshot is all that one pass reads.
type Snapshot struct {
	Budget *v1beta1.PodUnavailableBudget
	// Pods are the active Pods that the budget guards.
	Pods []*corev1.Pod
	// Total is how many of them there should be.
	Total int32
	// Silent are the workloads that do not say how many Pods they should have: the Pods that are there count.
	Silent []string
	// Polled means that nothing tells when a number of replicas changes.
	Polled bool
	// Problem is why neither the Pods nor the total are known; nil if they are.
	Problem error
	// Pending is how long it takes until all requests on the Pods are evaluated: the budget is not in force before. Zero for most.
	Pending time.Duration
	// Links are the Pods whose annotations name the wrong budget, or none.
	Links []Link
	// Live means that all was read around the cache. It may show what is gone for some time to come, and then Pods that are in the ledger
	// must not count as available: the ledger keeps them. Gone are such Pods whose time was over, and which were looked at.
	Live bool
	Gone []string
	Now  time.Time
}

// Link is a Pod whose annotations are to name a budget; none if To is empty.
type Link struct {
	Pod *corev1.Pod
	To  string
}

// read makes every read of a pass: by the cache, and once more live before anything is permitted for which the cache may be too old.
func (o Options) read(ctx context.Context, r loop.Reads, b *v1beta1.PodUnavailableBudget) (Snapshot, error) {
	in := func(reader observe.Reader) (Snapshot, error) {
		s := &selection{
			Workloads: observe.Workloads{Reader: reader, Scales: o.Scales}, live: r.Tracked,
			Snapshot: Snapshot{Budget: b, Live: !reader.Indexed, Now: r.Now},
		}
		if o.InForce != nil && b.Status.ObservedGeneration == 0 {
			s.Pending = o.InForce(b.Namespace)
		}
		return s.read(ctx)
	}
	s, err := in(r.Reader)
	if err != nil || s.Live || !o.needsLive(s) {
		return s, err
	}
	if s, err = in(observe.Reader{Reader: r.Tracked}); err != nil || s.Problem != nil {
		o.permittedMore.Forget(b.UID)
	}
	return s, err
}

// needsLive reports whether numbers by the cache may permit too much. Those that rise because a Pod of the ledger is back never do: the
// cache has seen it go. Others may, because the caches of Pods and workloads each lag for themselves, and because not all disruptions are
// in the ledger.
func (o Options) needsLive(s Snapshot) bool {
	counts, err := s.counts()
	status := &s.Budget.Status
	switch {
	case err != nil:
		return false
	case counts.Desired < status.DesiredAvailable: // a workload wants fewer Pods, or the cache does not know its Pods yet
		return true
	case status.DesiredAvailable == 0 && counts.Desired > 0: // what is done to Pods that nobody needs is not recorded
		return true
	case status.ObservedGeneration != s.Budget.Generation:
		return s.Pending == 0 // another spec did not guard against what this one guards against
	case counts.Allowed <= status.UnavailableAllowed:
		return false
	}
	// The leader before may have seen more of the Pods than the cache has, and have taken permissions out of the ledger for it.
	return o.isFirst(s.Budget.UID)
}

// isFirst reports whether this is asked for the first time about a budget.
func (o Options) isFirst(budget types.UID) (first bool) {
	o.permittedMore.Do(budget, func(before *bool) { first, *before = !*before, true })
	return first
}

// Count computes the numbers of a budget now, for an evaluation that comes before the controller's next pass.
func Count(ctx context.Context, w observe.Workloads, b *v1beta1.PodUnavailableBudget, now time.Time) (disruption.Numbers, error) {
	s := &selection{Workloads: w, Snapshot: Snapshot{Budget: b, Now: now}}
	if s.Problem = s.find(ctx); s.Problem != nil {
		return disruption.Numbers{}, s.Problem
	}
	counts, err := s.counts()
	return disruption.Numbers{Counts: counts, Surplus: s.IsSurplus()}, err
}

// selection finds the Pods of a budget, and how many there should be.
type selection struct {
	observe.Workloads
	Snapshot
	// live reads single Pods around the cache.
	live client.Reader
	// target is the workload that the budget names; nil if it names none, or one that is gone.
	target *observe.Workload
}

func (s *selection) read(ctx context.Context) (Snapshot, error) {
	s.Problem = s.find(ctx)
	if s.Problem == nil {
		s.Problem = s.refresh(ctx)
	}
	if s.Problem != nil {
		return Snapshot{Budget: s.Budget, Problem: s.Problem, Pending: s.Pending, Now: s.Now}, ctx.Err()
	}
	slices.Sort(s.Silent)
	var err error
	s.Links, err = s.links(ctx)
	return s.Snapshot, err
}

// refresh reads live the Pods whose permissions end by time alone before they count as available again: to a cache that is far behind,
// nothing has happened to them yet.
func (s *selection) refresh(ctx context.Context) error {
	expired := s.ledger().Expired
	for i, p := range s.Pods {
		if !slices.Contains(expired, p.Name) || !disruption.Available(p) {
			continue
		}
		s.Pods[i] = &corev1.Pod{}
		err := s.live.Get(ctx, client.ObjectKeyFromObject(p), s.Pods[i])
		switch {
		case apierrors.IsNotFound(err):
			s.Gone = append(s.Gone, p.Name)
		case err != nil:
			return fmt.Errorf("reading Pod %s: %w", p.Name, err)
		}
	}
	s.Pods = slices.DeleteFunc(s.Pods, func(p *corev1.Pod) bool { return !pod.IsActive(p) || p.Name == "" })
	return nil
}

// find finds the Pods, and counts how many there should be.
func (s *selection) find(ctx context.Context) error {
	if err := s.findPods(ctx); err != nil {
		return err
	}
	if total, said := disruption.ProtectedTotal(s.Budget); said {
		s.Total = total
		return nil
	}
	return s.countReplicas(ctx)
}

func (s *selection) findPods(ctx context.Context) error {
	ref := s.Budget.Spec.TargetReference
	if ref == nil {
		selector := disruption.SelectorOf(s.Budget)
		if selector == nil {
			return nil
		}
		return s.add(s.SelectedPods(ctx, s.Budget.Namespace, selector))
	}
	target, err := s.Get(ctx, s.Budget.Namespace, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Name)
	if err != nil {
		return err
	}
	if s.target = target; target == nil {
		// Of a workload that is gone those Pods are left that were linked while it was there.
		return s.add(s.linked(ctx))
	}
	s.Polled = target.Polled
	if target.UID != "" && !target.Polled {
		return s.addControlled(ctx)
	}
	return s.addDescendants(ctx)
}

// add takes over the active ones of the Pods that a read returned.
func (s *selection) add(pods []*corev1.Pod, err error) error {
	for _, p := range pods {
		if pod.IsActive(p) {
			s.Pods = append(s.Pods, p)
		}
	}
	return err
}

// addControlled adds the Pods that the target controls, itself or by its ReplicaSets.
func (s *selection) addControlled(ctx context.Context) error {
	if err := s.add(s.Reader.Pods(ctx, s.Budget.Namespace, s.target.UID)); err != nil || s.target.Kind != "Deployment" {
		return err
	}
	sets, err := s.ReplicaSets(ctx, s.Budget.Namespace, s.target.UID)
	if err != nil {
		return err
	}
	for _, set := range sets {
		if err := s.add(s.Reader.Pods(ctx, s.Budget.Namespace, set)); err != nil {
			return err
		}
	}
	return nil
}

// addDescendants adds the Pods that have the target among their owners, or else those that its scale selects.
func (s *selection) addDescendants(ctx context.Context) error {
	all, err := s.SelectedPods(ctx, s.Budget.Namespace, labels.Everything())
	if err != nil {
		return err
	}
	for _, p := range all {
		candidate, _, err := candidateOf(ctx, s.Workloads, p)
		if err != nil {
			return err
		}
		if candidate.IsGuardedBy(s.Budget) && pod.IsActive(p) {
			s.Pods = append(s.Pods, p)
		}
	}
	selector, err := labels.Parse(s.target.Selector)
	if len(s.Pods) > 0 || err != nil || selector.Empty() {
		return nil // a selector that can't be read selects nothing
	}
	return s.add(s.SelectedPods(ctx, s.Budget.Namespace, selector))
}

// linked returns the Pods whose annotations name the budget.
func (s *selection) linked(ctx context.Context) ([]*corev1.Pod, error) {
	options := []client.ListOption{client.InNamespace(s.Budget.Namespace)}
	if s.Indexed {
		options = append(options, client.MatchingFields{byBudget: s.Budget.Name})
	}
	var list corev1.PodList
	pods, err := observe.List(ctx, s.Reader, &list, &list.Items, options...)
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return disruption.Related(p.Annotations) != s.Budget.Name }), err
}

// countReplicas adds up how many Pods there should be.
func (s *selection) countReplicas(ctx context.Context) error {
	if s.Budget.Spec.TargetReference != nil {
		if s.target != nil {
			s.addReplicas(s.target, int32(len(s.Pods)))
		}
		return nil
	}
	pods := map[observe.Owner]int32{}
	known := map[types.UID]observe.Owner{}
	for _, p := range s.Pods {
		controller := metav1.GetControllerOfNoCopy(p)
		if controller == nil {
			continue
		}
		owner, ok := known[controller.UID]
		if !ok {
			chain, _, err := s.Chain(ctx, p)
			if err != nil {
				return err
			}
			owner = scaled(chain)
			known[controller.UID] = owner
		}
		pods[owner]++
	}
	for owner, n := range pods {
		w, err := s.Get(ctx, s.Budget.Namespace, owner.GroupVersionKind, owner.Name)
		if err != nil {
			return err
		}
		if w != nil {
			s.Polled = s.Polled || w.Polled
			s.addReplicas(w, n)
		}
	}
	return nil
}

// scaled returns the workload that says how many Pods there should be: the owner of a ReplicaSet, which has several in a rollout, and else
// the Pod's own controller. What stands above a workload may count in other units than Pods.
func scaled(chain []observe.Owner) observe.Owner {
	if len(chain) > 1 && chain[0].Kind == "ReplicaSet" && chain[0].Group == "apps" {
		return chain[1]
	}
	return chain[0]
}

// addReplicas adds the Pods that a workload should have; of one that does not say, the Pods that it has.
func (s *selection) addReplicas(w *observe.Workload, pods int32) {
	switch {
	case w.Deleting:
	case w.Replicas == nil:
		s.Silent = append(s.Silent, w.Kind+" "+w.Name)
		s.Total += pods
	default:
		s.Total += *w.Replicas
	}
}

// candidateOf returns what says which budgets may guard a Pod; not complete if one of its owners could not be found.
func candidateOf(ctx context.Context, w observe.Workloads, p *corev1.Pod) (candidate disruption.Candidate, complete bool, err error) {
	chain, complete, err := w.Chain(ctx, p)
	candidate.Labels = p.Labels
	for _, owner := range chain {
		candidate.Owners = append(candidate.Owners, disruption.Reference{GroupKind: owner.GroupKind(), Name: owner.Name})
	}
	return candidate, complete, err
}

// links finds the Pods of the budget that name none, or one that does not exist or does not want them, and those that name the budget and
// are not its own any more.
func (s *selection) links(ctx context.Context) ([]Link, error) {
	all, err := s.Budgets(ctx, s.Budget.Namespace)
	if err != nil {
		return nil, err
	}
	linked, err := s.linked(ctx)
	if err != nil {
		return nil, err
	}
	var out []Link
	check := func(p *corev1.Pod) error {
		to, err := s.choose(ctx, all, p)
		// A Pod that another budget is to guard is linked by the pass over that budget.
		if named := disruption.Related(p.Annotations); err == nil && to != named && (to == s.Budget.Name || named == s.Budget.Name) {
			out = append(out, Link{Pod: p, To: to})
		}
		return err
	}
	own := make(map[string]bool, len(s.Pods))
	for _, p := range s.Pods {
		own[p.Name] = true
		if disruption.Related(p.Annotations) == s.Budget.Name {
			continue
		}
		if err := check(p); err != nil {
			return nil, err
		}
	}
	for _, p := range linked {
		if own[p.Name] || !pod.IsActive(p) {
			continue
		}
		if err := check(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// choose returns the budget that the annotations of a Pod are to name. One that is there and wants the Pod stays, and so does any as long
// as the owners of the Pod are not all known.
func (s *selection) choose(ctx context.Context, all []*v1beta1.PodUnavailableBudget, p *corev1.Pod) (string, error) {
	named := disruption.Related(p.Annotations)
	candidate, complete, err := candidateOf(ctx, s.Workloads, p)
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
	if slices.ContainsFunc(s.Pods, func(own *corev1.Pod) bool { return own.UID == p.UID }) {
		return s.Budget.Name, nil // by the selector of a scale
	}
	return "", nil
}
