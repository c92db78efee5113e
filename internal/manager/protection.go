package manager

import (
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seed-69ecc383/kruise/internal/admission/protection"
	"github.com/seed-69ecc383/kruise/internal/admission/refusal"
	"github.com/seed-69ecc383/kruise/internal/features"
	rules "github.com/seed-69ecc383/kruise/internal/rules/protection"
)

// protectionNeeds are the rights to look for protected objects in a namespace, and to write events on them; none without the gate.
func (s settings) protectionNeeds() []need {
	if !s.gates.Enabled(features.ResourcesDeletionProtection) {
		return nil
	}
	all := to("list", "pods", "persistentvolumeclaims")
	for _, kind := range rules.Contents() {
		all = slices.Concat(all, to("get list", kind.GroupResource().String()))
	}
	return all
}

// protectionWebhooks returns the options of the webhooks of deletion protection.
func protectionWebhooks(mgr ctrlmanager.Manager, live client.Client, s settings, log *refusal.Log) (protection.Options, error) {
	if !s.gates.Enabled(features.ResourcesDeletionProtection) {
		return protection.Options{}, nil
	}
	reports, err := protection.NewReports(protection.ReportOptions{
		Registry: metrics.Registry, Log: log, Live: live, Now: time.Now,
		Events: mgr.GetEventRecorderFor(protection.EventSource), //nolint:staticcheck // events of core/v1 are what users' tools read
	})
	if err != nil {
		return protection.Options{}, fmt.Errorf("making the metrics of deletion protection: %w", err)
	}
	return protection.Options{
		Enabled: true, Live: live, Reports: reports,
		Contents: len(s.lacking[protection.EventSource]) == 0,
		CRDs:     s.gates.Enabled(features.DeletionProtectionForCRDCascadingGate),
	}, nil
}
