package traffic

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	rules "github.com/seed-69ecc383/kruise/internal/rules/traffic"
)

// Event is the reason of the events of writes that lead traffic, FailedEvent that of Warnings of those that fail.
//
// Wire: users' alerts match them.
const (
	Event       = "TrafficRouting"
	FailedEvent = "FailedTrafficRouting"
)

// Routings is what a Rollout or a TrafficRouting says of traffic, and what of its release counts.
type Routings struct {
	// Owner owns what is created, in its namespace. Kind is its kind.
	Owner plan.Object
	Kind  schema.GroupVersionKind
	// Refs are the Services, and what leads traffic to them.
	Refs []v1beta1.TrafficRoutingRef
	// Shared has both versions share each Service: for a TrafficRouting.
	Shared bool
	// Subsets has both versions share each Service to which no Ingress and no route of Gateway API leads: disableGenerateCanaryService.
	Subsets bool
	// Stable is the revision label's value of old Pods; empty while it is not known.
	Stable string
	// Select says which Pods are new. Its hash is empty while it is not known.
	Select rules.Selection
	// Steps are those whose traffic may be asked for.
	Steps []v1beta1.Step
}

// Of returns what a Rollout says of traffic, without what of its release counts.
func Of(r *v1beta1.Rollout) Routings {
	out := Routings{Owner: r, Kind: v1beta1.GroupVersion.WithKind("Rollout")}
	s := r.Spec.Strategy
	steps := (*v1beta1.StepsStrategy)(nil)
	switch {
	case s.Canary != nil:
		steps = &s.Canary.StepsStrategy
		if patch := s.Canary.PatchPodTemplateMetadata; patch != nil {
			out.Select.Patched = patch.Labels
		}
	case s.BlueGreen != nil:
		steps = &s.BlueGreen.StepsStrategy
	default:
		return out
	}
	out.Refs, out.Steps, out.Subsets = steps.TrafficRoutings, steps.Steps, steps.DisableGenerateCanaryService
	return out
}

// Names reports whether a Rollout or TrafficRouting with these references names an object.
func Names(refs []v1beta1.TrafficRoutingRef, kind schema.GroupKind, name string) bool {
	for i := range refs {
		if slices.ContainsFunc(routesOf(&refs[i]), func(r routeName) bool { return r.GroupKind() == kind && r.name == name }) {
			return true
		}
		ingress := refs[i].Ingress
		switch {
		case kind == schema.GroupKind{Kind: "Service"} && (name == refs[i].Service || name == rules.CanaryName(refs[i].Service)):
			return true
		case kind == schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"} && ingress != nil &&
			(name == ingress.Name || name == rules.CanaryName(ingress.Name)):
			return true
		}
	}
	return false
}

// Grace returns how many seconds the data plane is given to follow each change: the longest that a reference gives, 3 by default.
func Grace(refs []v1beta1.TrafficRoutingRef) int32 {
	longest := int32(0)
	for i := range refs {
		seconds := int32(3)
		if given := refs[i].GracePeriodSeconds; given != nil {
			seconds = *given
		}
		longest = max(longest, seconds)
	}
	return longest
}

// OneService reports whether no Service of the new version is needed.
func (w *Routings) OneService() bool {
	return !slices.ContainsFunc(w.Refs, func(ref v1beta1.TrafficRoutingRef) bool { return w.splits(&ref) })
}

// splits reports whether the versions have a Service each.
func (w *Routings) splits(ref *v1beta1.TrafficRoutingRef) bool {
	if w.Shared || !w.Subsets {
		return !w.Shared
	}
	return ref.Ingress != nil || slices.ContainsFunc(routesOf(ref), func(r routeName) bool { return r.Group == rules.GatewayGroup })
}

// split returns the Services of a reference.
func (w *Routings) split(ref *v1beta1.TrafficRoutingRef) rules.Split {
	if w.splits(ref) {
		return rules.Split{Stable: ref.Service, Canary: rules.CanaryName(ref.Service)}
	}
	return rules.Split{Stable: ref.Service, Canary: ref.Service}
}

// by names the owner, as the annotation of a route does.
func (w *Routings) by() string { return w.Kind.Kind + " " + w.Owner.GetName() }

// goal is a way to lead traffic that may be asked for.
type goal struct {
	// key is what release.Route returns for it.
	key   string
	split rules.Split
	err   error
}

// goals returns each way to lead traffic that steps want, for the Services of a reference; also all traffic, which the end of a release may
// want.
func (w *Routings) goals(ref *v1beta1.TrafficRoutingRef) []goal {
	services := w.split(ref)
	everything := release.AllTraffic
	steps := slices.Clone(w.Steps)
	if !w.Shared {
		steps = append(steps, v1beta1.Step{Traffic: &everything})
	}
	var out []goal
	for i := range steps {
		key := release.Route(steps[i])
		if key == "" || slices.ContainsFunc(out, func(g goal) bool { return g.key == key }) {
			continue
		}
		split, err := rules.SplitOf(&steps[i])
		split.Stable, split.Canary = services.Stable, services.Canary
		out = append(out, goal{key, split, err})
	}
	return out
}

// Observed is what is seen of Services and routes.
type Observed struct {
	Routings
	services []service
	leads    []lead
	missing  []string
	problems []string
}

// lead is an object that leads traffic, or an Ingress with the one beside it.
type lead interface {
	// shows reports whether it leads traffic as a goal wants it.
	shows(key string) bool
	// untouched reports whether it is as the user wrote it.
	untouched() bool
	// set and restore return what is still to be written.
	set(key string, w *Routings) plan.Chain
	restore() plan.Chain
	// problem says what keeps it from a goal; empty for nothing.
	problem(key string) string
}

// otherwise is what Traffic.Routes is of routes that are neither as the user wrote them nor as any step wants them all.
const otherwise = "otherwise"

// Seen returns what a release has to know.
func (o *Observed) Seen() release.Traffic {
	t := release.Traffic{Pinned: true, NewService: true}
	if len(o.missing) > 0 {
		t.Missing = o.missing[0]
	}
	split := false
	for i := range o.services {
		s := &o.services[i]
		if !s.splits {
			continue
		}
		split = true
		t.Pinned = t.Pinned && s.isPinned(&o.Routings)
		t.PinLeft = t.PinLeft || s.selects(&o.Routings) != ""
		t.NewService = t.NewService && s.isComplete(&o.Routings)
		t.ServiceLeft = t.ServiceLeft || s.canary != nil
	}
	t.Pinned, t.NewService = t.Pinned && split, t.NewService && split
	t.Routes = o.routes()
	t.Problem = o.problem(t.Routes)
	return t
}

// routes returns what all of them lead to the new version.
func (o *Observed) routes() string {
	if !slices.ContainsFunc(o.leads, func(l lead) bool { return !l.untouched() }) {
		return ""
	}
	for _, g := range o.goals(&v1beta1.TrafficRoutingRef{}) {
		if !slices.ContainsFunc(o.leads, func(l lead) bool { return !l.shows(g.key) }) {
			return g.key
		}
	}
	return otherwise
}

// problem returns the first thing that keeps traffic from being led as a step may want it.
func (o *Observed) problem(shown string) string {
	if len(o.problems) > 0 {
		return o.problems[0]
	}
	if len(o.missing) > 0 {
		return o.missing[0] + " is not there"
	}
	for i := range o.services {
		if p := o.services[i].problem(); p != "" {
			return p
		}
	}
	for _, g := range o.goals(&v1beta1.TrafficRoutingRef{}) {
		for _, l := range o.leads {
			if p := l.problem(g.key); p != "" && g.key != shown {
				return p
			}
		}
	}
	return ""
}

// Plan returns the writes that an action of a release still needs, one after the other; none if what it wants is there, or the action is
// about something else. Each is right whatever was done before, and is made only over the version that was read. It changes nothing.
func (o *Observed) Plan(a release.Action) plan.Chain {
	var chain plan.Chain
	switch a.Do {
	case release.Pin, release.Unpin, release.CreateService, release.RemoveService:
		for i := range o.services {
			if s := &o.services[i]; s.splits {
				chain = append(chain, s.write(a.Do, &o.Routings)...)
			}
		}
	case release.SetRoutes:
		key := release.AllTraffic
		if a.Step > 0 && int(a.Step) <= len(o.Steps) {
			key = release.Route(o.Steps[a.Step-1])
		}
		for _, l := range o.leads {
			chain = append(chain, l.set(key, &o.Routings)...)
		}
	case release.RestoreRoutes:
		for _, l := range slices.Backward(o.leads) { // what others refer to goes last
			chain = append(chain, l.restore()...)
		}
	}
	return told(chain)
}

// told has each write tell of what it does, or of its failure.
func told(chain plan.Chain) plan.Chain {
	for i := range chain {
		a := &chain[i]
		a.Concern, a.Event, a.EventMessage, a.FailedEvent = plan.Rollout, Event, a.What, FailedEvent
	}
	return chain
}

// ownedBy returns the reference to the owner.
func (w *Routings) ownedBy() []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(w.Owner, w.Kind)}
}

// routeName names an object that is edited.
type routeName struct {
	schema.GroupVersionKind
	name string
}

func (r routeName) String() string { return r.Kind + " " + r.name }

// gatewayVersions are the versions of Gateway API in which an HTTPRoute is looked for, the first that the cluster serves.
func gatewayVersions() []string { return []string{"v1", "v1beta1"} }

// routesOf returns the objects of a reference that are edited: subsets before what leads to them, then in the order in which they are
// named.
func routesOf(ref *v1beta1.TrafficRoutingRef) []routeName {
	var out []routeName
	for _, custom := range ref.CustomNetworkRefs {
		out = append(out, routeName{schema.FromAPIVersionAndKind(custom.APIVersion, custom.Kind), custom.Name})
	}
	slices.SortStableFunc(out, func(a, b routeName) int { return cmp.Compare(isRoute(a), isRoute(b)) })
	if ref.Gateway != nil && ref.Gateway.HTTPRouteName != nil {
		kind := schema.GroupVersionKind{Group: rules.GatewayGroup, Version: gatewayVersions()[0], Kind: string(rules.HTTPRoute)}
		out = append(out, routeName{kind, *ref.Gateway.HTTPRouteName})
	}
	return out
}

// isRoute is 0 for what routes refer to, and 1 for routes.
func isRoute(r routeName) int {
	if r.Group == rules.IstioGroup && r.Kind == "DestinationRule" {
		return 0
	}
	return 1
}
