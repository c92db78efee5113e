package spread

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	rules "github.com/seed-69ecc383/kruise/internal/rules/spread"
)

// find finds the newest version of the WorkloadSpread that is known here.
func (g *giving) find(ctx context.Context) error {
	found, err := g.newest(ctx, g.memory, g.Spread)
	if err != nil {
		return err
	}
	g.stored, g.counted = found, found
	return g.checkSpec()
}

// Changed is the error that the spec of a WorkloadSpread is another one than that by which room was asked for.
type Changed struct{ Now *v1beta1.WorkloadSpread }

func (c Changed) Error() string {
	return "the spec of WorkloadSpread " + c.Now.Name + " has just changed: try again"
}

func (g *giving) checkSpec() error {
	if g.stored.Generation != g.Spread.Generation {
		return Changed{g.stored}
	}
	return nil
}

// newest returns the newest version of a WorkloadSpread that is known here.
func (l *Ledger) newest(ctx context.Context, m *memory, known *v1beta1.WorkloadSpread) (*v1beta1.WorkloadSpread, error) {
	cached := &v1beta1.WorkloadSpread{}
	switch err := l.Cached.Get(ctx, m.key, cached); {
	case apierrors.IsNotFound(err) && known != nil:
		cached = known
	case err != nil:
		return nil, fmt.Errorf("reading WorkloadSpread %s: %w", m.key, err)
	}
	if m.written == nil || m.written.UID != cached.UID {
		return cached, nil
	}
	if order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, m.written.ResourceVersion); err == nil && order >= 0 {
		m.written = nil
		return cached, nil
	}
	return m.written, nil
}

// read reads the WorkloadSpread live.
func (g *giving) read(ctx context.Context) error {
	found := &v1beta1.WorkloadSpread{}
	if err := g.Live.Get(ctx, g.key, found); err != nil {
		return fmt.Errorf("reading WorkloadSpread %s: %w", g.key, err)
	}
	if found.UID != g.Spread.UID {
		return errors.New("another WorkloadSpread has its name: try again")
	}
	g.written, g.stored, g.counted = found, found, found
	return g.checkSpec()
}

// recount counts the Pods in the cache if one has gone since, and if the cache has seen all that has left the ledger.
func (g *giving) recount(ctx context.Context) error {
	if !g.freed.Load() {
		return nil
	}
	seen, err := g.SeenPods(ctx)
	if err != nil || !rules.IsAsNewAs(seen, g.stored) {
		return err
	}
	g.freed.Store(false) // before the Pods are read: another one may go meanwhile
	pods, err := observe.Reader{Reader: g.Cached, Indexed: true}.SpreadPods(ctx, g.key.Namespace, g.key.Name)
	if err != nil {
		return err
	}
	next := g.stored.DeepCopy()
	rules.Recount(next, g.Limits, pods, g.Gone(g.key))
	g.counted = next
	return nil
}
