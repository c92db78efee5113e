package disruption

import (
	"slices"
	"strconv"
	"strings"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

// Operations returns what a budget guards against: the field, or where it is empty the annotation, or else deletions, updates and evictions. An
// annotation that can't be read counts as none: the budget then guards more than was meant, not less.
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
	// ResizeIsUpdate is where vertical scaling in place is not enabled: any resize counts as disruptive, so whoever guards against updates guards
	// against it as well.
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

// ParseOperations reads operations that are separated by commas, with or without blanks; none from text without any. It reports whether all of them
// are known.
func ParseOperations(text string) ([]v1beta1.PubOperation, bool) {
	if strings.TrimSpace(text) == "" {
		return nil, true
	}
	known := []v1beta1.PubOperation{v1beta1.PubDeleteOperation, v1beta1.PubUpdateOperation, v1beta1.PubEvictOperation, v1beta1.PubResizeOperation}
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

// ProtectedTotal returns the number of Pods that the budget itself says there should be: the field, or where there is none the annotation. It reports
// whether the budget says so.
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
