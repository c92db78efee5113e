package manager

import (
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seed-69ecc383/kruise/internal/controller/advancedcronjob"
	"github.com/seed-69ecc383/kruise/internal/controller/broadcastjob"
	"github.com/seed-69ecc383/kruise/internal/controller/ephemeraljob"
)

// ephemeralJobWorkers is the number of EphemeralJobs looked after at the same time.
const ephemeralJobWorkers = 3

// addJobControllers adds the controllers of what ends.
func addJobControllers(mgr ctrlmanager.Manager, live client.Client, o Options) error {
	executor := executors(mgr, live)
	return errors.Join(broadcastjob.Add(mgr, broadcastjob.Config{
		Executor: executor(broadcastjob.EventSource),
		Live:     live,
		Workers:  o.BroadcastJobWorkers,
		Now:      time.Now,
		Options:  broadcastjob.Options{BindPods: !o.AssignBroadcastJobPodsByScheduler},
	}), advancedcronjob.Add(mgr, advancedcronjob.Config{
		Executor: executor(advancedcronjob.EventSource),
		Live:     live,
		Workers:  o.AdvancedCronJobWorkers,
		Now:      time.Now,
	}), ephemeraljob.Add(mgr, ephemeraljob.Config{
		Executor: executor(ephemeraljob.EventSource),
		Live:     live,
		Workers:  ephemeralJobWorkers,
		Now:      time.Now,
	}))
}
