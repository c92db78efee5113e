package rolloutmanager

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/seed-69ecc383/kruise/internal/logging"
	"github.com/seed-69ecc383/kruise/internal/process"
)

// Options are what the manager is started with.
type Options struct {
	Kubeconfig   string
	MetricsAddr  string
	MetricsAuth  bool
	StateMetrics process.StateMetrics
	Traces       process.Traces
	HealthAddr   string
	FeatureGates string
	Log          logging.Options

	LeaderElection                            bool
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	CacheSyncTimeout                          time.Duration
	// ShutdownDelay is how long a manager that is asked to end goes on, while it is no longer ready.
	ShutdownDelay time.Duration

	RolloutWorkers, BatchReleaseWorkers, DeploymentWorkers, TrafficRoutingWorkers, DaemonSetWorkers, HistoryWorkers int
	// PartitionPercentLimit is the largest percentage of a step with traffic that updates the Pods of the workload itself.
	PartitionPercentLimit int
	// FilterWorkloadType lets workloads be only of the kinds that are known.
	FilterWorkloadType bool

	// AnalysisAllow and AnalysisRefuse are networks, joined by commas, that measurements may reach though they are refused otherwise, and
	// that they may not.
	AnalysisAllow, AnalysisRefuse string

	Webhook process.WebhookOptions
}

// Bind declares the flags. Those of the original that mean nothing here are accepted and ignored, so that an existing installation's
// command line keeps working.
func (o *Options) Bind(fs *flag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "path of a kubeconfig; empty inside a cluster")
	fs.StringVar(&o.MetricsAddr, "metrics-bind-address", ":8080", "address of the metrics; 0 for none")
	fs.BoolVar(&o.MetricsAuth, "metrics-auth", true,
		"serve metrics beyond this machine by HTTPS, and to those who may get the path /metrics")
	o.StateMetrics.Bind(fs)
	o.Traces.Bind(fs)
	fs.StringVar(&o.HealthAddr, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	fs.StringVar(&o.FeatureGates, "feature-gates", "", "feature gates as Name=true|false, joined by commas")
	o.Log.Bind(fs)
	fs.BoolVar(&o.LeaderElection, "leader-elect", true, "run controllers on one of several managers only")
	fs.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", 15*time.Second, "how long the Lease of a silent leader holds")
	fs.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second, "how long the leader tries to renew before it gives up")
	fs.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", 2*time.Second, "how often the Lease is looked at")
	fs.DurationVar(&o.CacheSyncTimeout, "cache-sync-timeout", 2*time.Minute, "how long the first filling of a cache may take")
	fs.DurationVar(&o.ShutdownDelay, "shutdown-delay", 5*time.Second,
		"how long the manager goes on while it is no longer ready, before it ends; for API servers to learn that it does")
	fs.IntVar(&o.PartitionPercentLimit, "partition-percent-limit", 50,
		"the largest percentage of a step with traffic that updates the Pods of the workload itself, 1 to 100")
	fs.BoolVar(&o.FilterWorkloadType, "filter-workload-type", true, "release only workloads of the kinds that are known")
	fs.StringVar(&o.AnalysisAllow, "analysis-allow", "",
		"networks, such as 10.1.0.0/16, joined by commas, that checks of Rollouts may reach though they are refused otherwise")
	fs.StringVar(&o.AnalysisRefuse, "analysis-refuse", "", "networks, joined by commas, that checks of Rollouts may not reach")
	process.BindWorkers(fs, o.workers())
	process.BindIgnored(fs, map[string]string{
		"grace-timeout": "5m", "expectation-timeout": "5m", "rate-limiter-base-delay": "5ms", "rate-limiter-max-delay": "1000s",
		"rate-limiter-qps": "10", "rate-limiter-bucket-size": "100",
	})
}

func (o *Options) workers() []process.Workers {
	return []process.Workers{
		{Number: &o.RolloutWorkers, Flag: "rollout-workers", What: "Rollouts"},
		{Number: &o.BatchReleaseWorkers, Flag: "batchrelease-workers", What: "BatchReleases"},
		{Number: &o.DeploymentWorkers, Flag: "deployment-workers", What: "Deployments"},
		{Number: &o.TrafficRoutingWorkers, Flag: "trafficrouting-workers", What: "TrafficRoutings"},
		{Number: &o.DaemonSetWorkers, Flag: "nativedaemonset-workers", What: "DaemonSets"},
		{Number: &o.HistoryWorkers, Flag: "rollouthistory-workers", What: "RolloutHistories"},
	}
}

// Logging returns how the process logs.
func (o *Options) Logging() logging.Options { return o.Log }

// FromEnvironment reads what the environment says.
func (o *Options) FromEnvironment() {
	o.Webhook = process.WebhookOptions{
		Port:         "9876",
		CertDir:      "/tmp/kruise-rollout-webhook-certs",
		PodNamespace: "kruise-rollout",
		SecretName:   "kruise-rollout-webhook-certs",
		ServiceName:  "kruise-rollout-webhook-service",
	}.FromEnvironment()
}

func (o *Options) validate() error {
	if err := o.Log.Validate(); err != nil {
		return err
	}
	if err := process.ValidateWorkers(o.workers()); err != nil {
		return err
	}
	if o.PartitionPercentLimit < 1 || o.PartitionPercentLimit > 100 {
		return fmt.Errorf("--partition-percent-limit is %d, want 1 to 100", o.PartitionPercentLimit)
	}
	if _, err := networks("analysis-allow", o.AnalysisAllow); err != nil {
		return err
	}
	if _, err := networks("analysis-refuse", o.AnalysisRefuse); err != nil {
		return err
	}
	if o.ShutdownDelay < 0 || o.ShutdownDelay > time.Minute {
		return fmt.Errorf("--shutdown-delay is %s, want 0 to 1m", o.ShutdownDelay)
	}
	if err := o.Webhook.Validate(); err != nil {
		return err
	}
	if err := errors.Join(o.StateMetrics.Validate(), o.Traces.Validate()); err != nil {
		return err
	}
	_, err := o.gates()
	return err
}
