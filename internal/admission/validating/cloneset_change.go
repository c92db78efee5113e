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

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// maxNameLength leaves room for "-" and a hash of up to 10 characters in a label value.
const maxNameLength = validation.LabelValueMaxLength - 1 - 10

// cloneSetChange is a CloneSet to be written.
type cloneSetChange struct {
	CloneSetOptions
	write[v1beta1.CloneSet]
}

// validate returns what is wrong with the change; an error means that it could not be found out.
func (c cloneSetChange) validate(ctx context.Context) (findings, error) {
	spec := field.NewPath("spec")
	var found findings
	found.add(c.name())
	found.add(c.workload().checkSelector(spec))
	found.add(c.weights(spec.Child("updateStrategy", "rollingUpdate", "priorityStrategy")))
	found.add(c.inPlaceOnly(spec.Child("template")))
	podErrors, err := c.podsToDelete(ctx, spec.Child("scaleStrategy", "podsToDelete"))
	if err != nil {
		return findings{}, err
	}
	found.add(podErrors)
	found.add(c.claims(spec.Child("volumeClaimTemplates")))
	if c.templateChanged() || c.claimsChanged() {
		found.join(c.workload().checkTemplate(ctx, c.Templates, c.namespace, withClaims(c.template(), c.new.Spec.VolumeClaimTemplates)))
	}
	if len(found.errors) == 0 {
		found.warnings = append(found.warnings, c.warnings()...)
	}
	return found, nil
}

func (c cloneSetChange) workload() workload {
	w := workload{kind: "CloneSet", selector: c.new.Spec.Selector, template: &c.new.Spec.Template}
	if c.old != nil {
		w.oldTemplate = &c.old.Spec.Template
	}
	return w
}

// name is checked for new objects only: what has too long a name already can't be helped. The schema can't check it, as it does not know of gates.
func (c cloneSetChange) name() field.ErrorList {
	if c.old != nil || c.ShortHash || len(c.new.Name) <= maxNameLength {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), c.new.Name, fmt.Sprintf(
		"must be no more than %d characters, because it becomes part of the value of a Pod label; or turn on the feature gate CloneSetShortHash", maxNameLength))}
}

// weights checks the selectors of an order that is new.
func (c cloneSetChange) weights(path *field.Path) field.ErrorList {
	if c.old != nil && equality.Semantic.DeepEqual(c.old.Spec.UpdateStrategy, c.new.Spec.UpdateStrategy) {
		return nil
	}
	if rolling := c.new.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		return checkWeights(rolling.PriorityStrategy, path)
	}
	return nil
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
