package uniteddeployment

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// workloadKind is a kind of workloads that subsets can have.
type workloadKind struct {
	// name is how events call the kind.
	name string
	gvk  schema.GroupVersionKind
	// list returns an empty list.
	list func() client.ObjectList
	// make returns a workload with what the template says, nil where that is of another kind.
	make func(*v1beta1.SubsetTemplate) plan.Object
	// fields returns what a UnitedDeployment sets in a workload, and progress what the workload tells of itself.
	fields   func(plan.Object) fields
	progress func(plan.Object) progress
}

// fields are the places in the spec of a workload that a UnitedDeployment sets.
type fields struct {
	replicas **int32
	selector **metav1.LabelSelector
	pods     *corev1.PodTemplateSpec
	// partition is the number of Pods that stay at their old template; nil where the kind or its strategy knows none. setPartition sets it.
	partition    func() *int32
	setPartition func(int32)
	// maxUnavailable is where it is said how many Pods may be unavailable in a rollout; nil where it can't be said.
	maxUnavailable func() **intstr.IntOrString
	// limit is the most Pods that a rollout takes out of service by this spec: 0 where the user does that.
	limit func() int32
	// numbered Pods are deleted from the highest number on, whether they are ready or not.
	numbered bool
}

// progress is what a workload tells of itself.
type progress struct {
	// observed means that the workload speaks of its present spec.
	observed                            bool
	replicas, ready, available, updated int32
	// revision is the one that Pods carry that the workload calls updated; empty where it does not say.
	revision string
	// failure says what the workload has failed in, in words; empty where it has not.
	failure string
}

// workloadKinds returns all kinds.
func workloadKinds() []workloadKind {
	return []workloadKind{deployments(), cloneSets(), statefulSets(), advancedStatefulSets()}
}

// kindOf returns the kind of the workloads that the template makes; nil for none.
func kindOf(template *v1beta1.SubsetTemplate) *workloadKind {
	for _, k := range workloadKinds() {
		if k.make(template) != nil {
			return &k
		}
	}
	return nil
}

// metadataOf returns the metadata that workloads take over from their template.
func metadataOf(template *metav1.ObjectMeta) metav1.ObjectMeta {
	copied := template.DeepCopy()
	return metav1.ObjectMeta{Labels: copied.Labels, Annotations: copied.Annotations}
}

// made returns what a pointer points to, which is made if there is nothing.
func made[T any](at **T) *T {
	if *at == nil {
		*at = new(T)
	}
	return *at
}

// setPartitions says where a strategy for rolling updates, which may not be there yet, has its partition.
func setPartitions[T any](f *fields, rolling **T, in func(*T) **int32) {
	f.partition = func() *int32 {
		if *rolling == nil {
			return nil
		}
		return *in(*rolling)
	}
	f.setPartition = func(n int32) { *in(made(rolling)) = &n }
}

func valueOr(number *int32, otherwise int32) int32 {
	if number == nil {
		return otherwise
	}
	return *number
}

func deployments() workloadKind {
	return workloadKind{
		name: "Deployment",
		gvk:  appsv1.SchemeGroupVersion.WithKind("Deployment"),
		list: func() client.ObjectList { return &appsv1.DeploymentList{} },
		make: func(t *v1beta1.SubsetTemplate) plan.Object {
			if t.DeploymentTemplate == nil {
				return nil
			}
			return &appsv1.Deployment{ObjectMeta: metadataOf(&t.DeploymentTemplate.ObjectMeta), Spec: *t.DeploymentTemplate.Spec.DeepCopy()}
		},
		fields: func(o plan.Object) fields {
			spec := &o.(*appsv1.Deployment).Spec
			out := fields{replicas: &spec.Replicas, selector: &spec.Selector, pods: &spec.Template}
			out.limit = func() int32 { return valueOr(spec.Replicas, 1) }
			if spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
				out.limit = func() int32 { return limitOfDeployment(spec) }
				out.maxUnavailable = func() **intstr.IntOrString { return &made(&spec.Strategy.RollingUpdate).MaxUnavailable }
			}
			return out
		},
		progress: func(o plan.Object) progress {
			s := &o.(*appsv1.Deployment).Status
			out := progress{
				observed: s.ObservedGeneration >= o.GetGeneration(),
				replicas: s.Replicas, ready: s.ReadyReplicas, available: s.AvailableReplicas, updated: s.UpdatedReplicas,
			}
			for _, c := range s.Conditions {
				isLate := c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse
				if isLate || c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
					out.failure = c.Message
				}
			}
			return out
		},
	}
}

func cloneSets() workloadKind {
	return workloadKind{
		name: "CloneSet",
		gvk:  v1beta1.GroupVersion.WithKind("CloneSet"),
		list: func() client.ObjectList { return &v1beta1.CloneSetList{} },
		make: func(t *v1beta1.SubsetTemplate) plan.Object {
			if t.CloneSetTemplate == nil {
				return nil
			}
			return &v1beta1.CloneSet{ObjectMeta: metadataOf(&t.CloneSetTemplate.ObjectMeta), Spec: *t.CloneSetTemplate.Spec.DeepCopy()}
		},
		fields: func(o plan.Object) fields {
			spec := &o.(*v1beta1.CloneSet).Spec
			out := fields{replicas: &spec.Replicas, selector: &spec.Selector, pods: &spec.Template}
			out.limit = noLimit
			if spec.UpdateStrategy.Type == v1beta1.OnDeleteCloneSetStrategyType {
				return out
			}
			out.limit = func() int32 { return limitOfCloneSet(spec) }
			rolling := &spec.UpdateStrategy.RollingUpdate
			out.partition = func() *int32 {
				if r := *rolling; r != nil && r.Partition != nil && r.Partition.Type == intstr.Int {
					return &r.Partition.IntVal
				}
				return nil
			}
			out.setPartition = func(n int32) {
				value := intstr.FromInt32(n)
				made(rolling).Partition = &value
			}
			out.maxUnavailable = func() **intstr.IntOrString { return &made(rolling).MaxUnavailable }
			return out
		},
		progress: func(o plan.Object) progress {
			s := &o.(*v1beta1.CloneSet).Status
			out := progress{
				observed: s.ObservedGeneration >= o.GetGeneration(),
				replicas: s.Replicas, ready: s.ReadyReplicas, available: s.AvailableReplicas, updated: s.UpdatedReplicas,
				revision: s.UpdateRevision,
			}
			for _, c := range s.Conditions {
				isFailure := c.Type == v1beta1.CloneSetConditionFailedScale || c.Type == v1beta1.CloneSetConditionFailedUpdate
				if isFailure && c.Status == corev1.ConditionTrue || c.Reason == v1beta1.CloneSetProgressDeadlineExceeded {
					out.failure = c.Message
				}
			}
			return out
		},
	}
}

func statefulSets() workloadKind {
	return workloadKind{
		name: "StatefulSet",
		gvk:  appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		list: func() client.ObjectList { return &appsv1.StatefulSetList{} },
		make: func(t *v1beta1.SubsetTemplate) plan.Object {
			given := t.StatefulSetTemplate
			if given == nil {
				return nil
			}
			return &appsv1.StatefulSet{ObjectMeta: metadataOf(&given.ObjectMeta), Spec: *given.Spec.DeepCopy()}
		},
		fields: func(o plan.Object) fields {
			spec := &o.(*appsv1.StatefulSet).Spec
			out := fields{replicas: &spec.Replicas, selector: &spec.Selector, pods: &spec.Template, numbered: true}
			out.limit = noLimit
			if spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
				return out
			}
			out.limit = func() int32 { return limitOfStatefulSet(spec) }
			setPartitions(&out, &spec.UpdateStrategy.RollingUpdate,
				func(r *appsv1.RollingUpdateStatefulSetStrategy) **int32 { return &r.Partition })
			return out
		},
		progress: func(o plan.Object) progress {
			s := &o.(*appsv1.StatefulSet).Status
			return progress{
				observed: s.ObservedGeneration >= o.GetGeneration(),
				replicas: s.Replicas, ready: s.ReadyReplicas, available: s.AvailableReplicas, updated: s.UpdatedReplicas,
				revision: s.UpdateRevision,
			}
		},
	}
}

func advancedStatefulSets() workloadKind {
	return workloadKind{
		name: "AdvancedStatefulSet",
		gvk:  v1beta1.GroupVersion.WithKind("StatefulSet"),
		list: func() client.ObjectList { return &v1beta1.StatefulSetList{} },
		make: func(t *v1beta1.SubsetTemplate) plan.Object {
			given := t.AdvancedStatefulSetTemplate
			if given == nil {
				return nil
			}
			return &v1beta1.StatefulSet{ObjectMeta: metadataOf(&given.ObjectMeta), Spec: *given.Spec.DeepCopy()}
		},
		fields: func(o plan.Object) fields {
			spec := &o.(*v1beta1.StatefulSet).Spec
			out := fields{replicas: &spec.Replicas, selector: &spec.Selector, pods: &spec.Template, numbered: true}
			out.limit = noLimit
			if spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
				return out
			}
			out.limit = func() int32 { return limitOfAdvancedStatefulSet(spec) }
			out.maxUnavailable = func() **intstr.IntOrString { return &made(&spec.UpdateStrategy.RollingUpdate).MaxUnavailable }
			setPartitions(&out, &spec.UpdateStrategy.RollingUpdate,
				func(r *v1beta1.RollingUpdateStatefulSetStrategy) **int32 { return &r.Partition })
			return out
		},
		progress: func(o plan.Object) progress {
			s := &o.(*v1beta1.StatefulSet).Status
			out := progress{
				observed: s.ObservedGeneration >= o.GetGeneration(),
				replicas: s.Replicas, ready: s.ReadyReplicas, available: s.AvailableReplicas, updated: s.UpdatedReplicas,
				revision: s.UpdateRevision,
			}
			for _, c := range s.Conditions {
				isFailure := c.Type == v1beta1.StatefulSetConditionFailedCreatePod || c.Type == v1beta1.StatefulSetConditionFailedUpdatePod
				isLate := c.Type == v1beta1.StatefulSetConditionProgressing && c.Status == corev1.ConditionFalse
				if isFailure && c.Status == corev1.ConditionTrue || isLate {
					out.failure = c.Message
				}
			}
			return out
		},
	}
}
