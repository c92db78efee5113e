package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	celplugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Policy is a ValidatingAdmissionPolicy that an API server has read.
type Policy struct {
	validating.Validator
	constraints *admissionv1.MatchResources
	selector    labels.Selector
}

// ReadPolicy returns a policy as an API server sees it. An error is one of an expression that does not compile.
func ReadPolicy(p *admissionv1.ValidatingAdmissionPolicy) (Policy, error) {
	selector := labels.Everything()
	if given := p.Spec.MatchConstraints.ObjectSelector; given != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(given); err != nil {
			return Policy{}, fmt.Errorf("reading the object selector: %w", err)
		}
	}
	compiler, err := celplugin.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return Policy{}, err
	}
	inputs := celplugin.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	var variables []celplugin.NamedExpressionAccessor
	for _, v := range p.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	compiler.CompileAndStoreVariables(variables, inputs, environment.StoredExpressions)
	var conditions, validations, messages []celplugin.ExpressionAccessor
	for i := range p.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
	}
	for _, v := range p.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	compile := func(expressions []celplugin.ExpressionAccessor) celplugin.ConditionEvaluator {
		return compiler.CompileCondition(expressions, inputs, environment.StoredExpressions)
	}
	matcher := matchconditions.NewMatcher(compile(conditions), p.Spec.FailurePolicy, "policy", "validate", p.Name)
	validator := validating.NewValidator(compile(validations), matcher, compile(nil), compile(messages), p.Spec.FailurePolicy, nil)
	return Policy{Validator: validator, constraints: p.Spec.MatchConstraints, selector: selector}, nil
}

// Deletion returns why the policy refuses to delete an object; empty if it does not. The object has its kind, and params are the parameter
// of the binding.
func (p Policy) Deletion(resource schema.GroupVersionResource, o *unstructured.Unstructured, params runtime.Object) string {
	return p.judge(admission.NewAttributesRecord(nil, o, o.GroupVersionKind(), o.GetNamespace(), o.GetName(), resource, "",
		admission.Delete, &metav1.DeleteOptions{}, false, nil), params, nil)
}

// By is who asks, and who knows what he may do.
type By struct {
	user.Info
	authorizer.Authorizer
}

// Write returns why the policy refuses to create an object, or to update it if there is one before; empty if it does not.
func (p Policy) Write(resource schema.GroupVersionResource, before, after *unstructured.Unstructured, by By) string {
	kind, namespace, name := after.GroupVersionKind(), after.GetNamespace(), after.GetName()
	asked := admission.NewAttributesRecord(after, nil, kind, namespace, name, resource, "", admission.Create, &metav1.CreateOptions{},
		false, by.Info)
	if before != nil {
		asked = admission.NewAttributesRecord(after, before, kind, namespace, name, resource, "", admission.Update,
			&metav1.UpdateOptions{}, false, by.Info)
	}
	return p.judge(asked, nil, by.Authorizer)
}

func (p Policy) judge(asked admission.Attributes, params runtime.Object, authorizer authorizer.Authorizer) string {
	matches := func(r admissionv1.NamedRuleWithOperations) bool {
		return (&rules.Matcher{Rule: r.RuleWithOperations, Attr: asked}).Matches()
	}
	object := cmp.Or[runtime.Object](asked.GetObject(), asked.GetOldObject()).(*unstructured.Unstructured)
	if !p.selector.Matches(labels.Set(object.GetLabels())) || !slices.ContainsFunc(p.constraints.ResourceRules, matches) ||
		slices.ContainsFunc(p.constraints.ExcludeResourceRules, matches) {
		return ""
	}
	var refusals []string
	result := p.Validate(context.Background(), asked.GetResource(), &admission.VersionedAttributes{
		Attributes: asked, VersionedObject: asked.GetObject(), VersionedOldObject: asked.GetOldObject(), VersionedKind: asked.GetKind(),
	}, params, nil, celconfig.RuntimeCELCostBudget, authorizer)
	for _, decision := range result.Decisions {
		if decision.Action == validating.ActionDeny {
			refusals = append(refusals, decision.Message)
		}
	}
	return strings.Join(refusals, "; ")
}
