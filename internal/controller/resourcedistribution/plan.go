package resourcedistribution

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/distribution"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

const (
	// recheck is when to look again at what nothing tells of: objects of others, and the source in another namespace.
	recheck = 60 * time.Second
	// retry is when to try again what has failed.
	retry = 15 * time.Second
)

// Plan decides the next step. It reads only the state and changes nothing.
func Plan(v State) plan.Plan {
	b := plan.For(fmt.Sprintf("ResourceDistribution %s   targets %d   copies %d", v.Owner.Name, len(v.Targets), len(v.Copies)))
	if v.Owner.DeletionTimestamp != nil {
		return b.Plan() // the garbage collector takes the copies along, or they are to stay
	}
	if v.Owner.Spec.ResourceFrom != nil {
		b.Recheck(recheck, "nothing tells when "+v.Owner.Spec.ResourceFrom.Name+" changes")
	}
	if v.Problem != nil {
		b.Hold(plan.Hold{Code: reason.InvalidSpec, Why: v.Problem.Error(), Event: string(v1beta1.ResourceDistributionGetResourceFailed)})
		return b.Plan()
	}
	for _, p := range v.places {
		v.keep(b, p)
	}
	for _, name := range v.unwanted {
		stale := distribution.New(v.kind())
		known := v.Copies[name]
		stale.SetNamespace(name)
		stale.SetName(known.GetName())
		stale.SetUID(known.GetUID())
		stale.SetResourceVersion(known.GetResourceVersion())
		b.Do(plan.Action{
			Verb: plan.Delete, Concern: plan.Scale, Before: stale, Optional: true, What: "delete the copy in " + name,
			Why: "the namespace is to have none", FailedEvent: string(v1beta1.ResourceDistributionDeleteResourceFailed),
			FailedPrefix: "in namespace " + name + ": ",
		})
	}
	if len(v.unwanted) > 0 || v.hasFailed() {
		b.Recheck(retry, "a write has failed, or may fail")
	}
	return b.Plan()
}

// hasFailed reports whether, by the status, a read or a write has failed: nothing else tells when it would not any more.
func (v *State) hasFailed() bool {
	for _, c := range v.Owner.Status.Conditions {
		switch c.Type {
		case v1beta1.ResourceDistributionConflictOccurred, v1beta1.ResourceDistributionNamespaceNotExists,
			v1beta1.ResourceDistributionReady:
		default:
			if c.Status == metav1.ConditionTrue {
				return true
			}
		}
	}
	return false
}

// keep has a namespace get the copy that it is to have. Writes are optional: what fails in one namespace stops no other.
func (v *State) keep(b *plan.Builder, p place) {
	action := plan.Action{Concern: plan.Scale, Optional: true, FailedPrefix: "in namespace " + p.namespace + ": "}
	made := v.Source.Copy(v.Owner, p.namespace, nil)
	switch p.standing {
	case missing:
		action.Verb, action.After, action.What, action.Why = plan.Create, made, "create the copy in "+p.namespace, "there is none"
		action.FailedEvent = string(v1beta1.ResourceDistributionCreateResourceFailed)
		b.Do(action)
	case outdated:
		action.Verb, action.Before, action.After = plan.Update, p.is, v.wanted(p.is)
		action.What, action.Why = "change the copy in "+p.namespace, "it is not as the resource says"
		action.FailedEvent = string(v1beta1.ResourceDistributionUpdateResourceFailed)
		b.Do(action)
	case replaced:
		action.Verb, action.Before = plan.Delete, p.is
		action.What, action.Why = "delete the copy in "+p.namespace, "it is immutable, and is made anew"
		action.FailedEvent = string(v1beta1.ResourceDistributionUpdateResourceFailed)
		b.Do(action)
	case taken:
		b.Hold(plan.Hold{Code: reason.Conflict, Name: p.namespace, Why: v.takenBy(p),
			Event: string(v1beta1.ResourceDistributionConflictOccurred)})
		b.Recheck(recheck, "an object of others may go")
	case frozen:
		b.Hold(plan.Hold{Code: reason.Held, Name: p.namespace, Why: frozenText(p.namespace),
			Event: string(v1beta1.ResourceDistributionUpdateResourceFailed)})
	case unread:
		b.Recheck(retry, "namespace "+p.namespace+" could not be read")
	}
}

func (v *State) takenBy(p place) string {
	return fmt.Sprintf("%s %s in namespace %s was not made by this ResourceDistribution and is left as it is: "+
		"delete it, or see spec.conflictPolicy", v.kind(), p.is.GetName(), p.namespace)
}

func frozenText(namespace string) string {
	return "the copy in namespace " + namespace + " is immutable: delete it, or set spec.immutablePolicy to Replace"
}
