// Package manager puts the process together: the one list of controllers and of webhooks, and the options that each is given.
package manager

import (
	"cmp"
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	policyv1alpha1 "github.com/seed-69ecc383/kruise/api/policy/v1alpha1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/clock"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/process"
	"github.com/seed-69ecc383/kruise/internal/rules/launch"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
	"github.com/seed-69ecc383/kruise/internal/rules/spread"
	"github.com/seed-69ecc383/kruise/internal/rules/terminate"
)

// UserAgent is the name by which the API server's audit log knows the manager.
const UserAgent = "kruise-manager/v1"

// Scheme returns the kinds that the manager reads and writes.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme,
		policyv1alpha1.AddToScheme, policyv1beta1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Run runs the manager until the context ends. It fails at once, with all that is wrong, in a cluster that it can't work in.
func Run(ctx context.Context, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	gates, err := features.Parse(features.Sources{Flag: o.FeatureGates})
	if err != nil {
		return fmt.Errorf("reading --feature-gates: %w", err)
	}
	serverClock := clock.New(log.Log.WithName("clock"))
	restConfig, err := process.RestConfig(o.Kubeconfig, UserAgent, serverClock)
	if err != nil {
		return err
	}
	s, err := Scheme()
	if err != nil {
		return err
	}
	configured := settings{Options: o, gates: gates, clock: serverClock, served: map[string]bool{}}
	if configured.lacking, err = configured.examine(ctx, restConfig, s); err != nil {
		return err
	}
	serving := o.Webhook.Serving()
	named := &observe.AnnotationKeys{}
	options := managerOptions(o, s, named)
	if configured.webhooks, err = o.Webhook.Server(o.clients(), serving); err != nil {
		return err
	}
	ending := process.NewEnding(o.Webhook, o.ShutdownDelay, configured.webhooks)
	options.WebhookServer, options.NewCache = ending.Webhooks(), ending.NewCache
	mgr, err := ctrlmanager.New(restConfig, options)
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	live, err := client.NewWithWatch(restConfig, client.Options{Scheme: s, Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	nameAnnotations(ctx, live, o.Namespace, named)
	if err := observe.AddIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if configured.configurations, err = newWebhookReconciler(mgr, live, serving, configured); err != nil {
		return err
	}
	if configured.scales, err = scales(mgr, live); err != nil {
		return err
	}
	if err := configured.addShared(ctx, mgr, live); err != nil {
		return err
	}
	if err := addWebhooks(ctx, mgr, live, configured); err != nil {
		return err
	}
	return configured.control(ctx, mgr, live, ending)
}

// control adds the controllers, and runs all until the context ends.
func (s *settings) control(ctx context.Context, mgr ctrlmanager.Manager, live client.Client, ending *process.Ending) error {
	tracer, endTraces, err := s.Traces.Tracer(ctx, "kruise-manager", s.clock.Now)
	if err != nil {
		return err
	}
	defer endTraces()
	s.tracer = tracer
	if err := addControllers(mgr, live, *s); err != nil {
		return err
	}
	defer ending.Wait()
	return mgr.Start(ending.After(ctx))
}

// addShared fills in what webhooks and controllers share.
func (s *settings) addShared(ctx context.Context, mgr ctrlmanager.Manager, live client.Client) error {
	if err := s.addBudgets(ctx, mgr, live); err != nil {
		return err
	}
	if err := s.addSpreads(ctx, mgr, live); err != nil {
		return err
	}
	if err := s.addClusters(ctx, mgr, live); err != nil {
		return err
	}
	return s.addCopies(mgr, live)
}

// examine checks the cluster before anything is made that needs our CRDs, and would fail with less to say.
func (s settings) examine(ctx context.Context, restConfig *rest.Config, scheme *runtime.Scheme) (map[string][]string, error) {
	c, err := client.New(restConfig, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	versions, err := discovery.NewDiscoveryClientForConfig(restConfig)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return s.check(ctx, c, versions)
}

func managerOptions(o Options, s *runtime.Scheme, named *observe.AnnotationKeys) ctrlmanager.Options {
	access := process.OpenMetrics
	if o.MetricsAuth {
		access = process.AuthorizedMetrics
	}
	pprof := ""
	if o.EnablePprof {
		pprof = o.PprofAddr
	}
	// A field selector and not cache.Options.DefaultNamespaces, whose cache of caches does not tell how far it has come.
	within := fields.Everything()
	if o.Namespace != "" {
		within = fields.OneTermEqualSelector("metadata.namespace", o.Namespace)
	}
	slimPod := observe.SlimPod(v1beta1.GroupVersion.Group, named, launch.IsOrdered, sidecar.HasSidecars, terminate.Marked,
		spread.IsGated)
	barriers := labels.SelectorFromSet(labels.Set{keys.ContainerLaunchBarrier: "true"})
	shutdown := process.ShutdownTimeout
	return ctrlmanager.Options{
		Scheme:                        s,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              o.LeaderElectionID,
		LeaderElectionNamespace:       cmp.Or(o.LeaderElectionNamespace, o.Webhook.PodNamespace),
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.LeaseDuration,
		RenewDeadline:                 &o.RenewDeadline,
		RetryPeriod:                   &o.RetryPeriod,
		Metrics:                       process.MetricsOptions(o.MetricsAddr, access),
		HealthProbeBindAddress:        o.HealthAddr,
		PprofBindAddress:              pprof,
		GracefulShutdownTimeout:       &shutdown,
		Controller:                    config.Controller{CacheSyncTimeout: o.CacheSyncTimeout},
		Cache: cache.Options{
			NewInformer:          observe.NewInformer,
			DefaultFieldSelector: within,
			DefaultTransform:     observe.Slim,
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Pod{}:                                 {Transform: slimPod, Field: within},
				&corev1.Node{}:                                {Transform: observe.SlimNode, Field: fields.Everything()},
				&corev1.Namespace{}:                           {Transform: observe.Slim, Field: fields.Everything()},
				&v1alpha1.PodProbeMarker{}:                    {Transform: naming(named), Field: within},
				&v1beta1.WorkloadSpread{}:                     {Transform: naming(named), Field: within},
				&v1beta1.PersistentPodState{}:                 {Transform: naming(named), Field: within},
				&v1beta1.SidecarSet{}:                         {Transform: observe.Slim, Field: fields.Everything()},
				&appsv1.Deployment{}:                          {Transform: observe.SlimWorkload, Field: within},
				&appsv1.ReplicaSet{}:                          {Transform: observe.SlimWorkload, Field: within},
				&appsv1.StatefulSet{}:                         {Transform: observe.SlimWorkload, Field: within},
				&corev1.ReplicationController{}:               {Transform: observe.SlimWorkload, Field: within},
				&batchv1.Job{}:                                {Transform: observe.SlimJob, Field: within},
				&admissionv1.MutatingWebhookConfiguration{}:   {Field: byName(mutatingConfiguration)},
				&admissionv1.ValidatingWebhookConfiguration{}: {Field: byName(validatingConfiguration)},
				// Nothing but barriers is read from the cache.
				&corev1.ConfigMap{}:  {Transform: observe.SlimConfigMap, Field: within, Label: barriers},
				&v1beta1.NodeImage{}: {Field: fields.Everything()},
				// The only ones that the manager may list.
				&corev1.Secret{}: {Field: fields.OneTermEqualSelector("metadata.namespace", o.DaemonConfigNamespace)},
			},
		},
	}
}

func byName(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
