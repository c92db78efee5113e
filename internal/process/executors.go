package process

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seed-69ecc383/kruise/internal/apply"
)

// parallelWrites is the number of writes under way at the same time for one workload: enough to hide the latency of the API server.
const parallelWrites = 128

// Executors returns how the executor of a controller is made, which is known by the source of its events. All of them share a limit of the
// writes under way.
func Executors(mgr ctrlmanager.Manager, live client.Client, now func() time.Time) func(eventSource string) *apply.Executor {
	limit := apply.NewLimit(now)
	return func(eventSource string) *apply.Executor {
		return &apply.Executor{Config: apply.Config{
			Writer: apply.NewWriter(live, mgr.GetConfig(), mgr.GetHTTPClient()),
			Scheme: mgr.GetScheme(),
			Seen:   apply.SeenBy(mgr.GetCache()), Now: now,
			Events:   mgr.GetEventRecorderFor(eventSource), //nolint:staticcheck // events of core/v1 are what users' tools read
			Parallel: parallelWrites, Limit: limit,
		}}
	}
}
