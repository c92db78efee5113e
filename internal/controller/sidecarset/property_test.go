package sidecarset

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// suite is the controller, with a planner that may be mistaken, in clusters with a SidecarSet or two and Pods of many owners.
func suite(planned func(State) plan.Plan) promises.Suite {
	return promises.Suite{Scheme: promises.Scheme(), Watched: watched(), Populate: func(w *promises.World) promises.Scenario {
		s := newScenario(w)
		if w.Rig.Faults.Crash > 0 {
			w.Rig.Faults.Refused = 0.05 // as by a budget of the Pods' owners
		}
		planner := promises.Planner[Snapshot, State]{Plan: planned, Take: Classify, Snapshot: func(v State) Snapshot { return v.Snapshot }}
		return promises.Scenario{
			Start: func(c promises.Connection) simulate.Process {
				k := Kind(Options{Namespace: "kruise-system"})
				k.Plan = planner.In(w)
				if w.Seed%2 == 0 {
					// As if there were a thousand Pods.
					k.MinInterval = func(State) time.Duration { return 200 * time.Millisecond }
				}
				return promises.Start(k, c.Runtime(), c)
			},
			Act: s.act, Relent: s.relent, Check: invariant.CheckSidecarSet,
			Converged: func() []string {
				var problems []string
				for _, set := range s.sets() {
					hashes, err := sidecar.HashesOf(&set.Spec)
					if err != nil {
						return []string{err.Error()}
					}
					problems = append(problems, invariant.SidecarsConverged(w.Cluster, set, hashes.Full, hashes.WithoutImage)...)
				}
				return problems
			},
		}
	}}
}

func watched() []client.Object {
	return []client.Object{&v1beta1.SidecarSet{}, &appsv1.ControllerRevision{}, &corev1.Pod{}}
}
