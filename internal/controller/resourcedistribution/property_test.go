package resourcedistribution

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/distribution"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	ruleForeign  = "an object that was not made by the ResourceDistribution is never touched"
	ruleSystem   = "the namespaces of the system get no copy"
	ruleSpec     = "the spec is its user's"
	actorOfUsers = promises.UserActor
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// TestMistakesShow has the planner make mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistake func(*State)
		want    string
	}{
		"it takes what others have made": {func(v *State) {
			for i := range v.places {
				if v.places[i].standing == taken {
					v.places[i].standing = outdated
				}
			}
		}, ruleForeign},
		"it leaves what is not wanted any more": {func(v *State) { v.unwanted = nil }, "is to have none"},
		"it does not repair": {func(v *State) {
			for i := range v.places {
				if v.places[i].standing == outdated {
					v.places[i].standing = current
				}
			}
		}, "is not as the resource says"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(func(v State) plan.Plan {
				v = Classify(v.Snapshot)
				tc.mistake(&v)
				return Plan(v)
			}).Break(t, tc.want)
		})
	}
	t.Run("it does not hear of namespaces", func(t *testing.T) {
		t.Parallel()
		deaf := suite(Plan)
		deaf.Mistake.IsDeaf = func(e simulate.Event) bool { _, of := e.New.(*corev1.Namespace); return of }
		deaf.Break(t, "namespace")
	})
}

// cachedCopies are Copies over the cache of a simulation, in which objects are whole.
type cachedCopies struct{ cached, live client.Reader }

func (c cachedCopies) Of(ctx context.Context, _ string, owner types.UID) ([]client.Object, error) {
	return configMaps(ctx, c.cached, func(o *corev1.ConfigMap) bool { return o.Labels[keys.DistributedBy] == string(owner) })
}

func (c cachedCopies) Named(ctx context.Context, _, name string) ([]client.Object, error) {
	return configMaps(ctx, c.live, func(o *corev1.ConfigMap) bool { return o.Name == name })
}

func (c cachedCopies) Watches(
	changed func(ctx context.Context, before, after client.Object) ([]types.NamespacedName, error),
) []loop.Watch {
	return []loop.Watch{loop.Affected[client.Object](&corev1.ConfigMap{}, changed)}
}

func configMaps(ctx context.Context, from client.Reader, wanted func(*corev1.ConfigMap) bool) ([]client.Object, error) {
	var list corev1.ConfigMapList
	if err := from.List(ctx, &list); err != nil {
		return nil, err
	}
	var out []client.Object
	for i := range list.Items {
		if wanted(&list.Items[i]) {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// suite is the controller, with a planner that may be mistaken, in clusters in which namespaces come and go, and copies are edited.
func suite(planned func(State) plan.Plan) promises.Suite {
	return promises.Suite{
		Scheme:  promises.Scheme(),
		Watched: []client.Object{&v1beta1.ResourceDistribution{}, &corev1.Namespace{}, &corev1.ConfigMap{}},
		Populate: func(w *promises.World) promises.Scenario {
			s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}}
			d := &v1beta1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: "d"}}
			d.Spec.Resource = resource("v0")
			if s.Chance(50) {
				d.Spec.Copies = &v1beta1.DistributedCopies{Name: "named", Labels: map[string]string{"by": "d"}}
			}
			d.Spec.Targets.NamespaceSelector.MatchLabels = map[string]string{"in": "yes"}
			d.Spec.Targets.IncludedNamespaces.List = []v1beta1.ResourceDistributionNamespace{{Name: "ns-0"}, {Name: "kube-system"}}
			s.create(d)
			s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})
			for range 15 {
				s.act()
			}
			planner := promises.Planner[Snapshot, State]{Plan: planned, Take: Classify, Snapshot: func(v State) Snapshot { return v.Snapshot }}
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					k := Kind(Options{Copies: cachedCopies{c.Cached.Reader, c.Live}, Kinds: distribution.Kinds()})
					k.Plan = planner.In(w)
					return promises.Start(k, c.Runtime(), c)
				},
				Act: s.act, Relent: s.relent, Check: check, Converged: s.converged,
			}
		},
	}
}

// check returns the promises that the controller has broken in a history.
func check(history []simulate.Change) []invariant.Violation {
	var out []invariant.Violation
	for _, c := range history {
		if c.Pass == nil {
			continue
		}
		broken := func(rule string) {
			out = append(out, invariant.Violation{Rule: rule, Revision: c.Revision, Text: c.Key.Namespace + "/" + c.Key.Name})
		}
		switch before := c.Before.(type) {
		case *v1beta1.ResourceDistribution:
			if after, still := c.After.(*v1beta1.ResourceDistribution); !still || !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
				broken(ruleSpec)
			}
		case *corev1.ConfigMap:
			if before.Labels[keys.DistributedBy] == "" {
				broken(ruleForeign)
			}
		}
		if c.Key.Namespace == "kube-system" && c.After != nil {
			broken(ruleSystem)
		}
	}
	return out
}

// scenario is users who make namespaces, edit copies, and change the resource.
type scenario struct{ promises.User }

func (s *scenario) create(object client.Object) {
	_, _ = s.Cluster.Create(actorOfUsers, object) // the name may be taken
}

func (s *scenario) owner() *v1beta1.ResourceDistribution {
	return s.Cluster.Of(v1beta1.GroupVersion.WithKind("ResourceDistribution"))[0].(*v1beta1.ResourceDistribution)
}

func (s *scenario) maps() []*corev1.ConfigMap {
	var out []*corev1.ConfigMap
	for _, object := range s.Cluster.Of(corev1.SchemeGroupVersion.WithKind("ConfigMap")) {
		out = append(out, object.(*corev1.ConfigMap))
	}
	return out
}

func (s *scenario) namespaces() []*corev1.Namespace {
	var out []*corev1.Namespace
	for _, object := range s.Cluster.Of(corev1.SchemeGroupVersion.WithKind("Namespace")) {
		out = append(out, object.(*corev1.Namespace))
	}
	return out
}

// act does something that a user might do at any moment.
func (s *scenario) act() {
	maps, namespaces := s.maps(), s.namespaces()
	name := fmt.Sprint("ns-", s.Rand.Intn(15))
	switch n := s.Rand.Intn(100); {
	case n < 30:
		s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: s.labels()}})
	case n < 45:
		one, labels := namespaces[s.Rand.Intn(len(namespaces))], s.labels()
		simulate.Update(s.Cluster, actorOfUsers, one, func(n *corev1.Namespace) { n.Labels = labels })
	case n < 52:
		foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "c"}, Data: map[string]string{"mine": "x"}}
		s.create(foreign)
	case n < 65:
		value := fmt.Sprint("v", s.Rand.Intn(4))
		simulate.Update(s.Cluster, actorOfUsers, s.owner(), func(d *v1beta1.ResourceDistribution) { d.Spec.Resource = resource(value) })
	case n < 72:
		excluded := []v1beta1.ResourceDistributionNamespace{{Name: name}}
		simulate.Update(s.Cluster, actorOfUsers, s.owner(), func(d *v1beta1.ResourceDistribution) { d.Spec.Targets.ExcludedNamespaces.List = excluded })
	case len(maps) == 0:
	case n < 88:
		simulate.Update(s.Cluster, actorOfUsers, maps[s.Rand.Intn(len(maps))], func(c *corev1.ConfigMap) { c.Data = map[string]string{"k": "by hand"} })
	default:
		s.Cluster.Delete(actorOfUsers, maps[s.Rand.Intn(len(maps))])
	}
}

// relent takes away what others have put in the way.
func (s *scenario) relent() {
	for _, c := range s.maps() {
		if c.Labels[keys.DistributedBy] == "" {
			s.Cluster.Delete(actorOfUsers, c)
		}
	}
}

func (s *scenario) labels() map[string]string {
	return map[string]string{"in": []string{"yes", "no"}[s.Rand.Intn(2)]}
}

// converged returns what is left undone when the cluster is at rest.
func (s *scenario) converged() []string {
	var out []string
	d := s.owner()
	source, err := distribution.Parse(d.Spec.Resource.Raw)
	if err != nil {
		return []string{err.Error()}
	}
	there := map[string]distribution.Namespace{}
	for _, n := range s.namespaces() {
		there[n.Name] = distribution.Namespace{Labels: n.Labels}
	}
	targets, err := distribution.Targets(&d.Spec, there)
	if err != nil {
		return []string{err.Error()}
	}
	is := map[string]*corev1.ConfigMap{}
	for _, c := range s.maps() {
		is[c.Namespace] = c
	}
	wanted, good := map[string]bool{}, int32(0)
	for _, name := range targets {
		wanted[name] = true
		c := is[name]
		_, exists := there[name]
		switch {
		case !exists:
		case c == nil:
			out = append(out, fmt.Sprintf("namespace %s has no copy", name))
		case !isOurs(c, d):
		case !distribution.IsSame(c, source.Copy(d, name, c)):
			out = append(out, fmt.Sprintf("the copy in namespace %s is not as the resource says: %+v", name, c))
		default:
			good++
		}
	}
	for name, c := range is {
		if _, exists := there[name]; exists && !wanted[name] && isOurs(c, d) {
			out = append(out, fmt.Sprintf("namespace %s has a copy and is to have none", name))
		}
	}
	if s := d.Status; s.ObservedGeneration != d.Generation || int(s.Desired) != len(targets) || s.Succeeded != good || s.Failed != s.Desired-s.Succeeded || len(s.Conditions) != 7 || (s.Conditions[6].Status == "True") != (s.Failed == 0) {
		out = append(out, fmt.Sprintf("the status says %+v, want %d and %d", s, len(targets), good))
	}
	return out
}
