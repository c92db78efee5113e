package steer

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// PutBack returns a workload with the Pod template that its release came from: that of the stable ReplicaSet of a Deployment, else that of
// the revision of the name. An error says what is missing; nothing is guessed.
func PutBack(o Objects, stable string) (Writes, error) {
	if workload, is := o.Workload.(*unstructured.Unstructured); is {
		next := workload.DeepCopy()
		return Writes{Workload: next}, putBackForeign(o, next, stable)
	}
	old, err := oldTemplate(o, stable)
	if err != nil {
		return Writes{}, err
	}
	next := copyOf(o.Workload)
	template := TemplateOf(next)
	if template == nil {
		return Writes{}, fmt.Errorf("a %T has no Pod template", o.Workload)
	}
	*template = *old
	return Writes{Workload: next}, nil
}

func oldTemplate(o Objects, stable string) (*corev1.PodTemplateSpec, error) {
	if _, is := o.Workload.(*appsv1.Deployment); !is {
		for _, r := range o.Revisions {
			if revision.IsOf(stable, r.Name) {
				return revision.Template(r)
			}
		}
		return nil, fmt.Errorf("the revision %s is not there any more", stable)
	}
	hash := o.Workload.GetLabels()[keys.StableRevision]
	for _, set := range o.ReplicaSets {
		if hash != "" && set.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == hash {
			template := set.Spec.Template.DeepCopy()
			delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
			return template, nil
		}
	}
	return nil, fmt.Errorf("the ReplicaSet of revision %q is not there any more", hash)
}
