package statefulset

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestWhatBrokeOnceHolds lets clusters live again in which a promise was said to be broken: a Pod became available while a live read of the
// StatefulSet took seconds, and the one above it was created then.
func TestWhatBrokeOnceHolds(t *testing.T) { suite(Plan).Again(t, 5680) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// TestACrashAtAnyWriteOfARolloutCostsNothing has the controller crash before and after each of them.
func TestACrashAtAnyWriteOfARolloutCostsNothing(t *testing.T) { suite(Plan).CrashAnywhere(t) }

// TestBlockersAreNamed checks what the status says of Pods that are out of service for good.
func TestBlockersAreNamed(t *testing.T) {
	suite(Plan).NameBlockers(t, func(set client.Object) (status, message string) {
		c := conditionsOf(&set.(*v1beta1.StatefulSet).Status).Get(string(v1beta1.StatefulSetConditionWaiting))
		return string(c.Status), c.Message
	})
}

// suite is the controller, with a planner that may be mistaken, in clusters with one StatefulSet.
func suite(planned func(State) plan.Plan) promises.Suite {
	return promises.Suite{Scheme: promises.Scheme(), Watched: watched(), Populate: func(w *promises.World) promises.Scenario {
		w.Rig.Kubelet.IsBad = func(image string) bool { return image == badImage }
		s := newScenario(w)
		options := s.options()
		planner := promises.Planner[Snapshot, State]{Plan: planned, Take: Classify, Snapshot: func(v State) Snapshot { return v.Snapshot }}
		return promises.Scenario{
			Start: func(c promises.Connection) simulate.Process {
				k, runtime := Kind(options), c.Runtime()
				k.Plan, runtime.Live = planner.In(w), c.Glance
				return promises.Start(k, runtime, c)
			},
			Act: s.act, Rollout: s.rollOut, Owner: s.owner, MinReadySeconds: s.minReadySeconds, Relent: s.relent, Others: []func() bool{s.AnswerHooks}, Check: check,
			Converged: func() []string { return invariant.StatefulSetConverged(w.Cluster, heeded(s.set(), options)) },
		}
	}}
}

func check(history []simulate.Change) []invariant.Violation {
	return slices.Concat(invariant.CheckStatefulSet(history), invariant.CheckLeft(history), invariant.CheckProgress(history))
}

func watched() []client.Object {
	return []client.Object{&v1beta1.StatefulSet{}, &appsv1.ControllerRevision{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{}}
}

// heeded is a StatefulSet without what the manager's options have it ignore.
func heeded(set *v1beta1.StatefulSet, options Options) *v1beta1.StatefulSet {
	set = set.DeepCopy()
	if !options.ClaimRetention {
		set.Spec.PersistentVolumeClaimRetentionPolicy = nil
	}
	return set
}
