package manager

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seed-69ecc383/kruise/internal/controller/podunavailablebudget"
	"github.com/seed-69ecc383/kruise/internal/features"
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
	options := podunavailablebudget.Options{Scales: s.scales}
	if s.gates.Enabled(features.PodUnavailableBudgetDeleteGate) {
		options.InForce = s.configurations.EvictionsSentIn
	}
	return podunavailablebudget.Add(mgr, podunavailablebudget.Config{
		Executor: executors(mgr, live)(podunavailablebudget.EventSource),
		Live:     live,
		Workers:  s.PodUnavailableBudgetWorkers,
		Now:      time.Now,
		Options:  options,
	})
}
