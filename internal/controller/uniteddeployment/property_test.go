package uniteddeployment

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/placement"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// The rules that check knows.
const (
	ruleTwin    = "no second workload of a kind for a subset"
	ruleForeign = "nothing is touched that the UnitedDeployment does not control"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestWhatBrokeOnceHolds lets clusters live again in which a controller began to lead with a cache that was older than what the one before it
// had done, and one in which a write that its controller had given up brought back a former template.
func TestWhatBrokeOnceHolds(t *testing.T) { suite(Plan).Again(t, 1214, 2815, 3499, 3699, 630) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// suite is the controller, with a planner that may be mistaken, in clusters with one UnitedDeployment.
func suite(planned func(State) plan.Plan) promises.Suite {
	watched := []client.Object{
		&v1beta1.UnitedDeployment{}, &appsv1.Deployment{}, &v1beta1.CloneSet{}, &appsv1.StatefulSet{}, &v1beta1.StatefulSet{},
		&appsv1.ReplicaSet{}, &appsv1.ControllerRevision{}, &corev1.Pod{},
	}
	return promises.Suite{Scheme: promises.Scheme(), Watched: watched, Populate: func(w *promises.World) promises.Scenario {
		s := newScenario(w)
		s.create()
		planner := promises.Planner[Snapshot, State]{Plan: planned, Take: taken, Snapshot: func(v State) Snapshot { return v.Snapshot }}
		return promises.Scenario{
			Start: func(c promises.Connection) simulate.Process {
				k := Kind(Options{})
				k.Plan = planner.In(w)
				return promises.Start(k, c.Runtime(), c)
			},
			Act: s.act, Relent: s.relent, Others: []func() bool{s.run, s.run, s.run}, Check: check,
			Converged: func() []string { return s.converged(func(*v1beta1.Subset) []plan.Object { return s.workloads() }) },
		}
	}}
}

func taken(s Snapshot) State {
	v, err := Classify(s)
	if err != nil {
		panic(err)
	}
	return v
}

// identity is what a subset may have one of.
type identity struct {
	owner  types.UID
	subset string
	kind   string
}

// check returns the promises that the controller has broken in a history.
func check(history []simulate.Change) (out []invariant.Violation) {
	breaks := func(rule string, c simulate.Change, format string, args ...any) {
		out = append(out, invariant.Violation{Rule: rule, Revision: c.Revision, Text: fmt.Sprintf(format, args...)})
	}
	alive := map[identity]map[types.UID]bool{}
	owners := map[types.UID]bool{}
	for _, c := range history {
		object := c.After
		if object == nil {
			object = c.Before
		}
		if c.Key.Kind == kind() {
			owners[object.GetUID()] = true
			continue
		}
		owner := metav1.GetControllerOfNoCopy(object)
		isOurs := owner != nil && owners[owner.UID]
		if c.Pass != nil && !isOurs && c.Key.Kind.Kind != "ConfigMap" { // in which tombstones are
			breaks(ruleForeign, c, "%s %s is written", c.Key.Kind.Kind, c.Key.Name)
		}
		w, isPlanned := object.(plan.Object)
		if !isOurs || !isPlanned || c.Key.Kind.Kind == "ControllerRevision" {
			continue
		}
		id := identity{owner.UID, fieldsOf(w).pods.Labels[keys.SubsetName], c.Key.Kind.String()}
		if alive[id] == nil {
			alive[id] = map[types.UID]bool{}
		}
		gone := c.After == nil || c.After.GetDeletionTimestamp() != nil
		if c.Before == nil && len(alive[id]) > 0 {
			breaks(ruleTwin, c, "%s is created for subset %s, which has one", c.Key.Name, id.subset)
		}
		if gone {
			delete(alive[id], object.GetUID())
		} else {
			alive[id][object.GetUID()] = true
		}
	}
	return out
}

// converged returns what is not as the user wants it, now that the cluster is at rest. The function returns the workloads in the cluster
// that a subset is in.
func (s *scenario) converged(in func(*v1beta1.Subset) []plan.Object) (out []string) {
	set := s.set()
	problem := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if !equality.Semantic.DeepEqual(s.Cluster.Get(s.Cluster.KeyOf(s.foreign)), s.foreign) {
		problem("the Deployment of somebody else has changed")
	}
	total, sum := valueOr(set.Spec.Replicas, 1), int32(0)
	here := 0 // subsets in the cluster of the UnitedDeployment
	wanted := kindOf(&set.Spec.Template)
	isAsSpecified := true
	for i := range set.Spec.Topology.Subsets {
		subset := &set.Spec.Topology.Subsets[i]
		if subset.TargetCluster == nil {
			here++
		}
		var have []plan.Object
		for _, w := range in(subset) {
			if w.GetLabels()[keys.SubsetName] == subset.Name {
				have = append(have, w)
			}
		}
		if len(have) != 1 || !sameType(*wanted, have[0]) {
			problem("subset %s has %d workloads, or one of another kind", subset.Name, len(have))
			continue
		}
		out = append(out, s.asWanted(set, subset, have[0])...)
		n := valueOr(*fieldsOf(have[0]).replicas, 1)
		sum += n
		isAsSpecified = isAsSpecified && (subset.Replicas == nil || subset.Replicas.IntVal == n)
		if subset.MaxReplicas != nil && n > subset.MaxReplicas.IntVal {
			problem("subset %s has %d replicas, and maxReplicas %s", subset.Name, n, subset.MaxReplicas)
		}
	}
	adjusted := slices.ContainsFunc(set.Status.Conditions, func(c v1beta1.UnitedDeploymentCondition) bool {
		return c.Type == v1beta1.UnitedDeploymentReplicasAdjusted && c.Status == corev1.ConditionTrue
	})
	switch {
	case sum != total:
		problem("the subsets have %d replicas together, want %d", sum, total)
	case isAsSpecified == adjusted:
		problem("the subsets have what they specify: %t, and the status says that it was adjusted: %t", isAsSpecified, adjusted)
	case len(s.workloads()) != here:
		problem("there are %d workloads of %d subsets", len(s.workloads()), here)
	case set.Status.Replicas != total || set.Status.ReadyReplicas != total || set.Status.ObservedGeneration != set.Generation:
		problem("the status speaks of %d Pods, %d ready, at generation %d", set.Status.Replicas, set.Status.ReadyReplicas, set.Status.ObservedGeneration)
	}
	return out
}

// asWanted returns what is not as the user wants it in the workload of a subset.
func (s *scenario) asWanted(set *v1beta1.UnitedDeployment, subset *v1beta1.Subset, w plan.Object) (out []string) {
	f, all := fieldsOf(w), fieldsOf(kindOf(&set.Spec.Template).make(&set.Spec.Template))
	template, err := placement.Template(all.pods, subset)
	if err != nil {
		return []string{err.Error()}
	}
	if f.pods.Spec.Containers[0].Image != template.Spec.Containers[0].Image || f.pods.Spec.Hostname != template.Spec.Hostname {
		out = append(out, fmt.Sprintf("%s runs %s as %q", w.GetName(), f.pods.Spec.Containers[0].Image, f.pods.Spec.Hostname))
	}
	if f.partition != nil {
		want := min(set.Spec.UpdateStrategy.ManualUpdate.Partitions[subset.Name], valueOr(*f.replicas, 1))
		if n := valueOr(f.partition(), 0); n != want {
			out = append(out, fmt.Sprintf("%s has partition %d, want %d", w.GetName(), n, want))
		}
	}
	if labels := kindOf(&set.Spec.Template).make(&set.Spec.Template).GetLabels(); w.GetLabels()["tier"] != labels["tier"] {
		out = append(out, fmt.Sprintf("%s has the labels %v", w.GetName(), w.GetLabels()))
	}
	return out
}

// TestMistakesShow has the planner make mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistake func(*State)
		want    string
	}{
		"it forgets the workloads that are there": {func(v *State) {
			for _, one := range v.subsets {
				one.now = nil
			}
		}, ruleTwin},
		"it forgets partitions": {func(v *State) {
			for _, one := range v.subsets {
				one.partition = 0
			}
		}, "has partition"},
		"it counts one Pod too many": {func(v *State) {
			if len(v.subsets) > 0 {
				v.subsets[0].replicas++
			}
		}, "replicas together"},
		"it leaves surplus workloads": {func(v *State) { v.surplus = nil }, "workloads of"},
		"it leaves those of other kinds": {func(v *State) {
			for _, one := range v.subsets {
				one.former = nil
			}
		}, "or one of another kind"},
		"it does not see that somebody else writes": {func(v *State) {
			for _, one := range v.subsets {
				if one.now != nil {
					now := one.now.Object.DeepCopyObject().(plan.Object)
					now.SetGeneration(0)
					one.now.Object = now
				}
			}
		}, "runs meddled"},
		"it forgets patches": {func(v *State) {
			for _, one := range v.subsets {
				one.Subset = one.Subset.DeepCopy()
				one.Patch.Raw = nil
			}
		}, "as \""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(func(v State) plan.Plan {
				tc.mistake(&v)
				return Plan(v)
			}).Break(t, tc.want)
		})
	}
}
