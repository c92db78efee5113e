package pullsecret

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// EventSource is the component that the controller's events come from.
const EventSource = "pullsecret-controller"

// Config is what the controller works with.
type Config struct {
	Executor *apply.Executor
	// Live reads around the cache.
	Live client.Reader
	// Sources reads the Secrets that copies are of.
	Sources *observe.Sources
	// Namespace is where the copies are.
	Namespace string
	Now       func() time.Time
}

// Add adds the controller to a manager, whose cache of Secrets holds those of the namespace alone.
func Add(mgr manager.Manager, c Config) error {
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	copies := Copies{Reader: mgr.GetCache(), Namespace: c.Namespace}
	return loop.Controller{Name: "pullsecret", Reconciler: l, Workers: 1, Sources: []source.Source{
		source.Kind(mgr.GetCache(), &corev1.Secret{}, loop.OwnerEvents[*corev1.Secret](l.Forget)),
		source.Kind(mgr.GetCache(), &v1beta1.ImagePullJob{}, loop.AffectedEvents(copies.OfJob)),
	}}.AddTo(mgr)
}

// NewLoop returns the reconcile of copies.
func NewLoop(c Config, cached, live observe.Reader) *loop.Loop[*corev1.Secret, Snapshot] {
	return &loop.Loop[*corev1.Secret, Snapshot]{
		New:      func() *corev1.Secret { return &corev1.Secret{} },
		Cache:    cached,
		Live:     live,
		Observe:  c.Observe,
		Plan:     Plan,
		Report:   func(s Snapshot, _ plan.Plan, _ apply.Outcome) *corev1.Secret { return s.Copy },
		Executor: c.Executor,
		Statuses: apply.NewStatuses(c.Executor),
	}
}
