package node

import (
	"context"
	"slices"
	"time"

	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/node/credentials"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/node/facts"
	"github.com/seed-69ecc383/kruise/internal/node/probe"
	"github.com/seed-69ecc383/kruise/internal/node/pull"
	"github.com/seed-69ecc383/kruise/internal/node/restart"
	"github.com/seed-69ecc383/kruise/internal/node/worker"
	"github.com/seed-69ecc383/kruise/internal/seal"
)

// entry is one worker of the daemon.
type entry struct {
	// name is that in errors, component that in events.
	name, component string
	// gate turns the worker off; empty for one that every daemon has.
	gate features.Gate
	// scope returns what the worker watches.
	scope func(node string) worker.Scope
	// add adds the worker to the manager.
	add func(context.Context, ctrlmanager.Manager, worker.Config) error
}

// workers returns the workers under the given gates.
func workers(gates features.Set, o Options) []entry {
	all := []entry{
		{name: "pull", component: "kruise-daemon-imagepuller", scope: pull.Scope, add: addPull(o)},
		{name: "facts", component: "kruise-daemon-containermeta", gate: features.DaemonWatchingPod, scope: facts.Scope, add: facts.Add},
		{name: "restart", component: "kruise-daemon-crr", scope: restart.Scope, add: restart.Add},
		{name: "probe", component: "kruise-daemon-podprobe", gate: features.PodProbeMarkerGate, scope: probe.Scope, add: probe.Add},
	}
	return slices.DeleteFunc(all, func(e entry) bool { return e.gate != "" && !gates.Enabled(e.gate) })
}

func addPull(o Options) func(context.Context, ctrlmanager.Manager, worker.Config) error {
	return func(ctx context.Context, mgr ctrlmanager.Manager, c worker.Config) error {
		plugins, err := credentials.LoadPlugins(credentials.PluginConfig{File: o.PluginConfigFile, Folder: o.PluginFolder, Now: time.Now})
		if err != nil {
			return err
		}
		key, err := seal.NewKey()
		if err != nil {
			return err
		}
		return pull.Add(ctx, mgr, pull.Config{Config: c, MaxPulls: o.MaxPulls, Key: key, Plugins: plugins})
	}
}

// withRuntime is a manager whose runnables start when a container runtime has been found: without one a daemon has nothing to report.
type withRuntime struct {
	ctrlmanager.Manager
	runtimes *cri.Set
}

func (m withRuntime) Add(r ctrlmanager.Runnable) error {
	return m.Manager.Add(ctrlmanager.RunnableFunc(func(ctx context.Context) error {
		select {
		case <-m.runtimes.Found():
			return r.Start(ctx)
		case <-ctx.Done():
			return nil
		}
	}))
}
