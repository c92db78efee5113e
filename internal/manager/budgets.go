package manager

import (
	"fmt"
	"time"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seed-69ecc383/kruise/internal/controller/podunavailablebudget"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// budgetsOff returns the gates of PodUnavailableBudgets if all of them are off, so that none would be heeded; empty else.
func (s settings) budgetsOff() string {
	if s.gates.Enabled(features.PodUnavailableBudgetDeleteGate) || s.gates.Enabled(features.PodUnavailableBudgetUpdateGate) {
		return ""
	}
	return fmt.Sprintf("%s and %s", features.PodUnavailableBudgetDeleteGate, features.PodUnavailableBudgetUpdateGate)
}

// addBudgetController adds the controller of PodUnavailableBudgets, unless none would be heeded.
func addBudgetController(mgr ctrlmanager.Manager, live client.Client, s settings) error {
	if s.budgetsOff() != "" {
		return nil
	}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	options := podunavailablebudget.Options{Scales: observe.NewScales(live, kinds, time.Now)}
	if s.evictions != nil {
		options.InForce = s.evictions.InForce
	}
	return podunavailablebudget.Add(mgr, podunavailablebudget.Config{
		Executor: executors(mgr, live)(podunavailablebudget.EventSource),
		Live:     live,
		Workers:  s.PodUnavailableBudgetWorkers,
		Now:      time.Now,
		Options:  options,
	})
}
