package launchpriority

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/launch"
)

// Kind is the controller of held Pods. The cache keeps the containers of Pods that are held, and of ConfigMaps those with the label of a
// barrier.
func Kind() loop.Kind[*corev1.Pod, Snapshot, corev1.PodStatus] {
	return loop.Kind[*corev1.Pod, Snapshot, corev1.PodStatus]{
		Name:     "launchpriority",
		Source:   "container-launch-priority-controller",
		Concerns: concerns,
		Watches: func(observe.Reader) []loop.Watch {
			return []loop.Watch{loop.Named(&corev1.ConfigMap{}, podOf)}
		},
		Read: read,
		Plan: Plan,
	}
}

// concerns reports whether a change of a Pod can make a difference: of Pods whose containers may all start, only that they came and that
// they go.
func concerns(before, after *corev1.Pod) bool {
	return launch.IsOrdered(after) && (before == nil || !isCompleted(after) || after.DeletionTimestamp != nil)
}

func podOf(barrier *corev1.ConfigMap) []string {
	for _, ref := range barrier.OwnerReferences {
		if ref.Kind == "Pod" && ref.APIVersion == corev1.SchemeGroupVersion.String() {
			return []string{ref.Name}
		}
	}
	return nil
}

// Snapshot is all that one pass reads.
type Snapshot struct {
	Pod *corev1.Pod
	// Barrier is the ConfigMap that has the name of the Pod's barrier; nil for none. Its data need not be there.
	Barrier *corev1.ConfigMap
}

// read makes every read of a pass. Names that others were found to have are looked up live: the cache holds only what carries the label of
// a barrier, and so not what other software made.
func read(ctx context.Context, r loop.Reads, p *corev1.Pod) (s Snapshot, err error) {
	s.Pod = p
	name, err := launch.BarrierName(p.Name)
	if err != nil || !launch.IsOrdered(p) {
		return s, nil // the webhook lets no Pod of such a name be held
	}
	from := client.Reader(r)
	if slices.Contains(r.Taken, name) {
		from = r.Live
	}
	if s.Barrier, err = observe.Find(ctx, from, client.ObjectKey{Namespace: p.Namespace, Name: name}, &corev1.ConfigMap{}); err != nil {
		err = fmt.Errorf("reading the barrier: %w", err)
	}
	return s, err
}
