package rolloutmanager

import (
	"flag"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/seed-69ecc383/kruise/internal/process"
)

// Options are what the manager is started with.
type Options struct {
	Kubeconfig    string
	MetricsAddr   string
	MetricsAuth   bool
	HealthAddr    string
	FeatureGates  string
	LoggingFormat string
	Verbosity     int

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
	fs.StringVar(&o.HealthAddr, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	fs.StringVar(&o.FeatureGates, "feature-gates", "", "feature gates as Name=true|false, joined by commas")
	fs.StringVar(&o.LoggingFormat, "logging-format", "text", "text or json")
	fs.IntVar(&o.Verbosity, "v", 0, "0 tells what changes, 1 also whole plans and what is held back")
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
	for _, w := range o.workers() {
		fs.IntVar(w.number, w.flag, 3, "how many "+w.what+" are reconciled at the same time")
	}
	for name, value := range map[string]string{
		"grace-timeout": "5m", "expectation-timeout": "5m", "rate-limiter-base-delay": "5ms", "rate-limiter-max-delay": "1000s",
		"rate-limiter-qps": "10", "rate-limiter-bucket-size": "100",
	} {
		fs.String(name, value, "accepted and ignored")
	}
}

// workers is the flag for the number of objects of a kind that are reconciled at the same time.
type workers struct {
	number     *int
	flag, what string
}

func (o *Options) workers() []workers {
	return []workers{
		{&o.RolloutWorkers, "rollout-workers", "Rollouts"},
		{&o.BatchReleaseWorkers, "batchrelease-workers", "BatchReleases"},
		{&o.DeploymentWorkers, "deployment-workers", "Deployments"},
		{&o.TrafficRoutingWorkers, "trafficrouting-workers", "TrafficRoutings"},
		{&o.DaemonSetWorkers, "nativedaemonset-workers", "DaemonSets"},
		{&o.HistoryWorkers, "rollouthistory-workers", "RolloutHistories"},
	}
}

// FromEnvironment reads what the environment says.
func (o *Options) FromEnvironment() {
	value := func(name, otherwise string) string {
		if v := os.Getenv(name); v != "" {
			return v
		}
		return otherwise
	}
	o.Webhook = process.WebhookOptions{
		Host:         os.Getenv("WEBHOOK_HOST"),
		Port:         value("WEBHOOK_PORT", "9876"),
		CertDir:      value("WEBHOOK_CERT_DIR", "/tmp/kruise-rollout-webhook-certs"),
		PodNamespace: value("POD_NAMESPACE", "kruise-rollout"),
		SecretName:   value("SECRET_NAME", "kruise-rollout-webhook-certs"),
		ServiceName:  value("SERVICE_NAME", "kruise-rollout-webhook-service"),
		RenewBefore:  os.Getenv("CERTS_RENEW_BEFORE"),
	}
}

func (o *Options) validate() error {
	if o.LoggingFormat != "text" && o.LoggingFormat != "json" {
		return fmt.Errorf("--logging-format is %q, want text or json", o.LoggingFormat)
	}
	for _, w := range o.workers() {
		if *w.number < 1 {
			return fmt.Errorf("--%s is %d, want 1 at least", w.flag, *w.number)
		}
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
	if _, err := net.LookupPort("tcp", o.Webhook.Port); err != nil {
		return fmt.Errorf("WEBHOOK_PORT is %q, want the number of a port: %w", o.Webhook.Port, err)
	}
	_, err := o.gates()
	return err
}
