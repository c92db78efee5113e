package node

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
)

// UserAgent is the name by which the API server's audit log knows the daemon.
const UserAgent = "kruise-daemon/v1"

const (
	// shutdownTimeout is how long what is under way may take to end. A pull that does not end in time goes on when the daemon is back.
	shutdownTimeout = 5 * time.Second
	// patience is how long the daemon waits for the kinds that it watches: as long as it takes, for a restart would only ask again.
	patience = 365 * 24 * time.Hour
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

// mapper names the resources of the kinds that the daemon deals with. It asks nobody: a daemon may be up before the kinds are installed, and waits
// for them as for anything that it watches.
func mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Pod", "Secret"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"NodeImage"} {
		m.Add(v1beta1.GroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	m.Add(v1beta1.GroupVersion.WithKind("ContainerRecreateRequest"), meta.RESTScopeNamespace)
	m.Add(v1alpha1.GroupVersion.WithKind("NodePodProbe"), meta.RESTScopeRoot)
	return m, nil
}

// Run runs the daemon until the context ends.
func Run(ctx context.Context, o Options) error {
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
	active := workers(gates)
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
	recorders := newRecorders(clients, s, o.NodeName)
	defer recorders.Shutdown()
	k := kit{Options: o, Runtimes: runtimes, Recorders: recorders}
	for _, w := range active {
		if err := w.add(withRuntime{mgr, runtimes}, k); err != nil {
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

// restConfig returns how the API server is reached, without a limit of our own unless one is asked for.
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
	return c, nil
}

func managerOptions(o Options, s *runtime.Scheme, active []worker) ctrlmanager.Options {
	pprof := ""
	if o.EnablePprof {
		pprof = o.PprofAddr
	}
	// What no worker has asked for is not read at all, rather than that of the whole cluster.
	scope := map[client.Object]cache.ByObject{}
	known := map[reflect.Type]bool{}
	for _, w := range active {
		for object, part := range w.scope(o.NodeName) {
			if kind := reflect.TypeOf(object); !known[kind] { // workers that watch the same kind watch the same of it
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
		Controller:              config.Controller{CacheSyncTimeout: patience},
		Cache: cache.Options{
			DefaultTransform:            cache.TransformStripManagedFields(),
			ByObject:                    scope,
			ReaderFailOnMissingInformer: true,
		},
	}
}
