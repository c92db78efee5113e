package launchpriority

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/launch"
)

// Snapshot is all that one pass looks at.
type Snapshot struct {
	Pod *corev1.Pod
	// Barrier is what has the name of the Pod's barrier; nil for nothing. Its data need not be there.
	Barrier *corev1.ConfigMap
}

// Observe makes the reads of a pass. Names that others were found to have are looked up live: the cache holds only what carries the label of a
// barrier, and so not those that other software made.
func Observe(ctx context.Context, reader observe.Reader, p *corev1.Pod, found Found) (Snapshot, error) {
	s := Snapshot{Pod: p}
	name, err := launch.BarrierName(p.Name)
	if err != nil || !launch.IsHeld(p) {
		return s, nil // the webhook lets no Pod of such a name be held
	}
	from := reader.Reader
	if slices.Contains(found.Taken, name) {
		from = found.Live
	}
	barrier := &corev1.ConfigMap{}
	err = from.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: name}, barrier)
	if apierrors.IsNotFound(err) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("reading ConfigMap %s: %w", name, err)
	}
	s.Barrier = barrier
	return s, nil
}

// Found is what earlier passes ran into.
type Found struct {
	// Taken are names that could not be given, because something has them.
	Taken []string
	// Live reads around the cache.
	Live client.Reader
}
