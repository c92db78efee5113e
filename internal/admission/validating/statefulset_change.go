package validating

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
)

// statefulSetChange is a StatefulSet to be written.
type statefulSetChange struct {
	StatefulSetOptions
	write[v1beta1.StatefulSet]
}

func (c statefulSetChange) workload() workload {
	w := workload{kind: "StatefulSet", selector: c.new.Spec.Selector, template: &c.new.Spec.Template}
	if c.old != nil {
		w.oldSelector = c.old.Spec.Selector
	}
	return w
}

// validate returns what is wrong with the change; an error means that it could not be found out.
func (c statefulSetChange) validate(ctx context.Context) (findings, error) {
	spec := field.NewPath("spec")
	var found findings
	found.add(c.names(spec))
	found.add(c.immutable(spec))
	found.add(c.numbers(spec))
	found.add(c.workload().checkSelector(spec))
	found.add(c.strategy(spec.Child("updateStrategy")))
	found.add(c.inPlaceOnly(spec.Child("template")))
	if c.claimsChanged() {
		found.add(claimNames(c.new.Spec.VolumeClaimTemplates, spec.Child("volumeClaimTemplates")))
	}
	resize, err := c.resize(ctx, spec.Child("volumeClaimTemplates"))
	if err != nil {
		return findings{}, err
	}
	found.add(resize)
	if c.templateChanged() || c.claimsChanged() {
		found.join(c.workload().checkTemplate(ctx, c.Templates, c.namespace, withClaims(c.template(), c.new.Spec.VolumeClaimTemplates)))
	}
	if len(found.errors) == 0 {
		found.warnings = slices.Concat(found.warnings, c.warnings(), c.rival(ctx))
	}
	return found, nil
}

func (c statefulSetChange) templateChanged() bool {
	return c.old == nil || !equality.Semantic.DeepEqual(c.old.Spec.Template, c.new.Spec.Template)
}

func (c statefulSetChange) claimsChanged() bool {
	return c.old == nil || !equality.Semantic.DeepEqual(c.old.Spec.VolumeClaimTemplates, c.new.Spec.VolumeClaimTemplates)
}

// rival warns of a StatefulSet of Kubernetes with the name of a new one: both would fight for the same Pods. Whether there is one is not worth
// refusing the new one for, where it can't be found out.
func (c statefulSetChange) rival(ctx context.Context) []string {
	if c.old != nil || c.Live == nil {
		return nil
	}
	var native appsv1.StatefulSet
	if err := c.Live.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: c.new.Name}, &native); err != nil || native.DeletionTimestamp != nil {
		return nil
	}
	return []string{fmt.Sprintf(
		"there is a StatefulSet %s of apps/v1, whose Pods have the same names: delete it with --cascade=orphan to hand its Pods over", c.new.Name)}
}

// names are checked for new objects only: they can't be changed any more. An empty name will be generated.
func (c statefulSetChange) names(spec *field.Path) field.ErrorList {
	if c.old != nil {
		return nil
	}
	var errs field.ErrorList
	if c.new.Name != "" {
		for _, message := range validation.IsDNS1123Label(c.new.Name) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), c.new.Name, message))
		}
	}
	if service := c.new.Spec.ServiceName; service != "" {
		for _, message := range validation.IsDNS1123Label(service) {
			errs = append(errs, field.Invalid(spec.Child("serviceName"), service, message))
		}
	}
	return errs
}

// immutable refuses to change what the Pods there are depend on.
func (c statefulSetChange) immutable(spec *field.Path) field.ErrorList {
	if c.old == nil {
		return nil
	}
	var errs field.ErrorList
	if c.old.Spec.ServiceName != c.new.Spec.ServiceName {
		errs = append(errs, field.Forbidden(spec.Child("serviceName"), "is immutable: delete the StatefulSet with --cascade=orphan and create it anew under another Service"))
	}
	if managementOf(c.old) != managementOf(c.new) {
		errs = append(errs, field.Forbidden(spec.Child("podManagementPolicy"), "is immutable: delete the StatefulSet with --cascade=orphan and create it anew with another policy"))
	}
	return errs
}

func managementOf(set *v1beta1.StatefulSet) appsv1.PodManagementPolicyType {
	if set.Spec.PodManagementPolicy == "" {
		return appsv1.OrderedReadyPodManagement
	}
	return set.Spec.PodManagementPolicy
}

func (c statefulSetChange) numbers(path *field.Path) field.ErrorList {
	spec := &c.new.Spec
	var errs field.ErrorList
	for _, number := range []struct {
		path  *field.Path
		value *int32
	}{
		{path.Child("replicas"), spec.Replicas},
		{path.Child("minReadySeconds"), &spec.MinReadySeconds},
		{path.Child("revisionHistoryLimit"), spec.RevisionHistoryLimit},
	} {
		errs = append(errs, notNegative(number.value, number.path)...)
	}
	if r := spec.Replicas; r != nil && *r > ordinal.MostReplicas {
		errs = append(errs, field.Invalid(path.Child("replicas"), *r, fmt.Sprintf("must be less than or equal to %d", ordinal.MostReplicas)))
	}
	if o := spec.Ordinals; o != nil {
		errs = append(errs, notNegative(&o.Start, path.Child("ordinals", "start"))...)
	}
	errs = append(errs, deadline(spec.ProgressDeadlineSeconds, minReadySeconds(spec), path.Child("progressDeadlineSeconds"))...)
	policies := []appsv1.PodManagementPolicyType{appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement}
	if !slices.Contains(policies, managementOf(c.new)) {
		errs = append(errs, field.Invalid(path.Child("podManagementPolicy"), spec.PodManagementPolicy, "must be 'OrderedReady' or 'Parallel'"))
	}
	var entry *ordinal.EntryError
	if _, err := ordinal.Parse(spec.ReserveOrdinals); errors.As(err, &entry) {
		errs = append(errs, field.Invalid(path.Child("reserveOrdinals").Index(entry.Index), spec.ReserveOrdinals[entry.Index].String(), entry.Why))
	}
	if s := spec.ScaleStrategy; s != nil && s.MaxUnavailable != nil {
		at := path.Child("scaleStrategy", "maxUnavailable")
		errs = append(errs, atLeastOne(s.MaxUnavailable, at)...)
		if managementOf(c.new) == appsv1.OrderedReadyPodManagement && *s.MaxUnavailable != intstr.FromInt32(1) {
			errs = append(errs, field.Invalid(at, s.MaxUnavailable, "can only work with Parallel PodManagementPolicyType"))
		}
	}
	return append(errs, c.retention(path.Child("persistentVolumeClaimRetentionPolicy"))...)
}

// minReadySeconds returns the one in force.
func minReadySeconds(spec *v1beta1.StatefulSetSpec) int32 {
	if rolling := spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.MinReadySeconds != nil && *rolling.MinReadySeconds > 0 {
		return *rolling.MinReadySeconds
	}
	return spec.MinReadySeconds
}

func (c statefulSetChange) retention(path *field.Path) field.ErrorList {
	policy := c.new.Spec.PersistentVolumeClaimRetentionPolicy
	if policy == nil {
		return nil
	}
	known := []v1beta1.PersistentVolumeClaimRetentionPolicyType{
		v1beta1.RetainPersistentVolumeClaimRetentionPolicyType, v1beta1.DeletePersistentVolumeClaimRetentionPolicyType,
	}
	var errs field.ErrorList
	for _, when := range []struct {
		name  string
		value v1beta1.PersistentVolumeClaimRetentionPolicyType
	}{{"whenDeleted", policy.WhenDeleted}, {"whenScaled", policy.WhenScaled}} {
		if when.value != "" && !slices.Contains(known, when.value) {
			errs = append(errs, field.NotSupported(path.Child(when.name), when.value, known))
		}
	}
	return errs
}

// atLeastOne checks a limit that is a number of Pods of 1 or more, or a percentage above 0% and up to 100%.
func atLeastOne(value *intstr.IntOrString, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	const whole = 1000000 // so that the smallest share of it that anybody means is one at least
	n, err := budget.Scaled(value, whole, budget.Up)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, value, err.Error())}
	case n < 1:
		return field.ErrorList{field.Invalid(path, value, "should not be less than 1")}
	case value.Type == intstr.String && n > whole:
		return field.ErrorList{field.Invalid(path, value, "should not be more than 100%")}
	}
	return nil
}

func (c statefulSetChange) strategy(path *field.Path) field.ErrorList {
	strategy := &c.new.Spec.UpdateStrategy
	switch strategy.Type {
	case appsv1.RollingUpdateStatefulSetStrategyType:
	case appsv1.OnDeleteStatefulSetStrategyType:
		if strategy.RollingUpdate != nil {
			return field.ErrorList{field.Invalid(path.Child("rollingUpdate"), strategy.RollingUpdate, "only allowed for updateStrategy 'RollingUpdate'")}
		}
		return nil
	default:
		return field.ErrorList{field.Invalid(path.Child("type"), strategy.Type, "must be 'RollingUpdate' or 'OnDelete'")}
	}
	if strategy.RollingUpdate == nil {
		return nil
	}
	rolling := strategy.RollingUpdate
	path = path.Child("rollingUpdate")
	errs := notNegative(rolling.Partition, path.Child("partition"))
	const mostMinReadySeconds = 300
	if n := rolling.MinReadySeconds; n != nil && (*n < 0 || *n > mostMinReadySeconds) {
		errs = append(errs, field.Invalid(path.Child("minReadySeconds"), *n, "must be no less than 0 and no more than 300 seconds"))
	}
	errs = append(errs, atLeastOne(rolling.MaxUnavailable, path.Child("maxUnavailable"))...)
	if u := rolling.UnorderedUpdate; u != nil {
		at := path.Child("unorderedUpdate")
		if managementOf(c.new) != appsv1.ParallelPodManagement {
			errs = append(errs, field.Required(at, "unorderedUpdate can only work with Parallel PodManagementPolicyType"))
		}
		errs = append(errs, validatePriority(u.PriorityStrategy, at.Child("priorityStrategy"))...)
	}
	errs = append(errs, c.policy(path.Child("podUpdatePolicy"))...)
	return append(errs, validateInPlace(rolling.InPlaceUpdateStrategy, path.Child("inPlaceUpdateStrategy"))...)
}

// policy checks how one Pod is updated; in place it is only where the template's Pods can be taken out of service for it.
func (c statefulSetChange) policy(path *field.Path) field.ErrorList {
	policy := c.new.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy
	switch policy {
	case "", v1beta1.RecreatePodUpdateStrategyType:
		return nil
	case v1beta1.InPlaceIfPossiblePodUpdateStrategyType, v1beta1.InPlaceOnlyPodUpdateStrategyType:
	default:
		return field.ErrorList{field.Invalid(path, policy, "must be 'ReCreate', 'InPlaceIfPossible' or 'InPlaceOnly'")}
	}
	gates := c.new.Spec.Template.Spec.ReadinessGates
	for _, gate := range gates {
		if gate.ConditionType == pub.InPlaceUpdateReady {
			return nil
		}
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "template", "spec", "readinessGates"), gates,
		fmt.Sprintf("must contains %s when podUpdatePolicy is %s", pub.InPlaceUpdateReady, policy))}
}

// inPlaceOnly refuses a template that could only be rolled out by recreating Pods.
func (c statefulSetChange) inPlaceOnly(path *field.Path) field.ErrorList {
	rolling := c.new.Spec.UpdateStrategy.RollingUpdate
	if c.old == nil || rolling == nil || rolling.PodUpdatePolicy != v1beta1.InPlaceOnlyPodUpdateStrategyType || !c.templateChanged() {
		return nil
	}
	_, refusal := inplace.DiffTemplates(&c.old.Spec.Template, &c.new.Spec.Template, c.InPlace)
	if refusal == nil {
		return nil
	}
	return field.ErrorList{notInPlace(refusal, path)}
}
