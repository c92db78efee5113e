package validating

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func toFields(object any) (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(object)
}

// template checks the template that is set by the rules of the workloads that will be made of it, with the selector that they will get.
func (c unitedChange) template(ctx context.Context) (found findings, err error) {
	given, was := templateOf(c.new), templateOf(c.old)
	if given == nil {
		return findings{}, nil // the schema has said so
	}
	if was == nil || was.field != given.field {
		was = nil // workloads of another kind are new ones
	}
	switch given.field {
	case "cloneSetTemplate":
		found, err = c.cloneSets(ctx, was != nil)
	case "advancedStatefulSetTemplate":
		found, err = c.statefulSets(ctx, was != nil) // what can't be changed is in the schema
	default:
		w := &workload{given.field, c.new.Spec.Selector, given.pods, given.claims, nil, nil}
		if was != nil {
			w.before = &workload{given.field, c.old.Spec.Selector, was.pods, was.claims, nil, nil}
		}
		found = w.check(ctx, c.Templates, c.namespace, c.rawIn("spec", "template"))
		if was != nil && given.field == "statefulSetTemplate" {
			found.join(c.nativeKept())
		}
	}
	return found.below(field.NewPath("spec", "template", given.field)), err
}

// below names fields by where the object that they were found in stands in another one.
func (f findings) below(path *field.Path) findings {
	for _, err := range f.errors {
		err.Field = path.String() + "." + strings.TrimPrefix(err.Field, ".")
	}
	return f
}

func (c unitedChange) cloneSets(ctx context.Context, replaces bool) (findings, error) {
	make := func(set *v1beta1.UnitedDeployment) *v1beta1.CloneSet {
		t := set.Spec.Template.CloneSetTemplate
		out := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Labels: t.Labels}, Spec: *t.Spec.DeepCopy()}
		out.Spec.Selector = set.Spec.Selector
		return out
	}
	w := write[v1beta1.CloneSet]{new: make(c.new), raw: map[string]any{"spec": c.rawIn("spec")}, namespace: c.namespace, dryRun: c.dryRun}
	if replaces {
		w.old = make(c.old)
	}
	return cloneSetChange{c.Options, w, cloneSetWorkload(w.new, w.old)}.validate(ctx)
}

func (c unitedChange) statefulSets(ctx context.Context, replaces bool) (findings, error) {
	make := func(set *v1beta1.UnitedDeployment) *v1beta1.StatefulSet {
		t := set.Spec.Template.AdvancedStatefulSetTemplate
		out := &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Labels: t.Labels}, Spec: *t.Spec.DeepCopy()}
		out.Spec.Selector = set.Spec.Selector
		return out
	}
	raw := map[string]any{"spec": c.rawIn("spec")}
	w := write[v1beta1.StatefulSet]{new: make(c.new), raw: raw, namespace: c.namespace, dryRun: c.dryRun}
	if replaces {
		w.old = make(c.old)
	}
	return statefulSetChange{c.Options, w, statefulSetWorkload(w.new, w.old)}.validate(ctx)
}

// nativeKept refuses changes that the API server would refuse in the StatefulSets that are there.
func (c unitedChange) nativeKept() (found findings) {
	spec := func(set *v1beta1.UnitedDeployment) *appsv1.StatefulSetSpec {
		return &set.Spec.Template.StatefulSetTemplate.Spec
	}
	was, now := spec(c.old).DeepCopy(), spec(c.new)
	was.Template, was.UpdateStrategy, was.MinReadySeconds = now.Template, now.UpdateStrategy, now.MinReadySeconds
	was.Ordinals, was.PersistentVolumeClaimRetentionPolicy = now.Ordinals, now.PersistentVolumeClaimRetentionPolicy
	was.Replicas, was.Selector, was.RevisionHistoryLimit = now.Replicas, now.Selector, now.RevisionHistoryLimit // which are not, or can be
	if !equality.Semantic.DeepEqual(was, now) {
		found.forbidden(field.NewPath("spec"), "updates are only allowed to template, updateStrategy, minReadySeconds, "+
			"revisionHistoryLimit, ordinals and persistentVolumeClaimRetentionPolicy: "+
			"create another UnitedDeployment for StatefulSets with other claims")
	}
	return found
}
