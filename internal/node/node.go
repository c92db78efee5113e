// Package node is the daemon of one node: it does beside the kubelet what the Kubernetes API has no request for. It pulls images before
// Pods need them, restarts containers, runs probes, and writes on Pods what their containers really run with.
//
// Promise: it watches of the cluster what concerns its node and no more, stores nothing on disk, and never creates, starts or removes a
// container. What it has to do is in the API, what it has done in the container runtime, so that it may be killed at any point.
//
// Each worker is a package below this one with a function Scope, which says what it watches, and a function Add. To add a worker, add a
// line to workers, and its kinds to the daemon's role and to the policies that restrict each daemon to its own node
// (config/daemon/rights.yaml and policy.yaml).
package node

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/node/pull"
	"github.com/seed-69ecc383/kruise/internal/node/worker"
)

// UserAgent is the name by which the API server's audit log knows the daemon.
const UserAgent = "kruise-daemon/v1"

const (
	// shutdownTimeout is how long workers may take to end. A pull that does not end in time goes on when the daemon is back.
	shutdownTimeout = 5 * time.Second
	// cacheSyncTimeout is endless in effect: the kinds that the daemon watches may be installed later, and a restart would not help.
	cacheSyncTimeout = 365 * 24 * time.Hour
)

// Scheme returns the kinds that the daemon reads and writes.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// mapper returns the resources of the kinds that the daemon uses, without discovery: a daemon may start before the kinds are installed, and
// waits for them as for anything that it watches.
func mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	m.Add(v1beta1.GroupVersion.WithKind("NodeImage"), meta.RESTScopeRoot)
	m.Add(v1beta1.GroupVersion.WithKind("ContainerRecreateRequest"), meta.RESTScopeNamespace)
	m.Add(v1alpha1.GroupVersion.WithKind("NodePodProbe"), meta.RESTScopeRoot)
	return m, nil
}

// Run runs the daemon until the context ends.
func Run(ctx context.Context, o Options) error {
	ctx, stop := context.WithCancel(ctx) // also ends what workers run beside their reconciles when the manager fails
	defer stop()
	if err := o.validate(); err != nil {
		return err
	}
	gates, err := features.Parse(features.Sources{Flag: o.FeatureGates})
	if err != nil {
		return fmt.Errorf("reading --feature-gates: %w", err)
	}
	restConfig, err := restConfig(o)
	if err != nil {
		return err
	}
	s, err := Scheme()
	if err != nil {
		return err
	}
	active := workers(gates, o)
	mgr, err := ctrlmanager.New(restConfig, managerOptions(o, s, active))
	if err != nil {
		return fmt.Errorf("making the daemon: %w", err)
	}
	clients, err := kubernetes.NewForConfigAndClient(restConfig, mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	runtimes := cri.NewSet(cri.Sockets(cri.SocketFolder, o.SocketFile))
	for path, handler := range (health{mgr.GetCache(), runtimes}).handlers() {
		if err := mgr.AddMetricsServerExtraHandler(path, handler); err != nil {
			return fmt.Errorf("serving %s: %w", path, err)
		}
	}
	if !o.Several {
		if err := pull.RegisterMetrics(); err != nil {
			return err
		}
	}
	events := record.NewBroadcaster()
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clients.CoreV1().Events("")})
	defer events.Shutdown()
	for _, w := range active {
		// The policy that restricts daemons to their nodes requires the host in events.
		recorder := events.NewRecorder(s, corev1.EventSource{Component: w.component, Host: o.NodeName})
		config := worker.Config{Node: o.NodeName, Runtimes: runtimes, Events: recorder, Now: time.Now}
		if err := w.add(ctx, withRuntime{mgr, runtimes}, config); err != nil {
			return fmt.Errorf("adding worker %s: %w", w.name, err)
		}
	}
	named := log.Log.WithName("runtime")
	if err := mgr.Add(ctrlmanager.RunnableFunc(func(ctx context.Context) error {
		return runtimes.Start(logr.NewContext(ctx, named))
	})); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// restConfig returns the client configuration of the API server, without a client-side limit unless the options have one.
func restConfig(o Options) (*rest.Config, error) {
	c, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	c.QPS, c.Burst = -1, o.Burst
	if o.QPS > 0 {
		c.QPS = float32(o.QPS)
	}
	c.UserAgent = UserAgent
	if o.Several {
		c.Dial = (&net.Dialer{}).DialContext // clients with dialers of their own share no connection
	}
	return c, nil
}

func managerOptions(o Options, s *runtime.Scheme, active []entry) ctrlmanager.Options {
	pprof := ""
	if o.EnablePprof {
		pprof = o.PprofAddr
	}
	// A kind that is in no scope can't be read: its informer would watch the whole cluster.
	scope := worker.Scope{}
	known := map[reflect.Type]bool{}
	for _, w := range active {
		for object, part := range w.scope(o.NodeName) {
			if kind := reflect.TypeOf(object); !known[kind] { // workers that watch the same kind watch the same part of it
				known[kind], scope[object] = true, part
			}
		}
	}
	shutdown := shutdownTimeout
	return ctrlmanager.Options{
		Scheme:                  s,
		MapperProvider:          mapper,
		Metrics:                 metricsserver.Options{BindAddress: o.address()},
		HealthProbeBindAddress:  "0",
		PprofBindAddress:        pprof,
		GracefulShutdownTimeout: &shutdown,
		Controller:              config.Controller{CacheSyncTimeout: cacheSyncTimeout, SkipNameValidation: &o.Several},
		Cache: cache.Options{
			DefaultTransform:            cache.TransformStripManagedFields(),
			ByObject:                    scope,
			NewInformer:                 worker.NewInformer,
			ReaderFailOnMissingInformer: true,
		},
	}
}

// readyTimeout is how long the checks of readiness may take.
const readyTimeout = 2 * time.Second

// health serves liveness and readiness. They differ on purpose: an API server that is slow, or a container runtime that restarts, must not
// have every daemon of the cluster restarted.
type health struct {
	caches   cache.Cache
	runtimes *cri.Set
}

func (h health) handlers() map[string]http.Handler {
	return map[string]http.Handler{"/healthz": http.HandlerFunc(alive), "/readyz": http.HandlerFunc(h.ready)}
}

func alive(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("ok\n")) // a client that has disconnected needs no answer
}

func (h health) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if !h.caches.WaitForCacheSync(ctx) {
		http.Error(w, "what concerns this node has not been read yet", http.StatusInternalServerError)
		return
	}
	if err := h.runtimes.Check(ctx); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	alive(w, r)
}
