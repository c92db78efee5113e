package traffic

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	rules "github.com/seed-69ecc383/kruise/internal/rules/traffic"
)

// Shared is what is seen of the TrafficRouting that a Rollout shares.
type Shared struct {
	rollout, name string
	// routing is nil if there is none of that name.
	routing *v1alpha1.TrafficRouting
}

// ObserveShared reads the TrafficRouting that a Rollout names; nil if it names none.
func ObserveShared(ctx context.Context, from observe.Reader, r *v1beta1.Rollout) (*Shared, error) {
	out := &Shared{rollout: r.Name, name: rules.SharedName(r)}
	if out.name == "" {
		return nil, nil
	}
	var err error
	out.routing, err = observe.Find(ctx, from, types.NamespacedName{Namespace: r.Namespace, Name: out.name}, &v1alpha1.TrafficRouting{})
	return out, err
}

// Seen returns what a release has to know.
func (s *Shared) Seen() release.Traffic {
	if s.routing == nil {
		return release.Traffic{Missing: "TrafficRouting " + s.name}
	}
	t := release.Traffic{Joined: rules.IsShared(s.routing, s.rollout)}
	phase := s.routing.Status.Phase
	used := slices.ContainsFunc(s.routing.Finalizers, func(f string) bool { return strings.HasPrefix(f, keys.TrafficRoutingProgressing) })
	leads := phase == v1alpha1.TrafficRoutingPhaseProgressing || phase == v1alpha1.TrafficRoutingPhaseFinalizing
	t.Leaving = !used && leads && s.routing.DeletionTimestamp == nil
	if !t.Joined && (s.routing.DeletionTimestamp != nil || phase == v1alpha1.TrafficRoutingPhaseFinalizing) {
		t.Problem = "TrafficRouting " + s.name + " restores its routes first"
	}
	return t
}

// Plan returns the write that an action of a release still needs.
func (s *Shared) Plan(a release.Action) plan.Chain {
	if s.routing == nil {
		return nil
	}
	after, what := rules.Joined(s.routing, s.rollout), "have TrafficRouting "+s.name+" lead traffic for this release"
	if a.Do == release.Leave {
		after, what = rules.Left(s.routing, s.rollout), "have TrafficRouting "+s.name+" lead no traffic for this release any more"
	} else if a.Do != release.Join {
		return nil
	}
	if after == nil {
		return nil
	}
	return told(plan.Chain{{
		Verb: plan.Update, Before: s.routing, After: after, What: what, Why: "a TrafficRouting leads traffic while it is told so",
	}})
}
