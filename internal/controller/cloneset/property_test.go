package cloneset

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

// TestWhatBrokeOnceHolds lets clusters live again in which a controller began to lead with a cache that was older than what the one before it had done.
func TestWhatBrokeOnceHolds(t *testing.T) { suite(Plan).Again(t, 3359, 4499) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// TestACrashAtAnyWriteOfARolloutCostsNothing has the controller crash before and after each of them.
func TestACrashAtAnyWriteOfARolloutCostsNothing(t *testing.T) { suite(Plan).CrashAnywhere(t) }

// TestBlockersAreNamed checks what the status says of Pods that are out of service for good.
func TestBlockersAreNamed(t *testing.T) {
	suite(Plan).NameBlockers(t, func(set client.Object) (status, message string) {
		c := conditionsOf(&set.(*v1beta1.CloneSet).Status).Get(string(v1beta1.CloneSetConditionWaiting))
		return string(c.Status), c.Message
	})
}

// TestNamesAreNew checks that a Pod that takes the place of another has another name.
func TestNamesAreNew(t *testing.T) { suite(Plan).RenewNames(t) }

// suite is the controller, with a planner that may be mistaken, in clusters with one CloneSet.
func suite(planned func(State) plan.Plan) promises.Suite {
	return promises.Suite{Scheme: promises.Scheme(), Watched: watched(), Populate: func(w *promises.World) promises.Scenario {
		s := newScenario(w)
		options := s.options()
		return promises.Scenario{
			Start: func(c promises.Connection) simulate.Process { return start(c, options, pure(planned).In(w)) },
			Act:   s.act, Rollout: s.rollOut, Owner: s.owner, MinReadySeconds: s.minReadySeconds, Relent: s.relent, Others: []func() bool{s.AnswerHooks}, Check: check,
			Converged: func() []string { return invariant.Converged(w.Cluster, s.set()) },
		}
	}}
}

func check(history []simulate.Change) []invariant.Violation {
	return slices.Concat(invariant.Check(history), invariant.CheckLeft(history), invariant.CheckProgress(history))
}

func watched() []client.Object {
	return []client.Object{&v1beta1.CloneSet{}, &appsv1.ControllerRevision{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{}}
}

func pure(planned func(State) plan.Plan) promises.Planner[Snapshot, State] {
	return promises.Planner[Snapshot, State]{Plan: planned, Take: Classify, Snapshot: func(v State) Snapshot { return v.Snapshot }}
}

func start(c promises.Connection, options Options, planned func(State) plan.Plan) simulate.Process {
	k, runtime := Kind(options), c.Runtime()
	k.Plan, runtime.Live = planned, c.Glance
	return promises.Start(k, runtime, c)
}
