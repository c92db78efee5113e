package statefulset

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
)

// EventSource is the component that the controller's events come from.
const EventSource = "statefulset-controller"

// kind is what the controller looks after.
func kind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("StatefulSet") }

// Config is what the controller works with.
type Config = loop.Config[Options]

// Add adds the controller to a manager, whose cache has the indexes of package observe.
func Add(mgr manager.Manager, c Config) error {
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	return loop.Controller{Name: "statefulset", Reconciler: l, Workers: c.Workers, Sources: []source.Source{
		source.Kind(mgr.GetCache(), &v1beta1.StatefulSet{}, loop.OwnerEvents[*v1beta1.StatefulSet](l.Forget)),
		source.Kind(mgr.GetCache(), &corev1.Pod{}, loop.OwnedEvents[*corev1.Pod](kind().GroupKind())),
		source.Kind(mgr.GetCache(), &corev1.Pod{}, loop.NamedEvents[*corev1.Pod](setsOfPod)),
		source.Kind(mgr.GetCache(), &corev1.PersistentVolumeClaim{}, loop.NamedEvents[*corev1.PersistentVolumeClaim](setsOfClaim)),
	}}.AddTo(mgr)
}

// NewLoop returns the reconcile of StatefulSets, for a manager or for a simulated cluster.
func NewLoop(c Config, cached, live observe.Reader) *loop.Loop[*v1beta1.StatefulSet, Survey] {
	statuses := apply.NewStatuses(c.Executor)
	statuses.Final = saysComplete
	return &loop.Loop[*v1beta1.StatefulSet, Survey]{
		New:   func() *v1beta1.StatefulSet { return &v1beta1.StatefulSet{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, set *v1beta1.StatefulSet) (Survey, error) {
			s, err := observer{Reader: r, live: c.Live, options: options{Options: c.Options, now: c.Now}}.observe(ctx, set)
			if err != nil {
				return Survey{}, err
			}
			s.Taken = c.Executor.TakenNames(set.UID)
			return Take(s), nil
		},
		Plan: Plan,
		Report: func(v Survey, p plan.Plan, done apply.Outcome) *v1beta1.StatefulSet {
			after := v.Set.DeepCopy()
			after.Status = Status(v, p, done)
			return after
		},
		Executor: c.Executor,
		Statuses: statuses,
	}
}

// setsOfPod names the StatefulSet that a Pod without a controller could belong to.
func setsOfPod(p *corev1.Pod) []string {
	if metav1.GetControllerOfNoCopy(p) != nil {
		return nil
	}
	if set, _, ok := ordinal.Split(p.Name); ok {
		return []string{set}
	}
	return nil
}

// setsOfClaim names every StatefulSet that a claim could belong to: data-web-db-3 is a claim of web-db, or of a StatefulSet db whose template is
// data-web.
func setsOfClaim(c *corev1.PersistentVolumeClaim) []string {
	rest, _, ok := ordinal.Split(c.Name)
	if !ok {
		return nil
	}
	var sets []string
	for {
		_, after, found := strings.Cut(rest, "-")
		if !found {
			return sets
		}
		sets = append(sets, after)
		rest = after
	}
}
