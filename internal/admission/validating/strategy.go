package validating

import (
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
)

// checkWeights checks the selectors of an order by weights. The schema can't: CEL would cost too much on lists of any length.
func checkWeights(priority *pub.UpdatePriorityStrategy, path *field.Path) field.ErrorList {
	if priority == nil {
		return nil
	}
	var errs field.ErrorList
	for i := range priority.WeightPriority {
		at := path.Child("weightPriority").Index(i).Child("matchSelector")
		options := metavalidation.LabelSelectorValidationOptions{}
		errs = append(errs, metavalidation.ValidateLabelSelector(&priority.WeightPriority[i].MatchSelector, options, at)...)
	}
	return errs
}
