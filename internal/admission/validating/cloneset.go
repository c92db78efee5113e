package validating

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

// CloneSetOptions is what the validation of CloneSets needs and heeds.
type CloneSetOptions struct {
	// Pods reads Pods, from the API server rather than from a cache: a Pod that was just created must be found.
	Pods client.Reader
	// Templates judges Pod templates; without it they are not looked into.
	Templates TemplateChecker
	// InPlace says which changes can go in place.
	InPlace inplace.Options
	// DeletionProtection heeds the label policy.kruise.io/delete-protection (gate ResourcesDeletionProtection).
	DeletionProtection bool
	// ShortHash keeps the name of the CloneSet out of label values, so that it may be long (gate CloneSetShortHash).
	ShortHash bool
}

// CloneSet returns the handler that validates CloneSets of both versions.
func CloneSet(o CloneSetOptions) admission.Handler {
	k := kind[v1beta1.CloneSet, *v1beta1.CloneSet]{
		hub:     v1beta1.GroupVersion,
		subject: func(set *v1beta1.CloneSet) any { return set.Spec },
		validate: func(ctx context.Context, w write[v1beta1.CloneSet]) (findings, error) {
			return cloneSetChange{o, w, cloneSetWorkload(w.new, w.old)}.validate(ctx)
		},
		ineffective: cloneSetSpelling,
		olderNames: func(write[v1beta1.CloneSet]) []olderName {
			return []olderName{{"spec.updateStrategy.rollingUpdate", "spec.updateStrategy"}}
		},
	}
	if o.DeletionProtection {
		k.pods = func(set *v1beta1.CloneSet) int32 { return replicasOf(set.Spec.Replicas) }
	}
	return k.handler()
}

// cloneSetChange is a CloneSet to be written.
type cloneSetChange struct {
	CloneSetOptions
	write[v1beta1.CloneSet]
	*workload
}

func cloneSetWorkload(set, old *v1beta1.CloneSet) *workload {
	if set == nil {
		return nil
	}
	spec := &set.Spec
	return &workload{"CloneSet", spec.Selector, &spec.Template, spec.VolumeClaimTemplates, spec.Lifecycle, cloneSetWorkload(old, nil)}
}

// validate returns what the schema can't find wrong with the change; an error means that it could not be found out.
func (c cloneSetChange) validate(ctx context.Context) (findings, error) {
	found := c.check(ctx, c.Templates, c.namespace, c.rawTemplate())
	found.add(c.name())
	found.add(c.weights())
	if policy(c.new) == v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType {
		found.add(c.inPlaceOnly(c.InPlace))
	}
	errs, err := c.podsToDelete(ctx, field.NewPath("spec", "scaleStrategy", "podsToDelete"))
	if err != nil {
		return findings{}, err
	}
	found.add(errs)
	if len(found.errors) == 0 {
		found.warnings = append(found.warnings, c.warnings()...)
	}
	return found, nil
}

// maxNameLength leaves room for "-" and a hash of up to 10 characters in a label value.
const maxNameLength = validation.LabelValueMaxLength - 1 - 10

// name is checked for new objects only: what has too long a name already can't be helped. The schema can't check it, as it does not know of
// gates.
func (c cloneSetChange) name() field.ErrorList {
	if c.old != nil || c.ShortHash || len(c.new.Name) <= maxNameLength {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), c.new.Name, fmt.Sprintf(
		"must be no more than %d characters, because it becomes part of the value of a Pod label; or turn on the feature gate CloneSetShortHash", maxNameLength))}
}

// weights checks the selectors of an order that is new.
func (c cloneSetChange) weights() field.ErrorList {
	rolling := c.new.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || c.old != nil && equality.Semantic.DeepEqual(c.old.Spec.UpdateStrategy, c.new.Spec.UpdateStrategy) {
		return nil
	}
	return checkWeights(rolling.PriorityStrategy, field.NewPath("spec", "updateStrategy", "rollingUpdate", "priorityStrategy"))
}

// podsToDelete checks names that are new on the list: a name on it before may well be gone by now.
func (c cloneSetChange) podsToDelete(ctx context.Context, path *field.Path) (field.ErrorList, error) {
	names := c.new.Spec.ScaleStrategy.PodsToDelete
	known, seen := sets.New[string](), sets.New[string]()
	if c.old != nil {
		known.Insert(c.old.Spec.ScaleStrategy.PodsToDelete...)
	}
	problems := make([]string, len(names))
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(parallelReads)
	for i, name := range names {
		switch {
		case seen.Has(name):
			problems[i] = "is on the list twice: name each Pod once"
		case !known.Has(name):
			reads.Go(func() (err error) {
				defer func() { // the webhook server recovers on its own goroutine alone
					if cause := recover(); cause != nil {
						err = fmt.Errorf("reading pod %s of podsToDelete: %v", name, cause)
					}
				}()
				problems[i], err = c.unfitToDelete(ctx, name)
				return err
			})
		}
		seen.Insert(name)
	}
	if err := reads.Wait(); err != nil {
		return nil, err
	}
	var errs field.ErrorList
	for i, problem := range problems {
		if problem != "" {
			errs = append(errs, field.Invalid(path.Index(i), names[i], problem))
		}
	}
	return errs, nil
}

// parallelReads keeps a list of a thousand Pods within the time that the API server gives to a webhook.
const parallelReads = 16

// unfitToDelete says why this CloneSet can't delete a Pod of that name; nothing if it can.
func (c cloneSetChange) unfitToDelete(ctx context.Context, name string) (string, error) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "is not the name of a Pod", nil
	}
	pod := &corev1.Pod{}
	err := c.Pods.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, pod)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("Pod %s not found in namespace %s", name, c.namespace), nil
	case err != nil:
		return "", fmt.Errorf("reading pod %s of podsToDelete: %w", name, err)
	case pod.DeletionTimestamp != nil:
		return fmt.Sprintf("Pod %s is already being deleted: leave it out", name), nil
	}
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return fmt.Sprintf("Pod %s is not controlled by this CloneSet: no controller owns it", name), nil
	case c.new.UID == "" || owner.UID != c.new.UID:
		return fmt.Sprintf("Pod %s is not controlled by this CloneSet but by %s %s", name, owner.Kind, owner.Name), nil
	}
	return "", nil
}

// policy returns how Pods are updated; nothing if it is left to the user.
func policy(set *v1beta1.CloneSet) v1beta1.CloneSetPodUpdatePolicyType {
	strategy := &set.Spec.UpdateStrategy
	if strategy.Type == v1beta1.OnDeleteCloneSetStrategyType || strategy.RollingUpdate == nil {
		return ""
	}
	return strategy.RollingUpdate.PodUpdatePolicy
}
