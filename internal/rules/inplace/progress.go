package inplace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Verdict says whether an update is done, and else what it waits for, in words.
type Verdict struct {
	Done bool
	Why  string
}

// Progress judges whether no in-place update is under way on the Pod. A Pod that never had one is done.
func Progress(p *corev1.Pod, o Options) Verdict {
	if Pending(p) {
		return Verdict{Why: "its update is planned and has not begun"}
	}
	state, err := State(p)
	if state == nil || err != nil {
		// A record that can't be read is removed by Advance.
		return Verdict{Done: true}
	}
	if verdict := batchProgress(p, state, o); !verdict.Done {
		return verdict
	}
	if hasNext(state) {
		return Verdict{Why: fmt.Sprintf("containers %s follow once %s are ready",
			strings.Join(touchedNext(state), ", "), strings.Join(required(state), ", "))}
	}
	return Verdict{Done: true}
}

func required(state *pub.InPlaceUpdateState) []string {
	if state.PreCheckBeforeNext == nil {
		return nil
	}
	return state.PreCheckBeforeNext.ContainersRequiredReady
}

// batchProgress judges the containers that have been changed so far.
func batchProgress(p *corev1.Pod, state *pub.InPlaceUpdateState, o Options) Verdict {
	if (state.UpdateImages || state.UpdateResources) && IsUnseen(p) {
		return Verdict{Why: "the kubelet has not seen the change yet"}
	}
	metas := runtimeMeta(p)
	for _, batch := range state.ContainerBatchesRecord {
		for _, name := range batch.Containers {
			if state.UpdateEnvFromMetadata {
				if verdict := environmentProgress(p, metas, name); !verdict.Done {
					return verdict
				}
			}
			if state.UpdateResources && o.VerticalScaling {
				if verdict := resizeProgress(p, name); !verdict.Done {
					return verdict
				}
			}
		}
	}
	if len(state.LastContainerStatuses) == 0 || runsAsSpecified(p) {
		return Verdict{Done: true}
	}
	for _, name := range slices.Sorted(maps.Keys(state.LastContainerStatuses)) {
		if verdict := ImageProgress(p, name, state.LastContainerStatuses[name]); !verdict.Done {
			return verdict
		}
	}
	return Verdict{Done: true}
}

// IsUnseen reports whether the Pod's spec has changed since the kubelet last wrote its status. Kubelets before 1.33 do not say.
func IsUnseen(p *corev1.Pod) bool {
	return p.Status.ObservedGeneration != 0 && p.Status.ObservedGeneration < p.Generation
}

// NeedsFinish reports whether the Pod is kept out of service by the gate of in-place updates.
func NeedsFinish(p *corev1.Pod) bool {
	c := pod.Condition(p, pub.InPlaceUpdateReady)
	return pod.HasReadinessGate(p, pub.InPlaceUpdateReady) && (c == nil || c.Status != corev1.ConditionTrue)
}

// Finish lets the Pod back into service; a new Pod gets its first readiness in the same way.
func Finish(p *corev1.Pod, now time.Time) {
	if NeedsFinish(p) {
		pod.SetGate(p, corev1.PodCondition{Type: pub.InPlaceUpdateReady, Status: corev1.ConditionTrue}, now)
	}
}
