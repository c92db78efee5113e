package validating

import (
	"fmt"
	"slices"
	"strconv"

	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

func replicas(spec *v1beta1.CloneSetSpec) int {
	if spec.Replicas == nil {
		return 1
	}
	return max(int(*spec.Replicas), 0)
}

// scaled rounds up: what it makes 0 is 0 however it is rounded.
func scaled(value *intstr.IntOrString, replicas int) (int, error) {
	return budget.Scaled(value, replicas, budget.Up)
}

func validateUpdateStrategy(spec *v1beta1.CloneSetSpec, path *field.Path) field.ErrorList {
	strategy := &spec.UpdateStrategy
	types := []v1beta1.CloneSetUpdateStrategyType{v1beta1.RollingUpdateCloneSetStrategyType, v1beta1.OnDeleteCloneSetStrategyType}
	var errs field.ErrorList
	if !slices.Contains(types, strategy.Type) {
		errs = append(errs, field.Invalid(path.Child("type"), strategy.Type, fmt.Sprintf("must be one of %v", types)))
	}
	if strategy.RollingUpdate == nil {
		return errs
	}
	path = path.Child("rollingUpdate")
	rolling := strategy.RollingUpdate
	onDelete := strategy.Type == v1beta1.OnDeleteCloneSetStrategyType
	policies := []v1beta1.CloneSetPodUpdatePolicyType{
		v1beta1.RecreateCloneSetPodUpdatePolicyType, v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType, v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType,
	}
	if !slices.Contains(policies, rolling.PodUpdatePolicy) && !(onDelete && rolling.PodUpdatePolicy == "") {
		errs = append(errs, field.Invalid(path.Child("podUpdatePolicy"), rolling.PodUpdatePolicy, fmt.Sprintf("must be one of %v", policies)))
	}
	errs = append(errs, validateLimits(spec, path)...)
	errs = append(errs, validatePriority(rolling.PriorityStrategy, path.Child("priorityStrategy"))...)
	errs = append(errs, validateScatter(rolling.ScatterStrategy, path.Child("scatterStrategy"))...)
	return append(errs, validateInPlace(rolling.InPlaceUpdateStrategy, path.Child("inPlaceUpdateStrategy"))...)
}

// validateLimits checks each limit by itself, and whether the limits let an update start. OnDelete has no limits that could stop it.
func validateLimits(spec *v1beta1.CloneSetSpec, path *field.Path) field.ErrorList {
	rolling, total := spec.UpdateStrategy.RollingUpdate, replicas(spec)
	var errs field.ErrorList
	numbers := map[string]int{}
	for _, limit := range []struct {
		name  string
		value *intstr.IntOrString
	}{{"partition", rolling.Partition}, {"maxUnavailable", rolling.MaxUnavailable}, {"maxSurge", rolling.MaxSurge}} {
		n, err := scaled(limit.value, total)
		if err != nil {
			errs = append(errs, field.Invalid(path.Child(limit.name), limit.value, err.Error()))
		}
		numbers[limit.name] = n
	}
	if len(errs) > 0 || spec.UpdateStrategy.Type == v1beta1.OnDeleteCloneSetStrategyType {
		return errs
	}
	if total > 0 && rolling.MaxUnavailable != nil && numbers["maxUnavailable"] < 1 && numbers["maxSurge"] < 1 {
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), rolling.MaxUnavailable,
			"maxUnavailable and maxSurge should not both be less than 1: an update could never start"))
	}
	if rolling.PodUpdatePolicy == v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType && numbers["maxSurge"] > 0 {
		errs = append(errs, field.Invalid(path.Child("maxSurge"), rolling.MaxSurge, "must be 0 with InPlaceOnly: surge Pods would have to be created and deleted"))
	}
	return errs
}

func validatePriority(priority *pub.UpdatePriorityStrategy, path *field.Path) field.ErrorList {
	if priority == nil {
		return nil
	}
	var errs field.ErrorList
	if len(priority.OrderPriority) > 0 && len(priority.WeightPriority) > 0 {
		errs = append(errs, field.Forbidden(path, "orderPriority and weightPriority can't both be set: keep one"))
	}
	for i := range priority.OrderPriority {
		if priority.OrderPriority[i].OrderedKey == "" {
			errs = append(errs, field.Required(path.Child("orderPriority").Index(i).Child("orderedKey"), "name the label that orders the Pods"))
		}
	}
	for i := range priority.WeightPriority {
		term, at := &priority.WeightPriority[i], path.Child("weightPriority").Index(i)
		if term.Weight < 0 || term.Weight > 100 {
			errs = append(errs, field.Invalid(at.Child("weight"), term.Weight, "must be from 0 to 100"))
		}
		selector := at.Child("matchSelector")
		if len(term.MatchSelector.MatchLabels)+len(term.MatchSelector.MatchExpressions) == 0 {
			errs = append(errs, field.Required(selector, "an empty selector matches every Pod: name labels"))
		}
		errs = append(errs, metavalidation.ValidateLabelSelector(&term.MatchSelector, metavalidation.LabelSelectorValidationOptions{}, selector)...)
	}
	return errs
}

func validateScatter(scatter pub.UpdateScatterStrategy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, term := range scatter {
		if term.Key == "" {
			errs = append(errs, field.Required(path.Index(i).Child("key"), "name the label whose Pods are spread"))
		}
		if slices.Contains(scatter[:i], term) {
			errs = append(errs, field.Invalid(path.Index(i), term, "is on the list twice: name each pair once"))
		}
	}
	return errs
}

func validateInPlace(details *v1beta1.InPlaceUpdateStrategy, path *field.Path) field.ErrorList {
	if details == nil {
		return nil
	}
	var errs field.ErrorList
	for _, number := range []struct {
		name  string
		value *int32
	}{
		{"gracePeriodSeconds", &details.GracePeriodSeconds},
		{"imagePreDownloadTimeoutSeconds", details.ImagePreDownloadTimeoutSeconds},
		{"imagePreDownloadMinUpdatedReadyPods", details.ImagePreDownloadMinUpdatedReadyPods},
	} {
		errs = append(errs, notNegative(number.value, path.Child(number.name))...)
	}
	if p := details.ImagePreDownloadParallelism; p != nil && !isCount(*p) {
		errs = append(errs, field.Invalid(path.Child("imagePreDownloadParallelism"), p, "must be a number of 0 or more, not a percentage"))
	}
	return errs
}

// isCount reports whether the value is a number of 0 or more, be it written as text.
func isCount(value intstr.IntOrString) bool {
	if value.Type == intstr.Int {
		return value.IntVal >= 0
	}
	_, err := strconv.ParseUint(value.StrVal, 10, 31)
	return err == nil
}
