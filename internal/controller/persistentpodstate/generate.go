package persistentpodstate

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/podstate"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// Event reasons of the workload. Wire: users' alerts match them.
const (
	eventGenerated       = "PersistentPodStateGenerated"
	eventFailedGenerated = "FailedGeneratePersistentPodState"
	eventConflict        = "PersistentPodStateConflict"
)

// NativeGenerator makes the PersistentPodStates that StatefulSets of apps ask for by their annotations.
func NativeGenerator() loop.Kind[*appsv1.StatefulSet, Wish, struct{}] {
	return generator("persistentpodstate-native", appsv1.SchemeGroupVersion.WithKind("StatefulSet"), &appsv1.StatefulSet{})
}

// Generator makes the PersistentPodStates that StatefulSets of apps.kruise.io ask for by their annotations.
func Generator() loop.Kind[*v1beta1.StatefulSet, Wish, struct{}] {
	return generator("persistentpodstate-advanced", v1beta1.GroupVersion.WithKind("StatefulSet"), &v1beta1.StatefulSet{})
}

func generator[O interface {
	comparable
	plan.Object
}](name string, kind schema.GroupVersionKind, _ O) loop.Kind[O, Wish, struct{}] {
	return loop.Kind[O, Wish, struct{}]{
		Name:   name,
		Source: EventSource,
		Concerns: func(before, after O) bool {
			var none O
			if before == none {
				return podstate.Asked(after.GetAnnotations())
			}
			return !podstate.SameWishes(before.GetAnnotations(), after.GetAnnotations())
		},
		Owns: []client.Object{&v1beta1.PersistentPodState{}},
		Read: func(ctx context.Context, r loop.Reads, workload O) (Wish, error) {
			key := types.NamespacedName{Namespace: workload.GetNamespace(), Name: workload.GetName()}
			state, err := observe.Find(ctx, r, key, &v1beta1.PersistentPodState{})
			return Wish{Workload: workload, Kind: kind, State: state}, err
		},
		Plan: PlanGenerated,
	}
}

// Wish is what a workload asks for, and what there is.
type Wish struct {
	Workload plan.Object
	Kind     schema.GroupVersionKind
	// State is the PersistentPodState of the workload's name; nil if there is none.
	State *v1beta1.PersistentPodState
}

// PlanGenerated makes, changes or deletes the PersistentPodState of a workload. One that the workload does not control is left alone.
func PlanGenerated(w Wish) plan.Plan {
	name := w.Workload.GetName()
	b := plan.For(fmt.Sprintf("%s %s/%s", w.Kind.Kind, w.Workload.GetNamespace(), name))
	after := &v1beta1.PersistentPodState{}
	if w.State != nil {
		after = w.State.DeepCopy()
	}
	target := v1beta1.PersistentPodStateTarget{APIVersion: w.Kind.GroupVersion().String(), Kind: w.Kind.Kind, Name: name}
	wanted := podstate.Generate(w.Workload.GetAnnotations(), target, &after.Spec)
	write := plan.Action{
		Concern: plan.Tidy, Before: nil, After: after, Why: "annotation " + keys.GeneratePodState, FailedEvent: eventFailedGenerated,
		FailedPrefix: "PersistentPodState " + name + ": ",
	}
	switch {
	case w.Workload.GetDeletionTimestamp() != nil: // the garbage collector takes it along
	case w.State == nil && wanted:
		after.Namespace, after.Name = w.Workload.GetNamespace(), name
		after.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: target.APIVersion, Kind: target.Kind, Name: name, UID: w.Workload.GetUID(), Controller: new(true),
		}}
		write.Verb, write.What = plan.Create, "create the PersistentPodState"
		write.Event, write.EventMessage = eventGenerated, "made PersistentPodState "+name
		b.Do(write)
	case w.State == nil || w.State.DeletionTimestamp != nil || w.isLeftover():
	case !metav1.IsControlledBy(w.State, w.Workload):
		if podstate.Asked(w.Workload.GetAnnotations()) {
			b.Hold(plan.Hold{Code: reason.Conflict, Event: eventConflict, Why: fmt.Sprintf(
				"PersistentPodState %s was not made for this %s and is left as it is: delete it, or remove annotation %s",
				name, w.Kind.Kind, keys.GeneratePodState)})
		}
	case !wanted:
		write.Verb, write.Before, write.After, write.What = plan.Delete, w.State, nil, "delete the PersistentPodState"
		b.Do(write)
	case !equality.Semantic.DeepEqual(w.State.Spec, after.Spec):
		write.Verb, write.Before, write.What = plan.Update, w.State, "change the PersistentPodState"
		b.Do(write)
	}
	return b.Plan()
}

// isLeftover reports whether the PersistentPodState is one of a workload of the same name before this one: the garbage collector deletes
// it.
func (w Wish) isLeftover() bool {
	controller := metav1.GetControllerOfNoCopy(w.State)
	return controller != nil && controller.Name == w.Workload.GetName() && controller.UID != w.Workload.GetUID() &&
		schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind() == w.Kind.GroupKind()
}
