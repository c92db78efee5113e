package disruption

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

// errNoNumber is the error of a budget that says neither how many Pods may be unavailable nor how many are to stay available.
var errNoNumber = errors.New("neither maxUnavailable nor minAvailable is set")

// Desired returns how many Pods are to stay available of a total. Percentages are rounded up: of 10 Pods, maxUnavailable 25% leaves 7,
// minAvailable 25% wants 3. The error names a field that can't be read.
//
// A minAvailable that is a number is what is wanted even where there should be fewer Pods.
func Desired(b *v1beta1.PodUnavailableBudget, total int32) (int32, error) {
	switch spec := &b.Spec; {
	case spec.MaxUnavailable != nil:
		n, err := budget.Scaled(spec.MaxUnavailable, int(total), budget.Up)
		if err != nil {
			return 0, fmt.Errorf("spec.maxUnavailable: %w", err)
		}
		return bounded(int(total) - n), nil
	case spec.MinAvailable != nil:
		n, err := budget.Scaled(spec.MinAvailable, int(total), budget.Up)
		if err != nil {
			return 0, fmt.Errorf("spec.minAvailable: %w", err)
		}
		return bounded(n), nil
	default:
		return 0, errNoNumber
	}
}

// Counts are what a budget comes to. Its status says the same.
type Counts struct {
	// Total is how many Pods there should be, Desired how many are to stay available, Current how many are available and not in the ledger,
	// and Allowed how many may be made unavailable.
	Total, Desired, Current, Allowed int32
}

// CountsOf returns what the status of a budget says.
func CountsOf(s *v1beta1.PodUnavailableBudgetStatus) Counts {
	return Counts{Total: s.TotalReplicas, Desired: s.DesiredAvailable, Current: s.CurrentAvailable, Allowed: s.UnavailableAllowed}
}

// Count counts the active Pods of a budget, of which there should be total. The ledger has been pruned.
func Count(b *v1beta1.PodUnavailableBudget, pods []*corev1.Pod, total int32, ledger Ledger) (Counts, error) {
	desired, err := Desired(b, total)
	if err != nil {
		return Counts{}, err
	}
	c := Counts{Total: total, Desired: desired}
	for _, p := range pods {
		if !ledger.Holds(p) && Available(p) {
			c.Current++
		}
	}
	c.Allowed, err = Allowed(b, c)
	return c, err
}

// Allowed returns how many Pods may be made unavailable: all that are available beyond what is desired. Where there are more Pods than
// there should be that can be more than maxUnavailable, so that the surplus can be deleted: of 6 with maxUnavailable 1, and 7 available, 2
// may. A budget that caps it allows 1.
func Allowed(b *v1beta1.PodUnavailableBudget, c Counts) (int32, error) {
	allowed := max(0, c.Current-c.Desired)
	if !b.Spec.CapToMaxUnavailable || b.Spec.MaxUnavailable == nil {
		return allowed, nil
	}
	most, err := budget.Scaled(b.Spec.MaxUnavailable, int(c.Total), budget.Up)
	if err != nil {
		return 0, fmt.Errorf("spec.maxUnavailable: %w", err)
	}
	return min(allowed, bounded(most)), nil
}

// Less returns the counts after one more permission.
func (c Counts) Less() Counts {
	c.Current, c.Allowed = max(0, c.Current-1), max(0, c.Allowed-1)
	return c
}

// Numbers are the counts of a budget at a moment.
type Numbers struct {
	Counts
	// Surplus says that there are more Pods than there should be.
	Surplus bool
}

// For returns the counts by which an operation is evaluated. While there are more Pods than there should be, because their workload is
// being scaled in, deleted, or is gone, no more are desired for a deletion than there should be. Without it a minAvailable above the total
// would keep Pods for ever that nobody wants: 3 Pods of a workload that is gone, with minAvailable 3, may all be deleted.
func (n Numbers) For(operation v1beta1.PubOperation) Counts {
	c := n.Counts
	if n.Surplus && operation == v1beta1.PubDeleteOperation {
		c.Desired = min(c.Desired, c.Total)
		c.Allowed = max(c.Allowed, c.Current-c.Desired)
	}
	return c
}

func bounded(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

// Operations returns what a budget guards against: the field, or where it is empty the annotation, or else deletions, updates and
// evictions. An annotation that can't be read counts as none: the budget then guards more than was meant, not less.
func Operations(b *v1beta1.PodUnavailableBudget) []v1beta1.PubOperation {
	if len(b.Spec.ProtectOperations) > 0 {
		return b.Spec.ProtectOperations
	}
	if written, ok := ParseOperations(b.Annotations[keys.ProtectOperations]); ok && len(written) > 0 {
		return written
	}
	return []v1beta1.PubOperation{v1beta1.PubDeleteOperation, v1beta1.PubUpdateOperation, v1beta1.PubEvictOperation}
}

// Resizing says what a resize of a Pod in place is to a budget.
type Resizing int

const (
	// ResizeIsUpdate is where vertical scaling in place is not enabled: any resize counts as disruptive, so whoever guards against updates
	// guards against it as well.
	ResizeIsUpdate Resizing = iota
	// ResizeIsOwn is where it is: a resize is free unless the budget names it.
	ResizeIsOwn
)

// Protects reports whether a budget guards against the operation.
func Protects(b *v1beta1.PodUnavailableBudget, operation v1beta1.PubOperation, resizing Resizing) bool {
	operations := Operations(b)
	if operation == v1beta1.PubResizeOperation && resizing == ResizeIsUpdate && slices.Contains(operations, v1beta1.PubUpdateOperation) {
		return true
	}
	return slices.Contains(operations, operation)
}

// ParseOperations reads operations that are separated by commas, with or without blanks; none from text without any. It reports whether all
// of them are known.
func ParseOperations(text string) ([]v1beta1.PubOperation, bool) {
	if strings.TrimSpace(text) == "" {
		return nil, true
	}
	known := []v1beta1.PubOperation{v1beta1.PubDeleteOperation, v1beta1.PubUpdateOperation, v1beta1.PubEvictOperation,
		v1beta1.PubResizeOperation}
	var out []v1beta1.PubOperation
	for word := range strings.SplitSeq(text, ",") {
		operation := v1beta1.PubOperation(strings.TrimSpace(word))
		if !slices.Contains(known, operation) {
			return nil, false
		}
		out = append(out, operation)
	}
	return out, true
}

// ProtectedTotal returns the number of Pods that the budget itself says there should be: the field, or where there is none the annotation.
// It reports whether the budget says so.
func ProtectedTotal(b *v1beta1.PodUnavailableBudget) (int32, bool) {
	if total := b.Spec.ProtectTotalReplicas; total != nil {
		return *total, true
	}
	return ParseTotal(b.Annotations[keys.ProtectTotalReplicas])
}

// ParseTotal reads a number of Pods, of 1 or more; it reports whether the text is one.
func ParseTotal(text string) (int32, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	return int32(n), err == nil && n >= 1
}
