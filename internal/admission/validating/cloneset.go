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
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

// CloneSet returns the handler that validates CloneSets of both versions.
func CloneSet(o Options) admission.Handler {
	return kind[v1beta1.CloneSet, *v1beta1.CloneSet]{
		hub:     v1beta1.GroupVersion,
		subject: func(set *v1beta1.CloneSet) any { return set.Spec },
		validate: func(ctx context.Context, w write[v1beta1.CloneSet]) (findings, error) {
			return cloneSetChange{o, w, cloneSetWorkload(w.new, w.old)}.validate(ctx)
		},
		ineffective: cloneSetSpelling,
		olderNames: func(write[v1beta1.CloneSet]) []olderName {
			return []olderName{{"spec.updateStrategy.rollingUpdate", "spec.updateStrategy"}}
		},
	}.handler()
}

// cloneSetChange is a CloneSet to be written.
type cloneSetChange struct {
	Options
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
	c.name(&found)
	if rolling := c.new.Spec.UpdateStrategy.RollingUpdate; rolling != nil && c.strategyChanged() {
		found.weights(field.NewPath("spec", "updateStrategy", "rollingUpdate", "priorityStrategy"), rolling.PriorityStrategy)
	}
	if policy(c.new) == v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType {
		c.inPlaceOnly(&found, c.InPlace)
	}
	if err := c.podsToDelete(ctx, &found); err != nil {
		return findings{}, err
	}
	if len(found.errors) == 0 {
		c.warnings(&found)
	}
	return found, nil
}

// maxNameLength leaves room for "-" and a hash of up to 10 characters in a label value.
const maxNameLength = validation.LabelValueMaxLength - 1 - 10

// name is checked for new objects only: what has too long a name already can't be helped. The schema can't check it, as it does not know of
// gates.
func (c cloneSetChange) name(found *findings) {
	if c.old == nil && !c.ShortHash && len(c.new.Name) > maxNameLength {
		found.invalid(field.NewPath("metadata", "name"), c.new.Name, "must be no more than %d characters, because it becomes part of the "+
			"value of a Pod label; or turn on the feature gate CloneSetShortHash", maxNameLength)
	}
}

func (c cloneSetChange) strategyChanged() bool {
	return c.old == nil || !equality.Semantic.DeepEqual(c.old.Spec.UpdateStrategy, c.new.Spec.UpdateStrategy)
}

// podsToDelete checks names that are new on the list: a name on it before may well be gone by now.
func (c cloneSetChange) podsToDelete(ctx context.Context, found *findings) error {
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
		return err
	}
	for i, problem := range problems {
		if problem != "" {
			found.invalid(field.NewPath("spec", "scaleStrategy", "podsToDelete").Index(i), names[i], "%s", problem)
		}
	}
	return nil
}

// parallelReads keeps a list of a thousand Pods within the time that the API server gives to a webhook.
const parallelReads = 16

// unfitToDelete says why this CloneSet can't delete a Pod of that name; nothing if it can.
func (c cloneSetChange) unfitToDelete(ctx context.Context, name string) (string, error) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "is not the name of a Pod", nil
	}
	pod := &corev1.Pod{}
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, pod)
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

// warnings tells of valid changes that may not do what their author expects. It is asked only about valid ones.
func (c cloneSetChange) warnings(found *findings) {
	c.rolloutWarnings(found)
	if c.templateChanged() || !equality.Semantic.DeepEqual(c.old.Spec.Lifecycle, c.new.Spec.Lifecycle) {
		c.hookWarnings(found)
	}
}

func (c cloneSetChange) rolloutWarnings(found *findings) {
	rolling := c.new.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || c.new.Spec.UpdateStrategy.Type == v1beta1.OnDeleteCloneSetStrategyType {
		return
	}
	total := max(int(replicasOf(c.new.Spec.Replicas)), 0)
	kept, err := budget.Partition(rolling.Partition, total)
	if err != nil {
		return
	}
	inPlace := rolling.PodUpdatePolicy == v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType
	if c.old != nil && c.templateChanged() && total > 0 && kept >= total {
		found.nothingMoves("Pod", rolling.Partition, total)
	}
	if surge, err := budget.Scaled(rolling.MaxSurge, total, budget.Up); err == nil && surge > 0 && inPlace && c.strategyChanged() {
		found.warn("maxSurge %s with InPlaceIfPossible: up to %d Pods of an update are created anew instead of updated in place",
			rolling.MaxSurge, surge)
	}
	if refusal := c.refusal(c.InPlace); refusal != nil && inPlace && kept < total {
		found.warn("this change will recreate %d Pods because of %s %s: %s", total-kept, refusal.Op, refusal.Path, refusal.Why)
	}
}

// cloneSetSpelling tells of labels and annotations that stand for fields in one version and have no effect as they are written.
func cloneSetSpelling(found *findings, w write[v1beta1.CloneSet]) {
	var details v1beta1.InPlaceUpdateStrategy
	if rolling := w.new.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.InPlaceUpdateStrategy != nil {
		details = *rolling.InPlaceUpdateStrategy
	}
	for _, a := range []struct {
		key, field string
		set        bool
	}{
		{keys.ImagePreDownloadParallelism, "Parallelism", details.ImagePreDownloadParallelism != nil},
		{keys.ImagePreDownloadTimeoutSeconds, "TimeoutSeconds", details.ImagePreDownloadTimeoutSeconds != nil},
		{keys.ImagePreDownloadMinUpdatedReadyPods, "MinUpdatedReadyPods", details.ImagePreDownloadMinUpdatedReadyPods != nil},
	} {
		text, there := w.new.Annotations[a.key]
		switch {
		case !there || a.set:
		case w.older:
			found.warn("metadata.annotations[%s]: %q has no effect: use a number of 0 or more", a.key, text)
		default:
			found.warn("metadata.annotations[%s] has no effect in v1beta1: "+
				"use spec.updateStrategy.rollingUpdate.inPlaceUpdateStrategy.imagePreDownload%s", a.key, a.field)
		}
	}
	if !w.older && w.new.Labels[keys.ScalingExcludePreparingDelete] == "true" && !w.new.Spec.ScaleStrategy.ExcludePreparingDelete {
		found.warn("metadata.labels[%s] has no effect in v1beta1: use spec.scaleStrategy.excludePreparingDelete",
			keys.ScalingExcludePreparingDelete)
	}
}
