package rollout

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/internal/rules/release"
)

func planned(step *intstr.IntOrString, replicas int32) int32 {
	n, err := release.Planned(step, replicas)
	if err != nil {
		panic(err) // a mistake in the test
	}
	return n
}
