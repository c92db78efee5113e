package validating

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
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
		w.oldTemplate = &c.old.Spec.Template
	}
	return w
}

// validate returns what is wrong with the change; an error means that it could not be found out.
func (c statefulSetChange) validate(ctx context.Context) (findings, error) {
	spec := field.NewPath("spec")
	var found findings
	found.add(c.reserved(spec.Child("reserveOrdinals")))
	found.add(c.workload().checkSelector(spec))
	found.add(c.strategy(spec))
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

// reserved checks ordinals that are new on the list. The schema can't: CEL would cost too much on lists of any length.
func (c statefulSetChange) reserved(path *field.Path) field.ErrorList {
	entries := c.new.Spec.ReserveOrdinals
	if c.old != nil && slices.Equal(c.old.Spec.ReserveOrdinals, entries) {
		return nil
	}
	var entry *ordinal.EntryError
	if _, err := ordinal.Parse(entries); errors.As(err, &entry) {
		return field.ErrorList{field.Invalid(path.Index(entry.Index), entries[entry.Index].String(), entry.Why)}
	}
	return nil
}

// strategy checks the selectors of the order of an update, and that its Pods can be taken out of service to be updated in place, where either is new.
func (c statefulSetChange) strategy(spec *field.Path) field.ErrorList {
	rolling := c.new.Spec.UpdateStrategy.RollingUpdate
	sameStrategy := c.old != nil && equality.Semantic.DeepEqual(c.old.Spec.UpdateStrategy, c.new.Spec.UpdateStrategy)
	if rolling == nil || sameStrategy && !c.templateChanged() {
		return nil
	}
	var errs field.ErrorList
	if u := rolling.UnorderedUpdate; u != nil && !sameStrategy {
		errs = checkWeights(u.PriorityStrategy, spec.Child("updateStrategy", "rollingUpdate", "unorderedUpdate", "priorityStrategy"))
	}
	gates := c.new.Spec.Template.Spec.ReadinessGates
	inPlace := rolling.PodUpdatePolicy != "" && rolling.PodUpdatePolicy != v1beta1.RecreatePodUpdateStrategyType
	if inPlace && !slices.Contains(gates, corev1.PodReadinessGate{ConditionType: pub.InPlaceUpdateReady}) {
		errs = append(errs, field.Invalid(spec.Child("template", "spec", "readinessGates"), gates,
			fmt.Sprintf("must contains %s when podUpdatePolicy is %s", pub.InPlaceUpdateReady, rolling.PodUpdatePolicy)))
	}
	return errs
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
