package manager

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/controller/imagepulljob"
	"github.com/seed-69ecc383/kruise/internal/controller/nodeimage"
	"github.com/seed-69ecc383/kruise/internal/controller/pullsecret"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// addImageControllers adds the controllers of NodeImages and, where they are served, of the jobs that write them.
func addImageControllers(ctx context.Context, mgr ctrlmanager.Manager, live client.Client, s settings) error {
	if !s.gates.Enabled(features.KruiseDaemon) {
		return nil
	}
	executor, jobs := executors(mgr, live), s.gates.Enabled(features.ImagePullJobGate)
	err := nodeimage.Add(mgr, nodeimage.Config{
		Births:          executor(nodeimage.EventSource),
		Upkeep:          executor(nodeimage.EventSource),
		Live:            live,
		Workers:         s.NodeImageWorkers,
		CreationDelay:   s.NodeImageCreationDelay,
		Jobs:            jobs,
		Namespace:       s.Namespace,
		ConfigNamespace: s.DaemonConfigNamespace,
		Now:             time.Now,
	})
	if err != nil || !jobs {
		return err
	}
	if err := observe.AddControllerIndex(ctx, mgr.GetFieldIndexer(), &v1beta1.ImagePullJob{}); err != nil {
		return err
	}
	sources := observe.NewSources(live, time.Now)
	return errors.Join(imagepulljob.Add(mgr, imagepulljob.Config{
		Executor: executor(imagepulljob.EventSource),
		Live:     live,
		Sources:  sources,
		Workers:  s.ImagePullJobWorkers,
		Now:      time.Now,
		Options: imagepulljob.Options{
			ConfigNamespace: s.DaemonConfigNamespace,
			SystemNamespace: s.Webhook.PodNamespace,
			Extra:           time.Duration(s.NodeImageExtraTTL) * time.Second,
		},
	}), pullsecret.Add(mgr, pullsecret.Config{
		Executor:  executor(pullsecret.EventSource),
		Live:      live,
		Sources:   sources,
		Namespace: s.DaemonConfigNamespace,
		Now:       time.Now,
	}))
}
