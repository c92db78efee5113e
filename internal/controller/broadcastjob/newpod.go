package broadcastjob

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// pods makes the Pods of one pass.
type pods struct {
	*Survey
	used sets.Set[string]
}

func (v *Survey) newPods() *pods {
	out := &pods{Survey: v, used: sets.New(v.Taken...)}
	for _, p := range v.Pods {
		out.used.Insert(p.Name)
	}
	return out
}

// create returns the write that creates the Pod of a node. Its name depends on the job and the node only, so that the API server itself refuses a
// second Pod to a controller that does not know of the first.
func (n *pods) create(at *place) plan.Action {
	p := pod.New(&n.Job.Spec.Template, n.Job, kind())
	p.Name = pod.NewName(n.Job.Name, n.used, string(n.Job.UID), at.name)
	p.Labels[keys.BroadcastJobName] = n.Job.Name
	p.Labels[keys.BroadcastJobControllerUID] = string(n.Job.UID)
	if n.Options.BindPods {
		p.Spec.NodeName = at.name
	} else {
		nodefit.Pin(&p.Spec, at.name)
	}
	return plan.Action{
		Verb: plan.Create, Concern: plan.Scale, After: p,
		What: "on " + at.name, Why: fmt.Sprintf("node %s has no Pod of the job", at.name),
		Event: eventSuccessfulCreate, EventMessage: "Created pod: " + p.Name, FailedEvent: eventFailedCreate,
	}
}
