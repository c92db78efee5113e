package validating

import (
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
)

// StatefulSet returns the handler that validates StatefulSets of both versions, which have the same fields.
func StatefulSet(o Options) admission.Handler {
	return kind[v1beta1.StatefulSet, *v1beta1.StatefulSet]{
		hub:     v1beta1.GroupVersion,
		subject: func(set *v1beta1.StatefulSet) any { return set.Spec },
		validate: func(ctx context.Context, w write[v1beta1.StatefulSet]) (findings, error) {
			return statefulSetChange{o, w, statefulSetWorkload(w.new, w.old)}.validate(ctx)
		},
	}.handler()
}

// statefulSetChange is a StatefulSet to be written.
type statefulSetChange struct {
	Options
	write[v1beta1.StatefulSet]
	*workload
}

func statefulSetWorkload(set, old *v1beta1.StatefulSet) *workload {
	if set == nil {
		return nil
	}
	spec := &set.Spec
	return &workload{"StatefulSet", spec.Selector, &spec.Template, spec.VolumeClaimTemplates, spec.Lifecycle, statefulSetWorkload(old, nil)}
}

// validate returns what the schema can't find wrong with the change; an error means that it could not be found out.
func (c statefulSetChange) validate(ctx context.Context) (findings, error) {
	spec := field.NewPath("spec")
	found := c.check(ctx, c.Templates, c.namespace, c.rawTemplate())
	c.reserved(&found, spec.Child("reserveOrdinals"))
	c.strategy(&found)
	if r := c.new.Spec.UpdateStrategy.RollingUpdate; r != nil && r.PodUpdatePolicy == v1beta1.InPlaceOnlyPodUpdateStrategyType {
		c.inPlaceOnly(&found, c.InPlace)
	}
	if err := c.resize(ctx, &found, spec.Child("volumeClaimTemplates")); err != nil {
		return findings{}, err
	}
	if len(found.errors) == 0 {
		c.warnings(&found)
		c.rival(ctx, &found)
	}
	return found, nil
}

// rival warns of a StatefulSet of Kubernetes with the name of a new one: both would fight for the same Pods. Whether there is one is not
// worth refusing the new one for, where it can't be found out.
func (c statefulSetChange) rival(ctx context.Context, found *findings) {
	if c.old != nil || c.Live == nil {
		return
	}
	var native appsv1.StatefulSet
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: c.new.Name}, &native)
	if err == nil && native.DeletionTimestamp == nil {
		found.warn("there is a StatefulSet %s of apps/v1, whose Pods have the same names: "+
			"delete it with --cascade=orphan to hand its Pods over", c.new.Name)
	}
}

// reserved checks ordinals that are new on the list. The schema can't: CEL would cost too much on lists of any length.
func (c statefulSetChange) reserved(found *findings, path *field.Path) {
	entries := c.new.Spec.ReserveOrdinals
	if c.old != nil && slices.Equal(c.old.Spec.ReserveOrdinals, entries) {
		return
	}
	var entry *ordinal.EntryError
	if _, err := ordinal.Parse(entries); errors.As(err, &entry) {
		found.invalid(path.Index(entry.Index), entries[entry.Index].String(), "%s", entry.Why)
	}
}

// strategy checks the selectors of the order of an update, and that its Pods can be taken out of service to be updated in place, where
// either is new.
func (c statefulSetChange) strategy(found *findings) {
	rolling := c.new.Spec.UpdateStrategy.RollingUpdate
	same := c.old != nil && equality.Semantic.DeepEqual(c.old.Spec.UpdateStrategy, c.new.Spec.UpdateStrategy)
	gates := c.template.Spec.ReadinessGates
	if rolling == nil || same && slices.Equal(c.before.template.Spec.ReadinessGates, gates) {
		return
	}
	path := field.NewPath("spec")
	if u := rolling.UnorderedUpdate; u != nil && !same {
		found.weights(path.Child("updateStrategy", "rollingUpdate", "unorderedUpdate", "priorityStrategy"), u.PriorityStrategy)
	}
	inPlace := rolling.PodUpdatePolicy != "" && rolling.PodUpdatePolicy != v1beta1.RecreatePodUpdateStrategyType
	if inPlace && !slices.Contains(gates, corev1.PodReadinessGate{ConditionType: pub.InPlaceUpdateReady}) {
		found.invalid(path.Child("template", "spec", "readinessGates"), gates,
			"must contains %s when podUpdatePolicy is %s", pub.InPlaceUpdateReady, rolling.PodUpdatePolicy)
	}
}
