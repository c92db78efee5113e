// Package rolloutmanager puts the process of Rollouts together: its controllers, its webhooks, and the options that each is given. It runs
// in clusters that have none of the other kinds of Kruise.
package rolloutmanager

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	appsv1alpha1 "github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/server"
	"github.com/seed-69ecc383/kruise/internal/clock"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/process"
	"github.com/seed-69ecc383/kruise/internal/traffic"
)

// UserAgent is the name by which the API server's audit log knows the manager.
const UserAgent = "kruise-rollout/v1"

// Scheme returns the kinds that the manager reads and writes.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiextensionsv1.AddToScheme, appsv1alpha1.AddToScheme, appsv1beta1.AddToScheme,
		v1alpha1.AddToScheme, v1beta1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// settings is what the parts of one process share.
type settings struct {
	Options
	clock *clock.Clock
	mgr   ctrlmanager.Manager
	// live reads around the cache.
	live   client.WithWatch
	server *server.Server
	// tracer is told what passes come to; nil if nobody asks.
	tracer loop.Tracer
}

// Run runs the manager until the context ends.
func Run(ctx context.Context, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	s := settings{Options: o, clock: clock.New(log.Log.WithName("clock"))}
	restConfig, err := process.RestConfig(o.Kubeconfig, UserAgent, s.clock)
	if err != nil {
		return err
	}
	kinds, err := Scheme()
	if err != nil {
		return err
	}
	serving := o.Webhook.Serving()
	if s.server, err = o.Webhook.Server(server.Clients{}, serving); err != nil {
		return err
	}
	ending := process.NewEnding(o.Webhook, o.ShutdownDelay, s.server)
	options := o.manager(kinds)
	options.WebhookServer, options.NewCache = ending.Webhooks(), ending.NewCache
	if s.mgr, err = ctrlmanager.New(restConfig, options); err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	with := client.Options{Scheme: kinds, Mapper: s.mgr.GetRESTMapper(), HTTPClient: s.mgr.GetHTTPClient()}
	if s.live, err = client.NewWithWatch(restConfig, with); err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	if err := s.mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	tracer, endTraces, err := o.Traces.Tracer(ctx, "kruise-rollout", s.clock.Now)
	if err != nil {
		return err
	}
	defer endTraces()
	s.tracer = tracer
	if err := s.addControllers(ctx); err != nil {
		return err
	}
	if err := s.addWebhooks(serving); err != nil {
		return err
	}
	defer ending.Wait()
	return s.mgr.Start(ending.After(ctx))
}

func (o Options) manager(kinds *runtime.Scheme) ctrlmanager.Options {
	access := process.OpenMetrics
	if o.MetricsAuth {
		access = process.AuthorizedMetrics
	}
	shutdown := process.ShutdownTimeout
	slimPod := observe.SlimPod("", &observe.AnnotationKeys{}, func(p *corev1.Pod) bool { return p.Labels[keys.InPlaceUpdate] == "true" })
	byName := func(name string) cache.ByObject {
		return cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", name)}
	}
	return ctrlmanager.Options{
		Scheme:                        kinds,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              "kruise-rollout",
		LeaderElectionNamespace:       o.Webhook.PodNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.LeaseDuration,
		RenewDeadline:                 &o.RenewDeadline,
		RetryPeriod:                   &o.RetryPeriod,
		Metrics:                       process.MetricsOptions(o.MetricsAddr, access),
		HealthProbeBindAddress:        o.HealthAddr,
		GracefulShutdownTimeout:       &shutdown,
		Controller:                    config.Controller{CacheSyncTimeout: o.CacheSyncTimeout},
		Cache: cache.Options{
			NewInformer:      observe.NewInformer,
			DefaultTransform: observe.Slim,
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Pod{}: {Transform: slimPod},
				&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{o.Webhook.PodNamespace: {
					FieldSelector: fields.OneTermEqualSelector("metadata.name", traffic.ConfigMapName),
				}}},
				&batchv1.Job{}: {Transform: observe.SlimJob, Label: labelled(keys.AnalysisCheck)},
				&admissionv1.MutatingWebhookConfiguration{}:   byName(mutatingConfiguration),
				&admissionv1.ValidatingWebhookConfiguration{}: byName(validatingConfiguration),
			},
		},
	}
}
