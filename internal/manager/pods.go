package manager

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seed-69ecc383/kruise/internal/admission/pods"
	"github.com/seed-69ecc383/kruise/internal/features"
)

// podChain returns what is done to new Pods, in this order; no steps where the gate of Pod webhooks is off.
func podChain(s settings) (pods.Chain, error) {
	if !s.gates.Enabled(features.PodWebhook) {
		return pods.Chain{}, nil
	}
	counted, err := pods.NewMetrics(metrics.Registry)
	if err != nil {
		return pods.Chain{}, fmt.Errorf("making the metrics of Pod admission: %w", err)
	}
	return pods.Chain{Metrics: counted, Steps: []pods.Step{
		// After all that adds containers.
		pods.LaunchOrder(rand.String),
	}}, nil
}
