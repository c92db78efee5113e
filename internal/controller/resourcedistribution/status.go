package resourcedistribution

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

const (
	// mostDetails is of how many namespaces the status says what is wrong.
	mostDetails = 100
	// mostNames is how many namespaces a condition names.
	mostNames = 1000
	// succeeded is the reason of a condition without a problem. Wire: clients look for it.
	succeeded = "Succeeded"
)

// order is that in which the conditions of problems stand in the status.
func order() []v1beta1.ResourceDistributionConditionType {
	return []v1beta1.ResourceDistributionConditionType{
		v1beta1.ResourceDistributionGetResourceFailed, v1beta1.ResourceDistributionCreateResourceFailed,
		v1beta1.ResourceDistributionUpdateResourceFailed, v1beta1.ResourceDistributionDeleteResourceFailed,
		v1beta1.ResourceDistributionConflictOccurred, v1beta1.ResourceDistributionNamespaceNotExists,
	}
}

// problem is what is wrong in a namespace; without a name, in all of them.
type problem struct {
	namespace, message string
	is                 v1beta1.ResourceDistributionConditionType
}

// Status counts the namespaces, and says of those that lack their copy why.
func Status(v State, _ plan.Plan, outcome apply.Outcome) v1beta1.ResourceDistributionStatus {
	if v.Owner.DeletionTimestamp != nil {
		return v.Owner.Status
	}
	out := *v.Owner.Status.DeepCopy()
	out.ObservedGeneration = v.Owner.Generation
	problems := v.problems(outcome)
	if v.Problem == nil {
		bad := map[string]bool{}
		for _, p := range problems {
			bad[p.namespace] = true
		}
		out.Desired, out.Succeeded, out.Updated = int32(len(v.places)), 0, 0
		for _, p := range v.places {
			if !bad[p.namespace] {
				out.Succeeded++
				if p.standing != held {
					out.Updated++
				}
			}
		}
		out.Failed = out.Desired - out.Succeeded
	}
	out.Namespaces = nil
	for _, p := range problems {
		if p.namespace != "" && len(out.Namespaces) < mostDetails {
			detail := v1beta1.ResourceDistributionNamespaceStatus{Name: p.namespace, Reason: p.is, Message: p.message}
			out.Namespaces = append(out.Namespaces, detail)
		}
	}
	out.Conditions = append(v.conditions(problems), v.ready(problems, out.Failed))
	return out
}

// problems returns what is wrong, by namespace: as it was seen, and what has failed since. A namespace whose copy is still to be written
// counts by what becomes of that write.
func (v *State) problems(outcome apply.Outcome) []problem {
	var out []problem
	add := func(namespace, message string, is v1beta1.ResourceDistributionConditionType) {
		out = append(out, problem{namespace, message, is})
	}
	if v.Problem != nil {
		add("", v.Problem.Error(), v1beta1.ResourceDistributionGetResourceFailed)
		return out
	}
	tried := map[string]error{}
	for _, r := range outcome.Results {
		namespace := r.Action.Object().GetNamespace()
		tried[namespace] = r.Err
		if r.Action.Verb == plan.Delete && slices.Contains(v.unwanted, namespace) && apply.IsFailure(r.Err) {
			add(namespace, r.Err.Error(), v1beta1.ResourceDistributionDeleteResourceFailed)
		}
	}
	for _, p := range v.places {
		err, done := tried[p.namespace]
		switch p.standing {
		case absent:
			add(p.namespace, "the namespace does not exist or is being deleted", v1beta1.ResourceDistributionNamespaceNotExists)
		case unread:
			add(p.namespace, v.Failed[p.namespace].Error(), v1beta1.ResourceDistributionGetResourceFailed)
		case taken:
			add(p.namespace, v.takenBy(p), v1beta1.ResourceDistributionConflictOccurred)
		case frozen:
			add(p.namespace, frozenText(p.namespace), v1beta1.ResourceDistributionUpdateResourceFailed)
		case missing:
			switch {
			case done && apierrors.IsAlreadyExists(err):
				add(p.namespace, err.Error(), v1beta1.ResourceDistributionConflictOccurred)
			case done && err != nil:
				add(p.namespace, err.Error(), v1beta1.ResourceDistributionCreateResourceFailed)
			case !done:
				add(p.namespace, v.before(p.namespace, "the copy is still to be created"), v1beta1.ResourceDistributionCreateResourceFailed)
			}
		case outdated, replaced:
			switch {
			case done && apply.IsFailure(err):
				add(p.namespace, err.Error(), v1beta1.ResourceDistributionUpdateResourceFailed)
			case !done:
				add(p.namespace, v.before(p.namespace, "the copy is still to be changed"), v1beta1.ResourceDistributionUpdateResourceFailed)
			}
		}
	}
	return out
}

// before returns what the status has said of a namespace so far: a write that is waited with has failed before.
func (v *State) before(namespace, otherwise string) string {
	for _, n := range v.Owner.Status.Namespaces {
		if n.Name == namespace && n.Message != "" {
			return n.Message
		}
	}
	return otherwise
}

// ready returns the condition that sums the others up.
func (v *State) ready(problems []problem, failed int32) v1beta1.ResourceDistributionCondition {
	c := v1beta1.ResourceDistributionCondition{}
	c.Type, c.Status, c.Reason = v1beta1.ResourceDistributionReady, metav1.ConditionTrue, succeeded
	switch {
	case v.Problem != nil:
		c.Status, c.Reason = metav1.ConditionFalse, v.Problem.Error()
	case failed > 0:
		c.Status, c.Reason = metav1.ConditionFalse, fmt.Sprintf("%d of %d namespaces lack their copy", failed, len(v.places))
	case len(problems) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, problems[0].message
	}
	c.LastTransitionTime = v.since(c)
	return c
}

// since returns when a condition took its status.
func (v *State) since(c v1beta1.ResourceDistributionCondition) metav1.Time {
	for _, was := range v.Owner.Status.Conditions {
		if was.Type == c.Type && was.Status == c.Status {
			return was.LastTransitionTime
		}
	}
	return metav1.NewTime(v.Now)
}

// conditions returns those of problems. The time of one stays while its status does.
func (v *State) conditions(problems []problem) []v1beta1.ResourceDistributionCondition {
	var out []v1beta1.ResourceDistributionCondition
	for _, of := range order() {
		c := v1beta1.ResourceDistributionCondition{}
		c.Type, c.Status, c.Reason = of, metav1.ConditionFalse, succeeded
		for _, p := range problems {
			if p.is != of {
				continue
			}
			c.Status, c.Reason = metav1.ConditionTrue, p.message
			if p.namespace != "" && len(c.FailedNamespaces) < mostNames {
				c.FailedNamespaces = append(c.FailedNamespaces, p.namespace)
			}
		}
		slices.SortFunc(c.FailedNamespaces, strings.Compare)
		c.LastTransitionTime = v.since(c)
		out = append(out, c)
	}
	return out
}
