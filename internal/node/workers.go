package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/node/facts"
	"github.com/seed-69ecc383/kruise/internal/node/keyring"
	"github.com/seed-69ecc383/kruise/internal/node/plugin"
	"github.com/seed-69ecc383/kruise/internal/node/probe"
	"github.com/seed-69ecc383/kruise/internal/node/pull"
	"github.com/seed-69ecc383/kruise/internal/node/restart"
)

// worker is one thing that the daemon does.
type worker struct {
	// name is what logs and metrics call it.
	name string
	// gate turns it off; empty for one that every daemon has.
	gate features.Gate
	// scope says what of which kinds it watches: only what concerns the node. Workers that watch the same kind watch the same of it.
	scope func(node string) map[client.Object]cache.ByObject
	// add adds it to the process.
	add func(ctrlmanager.Manager, kit) error
}

// withRuntime is a manager whose runnables start when a container runtime has been found: a daemon without one has nothing to say of its node.
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

// kit is what workers are made of.
type kit struct {
	Options
	Runtimes  *cri.Set
	Recorders recorders
}

// workers returns what the daemon does under the given gates.
func workers(gates features.Set) []worker {
	all := []worker{
		{name: "pull", scope: pull.Scope, add: func(mgr ctrlmanager.Manager, k kit) error {
			programs, err := plugin.Load(plugin.Config{File: k.PluginConfigFile, Folder: k.PluginFolder, Now: time.Now})
			if err != nil {
				return err
			}
			return pull.Add(mgr, pull.Config{
				Node: k.NodeName, Runtimes: k.Runtimes, Events: k.Recorders.as("kruise-daemon-imagepuller"),
				MaxPulls: k.MaxPulls, Credentials: credentials(keyring.Secrets{Reader: mgr.GetAPIReader()}, programs), Now: time.Now,
			})
		}},
		{name: "facts", gate: features.DaemonWatchingPod, scope: facts.Scope, add: func(mgr ctrlmanager.Manager, k kit) error {
			return facts.Add(mgr, facts.Config{Runtimes: k.Runtimes, Events: k.Recorders.as("kruise-daemon-containermeta"), Now: time.Now})
		}},
	}
	all = append(all, worker{name: "restart", scope: restart.Scope, add: func(mgr ctrlmanager.Manager, k kit) error {
		return restart.Add(mgr, restart.Config{Runtimes: k.Runtimes, Events: k.Recorders.as("kruise-daemon-crr"), Now: time.Now})
	}})
	all = append(all, worker{name: "probe", gate: features.PodProbeMarkerGate, scope: probe.Scope, add: func(mgr ctrlmanager.Manager, k kit) error {
		return probe.Add(mgr, probe.Config{Node: k.NodeName, Runtimes: k.Runtimes, Events: k.Recorders.as("kruise-daemon-podprobe"), Now: time.Now})
	}})
	return slices.DeleteFunc(all, func(w worker) bool { return w.gate != "" && !gates.Enabled(w.gate) })
}

// credentials returns how the puller finds those for a repository: in the Secrets that are named, and then of the programs of the node.
func credentials(in keyring.Secrets, of *plugin.Programs) func(context.Context, string, []v1beta1.ReferenceObject) ([]cri.Credentials, error) {
	return func(ctx context.Context, repository string, secrets []v1beta1.ReferenceObject) ([]cri.Credentials, error) {
		found, unread := in.Credentials(ctx, repository, secrets)
		more, unasked := of.Credentials(ctx, repository)
		return append(found, more...), errors.Join(unread, unasked)
	}
}
