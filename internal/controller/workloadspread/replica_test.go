package workloadspread

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	rules "github.com/seed-69ecc383/kruise/internal/rules/spread"
	"github.com/seed-69ecc383/kruise/internal/spread"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// forgetful does not write.
type forgetful struct{ simulate.Connection }

func (forgetful) Status() client.SubResourceWriter { return lost{} }

type lost struct{ client.SubResourceWriter }

func (lost) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}

// mistake is what is done wrong on purpose.
type mistake struct {
	// forgets has a replica give room without writing so.
	forgets bool
	// countsTooEarly has a replica count Pods before it has seen those that have left the ledger.
	countsTooEarly bool
	// keepsLeases has a replica give room that it has set aside an hour ago.
	keepsLeases bool
	// inexact has the controller write the status over versions that it has not seen.
	inexact bool
	// admitsTooEarly has the controller open gates before the room for that is in the ledger.
	admitsTooEarly bool
	// lessLimits has the controller compute room by limits that are one too high.
	lessLimits bool
}

// replica is a manager as far as it gives room to new Pods: with a cache of its own, which lags behind as it likes.
type replica struct {
	assigner *spread.Assigner
	view     *simulate.View
}

// newReplica starts a replica, with what there is now.
func newReplica(c *simulate.Cluster, holder string, s *scenario) *replica {
	r := &replica{view: c.NewView()}
	if err := observe.AddSpreadIndex(context.Background(), r.view); err != nil {
		panic(err)
	}
	for _, object := range watched() {
		r.view.Watch(object)
	}
	link := simulate.Connection{To: c.Connect(holder, s.Rand)}
	if s.Chance(50) {
		link.To.SetFaults(simulate.Faults{Lost: 0.02, Dropped: 0.02, Conflict: 0.05})
	}
	config := spread.Config{Cached: r.view, Live: link, Holder: holder, Now: c.Now, SeenPods: func(ctx context.Context) (string, error) {
		if s.wrong.countsTooEarly {
			return "999999999", nil
		}
		return r.view.Seen(ctx, corev1.SchemeGroupVersion.WithKind("Pod"))
	}}
	if s.wrong.forgets {
		config.Live = forgetful{link}
	}
	if s.wrong.keepsLeases {
		started := c.Now()
		config.Now = func() time.Time { return started }
	}
	r.assigner = &spread.Assigner{
		Ledger: spread.NewLedger(config), Targets: &spread.Targets{Cached: link, Live: link, Namespace: "kruise-system", Now: c.Now},
	}
	return r
}

// hear lets the replica hear of some of what has happened.
func (r *replica) hear(s *scenario) {
	for _, kind := range r.view.Lagging() {
		for range s.Rand.Intn(6) {
			if len(r.view.Lagging()) == 0 || !contains(r.view, kind) {
				break
			}
			r.note(r.view.Deliver(kind))
		}
	}
}

func contains(v *simulate.View, kind any) bool {
	for _, lagging := range v.Lagging() {
		if any(lagging) == kind {
			return true
		}
	}
	return false
}

func (r *replica) note(e simulate.Event) {
	switch e.Key.Kind.Kind {
	case "Pod":
		before, _ := e.Old.(*corev1.Pod)
		after, _ := e.New.(*corev1.Pod)
		r.assigner.Ledger.NotePod(before, after)
	case "WorkloadSpread":
		before, _ := e.Old.(*v1beta1.WorkloadSpread)
		after, _ := e.New.(*v1beta1.WorkloadSpread)
		if before != nil || after != nil {
			r.assigner.Ledger.NoteSpread(before, after)
		}
	}
}

// admit is the webhook: it returns the Pod as it is to be stored; an error if it is refused.
func (r *replica) admit(p *corev1.Pod) error {
	a, err := r.assigner.Assign(context.Background(), p.Namespace, p)
	if err != nil || a.Spread == nil || a.Subset < 0 {
		return err
	}
	if err := rules.Inject(p, a.Spread, a.Given); err != nil {
		return fmt.Errorf("injecting: %w", err)
	}
	return nil
}
