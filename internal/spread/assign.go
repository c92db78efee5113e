package spread

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	rules "github.com/seed-69ecc383/kruise/internal/rules/spread"
)

// Assigner gives new Pods to the subsets of WorkloadSpreads.
type Assigner struct {
	Ledger  *Ledger
	Targets *Targets
}

// Assignment is the subset that a new Pod is given to.
type Assignment struct {
	Spread *v1beta1.WorkloadSpread
	rules.Given
}

// Assign gives a Pod that is about to be stored to a subset; the Subset is -1 if it belongs to no WorkloadSpread or if none has room.
func (a *Assigner) Assign(ctx context.Context, namespace string, p *corev1.Pod) (Assignment, error) {
	to, err := a.assign(ctx, namespace, p)
	a.Ledger.Metrics.countAssignment(to, err)
	return to, err
}

func (a *Assigner) assign(ctx context.Context, namespace string, p *corev1.Pod) (Assignment, error) {
	none := Assignment{Given: nothing()}
	s, err := a.match(ctx, namespace, p)
	if err != nil || s == nil {
		return none, err
	}
	for range maxTries {
		given, err := a.give(ctx, s, p)
		var changed Changed
		if errors.As(err, &changed) {
			s = changed.Now
			continue
		}
		if err != nil {
			return none, err
		}
		return Assignment{Spread: s, Given: given}, nil
	}
	return none, fmt.Errorf("the spec of WorkloadSpread %s changes all the time: try again", s.Name)
}

// nothing is what a Pod is given that belongs to no WorkloadSpread, or for which none of its subsets has room.
func nothing() rules.Given { return rules.Given{Subset: -1} }

func (a *Assigner) give(ctx context.Context, s *v1beta1.WorkloadSpread, p *corev1.Pod) (rules.Given, error) {
	kind, total := rules.TargetOf(s).GroupKind, int32(0)
	if rules.NeedsTotal(s) || rules.SurgesOnly(kind) {
		var err error
		if total, err = a.Targets.Total(ctx, s); err != nil {
			return nothing(), err
		}
	}
	fill, wrong, err := a.Targets.Fill(ctx, s, total)
	if wrong != nil || err != nil {
		return nothing(), err // the status of the WorkloadSpread says what is wrong; its Pods are not to wait for that
	}
	if rules.ByOrdinal(kind) {
		ordinal, ok := rules.OrdinalOf(p.Name)
		if !ok {
			return nothing(), nil
		}
		return rules.Given{Subset: fill.OfOrdinal(ordinal, rules.Open(s))}, nil
	}
	r := Request{Spread: s, Fill: fill, Total: total, Version: rules.VersionOf(kind, p)}
	if rules.IsBuiltIn(kind) { // of other kinds all Pods count together, whoever of them controls a Pod
		r.Wanted = a.Targets.Wanted(s.Namespace, metav1.GetControllerOfNoCopy(p))
	}
	return a.Ledger.Give(ctx, r)
}

// match returns the WorkloadSpread of the namespace that a new Pod belongs to, by its name the first if there are several; nil if there is
// none.
func (a *Assigner) match(ctx context.Context, namespace string, p *corev1.Pod) (*v1beta1.WorkloadSpread, error) {
	controller := metav1.GetControllerOfNoCopy(p)
	if controller == nil {
		return nil, nil
	}
	spreads, err := observe.Reader{Reader: a.Ledger.Cached, Indexed: true}.Spreads(ctx, namespace)
	if err != nil || len(spreads) == 0 {
		return nil, err
	}
	owner := rules.ReferenceOf(controller)
	var owners []rules.Reference
	for _, s := range spreads {
		if s.DeletionTimestamp != nil || !rules.Selects(s, p.Labels) {
			continue
		}
		target := rules.TargetOf(s)
		if target == owner {
			return s, nil
		}
		if target.Kind == "" || target.GroupKind == owner.GroupKind || !rules.MayOwn(target, owner) {
			continue
		}
		if owners == nil {
			if owners, err = a.Targets.Above(ctx, namespace, controller); err != nil {
				return nil, err
			}
		}
		for _, above := range owners {
			if above == target {
				return s, nil
			}
		}
	}
	return nil, nil
}
