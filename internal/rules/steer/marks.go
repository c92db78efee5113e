package steer

import (
	"encoding/json"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
)

// mark is the value of the annotation in-progressing.
type mark struct {
	RolloutName string `json:"rolloutName"`
}

// Mark returns a workload with the mark that its new template waits for a Rollout. The workload is changed.
func Mark(workload Object, rollout string) Object {
	text, _ := json.Marshal(mark{rollout}) // a string can be written
	annotate(workload, keys.InProgressing, string(text))
	return workload
}

// MarkOf returns the name of the Rollout that a workload waits for; false if it waits for none.
func MarkOf(workload metav1.Object) (rollout string, marked bool) {
	text, marked := workload.GetAnnotations()[keys.InProgressing]
	var m mark
	if marked && json.Unmarshal([]byte(text), &m) != nil {
		return "", true // somebody has written something else: it is a mark all the same
	}
	return m.RolloutName, marked
}

// Claim returns a workload that says which BatchRelease drives it. The workload is copied if that changes it.
func Claim(workload Object, by metav1.OwnerReference) Object {
	text, _ := json.Marshal(by) // strings and booleans can be written
	if workload.GetAnnotations()[keys.ControlInfo] == string(text) {
		return workload
	}
	next := copyOf(workload)
	annotate(next, keys.ControlInfo, string(text))
	return next
}

// Unclaim takes the claim off a workload. The workload is copied if that changes it.
func Unclaim(workload Object) Object { return withoutAnnotations(workload, keys.ControlInfo) }

// ClaimOf returns which BatchRelease drives a workload; false if none does, or if what it says can't be read.
func ClaimOf(workload metav1.Object) (by metav1.OwnerReference, claimed bool) {
	text, claimed := workload.GetAnnotations()[keys.ControlInfo]
	return by, claimed && json.Unmarshal([]byte(text), &by) == nil
}

// isClaimed tells whether a BatchRelease drives a workload.
func isClaimed(workload metav1.Object) bool {
	_, claimed := workload.GetAnnotations()[keys.ControlInfo]
	return claimed
}

// IsReleased tells whether a release has to do with a workload: only then is it the release that has frozen it, and not its user.
func IsReleased(workload metav1.Object) bool {
	_, marked := MarkOf(workload)
	return marked || isClaimed(workload)
}

// Unmark returns what ends a release: the workload goes on by itself, and everything is taken off it that says that a release is under way.
// Autoscalers come back before that: nothing would tell of them any more.
func Unmark(k Kind, o Objects) Writes {
	w := k.Promote(o)
	w.First = append(w.First, Autoscaled(o)...)
	w.Workload = withoutMarks(w.Workload)
	return w
}

// Abandon returns what ends a release and leaves the workload as the release has it: frozen where it is, for a person to let go.
func Abandon(o Objects) Writes {
	workload := withoutMarks(o.Workload)
	if d, is := workload.(*appsv1.Deployment); is && isKeptPaused(d) {
		workload = withoutAnnotations(d, keys.DeploymentStrategy) // nothing is left that it would tell anybody
	}
	return Writes{Workload: workload}
}

// withoutMarks returns a workload without what says that a release is under way. The workload is copied if that changes it.
func withoutMarks(workload Object) Object {
	return withoutLabel(withoutAnnotations(workload, keys.InProgressing, keys.ControlInfo), keys.StableRevision)
}

// Label returns a workload with the label by which the webhook knows it. The workload is copied if that changes it.
func Label(k Kind, workload Object) Object {
	if workload.GetLabels()[keys.WorkloadType] != "" {
		return workload
	}
	next := copyOf(workload)
	labels := maps.Clone(next.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[keys.WorkloadType] = k.Type()
	next.SetLabels(labels)
	return next
}

// Unlabel takes that label off. The workload is copied if that changes it.
func Unlabel(workload Object) Object { return withoutLabel(workload, keys.WorkloadType) }

// withoutLabel returns an object without a label, a copy if it had it.
func withoutLabel(object Object, key string) Object {
	if _, labelled := object.GetLabels()[key]; !labelled {
		return object
	}
	next := copyOf(object)
	labels := maps.Clone(next.GetLabels())
	delete(labels, key)
	next.SetLabels(labels)
	return next
}

// Carry copies into a workload what a release has written to the one before, and a tool that replaces the object has left out. The
// workload is changed.
func Carry(old, workload Object) {
	for key, value := range old.GetAnnotations() {
		if isOfRelease(key) && key != keys.RolloutID {
			if _, there := workload.GetAnnotations()[key]; !there {
				annotate(workload, key, value)
			}
		}
	}
	labels := maps.Clone(workload.GetLabels())
	for key, value := range old.GetLabels() {
		if !isOfRelease(key) || key == keys.RolloutID {
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		if _, there := labels[key]; !there {
			labels[key] = value
		}
	}
	workload.SetLabels(labels)
}

// isOfRelease tells whether a label or annotation of a workload belongs to releases.
func isOfRelease(key string) bool {
	return strings.HasPrefix(key, "rollouts.kruise.io/") || strings.HasPrefix(key, "batchrelease.rollouts.kruise.io/")
}

// ReleaseID returns how users name the release of a workload; empty if they don't. The label wins over the annotation.
func ReleaseID(workload metav1.Object) string {
	if id := workload.GetLabels()[keys.RolloutID]; id != "" {
		return id
	}
	return workload.GetAnnotations()[keys.RolloutID]
}

func annotate(object Object, key, value string) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}

// withoutAnnotations returns an object without some annotations, a copy if it had any of them.
func withoutAnnotations(object Object, names ...string) Object {
	next := object
	for _, key := range names {
		if _, there := next.GetAnnotations()[key]; !there {
			continue
		}
		next = copyOf(next)
		annotations := maps.Clone(next.GetAnnotations())
		delete(annotations, key)
		next.SetAnnotations(annotations)
	}
	return next
}

func copyOf(object Object) Object { return object.DeepCopyObject().(Object) }
