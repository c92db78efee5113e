package rollout

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// Ways finds out how Pods can come to the target in place. Each of their revisions is compared once.
type Ways struct {
	history revision.History
	target  *appsv1.ControllerRevision
	options inplace.Options
	known   map[string]Way
}

// Way is the way from one revision to the target in place, or, where Refusal is not empty, why there is none.
type Way struct {
	Change  inplace.Change
	Refusal string
}

// WaysTo returns the ways to a target.
func WaysTo(target *appsv1.ControllerRevision, history revision.History, options inplace.Options) *Ways {
	return &Ways{history: history, target: target, options: options, known: map[string]Way{}}
}

// From returns the Pod's way to the target.
func (w *Ways) From(p *corev1.Pod) Way {
	from := w.history.Of(p)
	if from == nil {
		return Way{Refusal: "its revision " + p.Labels[appsv1.ControllerRevisionHashLabelKey] + " is not stored any more"}
	}
	way, known := w.known[from.Name]
	if !known {
		change, refusal := inplace.Diff(from, w.target, w.options)
		way.Change = change
		if refusal != nil {
			way.Refusal = refusal.Error()
		}
		w.known[from.Name] = way
	}
	return way
}
