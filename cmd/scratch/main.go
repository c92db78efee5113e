package main

import (
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"net/http"
	_ "net/http/pprof"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/controller/cloneset"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	go func() { _ = http.ListenAndServe("127.0.0.1:6060", nil) }()
	ctrl.SetLogger(zap.New(zap.UseDevMode(true)))
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		return err
	}
	cfg.QPS = -1
	cfg.UserAgent = "kruise-manager"
	s := runtime.NewScheme()
	_ = scheme.AddToScheme(s)
	_ = v1beta1.AddToScheme(s)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: s, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: cache.Options{
		DefaultTransform: observe.Slim,
		ByObject:         map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: observe.SlimPod("apps.kruise.io")}},
	}})
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	if err := observe.AddIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	live, err := client.New(cfg, client.Options{Scheme: s, HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return err
	}
	x := &apply.Executor{Config: apply.Config{
		Writer: apply.NewWriter(live, cfg, mgr.GetHTTPClient()), Scheme: s,
		Consistency: apply.NewConsistency(apply.SeenBy(mgr.GetCache()), time.Now),
		Events:      apply.NewEvents(mgr.GetEventRecorderFor(cloneset.EventSource)), //nolint
		Parallel:    32,
	}}
	if err := cloneset.Add(mgr, cloneset.Config{Executor: x, Live: live, Workers: 3, Now: time.Now}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
