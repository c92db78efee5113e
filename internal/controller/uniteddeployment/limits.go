package uniteddeployment

import (
	"math"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

// noLimit is for workloads whose Pods are taken out of service by users alone.
func noLimit() int32 { return 0 }

// scaled resolves a number or percentage; what can't be read counts for all, and so can only be too much.
func scaled(value *intstr.IntOrString, of int32, r budget.Rounding) int32 {
	n, err := budget.Scaled(value, int(of), r)
	if err != nil || n > int(of) {
		return of
	}
	return int32(n)
}

// limitOfDeployment is what Kubernetes makes of maxUnavailable and maxSurge, 25% each where they are not set.
func limitOfDeployment(spec *appsv1.DeploymentSpec) int32 {
	quarter := intstr.FromString("25%")
	unavailable, surge := &quarter, &quarter
	if rolling := spec.Strategy.RollingUpdate; rolling != nil {
		if rolling.MaxUnavailable != nil {
			unavailable = rolling.MaxUnavailable
		}
		if rolling.MaxSurge != nil {
			surge = rolling.MaxSurge
		}
	}
	replicas := valueOr(spec.Replicas, 1)
	n := scaled(unavailable, replicas, budget.Down)
	if n == 0 && scaled(surge, replicas, budget.Up) == 0 {
		return 1
	}
	return n
}

func limitOfCloneSet(spec *v1beta1.CloneSetSpec) int32 {
	s := budget.Strategy{}
	if rolling := spec.UpdateStrategy.RollingUpdate; rolling != nil {
		s.MaxUnavailable, s.MaxSurge, s.Paused = rolling.MaxUnavailable, rolling.MaxSurge, rolling.Paused
	}
	replicas := valueOr(spec.Replicas, 1)
	limits, err := budget.Resolve(s, replicas)
	if err != nil {
		return replicas
	}
	return int32(min(limits.MaxUnavailable, math.MaxInt32))
}

// limitOfStatefulSet is that of a StatefulSet of Kubernetes: one at a time where maxUnavailable is not set or the cluster does not know it.
func limitOfStatefulSet(spec *appsv1.StatefulSetSpec) int32 {
	if rolling := spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.MaxUnavailable != nil {
		return max(scaled(rolling.MaxUnavailable, valueOr(spec.Replicas, 1), budget.Up), 1)
	}
	return 1
}

func limitOfAdvancedStatefulSet(spec *v1beta1.StatefulSetSpec) int32 {
	if rolling := spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.MaxUnavailable != nil {
		return max(scaled(rolling.MaxUnavailable, valueOr(spec.Replicas, 1), budget.Down), 1)
	}
	return 1
}
