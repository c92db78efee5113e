package cli

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/cli/doctor"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
	"github.com/seed-69ecc383/kruise/internal/cli/lint"
)

// named returns namespace/name, or the name of an object in no namespace.
func named(o metav1.PartialObjectMetadata) string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// held reads the workloads that wait for a Rollout while no manager of Rollouts leads.
func (r *reading) held() {
	const manager = "kruise-rollout-manager"
	i := slices.IndexFunc(r.facts.Parts, func(p doctor.Part) bool { return p.Name == manager })
	if i < 0 || r.facts.Parts[i].Lease != nil && r.facts.Parts[i].Lease.Fresh(r.facts.Now) {
		return
	}
	for _, kind := range kinds.All() {
		if kind.Template == nil || kind.GroupVersionKind.Kind == "BroadcastJob" {
			continue
		}
		for _, o := range r.metadata(kind.GroupVersionKind, client.HasLabels{keys.WorkloadType}) {
			if o.Annotations[keys.InProgressing] == "" {
				continue
			}
			free := "run the manager of Rollouts; where it is gone for good, `kubectl kruise resume " + kind.Arg(o.Name) + " -n " +
				"" + o.Namespace + "`"
			r.facts.Held = append(r.facts.Held, doctor.Held{Object: fmt.Sprintf("%s %s", kind, named(o)), By: manager, Free: free})
		}
	}
}

// older reads what a takeover meets.
func (r *reading) older(shipped []lint.Shipped) {
	o := &r.facts.Older
	for _, p := range r.facts.Parts {
		if p.Deployed {
			o.Managers = append(o.Managers, fmt.Sprintf("%s/%s: %s", p.Namespace, p.Name, p.Image))
		}
	}
	o.Objects = map[string]int{}
	for _, s := range shipped {
		all := r.metadata(schema.GroupVersionKind{Group: s.Group, Version: s.Versions[0], Kind: s.Kind})
		if len(all) == 0 && len(s.Versions) > 1 {
			all = r.metadata(schema.GroupVersionKind{Group: s.Group, Version: s.Versions[1], Kind: s.Kind})
		}
		o.Objects[s.Kind+"."+s.Group] = len(all)
		for _, one := range all {
			if one.Labels[keys.DeleteProtection] != "" {
				o.Protected = append(o.Protected, s.Kind+" "+named(one))
			}
		}
	}
	for _, kind := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Namespace"), appsv1.SchemeGroupVersion.WithKind("Deployment"),
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"), {Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	} {
		for _, one := range r.metadata(kind, client.HasLabels{keys.DeleteProtection}) {
			o.Protected = append(o.Protected, kind.Kind+" "+named(one))
		}
	}
	for _, one := range r.metadata(corev1.SchemeGroupVersion.WithKind("Pod"), client.HasLabels{keys.LifecycleState}) {
		switch pub.LifecycleStateType(one.Labels[keys.LifecycleState]) {
		case pub.LifecycleStateUpdating:
			o.Updating = append(o.Updating, named(one))
		case pub.LifecycleStatePreparingUpdate, pub.LifecycleStateUpdated, pub.LifecycleStatePreparingDelete,
			pub.LifecycleStatePreparingNormal:
			o.Hooked = append(o.Hooked, named(one))
		}
	}
	var rollouts rolloutsv1beta1.RolloutList
	if r.list("Rollouts", &rollouts) {
		for i := range rollouts.Items {
			if one := &rollouts.Items[i]; one.Status.Phase == rolloutsv1beta1.RolloutPhaseProgressing {
				o.Releasing = append(o.Releasing, one.Namespace+"/"+one.Name)
			}
		}
	}
}
