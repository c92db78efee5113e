package probe

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// key is a question to a Pod.
type key struct{ pod, name string }

func uid(text string) types.UID { return types.UID(text) }

func indexed(s v1alpha1.NodePodProbeStatus) map[key]v1alpha1.ContainerProbeState {
	out := map[key]v1alpha1.ContainerProbeState{}
	for _, p := range s.PodProbeStatuses {
		for _, state := range p.ProbeStates {
			out[key{p.UID, state.Name}] = state
		}
	}
	return out
}

// report returns the status in the order of the spec: the newest results, those of before where there is none yet, and none of what is not asked.
func report(n *v1alpha1.NodePodProbe, newest map[key]v1alpha1.ContainerProbeState) v1alpha1.NodePodProbeStatus {
	before := indexed(n.Status)
	var out v1alpha1.NodePodProbeStatus
	for _, p := range n.Spec.PodProbes {
		told := v1alpha1.PodProbeStatus{Name: p.Name, Namespace: p.Namespace, UID: p.UID}
		for _, asked := range p.Probes {
			of := key{p.UID, asked.Name}
			state, ok := newest[of]
			if !ok {
				state, ok = before[of]
			}
			if ok {
				told.ProbeStates = append(told.ProbeStates, state)
			}
		}
		if len(told.ProbeStates) > 0 {
			out.PodProbeStatuses = append(out.PodProbeStatuses, told)
		}
	}
	return out
}
