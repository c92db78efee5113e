package manager

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/podbudget"
	"github.com/seed-69ecc383/kruise/internal/admission/refusal"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/controller/podunavailablebudget"
	"github.com/seed-69ecc383/kruise/internal/disruption"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/observe"
	rules "github.com/seed-69ecc383/kruise/internal/rules/disruption"
)

// ledgerPause is the wait before the ledger of a budget is tried to be written again: four tries take well under a second, of the three
// that the API server waits.
const ledgerPause = 50 * time.Millisecond

// budgetsOff returns why PodUnavailableBudgets are not evaluated; empty if they are.
func (s settings) budgetsOff() string {
	if missing := s.lacking["podunavailablebudget-controller"]; len(missing) > 0 {
		return fmt.Sprintf("the manager may not %s", strings.Join(missing, ", "))
	}
	if s.gates.Enabled(features.PodUnavailableBudgetDeleteGate) || s.gates.Enabled(features.PodUnavailableBudgetUpdateGate) {
		return ""
	}
	return fmt.Sprintf("feature-gates %s and %s are not enabled",
		features.PodUnavailableBudgetDeleteGate, features.PodUnavailableBudgetUpdateGate)
}

// addBudgets fills in what evaluates PodUnavailableBudgets; nothing if the gates leave them out.
func (s *settings) addBudgets(ctx context.Context, mgr ctrlmanager.Manager, live client.Client) (err error) {
	if s.budgetsOff() != "" {
		return nil
	}
	s.evaluator, err = newEvaluator(ctx, mgr, live, *s)
	return err
}

// newEvaluator returns the one evaluator of this process, for its webhook and its controllers.
func newEvaluator(ctx context.Context, mgr ctrlmanager.Manager, live client.Client, s settings) (*disruption.Evaluator, error) {
	budgets, err := mgr.GetCache().GetInformer(ctx, &policyv1beta1.PodUnavailableBudget{})
	if err != nil {
		return nil, fmt.Errorf("following PodUnavailableBudgets: %w", err)
	}
	if _, err := mgr.GetCache().GetInformer(ctx, &policyv1.PodDisruptionBudget{}); err != nil {
		return nil, fmt.Errorf("following PodDisruptionBudgets: %w", err)
	}
	if _, err := mgr.GetCache().GetInformer(ctx, &corev1.Namespace{}); err != nil {
		return nil, fmt.Errorf("following namespaces: %w", err)
	}
	resizing := rules.ResizeIsUpdate
	if s.gates.Enabled(features.InPlacePodVerticalScaling) {
		resizing = rules.ResizeIsOwn
	}
	evaluator := disruption.New(disruption.Config{
		Cached: mgr.GetCache(), Live: live, Exempt: list(s.ExemptUsers), Resizing: resizing, Pause: ledgerPause, Now: s.clock.Now,
		Count:     count(observe.Reader{Reader: wanted{Reader: mgr.GetCache(), live: live}, Indexed: true}, s),
		CountLive: count(observe.Reader{Reader: live}, s),
	})
	if _, err := budgets.AddEventHandler(noting(evaluator.NoteBudget)); err != nil {
		return nil, fmt.Errorf("following PodUnavailableBudgets: %w", err)
	}
	return evaluator, nil
}

// askBudgets returns what controllers ask before they take a Pod out of service; nil where there are no budgets.
func (s settings) askBudgets() apply.Budgets {
	if s.evaluator == nil {
		return nil
	}
	return disruption.Writes{Evaluator: s.evaluator, Updates: s.gates.Enabled(features.PodUnavailableBudgetUpdateGate)}
}

// budgetWebhook returns the options of the webhook for Pods with a budget.
func budgetWebhook(mgr ctrlmanager.Manager, live client.Client, s settings, protection *refusal.Log) (podbudget.Options, error) {
	if s.evaluator == nil {
		return podbudget.Options{}, nil
	}
	reports, err := podbudget.NewReports(podbudget.ReportOptions{
		Registry: metrics.Registry, Log: protection, Now: time.Now,
		Events: mgr.GetEventRecorderFor(podbudget.EventSource), //nolint:staticcheck // events of core/v1 are what users' tools read
	})
	if err != nil {
		return podbudget.Options{}, fmt.Errorf("making the metric of budgets: %w", err)
	}
	return podbudget.Options{
		Evaluator: s.evaluator, Live: live, Within: s.Namespace, Reports: reports,
		Deletes: s.gates.Enabled(features.PodUnavailableBudgetDeleteGate),
		Updates: s.gates.Enabled(features.PodUnavailableBudgetUpdateGate),
	}, nil
}

// scales returns what says how many Pods workloads of any kind should have.
func scales(mgr ctrlmanager.Manager, live client.Client) (*observe.Scales, error) {
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return observe.NewScales(live, kinds, time.Now), nil
}

// count returns how the numbers of a budget are computed anew by the Pods that a reader has.
func count(
	pods observe.Reader, s settings,
) func(context.Context, *policyv1beta1.PodUnavailableBudget) (rules.Numbers, error) {
	workloads := observe.Workloads{Reader: pods, Scales: s.scales.Anew()}
	return func(ctx context.Context, b *policyv1beta1.PodUnavailableBudget) (rules.Numbers, error) {
		return podunavailablebudget.Count(ctx, workloads, b, s.clock.Now())
	}
}

// wanted reads from a cache what is there, and live what is wanted: single workloads, which say how many Pods there should be.
type wanted struct {
	client.Reader
	live client.Reader
}

// Get reads live.
func (w wanted) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return w.live.Get(ctx, key, into, options...)
}
