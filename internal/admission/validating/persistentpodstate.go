package validating

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/podstate"
)

// PersistentPodState returns the handler that validates of PersistentPodStates what their schema can't: whether the kind of the target is
// one that can have one, and that no other one is for the same workload.
func PersistentPodState(o Options) admission.Handler {
	return kind[v1beta1.PersistentPodState, *v1beta1.PersistentPodState]{
		hub:      v1beta1.GroupVersion,
		subject:  func(state *v1beta1.PersistentPodState) any { return state.Spec },
		disabled: o.disabled("PersistentPodState", http.StatusForbidden),
		validate: func(ctx context.Context, w write[v1beta1.PersistentPodState]) (findings, error) {
			found := rules[v1beta1.PersistentPodState](podStateRules).ratcheted(w)
			if len(found.errors) > 0 || w.old != nil { // the target can't be changed
				return found, nil
			}
			if err := o.podStateKind(ctx, &found, w.new); err != nil || len(found.errors) > 0 {
				return found, err
			}
			return found, o.besidePodStates(ctx, &found, w)
		},
		olderNames: olderPodStateNames,
	}.handler()
}

func podStateRules(found *findings, state *v1beta1.PersistentPodState) {
	spec := field.NewPath("spec")
	qualified := func(at *field.Path, key string) { found.messages(at, key, validation.IsQualifiedName(key)) }
	if required := state.Spec.RequiredPersistentTopology; required != nil {
		for i, key := range required.Keys {
			qualified(spec.Child("requiredPersistentTopology", "keys").Index(i), key)
		}
	}
	for i, term := range state.Spec.PreferredPersistentTopology {
		for j, key := range term.Preference.Keys {
			qualified(spec.Child("preferredPersistentTopology").Index(i).Child("preference", "keys").Index(j), key)
		}
	}
	for i, annotation := range state.Spec.PersistentPodAnnotations {
		qualified(spec.Child("persistentPodAnnotations").Index(i).Child("key"), annotation.Key)
	}
}

func olderPodStateNames(w write[v1beta1.PersistentPodState]) []olderName {
	spec := field.NewPath("spec")
	rename := func(at *field.Path) olderName {
		return olderName{at.Child("keys").String(), at.Child("nodeTopologyKeys").String()}
	}
	names := []olderName{rename(spec.Child("requiredPersistentTopology"))}
	for i := range w.new.Spec.PreferredPersistentTopology {
		names = append(names, rename(spec.Child("preferredPersistentTopology").Index(i).Child("preference")))
	}
	return names
}

// podStateKind refuses a target of a kind that can't have a PersistentPodState.
func (o Options) podStateKind(ctx context.Context, found *findings, state *v1beta1.PersistentPodState) error {
	target := podstate.TargetOf(state)
	if podstate.IsStatefulSet(target) || podstate.IsCloneSet(target) {
		return nil
	}
	var configuration corev1.ConfigMap
	err := o.Live.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: keys.Configuration}, &configuration)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ConfigMap %s: %w", keys.Configuration, err)
	}
	further, err := podstate.ParseKinds(configuration.Data[keys.PodStateKinds])
	if err != nil {
		return fmt.Errorf("ConfigMap %s: %w", keys.Configuration, err)
	}
	if !slices.Contains(further, target) {
		found.invalid(field.NewPath("spec", "targetRef", "kind"), target.String(),
			"targetRef.Kind must be StatefulSet or in %s of ConfigMap %s, or CloneSet of apps.kruise.io",
			keys.PodStateKinds, keys.Configuration)
	}
	return nil
}

// besidePodStates refuses a second PersistentPodState for one workload.
func (o Options) besidePodStates(ctx context.Context, found *findings, w write[v1beta1.PersistentPodState]) error {
	var list v1beta1.PersistentPodStateList
	if err := o.Live.List(ctx, &list, client.InNamespace(w.namespace)); err != nil {
		return fmt.Errorf("looking for other PersistentPodStates: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		same := other.Spec.TargetRef.Name == w.new.Spec.TargetRef.Name && podstate.TargetOf(other) == podstate.TargetOf(w.new)
		if same && other.Name != w.new.Name && other.DeletionTimestamp == nil {
			found.forbidden(field.NewPath("spec", "targetRef"), "targetRef is in conflict with other PersistentPodState %s", other.Name)
		}
	}
	return nil
}
