package replicasets

import (
	"encoding/json"
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
)

// Strategy is the annotation keys.DeploymentStrategy.
//
// Wire: tools read it.
type Strategy struct {
	// RollingStyle is Partition.
	RollingStyle string `json:"rollingStyle,omitempty"`
	// RollingUpdate is what the original takes out of the spec for the time of a release. We leave it there, and put it back.
	RollingUpdate *appsv1.RollingUpdateDeployment `json:"rollingUpdate,omitempty"`
	// Paused stops where it is: nothing is moved.
	Paused bool `json:"paused,omitempty"`
	// Partition is how many Pods are to be updated, a number or a percentage: the opposite of the partition of a CloneSet.
	Partition intstr.IntOrString `json:"partition,omitempty"`
	// Revision is the revision of the template that Partition is of, so that no Pod of another one is made before somebody says how many.
	// Empty is any.
	Revision string `json:"revision,omitempty"`
}

// The styles of a Strategy.
const (
	// RollingStyle has the Pods of the Deployment itself updated in batches.
	RollingStyle = "Partition"
	// CanaryStyle has a second Deployment run new Pods, and this one stay as it is.
	CanaryStyle = "Canary"
)

// Parse reads the annotation.
func Parse(annotation string) (Strategy, error) {
	var s Strategy
	if err := json.Unmarshal([]byte(annotation), &s); err != nil {
		return s, fmt.Errorf("it is not JSON of the form {\"partition\":\"50%%\"}: %w", err)
	}
	return s, nil
}

// String writes the annotation.
func (s Strategy) String() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // numbers, strings and booleans can be written
	}
	return string(text)
}

// Restored returns the strategy that the original has put away in the annotation; the usual one if it has put none there.
func Restored(s Strategy) appsv1.DeploymentStrategy {
	out := appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: s.RollingUpdate}
	if out.RollingUpdate == nil {
		usual := intstr.FromString("25%")
		out.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &usual, MaxUnavailable: &usual}
	}
	return out
}

// LimitsOf returns what a Deployment allows that updates as many Pods as a partition says. Where the Deployment does not say maxSurge or
// maxUnavailable, they are 25%; where both come to 0, one Pod may be unavailable.
func LimitsOf(spec *appsv1.DeploymentSpec, partition *intstr.IntOrString) (Limits, error) {
	l := Limits{Replicas: 1}
	if spec.Replicas != nil {
		l.Replicas = *spec.Replicas
	}
	usual := intstr.FromString("25%")
	surge, unavailable := &usual, &usual
	if r := spec.Strategy.RollingUpdate; r != nil {
		if r.MaxSurge != nil {
			surge = r.MaxSurge
		}
		if r.MaxUnavailable != nil {
			unavailable = r.MaxUnavailable
		}
	}
	n, err := budget.Scaled(surge, int(l.Replicas), budget.Up)
	if err != nil {
		return l, fmt.Errorf("maxSurge: %w", err)
	}
	m, err := budget.Scaled(unavailable, int(l.Replicas), budget.Down)
	if err != nil {
		return l, fmt.Errorf("maxUnavailable: %w", err)
	}
	if n == 0 && m == 0 {
		m = 1
	}
	l.Surge, l.Unavailable = int32(min(n, math.MaxInt32-int(l.Replicas))), min(int32(min(m, math.MaxInt32)), l.Replicas)
	if l.Updated, err = release.DeploymentLimit(partition, l.Replicas); err != nil {
		return l, fmt.Errorf("partition: %w", err)
	}
	return l, nil
}
