package pub

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UpdatePriorityStrategy orders the Pods of an update by their labels. Only one of its two lists may be set.
//
// +kubebuilder:validation:XValidation:rule="!has(self.orderPriority) || size(self.orderPriority) == 0 || !has(self.weightPriority) || size(self.weightPriority) == 0",message="orderPriority and weightPriority can't both be set: keep one",reason="FieldValueForbidden"
type UpdatePriorityStrategy struct {
	// orderPriority takes the first of these label keys that a Pod carries and orders by the integer at the end of the label's value,
	// larger first ("sts-10" counts as 10). Pods that carry none of the keys go first. At most 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	OrderPriority []UpdatePriorityOrderTerm `json:"orderPriority,omitempty"`

	// weightPriority adds up the weights of all terms whose selector matches the Pod; Pods with a larger sum go first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	WeightPriority []UpdatePriorityWeightTerm `json:"weightPriority,omitempty"`
}

// UpdatePriorityOrderTerm names a label key whose value orders the Pods.
type UpdatePriorityOrderTerm struct {
	// orderedKey is the key of a Pod label; the integer at the end of its value is the Pod's place.
	// +kubebuilder:validation:MinLength=1
	OrderedKey string `json:"orderedKey"`
}

// UpdatePriorityWeightTerm gives a weight to the Pods that a selector matches.
type UpdatePriorityWeightTerm struct {
	// weight is added to the sum of every Pod that matchSelector matches, from 0 to 100.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	// matchSelector selects Pods by their labels.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="an empty selector matches every Pod: name labels",reason="FieldValueRequired"
	MatchSelector metav1.LabelSelector `json:"matchSelector"`
}

// UpdateScatterStrategy spreads the Pods that carry one of these labels over the whole update, so that they are not updated in one run. It
// names each label once, and has at most 1000 items.
// +kubebuilder:validation:MaxItems=1000
// +listType=map
// +listMapKey=key
// +listMapKey=value
type UpdateScatterStrategy []UpdateScatterTerm

// UpdateScatterTerm is one label, as key and value, whose Pods are spread.
type UpdateScatterTerm struct {
	// key of the label.
	// +kubebuilder:validation:MinLength=1
	Key string `json:"key"`
	// value of the label.
	Value string `json:"value"`
}
