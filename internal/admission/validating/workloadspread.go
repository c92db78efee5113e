package validating

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/spread"
)

// longestCircle is within how many seconds a Pod must have been in all subsets: these are closed for 300 after it could not be scheduled.
const longestCircle = 295

// WorkloadSpread returns the handler that validates of WorkloadSpreads of both versions what their schemas can't.
func WorkloadSpread(o Options) admission.Handler {
	return kind[v1beta1.WorkloadSpread, *v1beta1.WorkloadSpread]{
		hub:      v1beta1.GroupVersion,
		subject:  func(s *v1beta1.WorkloadSpread) any { return s.Spec },
		disabled: o.disabled("WorkloadSpread", http.StatusForbidden),
		validate: func(ctx context.Context, w write[v1beta1.WorkloadSpread]) (findings, error) {
			found := rules[v1beta1.WorkloadSpread](spreadRules).ratcheted(w)
			if len(found.errors) > 0 {
				return found, nil
			}
			for _, check := range []func(context.Context, write[v1beta1.WorkloadSpread]) (findings, error){
				o.spreadTarget, o.besideSpreads, o.spreadPods,
			} {
				more, err := check(ctx, w)
				found.join(more)
				if err != nil || len(found.errors) > 0 {
					return found, err
				}
			}
			if o.AcceptedSpread != nil && !w.dryRun {
				return found, o.AcceptedSpread(ctx, w.old, w.new)
			}
			return found, nil
		},
		ineffective: spreadWithoutEffect,
		olderNames:  spreadOlderNames,
	}.handler()
}

func spreadOlderNames(w write[v1beta1.WorkloadSpread]) []olderName {
	var names []olderName
	for i := range w.new.Spec.Subsets {
		at := field.NewPath("spec", "subsets").Index(i)
		names = append(names,
			olderName{at.Child("requiredNodeSelector").String(), at.Child("requiredNodeSelectorTerm").String()},
			olderName{at.Child("preferredNodeSelector").String(), at.Child("preferredNodeSelectorTerms").String()})
	}
	return names
}

func spreadWithoutEffect(found *findings, w write[v1beta1.WorkloadSpread]) {
	if a := w.new.Spec.ScheduleStrategy.Adaptive; a != nil && a.DisableSimulationSchedule {
		found.warn("spec.scheduleStrategy.adaptive.disableSimulationSchedule has no effect: no scheduling is simulated")
	}
}

func spreadRules(found *findings, s *v1beta1.WorkloadSpread) {
	spec := field.NewPath("spec")
	if filter := s.Spec.TargetFilter; filter != nil && filter.Selector != nil {
		found.selector(spec.Child("targetFilter", "selector"), filter.Selector)
	}
	found.spreadLimits(spec.Child("subsets"), s)
	found.spreadStrategy(spec.Child("scheduleStrategy"), s)
}

// spreadLimits checks maxReplicas and minReplicas of all subsets.
func (f *findings) spreadLimits(at *field.Path, s *v1beta1.WorkloadSpread) {
	var first *intstr.IntOrString
	most, fewest, last := 0, 0, len(s.Spec.Subsets)-1
	for i := range s.Spec.Subsets {
		of, at := &s.Spec.Subsets[i], at.Index(i)
		first = cmp.Or(first, of.MaxReplicas, of.MinReplicas)
		limit := f.spreadBound(at.Child("maxReplicas"), s, of.MaxReplicas, first)
		floor := f.spreadBound(at.Child("minReplicas"), s, of.MinReplicas, first)
		if of.MaxReplicas != nil && of.MinReplicas != nil && of.MaxReplicas.Type == of.MinReplicas.Type && floor > limit {
			f.invalid(at.Child("minReplicas"), of.MinReplicas.String(), "must not be more than maxReplicas %s", of.MaxReplicas)
		}
		if first != nil && first.Type == intstr.String {
			most, fewest = most+limit, fewest+floor
		}
	}
	switch {
	case most > 100:
		f.invalid(at, most, "the percentages must not be more than 100%% in all")
	case most > 0 && most < 100 && last >= 0 && s.Spec.Subsets[last].MaxReplicas != nil:
		f.invalid(at, most, "the percentages must be 100%% in all, or the last subset must have none")
	case fewest > 100:
		f.invalid(at, fewest, "the percentages of minReplicas must not be more than 100%% in all")
	}
}

// spreadBound checks maxReplicas or minReplicas of a subset, and returns its number or percentage; 0 if it has none.
func (f *findings) spreadBound(at *field.Path, s *v1beta1.WorkloadSpread, value, first *intstr.IntOrString) int {
	if value == nil {
		return 0
	}
	number, err := budget.Scaled(value, 100, budget.Up)
	switch {
	case err != nil:
		f.invalid(at, value.String(), "must be a number of 0 or more, or a percentage")
		return 0
	case value.Type != first.Type:
		f.invalid(at, value.String(), "must be of the same type as those before: all numbers, or all percentages")
		return 0
	case value.Type == intstr.String && number > 100:
		f.invalid(at, value.String(), "must not be more than 100%%")
	case value.Type == intstr.String && spread.ByOrdinal(spread.TargetOf(s).GroupKind):
		f.invalid(at, value.String(), "must be a number: Pods of a StatefulSet are given to subsets by their ordinals")
	}
	return number
}

func (f *findings) spreadStrategy(at *field.Path, s *v1beta1.WorkloadSpread) {
	adaptive := s.Spec.ScheduleStrategy.Adaptive
	if adaptive == nil {
		return
	}
	if s.Spec.ScheduleStrategy.Type != v1beta1.AdaptiveWorkloadSpread {
		f.invalid(at.Child("type"), s.Spec.ScheduleStrategy.Type, "must be Adaptive, or adaptive must be left out")
	}
	n := len(s.Spec.Subsets)
	if n < 2 {
		return
	}
	if s.Spec.Subsets[n-1].MaxReplicas != nil {
		f.invalid(field.NewPath("spec", "subsets").Index(n-1).Child("maxReplicas"), s.Spec.Subsets[n-1].MaxReplicas.String(),
			"must be left out with the strategy Adaptive: the last subset takes what can't be scheduled elsewhere")
	}
	if seconds, most := adaptive.RescheduleCriticalSeconds, int32(longestCircle/(n-1)); seconds != nil && *seconds > most {
		f.invalid(at.Child("adaptive", "rescheduleCriticalSeconds"), *seconds,
			"must be %d at most with %d subsets, so that no Pod goes in circles", most, n)
	}
}

// spreadTarget checks that workloads of the kind can be spread.
func (o Options) spreadTarget(ctx context.Context, w write[v1beta1.WorkloadSpread]) (found findings, err error) {
	kind := spread.TargetOf(w.new).GroupKind
	if w.old != nil || spread.IsBuiltIn(kind) {
		return found, nil
	}
	if o.SpreadKinds != nil {
		kinds, err := o.SpreadKinds(ctx)
		if err != nil {
			return found, err
		}
		if slices.Contains(kinds, kind) {
			return found, nil
		}
	}
	// Wire: tools look for this message.
	found.invalid(field.NewPath("spec", "targetRef"), w.new.Spec.TargetReference, "TargetReference's GroupKind is not permitted.")
	return found, nil
}

// besideSpreads checks that the workload has no other WorkloadSpread.
func (o Options) besideSpreads(ctx context.Context, w write[v1beta1.WorkloadSpread]) (found findings, err error) {
	if w.old != nil {
		return found, nil // its target does not change
	}
	var list v1beta1.WorkloadSpreadList
	if err := o.Live.List(ctx, &list, client.InNamespace(w.namespace)); err != nil {
		return found, fmt.Errorf("looking for other WorkloadSpreads: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name != w.new.Name && other.DeletionTimestamp == nil && spread.TargetOf(other) == spread.TargetOf(w.new) {
			found.invalid(field.NewPath("spec", "targetRef"), w.new.Spec.TargetReference, "WorkloadSpread %s spreads this workload already",
				other.Name)
		}
	}
	return found, nil
}

// spreadPods checks what the Pods of each subset would be. The API server is asked about them: of the workload's own template with the
// subset's placement and patch, or, as long as there is no workload, of any template with its placement.
func (o Options) spreadPods(ctx context.Context, w write[v1beta1.WorkloadSpread]) (found findings, err error) {
	if o.Templates == nil {
		return found, nil
	}
	template, err := o.spreadTemplate(ctx, w)
	if err != nil {
		return found, err
	}
	known := template != nil
	if !known {
		template = map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": "app"}}}}
	}
	var base corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &base); err != nil {
		return found, nil //nolint:nilerr // the workload's own rules judge it
	}
	found.warnAboutMinDomains(&base, w.new)
	s := w.new.DeepCopy()
	for i := range s.Spec.Subsets {
		if !known {
			s.Spec.Subsets[i].Patch = nil
		}
	}
	each := make([]findings, len(s.Spec.Subsets))
	var running sync.WaitGroup // one after the other they could take longer than the API server waits
	for i := range s.Spec.Subsets {
		running.Go(func() { each[i] = o.spreadPodsOf(ctx, spreadSubset{w.namespace, s, i, &base}) })
	}
	running.Wait()
	for _, of := range each {
		found.join(of)
	}
	return found, nil
}

// spreadPodsOf checks what the Pods of one subset would be.
func (o Options) spreadPodsOf(ctx context.Context, of spreadSubset) (found findings) {
	at := field.NewPath("spec", "subsets").Index(of.index)
	p := &corev1.Pod{ObjectMeta: *of.template.ObjectMeta.DeepCopy(), Spec: *of.template.Spec.DeepCopy()}
	if err := spread.Inject(p, of.spread, spread.Given{Subset: of.index}); err != nil {
		found.invalid(at.Child("patch"), field.OmitValueType{}, "%s", err)
		return found
	}
	p.Spec.Priority = nil
	patched, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec})
	if err != nil {
		found.invalid(at, field.OmitValueType{}, "its Pods can't be written: %s", err)
		return found
	}
	for _, wrong := range o.Templates.Check(ctx, of.namespace, patched).Errors {
		found.invalid(at, field.OmitValueType{}, "its Pods would not be valid: %s", wrong)
	}
	return found
}

// spreadSubset is a subset whose Pods are checked, by the template that they are made from.
type spreadSubset struct {
	namespace string
	spread    *v1beta1.WorkloadSpread
	index     int
	template  *corev1.PodTemplateSpec
}

// spreadTemplate returns the template of the workload; nil if there is none, or if its kind has none that is known.
func (o Options) spreadTemplate(ctx context.Context, w write[v1beta1.WorkloadSpread]) (map[string]any, error) {
	ref := w.new.Spec.TargetReference
	if !spread.IsBuiltIn(spread.TargetOf(w.new).GroupKind) {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(ref.APIVersion)
	object.SetKind(ref.Kind)
	err := o.Live.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: ref.Name}, object)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	template, _, _ := unstructured.NestedMap(object.Object, "spec", "template")
	var claims struct {
		Spec struct {
			VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &claims); err != nil {
		return nil, nil //nolint:nilerr // the workload's own rules judge it
	}
	if template == nil {
		return nil, nil
	}
	return withClaims(template, claims.Spec.VolumeClaimTemplates), nil
}

// warnAboutMinDomains warns of Pods that have to be spread over more domains than a subset leaves them: no more than maxSkew of them would
// ever be scheduled there.
func (f *findings) warnAboutMinDomains(template *corev1.PodTemplateSpec, s *v1beta1.WorkloadSpread) {
	for _, c := range template.Spec.TopologySpreadConstraints {
		if c.MinDomains == nil || *c.MinDomains <= 1 {
			continue
		}
		for i := range s.Spec.Subsets {
			required := s.Spec.Subsets[i].RequiredNodeSelector
			if required != nil && slices.ContainsFunc(required.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
				return e.Key == c.TopologyKey
			}) {
				f.warn("the template has minDomains %d for %s, and subset %s selects nodes by it: no more than maxSkew %d Pods are "+
					"scheduled there", *c.MinDomains, c.TopologyKey, s.Spec.Subsets[i].Name, c.MaxSkew)
			}
		}
	}
}
