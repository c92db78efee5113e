package spread

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	rules "github.com/seed-69ecc383/kruise/internal/rules/spread"
)

const (
	// newsPatience is how many times as long as for room that was set aside a Pod waits for the news that another one is gone.
	newsPatience = 4
	// vainFor is how long no Pod waits for such news after one has waited in vain.
	vainFor = 10 * time.Second
)

// Wanted tells how many Pods the controller of a Pod is to have; false where that is not known.
type Wanted interface {
	// Lately returns what the cache says, which may be outdated; Now reads it.
	Lately(ctx context.Context) (int32, bool)
	Now(ctx context.Context) (int32, bool)
}

// awaitNews waits until the cache has heard of a Pod that is gone, if there must be one: a controller creates a Pod when it lacks one, and
// may hear of that before the cache does. By what the cache knows until then, the place of the Pod that is gone is taken.
func (g *giving) awaitNews(ctx context.Context) error {
	if g.Wanted == nil || g.Now().Sub(g.vain) < vainFor {
		return nil
	}
	if want, ok := g.Wanted.Lately(ctx); !ok || g.present() < want {
		return nil
	}
	want, ok := g.Wanted.Now(ctx)
	for range looks {
		if !ok || g.present() < want {
			return nil
		}
		if err := pause(ctx, newsPatience*g.Patience/looks); err != nil {
			return err
		}
		if err := g.find(ctx); err != nil {
			return err
		}
		if err := g.recount(ctx); err != nil {
			return err
		}
	}
	g.vain = g.Now()
	return nil
}

// present returns how many Pods there are, as far as is counted here. Room that is held here is no Pod's yet.
func (g *giving) present() int32 {
	all := rules.Present(g.counted, g.Version, g.Now())
	for at, held := range g.held {
		if at.Version != g.Version && !rules.SurgesOnly(rules.TargetOf(g.counted).GroupKind) {
			continue
		}
		for _, h := range held {
			if g.Now().Sub(h.at) <= rules.LeaseFor {
				all--
			}
		}
	}
	return int32(all)
}

// controllerOf tells how many Pods a controller is to have.
type controllerOf struct {
	*Targets
	namespace string
	reference *metav1.OwnerReference
}

// Wanted returns who tells how many Pods the controller of a Pod is to have.
func (t *Targets) Wanted(namespace string, controller *metav1.OwnerReference) Wanted {
	return controllerOf{t, namespace, controller}
}

// Lately implements Wanted.
func (c controllerOf) Lately(ctx context.Context) (int32, bool) { return c.read(ctx, c.Cached) }

// Now implements Wanted.
func (c controllerOf) Now(ctx context.Context) (int32, bool) { return c.read(ctx, c.Live) }

// read reads the controller. What can't be read is not known: no Pod is refused for that.
func (c controllerOf) read(ctx context.Context, from client.Reader) (int32, bool) {
	key, kind := client.ObjectKey{Namespace: c.namespace, Name: c.reference.Name}, rules.ReferenceOf(c.reference)
	switch {
	case !rules.IsBuiltIn(kind.GroupKind):
		return 0, false
	case rules.SurgesOnly(kind.GroupKind):
		var set v1beta1.CloneSet
		if from.Get(ctx, key, &set) != nil {
			return 0, false
		}
		return rules.MostOf(&set), true
	}
	total, err := builtInTotal(ctx, from, c.namespace, kind)
	return total, err == nil
}
