package validating

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// RolloutOptions is what validation of Rollouts needs.
type RolloutOptions struct {
	// Live reads other Rollouts from the API server.
	Live client.Reader
	// PartitionPercentLimit is the largest percentage of a step with traffic that updates the Pods of the workload itself: a rollback sends
	// all traffic to the Pods that are left.
	PartitionPercentLimit int
	// AnyKind lets workloads be of kinds that are like a StatefulSet.
	AnyKind bool
}

// Rollout returns the handler that validates of Rollouts what their schema can't: other Rollouts, neighbouring steps, and what the kind of
// the workload and the ways of leading traffic can do.
func Rollout(o RolloutOptions) admission.Handler {
	return kind[v1beta1.Rollout, *v1beta1.Rollout]{
		hub:     v1beta1.GroupVersion,
		subject: func(r *v1beta1.Rollout) any { return r.Spec },
		validate: func(ctx context.Context, w write[v1beta1.Rollout]) (findings, error) {
			found := rules[v1beta1.Rollout](o.rules).ratcheted(w)
			if w.older && isBlueGreen(w) {
				found.forbidden(field.NewPath("spec", "strategy"), "is blueGreen, which v1alpha1 can't say: write the Rollout in v1beta1")
			}
			if len(found.errors) > 0 {
				return found, nil
			}
			if err := o.others(ctx, &found, w); err != nil {
				return found, err
			}
			o.preview(ctx, &found, w)
			return found, nil
		},
		olderNames: func(write[v1beta1.Rollout]) []olderName {
			return []olderName{{"spec.workloadRef", "spec.objectRef.workloadRef"}}
		},
	}.handler()
}

// isBlueGreen tells whether a Rollout is or was of blueGreen style.
func isBlueGreen(w write[v1beta1.Rollout]) bool {
	return w.new.Spec.Strategy.BlueGreen != nil || w.old != nil && w.old.Spec.Strategy.BlueGreen != nil
}

// others refuses a second Rollout of one workload.
func (o RolloutOptions) others(ctx context.Context, found *findings, w write[v1beta1.Rollout]) error {
	if o.Live == nil || w.old != nil && w.old.Spec.WorkloadRef == w.new.Spec.WorkloadRef {
		return nil
	}
	var all v1beta1.RolloutList
	if err := o.Live.List(ctx, &all, client.InNamespace(w.namespace)); err != nil {
		return fmt.Errorf("listing Rollouts of namespace %s: %w", w.namespace, err)
	}
	mine := w.new.Spec.WorkloadRef
	for i := range all.Items {
		other := &all.Items[i]
		if ref := other.Spec.WorkloadRef; other.Name != w.new.Name && groupKind(ref) == groupKind(mine) && ref.Name == mine.Name {
			found.invalid(field.NewPath("spec", "workloadRef"), mine.Name,
				"Rollout %s has this workload: change or delete that one", other.Name)
		}
	}
	return nil
}

func groupKind(ref v1beta1.WorkloadReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
}

// rules check what a Rollout says by itself.
func (o RolloutOptions) rules(found *findings, r *v1beta1.Rollout) {
	ref := r.Spec.WorkloadRef
	switch foreign := o.AnyKind && steer.IsForeign(groupKind(ref)); {
	case foreign && steer.StyleOf(r.Spec.Strategy) != v1beta1.RollingStylePartition && steer.StepsOf(&r.Spec.Strategy) != nil:
		found.forbidden(field.NewPath("spec", "strategy"),
			"a %s is released in partition style only: use canary, without enableExtraWorkloadForCanary", ref.Kind)
	case !foreign && !slices.Contains(steer.Releasable(), groupKind(ref)):
		found.invalid(field.NewPath("spec", "workloadRef"), ref.APIVersion+" "+ref.Kind,
			"can't be released in steps: use a Deployment, CloneSet, StatefulSet or DaemonSet")
	}
	path, steps := field.NewPath("spec", "strategy", "canary"), (*v1beta1.StepsStrategy)(nil)
	partition := false
	switch s := r.Spec.Strategy; {
	case s.Canary != nil:
		steps, partition = &s.Canary.StepsStrategy, !s.Canary.EnableExtraWorkloadForCanary
	case s.BlueGreen != nil:
		path, steps = field.NewPath("spec", "strategy", "blueGreen"), &s.BlueGreen.StepsStrategy
	}
	if steps == nil {
		found.required(field.NewPath("spec", "strategy"), "canary or blueGreen is needed")
		return
	}
	found.order(path.Child("steps"), steps.Steps)
	if partition {
		o.limit(found, path, steps)
	}
	found.expressible(path, steps)
	if note := r.Annotations[keys.TrafficRoutingName]; note != "" && len(steps.TrafficRoutings) > 0 {
		found.forbidden(field.NewPath("metadata", "annotations").Key(keys.TrafficRoutingName), "can't be used beside trafficRoutings")
	}
}

// order checks that no step updates fewer Pods than the one before it, where the two can be compared.
func (f *findings) order(path *field.Path, steps []v1beta1.Step) {
	for i := range steps {
		now := steps[i].Replicas
		if now == nil {
			f.required(path.Index(i).Child("replicas"), "say how many Pods the step updates")
			continue
		}
		if amount(now) <= 0 { // in the schema the rule would cost the API server too much
			f.invalid(path.Index(i).Child("replicas"), now.String(), "must be 1 or more, or a percentage from 1%% to 100%%")
		}
		if i == 0 || steps[i-1].Replicas == nil || steps[i-1].Replicas.Type != now.Type {
			continue
		}
		if before := steps[i-1].Replicas; amount(before) > amount(now) {
			f.invalid(path.Index(i).Child("replicas"), now.String(), "is less than %s of the step before", before)
		}
	}
}

// amount returns a number, or a percentage of a hundred.
func amount(v *intstr.IntOrString) int {
	n, err := budget.Scaled(v, 100, budget.Up)
	if err != nil {
		return 0 // the schema refuses it
	}
	return n
}

// limit checks that a step with traffic leaves enough old Pods for a rollback.
func (o RolloutOptions) limit(found *findings, path *field.Path, s *v1beta1.StepsStrategy) {
	if len(s.TrafficRoutings) == 0 {
		return
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		leads := step.Traffic != nil || len(step.Matches) > 0
		if n := step.Replicas; leads && n != nil && n.Type == intstr.String && amount(n) > o.PartitionPercentLimit {
			found.invalid(path.Child("steps").Index(i).Child("replicas"), n.String(),
				"is more than %d%% in a step with traffic: a rollback would send all traffic to the few old Pods; "+
					"leave traffic and matches out of this step", o.PartitionPercentLimit)
		}
	}
}

// expressible checks that the ways of leading traffic can say what steps match.
func (f *findings) expressible(path *field.Path, s *v1beta1.StepsStrategy) {
	f.distinct(path.Child("trafficRoutings"), s.TrafficRoutings)
	for r := range s.TrafficRoutings {
		ingress := s.TrafficRoutings[r].Ingress
		if ingress == nil || !f.class(path.Child("trafficRoutings").Index(r).Child("ingress", "classType"), ingress.ClassType) {
			continue
		}
		for i := range s.Steps {
			f.onHeader(path.Child("steps").Index(i).Child("matches"), s.Steps[i].Matches)
		}
	}
}

// class checks the class of an Ingress, and reports whether it can match nothing but one header. What mse and scripts can say is more.
func (f *findings) class(at *field.Path, class string) bool {
	if strings.TrimSpace(class) != class {
		f.invalid(at, class, "has spaces around it")
	}
	return slices.Contains([]string{"", "nginx", "higress", "aliyun-alb"}, class)
}

// distinct checks that nothing that leads traffic is named for two Services: a release keeps of each object what it was before once.
func (f *findings) distinct(path *field.Path, refs []v1beta1.TrafficRoutingRef) {
	named := map[string]bool{}
	once := func(at *field.Path, group, kind, name string) {
		if key := group + "/" + kind + " " + name; named[key] {
			f.invalid(at, name, "%s is named twice: name each object once, for one Service", kind)
		} else {
			named[key] = true
		}
	}
	for i := range refs {
		at := path.Index(i)
		once(at.Child("service"), "", "Service", refs[i].Service)
		if ingress := refs[i].Ingress; ingress != nil {
			once(at.Child("ingress", "name"), "networking.k8s.io", "Ingress", ingress.Name)
		}
		if gateway := refs[i].Gateway; gateway != nil && gateway.HTTPRouteName != nil {
			once(at.Child("gateway", "httpRouteName"), "gateway.networking.k8s.io", "HTTPRoute", *gateway.HTTPRouteName)
		}
		for j, custom := range refs[i].CustomNetworkRefs {
			kind := schema.FromAPIVersionAndKind(custom.APIVersion, custom.Kind)
			once(at.Child("customNetworkRefs").Index(j).Child("name"), kind.Group, kind.Kind, custom.Name)
		}
	}
}

// onHeader checks that matches are one header, which is all that the annotations of an Ingress can say.
func (f *findings) onHeader(path *field.Path, matches []v1beta1.HTTPRouteMatch) {
	if len(matches) > 1 {
		f.forbidden(path, "an Ingress can match one header only: use a route of Gateway API, or one match")
		return
	}
	for i := range matches {
		switch m := &matches[i]; {
		case m.Path != nil:
			f.forbidden(path.Index(i).Child("path"), "an Ingress can match one header only: use a route of Gateway API")
		case len(m.QueryParams) > 0:
			f.forbidden(path.Index(i).Child("queryParams"), "an Ingress can match one header only: use a route of Gateway API")
		case len(m.Headers) > 1:
			f.forbidden(path.Index(i).Child("headers"), "an Ingress can match one header only: use a route of Gateway API, or one header")
		}
	}
}
