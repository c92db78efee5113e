package manager

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/seed-69ecc383/kruise/internal/logging"
	"github.com/seed-69ecc383/kruise/internal/process"
	"github.com/seed-69ecc383/kruise/internal/rules/distribution"
)

// Options are what the manager is started with.
type Options struct {
	Kubeconfig   string
	Namespace    string
	MetricsAddr  string
	MetricsAuth  bool
	StateMetrics process.StateMetrics
	Traces       process.Traces
	HealthAddr   string
	PprofAddr    string
	EnablePprof  bool
	FeatureGates string
	Log          logging.Options

	LeaderElection          bool
	LeaderElectionNamespace string
	LeaderElectionID        string
	LeaseDuration           time.Duration
	RenewDeadline           time.Duration
	RetryPeriod             time.Duration

	CacheSyncTimeout            time.Duration
	AdvancedCronJobWorkers      int
	BroadcastJobWorkers         int
	CloneSetWorkers             int
	ContainerRecreateWorkers    int
	SidecarTerminatorWorkers    int
	DaemonSetWorkers            int
	NodePodProbeWorkers         int
	PersistentPodStateWorkers   int
	PodProbeMarkerWorkers       int
	PodUnavailableBudgetWorkers int
	ResourceDistributionWorkers int
	// DistributedKinds are the kinds that ResourceDistributions may copy besides Secrets and ConfigMaps, joined by commas.
	DistributedKinds        string
	SidecarSetWorkers       int
	WorkloadSpreadWorkers   int
	StatefulSetWorkers      int
	UnitedDeploymentWorkers int
	ClusterProviderFile     string
	ExcludePreparingDelete  bool
	AssignPodsByScheduler   bool
	ImagePullJobWorkers     int
	NodeImageWorkers        int
	NodeImageCreationDelay  time.Duration
	// NodeImageExtraTTL is how many seconds longer than a job that completes needs it a tag is kept in NodeImages.
	NodeImageExtraTTL int
	// DaemonConfigNamespace is the namespace of the Secrets that users may name in NodeImages.
	DaemonConfigNamespace string
	// ProtectionLogPath is the folder of the protection log; empty for none.
	ProtectionLogPath string
	// WebhookClientCAFile is a file with the CAs of those who may ask for admission, empty for everybody; WebhookClientNames are their
	// common
	// names, joined by commas, empty for all clients of these CAs.
	WebhookClientCAFile, WebhookClientNames string
	// ShutdownDelay is how long a manager that is asked to end goes on, while it is no longer ready.
	ShutdownDelay time.Duration
	// ExemptUsers are the names of users whose requests no PodUnavailableBudget is asked about, joined by commas.
	ExemptUsers string

	AssignBroadcastJobPodsByScheduler bool

	Webhook process.WebhookOptions
}

// Bind declares the flags. Those of the original that mean nothing here are accepted and ignored, so that an existing installation's
// command line keeps working.
func (o *Options) Bind(fs *flag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "path of a kubeconfig; empty inside a cluster")
	fs.StringVar(&o.Namespace, "namespace", "", "the only namespace to look after; empty for all")
	fs.StringVar(&o.MetricsAddr, "metrics-addr", "127.0.0.1:8080", "address of the metrics; 0 for none")
	fs.BoolVar(&o.MetricsAuth, "metrics-auth", true,
		"serve metrics beyond this machine by HTTPS, and to those who may get the path /metrics")
	o.StateMetrics.Bind(fs)
	o.Traces.Bind(fs)
	fs.StringVar(&o.HealthAddr, "health-probe-addr", ":8000", "address of /healthz and /readyz")
	fs.StringVar(&o.PprofAddr, "pprof-addr", "localhost:8090", "address of pprof")
	fs.BoolVar(&o.EnablePprof, "enable-pprof", true, "serve pprof")
	fs.StringVar(&o.FeatureGates, "feature-gates", "", "feature gates as Name=true|false, joined by commas")
	fs.StringVar(&o.ClusterProviderFile, "clusterprofile-provider-file", "",
		"path of a JSON file with the programs that make credentials for ClusterProfiles; empty for none")
	o.Log.Bind(fs)
	fs.BoolVar(&o.LeaderElection, "enable-leader-election", true, "run controllers on one of several managers only")
	fs.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "", "namespace of the Lease; empty for that of the manager")
	fs.StringVar(&o.LeaderElectionID, "leader-election-id", "kruise-manager", "name of the Lease")
	fs.DurationVar(&o.LeaseDuration, "leader-election-lease-duration", 15*time.Second, "how long the Lease of a silent leader holds")
	fs.DurationVar(&o.RenewDeadline, "leader-election-renew-deadline", 10*time.Second,
		"how long the leader tries to renew before it gives up")
	fs.DurationVar(&o.RetryPeriod, "leader-election-retry-period", 2*time.Second, "how often the Lease is looked at")
	fs.DurationVar(&o.CacheSyncTimeout, "controller-cache-sync-timeout", 2*time.Minute, "how long the first filling of a cache may take")
	fs.BoolVar(&o.AssignBroadcastJobPodsByScheduler, "assign-bcj-pods-by-scheduler", true,
		"have the scheduler bind the Pods of BroadcastJobs to their nodes")
	fs.BoolVar(&o.AssignPodsByScheduler, "assign-pods-by-scheduler", true, "have the scheduler bind the Pods of DaemonSets to their nodes")
	fs.DurationVar(&o.NodeImageCreationDelay, "nodeimage-creation-delay", 30*time.Second,
		"how long a node must have been ready before it gets a NodeImage")
	fs.IntVar(&o.NodeImageExtraTTL, "default-ttlseconds-for-always-nodeimage", 300,
		"how many seconds longer than a job that completes needs it a tag is kept in NodeImages, 0 to 2678400")
	fs.BoolVar(&o.ExcludePreparingDelete, "cloneset-scaling-exclude-preparing-delete", false,
		"leave Pods in state PreparingDelete out of the number of replicas, for all CloneSets")
	process.BindWorkers(fs, o.workers())
	fs.StringVar(&o.ProtectionLogPath, "protection-log-path", "/log",
		"folder of protection.log, which has a line for each request that a PodUnavailableBudget or deletion protection refused; "+
			"without such a folder, or if empty, there is none")
	fs.StringVar(&o.WebhookClientCAFile, "webhook-client-ca-file", "",
		"file with CAs as PEM; with it, only clients that have a certificate by them may ask for admission, see docs/security.md")
	fs.StringVar(&o.WebhookClientNames, "webhook-client-names", "",
		"common names of the clients that may ask for admission, joined by commas; empty for all that have a certificate by the CAs")
	fs.DurationVar(&o.ShutdownDelay, "shutdown-delay", 5*time.Second,
		"how long the manager goes on while it is no longer ready, before it ends; for API servers to learn that it does")
	fs.StringVar(&o.ExemptUsers, "podunavailablebudget-exempt-users", "",
		"users whose requests no PodUnavailableBudget is asked about, joined by commas")
	fs.StringVar(&o.DistributedKinds, "resourcedistribution-kinds", "",
		"kinds that ResourceDistributions may copy besides Secrets and ConfigMaps, joined by commas: "+
			"ServiceAccount, LimitRange, NetworkPolicy")
	process.BindIgnored(fs, ignored())
}

func (o *Options) workers() []process.Workers {
	return []process.Workers{
		{Number: &o.AdvancedCronJobWorkers, Flag: "advancedcronjob-workers", What: "AdvancedCronJobs"},
		{Number: &o.BroadcastJobWorkers, Flag: "broadcastjob-workers", What: "BroadcastJobs"},
		{Number: &o.CloneSetWorkers, Flag: "cloneset-workers", What: "CloneSets"},
		{Number: &o.ContainerRecreateWorkers, Flag: "crr-workers", What: "ContainerRecreateRequests"},
		{Number: &o.PodProbeMarkerWorkers, Flag: "podprobemarker-workers", What: "PodProbeMarkers"},
		{Number: &o.PodUnavailableBudgetWorkers, Flag: "podunavailablebudget-workers", What: "PodUnavailableBudgets"},
		{Number: &o.PersistentPodStateWorkers, Flag: "persistentpodstate-workers", What: "PersistentPodStates"},
		{Number: &o.NodePodProbeWorkers, Flag: "nodepodprobe-workers", What: "nodes with probes"},
		{Number: &o.DaemonSetWorkers, Flag: "daemonset-workers", What: "DaemonSets"},
		{Number: &o.ResourceDistributionWorkers, Flag: "resourcedistribution-workers", What: "ResourceDistributions"},
		{Number: &o.SidecarSetWorkers, Flag: "sidecarset-workers", What: "SidecarSets"},
		{Number: &o.SidecarTerminatorWorkers, Flag: "sidecarterminator-workers", What: "Pods with sidecars to stop"},
		{Number: &o.ImagePullJobWorkers, Flag: "imagepulljob-workers", What: "ImagePullJobs and ImageListPullJobs"},
		{Number: &o.NodeImageWorkers, Flag: "nodeimage-workers", What: "NodeImages"},
		{Number: &o.WorkloadSpreadWorkers, Flag: "workloadspread-workers", What: "WorkloadSpreads"},
		{Number: &o.StatefulSetWorkers, Flag: "statefulset-workers", What: "StatefulSets"},
		{Number: &o.UnitedDeploymentWorkers, Flag: "uniteddeployment-workers", What: "UnitedDeployments"},
	}
}

// ignored returns the flags that mean nothing here, with the defaults that they had: there is no limit on requests but the server's own,
// and nothing is expected that could time out.
func ignored() map[string]string {
	return map[string]string{
		"sync-period": "", "leader-election-resource-lock": "leases", "allow-privileged": "true", "webhook-initialize-timeout": "1m",
		"rest-config-qps": "30", "rest-config-burst": "50", "expectation-timeout": "5m",
		"rate-limiter-base-delay": "5ms", "rate-limiter-max-delay": "1000s", "rate-limiter-qps": "10", "rate-limiter-bucket-size": "100",
		"disable-no-deepcopy":         "false",
		"ws-enabled-versioned-status": "deployment,replicaset",
	}
}

// Logging returns how the process logs.
func (o *Options) Logging() logging.Options { return o.Log }

// FromEnvironment reads the options that the environment holds.
func (o *Options) FromEnvironment() {
	o.DaemonConfigNamespace = cmp.Or(os.Getenv("KRUISE_DAEMON_CONFIG_NS"), "kruise-daemon-config")
	o.Webhook = process.WebhookOptions{
		Port:         "9876",
		CertDir:      "/tmp/kruise-webhook-certs",
		PodNamespace: "kruise-system",
		SecretName:   "kruise-webhook-certs",
		ServiceName:  "kruise-webhook-service",
	}.FromEnvironment()
}

func (o *Options) validate() error {
	if err := o.Log.Validate(); err != nil {
		return err
	}
	if err := process.ValidateWorkers(o.workers()); err != nil {
		return err
	}
	if o.ShutdownDelay < 0 || o.ShutdownDelay > time.Minute {
		return fmt.Errorf("--shutdown-delay is %s, want 0 to 1m", o.ShutdownDelay)
	}
	if o.NodeImageCreationDelay < 0 {
		return fmt.Errorf("--nodeimage-creation-delay is %s, want 0 or more", o.NodeImageCreationDelay)
	}
	if o.NodeImageExtraTTL < 0 || o.NodeImageExtraTTL > 2678400 {
		return fmt.Errorf("--default-ttlseconds-for-always-nodeimage is %d, want 0 to 2678400", o.NodeImageExtraTTL)
	}
	if err := o.Webhook.Validate(); err != nil {
		return err
	}
	if err := errors.Join(o.StateMetrics.Validate(), o.Traces.Validate()); err != nil {
		return err
	}
	if _, err := distribution.Served(list(o.DistributedKinds)); err != nil {
		return fmt.Errorf("reading --resourcedistribution-kinds: %w", err)
	}
	return nil
}
